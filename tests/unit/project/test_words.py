"""Sentences of code and documents: words that were retired, counted, and the first words of docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Packages and pages whose sentences are read; texts that a model sees are no prose of ours.
READ = ("README.md", "docs", "memsys", "baselines", "eval", "conf")
SUFFIXES = (".py", ".md", ".yaml")
SHOWN_TO_A_MODEL = re.compile(r"/prompts/|texts\.yaml$|prompt_pack\.yaml$")

#: Retired words -> lines that still have one. Write plain terms instead: "significantly different", "JSON separator",
#: "turn format", "compared with", "prompts", "correct", "is in", "is not a", "next to", "deviation",
#: "a third party", "a user".
BOUNDS = {
    r"\btold apart\b": 0,
    r"\bthe blank\b": 0,
    r"\bdrivers' turns\b": 0,
    r"\b(held|holds?)\b.*\bagainst\b": 0,
    r"\bwordings?\b": 12,
    r"\bwhence\b": 0,
    r"\b[Mm]end(ed|s)?\b": 0,
    r"\bstands? (in|beside|for itself)\b": 0,
    r"\bstands?\b": 21,
    r"(?<![Tt]here )\bis no (?!longer|such|more)[a-z]+": 0,
    r"\b[Bb]eside\b": 0,
    r"\b[Dd]epartures?\b": 4,  # key of run.json
    r"\btells? (nothing|apart)\b": 0,
    r"\bbears?\b": 3,
    r"\bforeign\b": 6,
    r"\banew\b": 0,
    r"\b([Ss]ome|[Aa]ny)body\b": 1,
}

NO_SUMMARY = re.compile(r"(What|How|Which|Where|Whether|Why|Who|Says|Stands)\b")
VERBS = frozenset((Path(__file__).parents[1] / "docstring_verbs.txt").read_text("utf-8").split())


def read_files() -> Iterator[Path]:
    for name in READ:
        place = ROOT / name
        found = [place] if place.is_file() else sorted(place.rglob("*"))
        yield from (path for path in found if path.suffix in SUFFIXES and not SHOWN_TO_A_MODEL.search(path.as_posix()))


def test_retired_words_only_become_fewer() -> None:
    lines = [line for path in read_files() for line in path.read_text("utf-8").splitlines()]
    found = {pattern: sum(bool(re.search(pattern, line)) for line in lines) for pattern in BOUNDS}
    more = [
        f"{pattern}: {found[pattern]} lines, bound {bound}"
        for pattern, bound in BOUNDS.items()
        if found[pattern] > bound
    ]
    fewer = [
        f"{pattern}: lower the bound to {found[pattern]}" for pattern, bound in BOUNDS.items() if found[pattern] < bound
    ]
    assert not more, more
    assert not fewer, fewer


def docstrings(package: str) -> Iterator[tuple[str, ast.AST, str]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    line = getattr(node, "lineno", 1)
                    yield f"{path.relative_to(ROOT)}:{line}", node, text.splitlines()[0]


def is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("property" in ast.unparse(each) for each in node.decorator_list)


@pytest.mark.parametrize("package", ["memsys", "baselines", "eval"])
def test_functions_are_described_by_verbs_and_the_rest_by_nouns(package: str) -> None:
    """A new verb is added to ``docstring_verbs.txt``; "Whether ..." may describe a property."""
    odd = []
    for place, node, summary in docstrings(package):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_property(node):
            fits = summary.split()[0].rstrip(".,:;") in VERBS
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            fits = not summary.startswith("What ")
        else:
            fits = not NO_SUMMARY.match(summary)
        if not fits:
            odd.append(f"{place}: {summary}")
    assert not odd, "\n".join(odd)
