"""Every authors' prompt, cut from the authors' own files: checksums, and our rendering compared with theirs.

A test whose files cannot be had (``MEMSYS_SOURCES``, else GitHub) is skipped and names the first that is missing. None
of their text is committed, and none of their code is run: what is evaluated here are string expressions whose inserted
parts were replaced by constants before.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import pytest
from jinja2 import Template as JinjaTemplate

from eval.config.prompt_choice import MissingPromptsError, prompt_rows
from eval.running.composed import compose_plan
from memsys.assets.paths import ROOT
from memsys.llm.roles import make_role
from memsys.memfly.roles import SCHEMAS
from memsys.prompt_packs.catalogue import (
    PARTS,
    CutPart,
    Pack,
    PackPrompt,
    Part,
    check_converted,
    convert_prompt,
    find_packs,
)
from memsys.prompt_packs.cutting import cut
from memsys.prompt_packs.local import write_text
from memsys.prompt_packs.paper_cutting import PaperCut
from memsys.prompt_packs.sources import MissingSourceError, Source, SourceFile, read_source, sources_folder
from tests.support.composing import PRESETS

pytestmark = pytest.mark.sources

PACKS = {pack.name: pack for pack in find_packs(ROOT)}
PROMPTS = [(pack.name, prompt) for pack in PACKS.values() for prompt in pack.prompts]
NAMES = [f"{name}-{prompt.id}" for name, prompt in PROMPTS]
PRINTED = [(name, one) for name, one in PROMPTS if any(isinstance(part.place, PaperCut) for part in one.cuts())]
CODE = [entry for entry in PROMPTS if entry not in PRINTED]


@cache
def text_of(source: Source) -> str | MissingSourceError:
    """Text of a file, its checksum compared; or why it cannot be had."""
    folder = sources_folder()
    if folder is None and (failed := _NO_NETWORK):
        return failed[0]
    try:
        return read_source(source, folder)
    except MissingSourceError as error:
        if folder is None and isinstance(source, SourceFile):
            _NO_NETWORK.append(error)
        return error


#: Why the first download failed: no other is then tried.
_NO_NETWORK: list[MissingSourceError] = []


def missing(name: str, prompt: PackPrompt) -> str:
    """Why a prompt cannot be cut here; empty where it can."""
    texts = (text_of(PACKS[name].sources[part.source]) for part in prompt.cuts())
    return next((str(text) for text in texts if isinstance(text, MissingSourceError)), "")


def contents_of(name: str, prompt: PackPrompt) -> dict[str, str]:
    """Texts of the files that a prompt is cut from; skips the test where one cannot be had."""
    if problem := missing(name, prompt):
        pytest.skip(problem)
    return {part.source: str(text_of(PACKS[name].sources[part.source])) for part in prompt.cuts()}


@pytest.fixture(scope="session")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All prompts that can be had, converted and written."""
    folder = tmp_path_factory.mktemp("prompts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMSYS_PROMPTS", str(folder))
        for name, prompt in PROMPTS:
            if missing(name, prompt):
                continue
            for part, text in convert_prompt(PACKS[name], prompt, contents_of(name, prompt)).texts.items():
                write_text(name, prompt.id if part == "prompt" else f"{prompt.id}.system", text)
    return folder


