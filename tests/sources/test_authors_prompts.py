"""Every authors' prompt, cut from the authors' own files: checksums, and our rendering compared with theirs.

Needs the repositories (``MEMSYS_SOURCES``); none of their text is committed, and none of their code is run: what is
evaluated here are string expressions whose inserted parts were replaced by constants before.
"""

import ast
import json
import os
from pathlib import Path
from string import Template
from typing import Any

import pytest
from jinja2 import Template as JinjaTemplate

from eval.configs.choices import presets
from eval.configs.prompt_choice import prompt_rows
from eval.running.composed import compose_plan
from memsys.assets.paths import ROOT
from memsys.llm.roles import make_role
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
from memsys.prompt_packs.sources import read_source

pytestmark = pytest.mark.sources

PACKS = {pack.name: pack for pack in find_packs(ROOT)}
PROMPTS = [(pack.name, prompt) for pack in PACKS.values() for prompt in pack.prompts]
NAMES = [f"{name}-{prompt.id}" for name, prompt in PROMPTS]


@pytest.fixture(scope="session")
def contents() -> dict[str, dict[str, str]]:
    """Text of each file of each pack, its checksum compared."""
    folder = os.environ.get("MEMSYS_SOURCES")
    assert folder, "set MEMSYS_SOURCES to a folder with the authors' repositories (scripts/fetch_prompts.py --help)"
    return {
        pack.name: {key: read_source(source, Path(folder)) for key, source in pack.sources.items()}
        for pack in PACKS.values()
    }


@pytest.fixture(scope="session")
def fetched(contents: dict[str, dict[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All prompts, converted and written."""
    folder = tmp_path_factory.mktemp("prompts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMSYS_PROMPTS", str(folder))
        for name, prompt in PROMPTS:
            for part, text in convert_prompt(PACKS[name], prompt, contents[name]).texts.items():
                write_text(name, prompt.id if part == "prompt" else f"{prompt.id}.system", text)
    return folder


@pytest.fixture(autouse=True)
def use_fetched(fetched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_PROMPTS", str(fetched))


@pytest.mark.parametrize(("name", "prompt"), PROMPTS, ids=NAMES)
def test_the_cut_text_has_the_catalogues_checksums(
    contents: dict[str, dict[str, str]], name: str, prompt: PackPrompt
) -> None:
    check_converted(PACKS[name], prompt, convert_prompt(PACKS[name], prompt, contents[name]))


@pytest.mark.parametrize(("name", "prompt"), PROMPTS, ids=NAMES)
def test_our_rendering_is_the_authors(contents: dict[str, dict[str, str]], name: str, prompt: PackPrompt) -> None:
    pack, values = PACKS[name], _Values()
    theirs = {part: _their_text(pack, prompt, part, contents[name], values) for part in PARTS}
    settings = {part: str(pack.reference(prompt, part)) for part in PARTS if pack.reference(prompt, part)}
    role = make_role(prompt.role, {"temperature": 0, "max_tokens": 1, **settings}, ROOT, None)
    assert role.prompt.render(values) == theirs["prompt"]
    assert (role.with_system(values).system or "") == theirs["system"]


@pytest.mark.parametrize("preset", sorted(presets()))
def test_every_preset_can_be_composed_with_them(preset: str) -> None:
    plan = compose_plan([f"memory={preset}", "prompts=authors"])
    rows = prompt_rows(plan.settings) or []
    memory: Any = plan.settings["memory"]
    roles = {f"{memory['name']}.{role}" for role in memory.get("roles") or ()}
    assert roles <= {row["role"] for row in rows}
    assert all(row["prompt_sha256"] if row["source"] == "authors" else row["why"] for row in rows)


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
    source = cut(content, part.place, pack.name).source
    assert source in (
        content if part.place.cell is None else "".join(json.loads(content)["cells"][part.place.cell]["source"])
    )
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
