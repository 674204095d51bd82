"""Texts that a model sees stand in files: each that is asked for is there, and none stands in code."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest

from memsys.errors import ConfigError
from memsys.texts import FILE, ShownTexts

ROOT = Path(__file__).resolve().parents[3]

#: Packages that write prompts, contexts or memories; the rest of ``memsys`` shows a model nothing of its own, but for
#: the client's one request that asks what a server accepts.
WRITERS = sorted({path.parent for path in ROOT.glob("memsys/*/prompts/")} - {ROOT / "memsys" / "llm"})
WRITERS.append(ROOT / "baselines")

#: Module -> beginnings of literals with words that no model sees.
NOT_SHOWN = {
    "baselines/amem/heuristics.py": ("\ndare need", "having her"),  # function words
    "baselines/amem/roles.py": ("none",),  # an error's
    "baselines/external/found.py": (", result ",),  # an error's
    "baselines/external/http_server.py": ("open() comes first", "status ", ": `results`", "%s: /stats"),  # errors'
    "baselines/external/mcp_server.py": (
        "open() comes first",
        " cannot be started",
        " ended: ",
        ": its result",
        "session terminated",
        "session not found",
    ),  # errors'
    "baselines/external/memory.py": ("%s: written again", "with use_cache", "without it: "),  # a warning's; an error's
    "baselines/external/objects.py": (
        "add(messages)",
        "search(query",
        "str |",
        "what ",
        "() raised ",
        "() returned",
    ),  # errors'; an annotation
    "baselines/gam/lucene.py": ("Lucene's", r" \g<0> "),  # a warning's; patterns
    "baselines/gam/stems.py": ("\na an",),  # function words
    "baselines/packages/authors_gam/lucene.py": ("\na an",),  # function words
    "baselines/memgpt/code_config.py": ("session or turn",),  # an error's
    "baselines/memgpt/code_messages.py": ("%Y-%m-%d",),  # form of a time
    "baselines/memoryos/long_term.py": ("- None", "None"),  # read in a reply
    "baselines/mem0/graph_calls.py": ("mem0's graph search",),  # a warning's
    "baselines/mem0/memory.py": ("summary before ",),  # key of a call, which is not part of the request
    "memsys/clag/retrieval.py": ("no_hits",),  # in the trace
    "memsys/xmemory/uncertainty.py": ("none",),  # key of a call
}


def modules() -> list[Path]:
    """Modules that write texts.

    ``calls.py`` only estimate how long they are, ``settings.py`` checks settings, and a ``worker.py`` runs a package of
    others in a process of its own, which shows a model that package's texts.
    """
    found = [ROOT / "memsys" / "turns.py", *(path for folder in WRITERS for path in folder.rglob("*.py"))]
    return [path for path in found if path.name not in ("calls.py", "settings.py", "worker.py")]


def test_texts_that_are_asked_for_are_those_of_the_files() -> None:
    asked: dict[Path, set[str]] = defaultdict(set)
    for path in modules():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name, text, places in _requests(ast.parse(path.read_text(encoding="utf-8"))):
            texts = getattr(import_module(module), name)
            assert isinstance(texts, ShownTexts)
            wanted = {place for _, place, _, _ in Formatter().parse(texts.by_name[text]) if place is not None}
            assert places is None or places == wanted, f"{path}: {text} has the places {wanted}"
            asked[texts.path].add(text)
    assert len(asked) > 10
    for file, names in asked.items():
        assert names == set(ShownTexts(file).by_name), file
    assert set(asked) == {file for folder in ("memsys", "baselines") for file in (ROOT / folder).rglob("*texts.yaml")}


def test_no_text_stands_in_code() -> None:
    found = [
        f"{path}:{node.lineno}: {node.value!r}"
        for path in (module.relative_to(ROOT).as_posix() for module in modules())
        for node in _texts(ast.parse((ROOT / path).read_text(encoding="utf-8")))
        if not str(node.value).startswith(NOT_SHOWN.get(path, ()))
    ]
    assert found == [], "move them to texts.yaml beside the module, or, where no model sees one, add it to NOT_SHOWN"


@pytest.mark.parametrize(
    "code",
    [
        'f"Summary of the day: {text}"',
        'x or "unknown"',
        'lines or "(none)"',
        'f"<Page {number}>"',
        '"\\n".join(["CONVERSATION:", *lines])',
    ],
)
def test_a_text_in_code_would_be_found(code: str) -> None:
    assert list(_texts(ast.parse(f"shown = {code}")))


@pytest.mark.parametrize("code", ['f"{date}: {text}"', 'raise ValueError("not so good")', 're.compile("a b")'])
def test_what_is_no_text_is_not_found(code: str) -> None:
    assert not list(_texts(ast.parse(code)))


@pytest.mark.parametrize(
    ("content", "message"),
    [("- a list", "must map names to texts"), ("one: 2", "must map names"), ("other: x", "the text one must be there")],
)
def test_a_file_that_does_not_hold_the_text_is_one_error(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / FILE
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        ShownTexts(path)("one", place=1)
    assert str(path) in str(caught.value)


def test_places_are_filled_and_braces_of_a_value_stay(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text('one: "On {day}: {text!r} "', encoding="utf-8")
    assert ShownTexts(path)("one", day="{day}", text="it's") == 'On {day}: "it\'s" '
    with pytest.raises(ConfigError, match=r"its places be \{day\}"):
        ShownTexts(path)("one", day="1")


def _requests(tree: ast.Module) -> Iterator[tuple[str, str, set[str] | None]]:
    """Name of the object, text and places of each request for a text; no places where they are given as ``**``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("TEXTS"):
            assert isinstance(node.args[0], ast.Constant), f"line {node.lineno}: write the text's name out"
            places = [each.arg for each in node.keywords]
            yield node.func.id, node.args[0].value, None if None in places else {str(place) for place in places}


def _texts(tree: ast.Module) -> Iterator[ast.Constant]:
    """Literals that read as text: words with a blank, a bracket or a colon, and a word that stands for what lacks."""
    skipped = {id(inner) for node in ast.walk(tree) for inner in _skipped(node)}
    for node in ast.walk(tree):
        if id(node) not in skipped and isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.search(r"[A-Za-z].*\s|\s.*[A-Za-z]|\([A-Za-z]|^[A-Z]{2,}:|<[A-Za-z]", node.value, re.DOTALL):
                yield node
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and id(node) not in skipped:
            last = node.values[-1]
            if isinstance(last, ast.Constant) and isinstance(last.value, str) and re.search("[a-z]", last.value):
                yield last


def _skipped(node: ast.AST) -> Iterator[ast.AST]:
    """Parts that hold no text for a model: docstrings, errors, types, patterns, and lists of words to be split."""
    parts: list[ast.AST] = []
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        parts = [node.value]
    elif isinstance(node, ast.Raise):
        parts = [node]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "refuse_gold":
        parts = list(node.args)  # what an error calls the system
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        is_pattern = isinstance(owner, ast.Name) and owner.id == "re"
        parts = list(node.args) if is_pattern else [owner] if node.func.attr == "split" else []
    elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        parts = [node.annotation]
    return (inner for part in parts for inner in ast.walk(part))