@pytest.fixture(autouse=True)
def use_fetched(fetched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_PROMPTS", str(fetched))


@pytest.mark.parametrize(("name", "prompt"), PROMPTS, ids=NAMES)
def test_the_cut_text_has_the_catalogues_checksums(name: str, prompt: PackPrompt) -> None:
    check_converted(PACKS[name], prompt, convert_prompt(PACKS[name], prompt, contents_of(name, prompt)))


@pytest.mark.parametrize(("name", "prompt"), CODE, ids=[f"{name}-{prompt.id}" for name, prompt in CODE])
def test_our_rendering_is_the_authors(name: str, prompt: PackPrompt) -> None:
    pack, values, contents = PACKS[name], _Values(), contents_of(name, prompt)
    theirs = {part: _their_text(pack, prompt, part, contents, values) for part in PARTS}
    settings = {part: str(pack.reference(prompt, part)) for part in PARTS if pack.reference(prompt, part)}
    role = make_role(prompt.role, {"temperature": 0, "max_tokens": 1, **settings}, ROOT, None)
    assert role.prompt.render(values) == theirs["prompt"]
    assert (role.with_system(values).system or "") == theirs["system"]


@pytest.mark.parametrize(("name", "prompt"), PRINTED, ids=[f"{name}-{prompt.id}" for name, prompt in PRINTED])
def test_a_printed_prompt_keeps_every_word_of_the_paper(name: str, prompt: PackPrompt) -> None:
    values, contents = _Values(), contents_of(name, prompt)
    ours = Template(convert_prompt(PACKS[name], prompt, contents).texts["prompt"]).substitute(values)
    printed = "\n".join(
        line
        for part in prompt.cuts()
        if isinstance(part.place, PaperCut)
        for line in contents[part.source].split("\n")[part.place.lines[0] - 1 : part.place.lines[1]]
    )
    for slot, template in prompt.mapped.slots.items():
        printed = printed.replace(f"{{{slot}}}", Template(template).substitute(values))
    assert _words(ours) == _words(re.sub(r"\\(rightarrow|in)\b", "", printed))


@pytest.mark.parametrize(("name", "prompt"), PRINTED, ids=[f"{name}-{prompt.id}" for name, prompt in PRINTED])
def test_a_printed_reply_has_the_fields_of_our_schema_in_their_order(name: str, prompt: PackPrompt) -> None:
    assert name == "memfly"
    text = convert_prompt(PACKS[name], prompt, contents_of(name, prompt)).texts["prompt"]
    fields = re.findall(r'"(\w+)":', text)
    schema = SCHEMAS[prompt.role]
    assert fields == ([] if schema is None or prompt.role == "update" else list(schema["properties"]))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_can_be_composed_with_them(preset: str) -> None:
    try:
        plan = compose_plan([f"memory={preset}", "prompts=authors"])
    except MissingPromptsError as error:
        lacking = [
            why for name, one in PROMPTS if f" of {name} are missing" in str(error) and (why := missing(name, one))
        ]
        if not lacking:
            raise
        pytest.skip(lacking[0])
    rows = prompt_rows(plan.settings) or []
    memory: Any = plan.settings["memory"]
    roles = {f"{memory['name']}.{role}" for role in memory.get("roles") or ()}
    assert roles <= {row["role"] for row in rows}
    assert all(row["prompt_sha256"] if row["source"] == "authors" else row["why"] for row in rows)


def _words(text: str) -> list[str]:
    """Words of letters, in order: what the repairs of marks, numbers and signs leave alone."""
    return re.findall("[A-Za-z]+", text)


class _Values(dict[str, str]):
    """A value for each of our placeholders, with everything in it that could be mistaken for a template."""

    def __missing__(self, name: str) -> str:
        self[name] = f"<{name} $x {{y}} $$ %s>"
        return self[name]


def _their_text(pack: Pack, prompt: PackPrompt, part: Part, contents: dict[str, str], values: _Values) -> str:
    parts = prompt.prompt if part == "prompt" else prompt.system
    texts = [
        _their_cut(pack, prompt, one, contents, values)
        if isinstance(one, CutPart)
        else Template(one).substitute(values)
        for one in parts
    ]
    return "".join(texts)


def _their_cut(pack: Pack, prompt: PackPrompt, part: CutPart, contents: dict[str, str], values: _Values) -> str:
    """Render a text as Python, ``str.format`` or Jinja would, and take from it what we have one value for."""
    content = contents[part.source]
    assert not isinstance(part.place, PaperCut)
    source = cut(content, part.place, pack.name).source
    assert source in (
        content if part.place.cell is None else "".join(json.loads(content)["cells"][part.place.cell]["source"])
    )
    if part.place.whole:
        return source.strip()  # a text, in which nothing is filled, as the release reads it
    filled = {slot: Template(ours).substitute(values) for slot, ours in prompt.mapped.slots.items()}
    text = _evaluated(source, filled | {mark: f"<{mark}>" for span in prompt.mapped.spans for mark in span[:2]})
    if part.place.syntax == "format":
        spare = {mark: f"<{mark}>" for span in prompt.mapped.spans for mark in span[:2]}
        middle = {"original_title": "t", "new_title": "t"}
        numbered = [filled[key] for key in sorted(filled) if key.isdigit()]
        text = text.format(*numbered, **{k: v for k, v in (middle | spare | filled).items() if not k.isdigit()})
    if "{{" in text and "Template(" in source:
        names = {word.strip("{} "): Template(ours).substitute(values) for word, ours in prompt.mapped.replace.items()}
        marks = {mark.strip("{} "): f"<{mark.strip('{} ')}>" for span in prompt.mapped.spans for mark in span[:2]}
        text = JinjaTemplate(text).render(**names, **{k: v for k, v in marks.items() if k.isidentifier()})
    elif "{{question}}" in text:
        text = text.replace("{{question}}", values["question"])
    else:
        for word, ours in prompt.mapped.replace.items():
            text = text.replace(word, Template(ours).substitute(values))
    return _with_one_value(text, prompt, values)


def _evaluated(source: str, filled: dict[str, str]) -> str:
    """Evaluate a string expression whose inserted parts are the given constants."""

    class Filled(ast.NodeTransformer):
        def generic_visit(self, node: ast.AST) -> ast.AST:
            if isinstance(node, ast.expr) and ast.unparse(node) in filled:
                return ast.Constant(filled[ast.unparse(node)])
            return super().generic_visit(node)

    tree = ast.parse(f"({source})", mode="eval").body
    if isinstance(tree, ast.Call):
        tree = tree.args[0]
    whole = ast.fix_missing_locations(ast.Expression(Filled().visit(tree)))
    assert not any(isinstance(node, ast.Name | ast.Call | ast.Attribute) for node in ast.walk(whole))
    text = eval(compile(whole, "prompt", "eval"), {"__builtins__": {}})
    assert isinstance(text, str)
    return text


def _with_one_value(text: str, prompt: PackPrompt, values: _Values) -> str:
    """Put our one value in place of the lines that it stands for."""
    for first, last, ours in prompt.mapped.spans:
        lines = text.split("\n")
        start = next(at for at, line in enumerate(lines) if first.strip("{} ") in line)
        end = next(at for at, line in enumerate(lines) if at >= start and last.strip("{} ") in line)
        lines[start : end + 1] = [Template(ours).substitute(values)]
        text = "\n".join(lines)
    return text
