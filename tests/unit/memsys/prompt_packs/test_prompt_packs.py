"""Prompt packs on source files of our own: cutting, converting, fetching, choosing and what a run records."""

import json
import re
import subprocess
from hashlib import sha256
from pathlib import Path
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.config import prompt_choice
from eval.config.presets import CONF
from eval.config.prompt_choice import prompt_rows
from eval.running.composed import compose_plan
from eval.running.experiment import run_experiment
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError, DataError
from memsys.llm.roles import make_role
from memsys.prompt_packs.catalogue import CutPart, Pack, PackPrompt, convert_prompt, find_packs
from memsys.prompt_packs.converting import Mapped, convert
from memsys.prompt_packs.cutting import Cut, Slot, cut
from memsys.prompt_packs.local import write_text
from memsys.prompt_packs.sources import SourceFile, read_source
from tests.support.stub_process import attached
from tests.support.stub_server import StubServer

CODE = '''
raise SystemExit("this file must not be run")
PLAIN = "costs $5 in {braces}"
FIELDS = "Say {word} or {{not}} to {}."
WRAPPED = Template("Hello {{ name }}")

class Asker:
    """A docstring with words."""

    def ask(self, note, language):
        prompt = f"Note: {note.text}\\n" + note.more
        prompt = "eins zwei" if language == "de" else "one two"
        prompt += (f"and {len(note.words)} "
                   "more words")
        return send([{"role": "system", "content": "Be brief."}])
'''


@pytest.mark.parametrize(
    ("place", "segments"),
    [
        (Cut(assign="PLAIN"), ("costs $5 in {braces}",)),
        (Cut(assign="FIELDS", syntax="format"), ("Say ", Slot("word"), " or {not} to ", Slot("0"), ".")),
        (Cut(assign="WRAPPED"), ("Hello {{ name }}",)),
        (Cut("Asker.ask", "prompt"), ("Note: ", Slot("note.text"), "\n", Slot("note.more"))),
        (Cut("Asker.ask", "prompt", 1, "else"), ("one two",)),
        (Cut("Asker.ask", "prompt", -1), ("and ", Slot("len(note.words)"), " more words")),
        (Cut("Asker.ask", nth=-1), ("Be brief.",)),
    ],
)
def test_cutting_finds_a_text_by_its_place(place: Cut, segments: tuple[str | Slot, ...]) -> None:
    assert cut(CODE, place, "fake.py").segments == segments


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (Cut("Asker.tell"), "no tell of Asker.tell"),
        (Cut(assign="PLAIN", nth=1), "no number 1"),
        (Cut("Asker.ask", "prompt", 1), "say branch: body or else"),
        (Cut(cell=0), "no cell 0"),
    ],
)
def test_a_place_that_is_not_there_is_named(place: Cut, message: str) -> None:
    with pytest.raises(DataError, match=message):
        cut(CODE, place, "fake.py")


def test_a_file_that_is_no_code_is_one_text() -> None:
    assert cut(" A {b}\nc. \n", Cut(whole=True), "p.txt").segments == ("A {b}\nc.",)


def test_a_notebooks_cell_is_cut_without_its_shell_commands() -> None:
    notebook = json.dumps({"cells": [{"source": ["!pip install x\n", "text = 'a {b}'\n"]}]})
    assert cut(notebook, Cut(assign="text", cell=0), "x.ipynb").segments == ("a {b}",)


@given(st.text(alphabet="ab $\n'", max_size=30), st.text(alphabet="xyz_ ${}", max_size=10))
def test_converted_templates_render_as_str_format_does(text: str, value: str) -> None:
    theirs = f"{text}{{word}}{text}"
    segments = cut(f"P = {theirs!r}", Cut(assign="P", syntax="format"), "p").segments
    template = convert(segments, Mapped(slots={"word": "$ours"}), "p")
    assert Template(template).substitute(ours=value) == theirs.format(word=value)


def test_spans_and_words_are_replaced_and_unknown_slots_named() -> None:
    segments = ("head\nA: ", Slot("first"), "\nB: ", Slot("last"), "\nUSER asks")
    mapped = Mapped(replace={"USER": "$owner"}, spans=[("first", "last", "$context")])
    assert convert(segments, mapped, "p") == "head\n${context}\n${owner} asks"
    with pytest.raises(DataError, match=r"slot 'first' has no placeholder"):
        convert(segments, Mapped(), "p")


def source_of(content: str) -> SourceFile:
    return SourceFile("owner/name", "abcdef0123", "code/fake.py", sha256(content.encode()).hexdigest())


def test_files_come_from_a_folder_or_a_repository_and_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "owner+name" / "code" / "fake.py"
    path.parent.mkdir(parents=True)
    path.write_text(CODE)
    assert read_source(source_of(CODE), tmp_path) == CODE
    with pytest.raises(DataError, match="the catalogue says"):
        read_source(source_of("other"), tmp_path)
    with pytest.raises(DataError, match="nor a git repository"):
        read_source(source_of(CODE), tmp_path / "elsewhere")


def test_files_come_from_a_repository_at_their_commit(tmp_path: Path) -> None:
    home = tmp_path / "owner+name"
    (home / "code").mkdir(parents=True)
    (home / "code" / "fake.py").write_text(CODE)
    git = ["git", "-C", str(home), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["rm", "-q", "code/fake.py"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    source = SourceFile("owner/name", commit, "code/fake.py", sha256(CODE.encode()).hexdigest())
    assert read_source(source, tmp_path) == CODE


def fake_pack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Pack:
    """A pack whose one prompt is for the reader's default role, written to a folder."""
    monkeypatch.setenv("MEMSYS_PROMPTS", str(folder))
    code = 'P = "  Given {memory}, answer {asked}"\nS = "Be brief, {asked}."'
    prompt = PackPrompt(
        "one", "default", [CutPart("code", Cut(assign="P", syntax="format"))], "", "",
        system=[CutPart("code", Cut(assign="S", syntax="format"))],
        mapped=Mapped(slots={"memory": "$context", "asked": "$question"}),
    )  # fmt: skip
    pack = Pack("fake", {"code": source_of(code)}, (prompt,), ())
    made = convert_prompt(pack, prompt, {"code": code})
    digests = {part: sha256(text.encode()).hexdigest() for part, text in made.texts.items()}
    whole = PackPrompt(
        "one", "default", prompt.prompt, made.cut_sha256, digests["prompt"], system=prompt.system,
        system_sha256=digests["system"], mapped=prompt.mapped,
    )  # fmt: skip
    write_text("fake", "one", made.texts["prompt"])
    write_text("fake", "one.system", made.texts["system"])
    return Pack("fake", pack.sources, (whole,), ())


def test_a_role_takes_a_fetched_prompt_exactly_and_renders_its_system_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack = fake_pack(tmp_path, monkeypatch)
    names = {part: str(pack.reference(pack.prompts[0], part)) for part in ("prompt", "system")}
    role = make_role("default", {"temperature": 0, "max_tokens": 1, **names}, tmp_path, None)
    values = {"context": "c", "question": "q"}
    assert role.prompt.render(values) == "  Given c, answer q"
    assert role.with_system(values).system == "Be brief, q."
    (tmp_path / "fake" / "one.txt").write_text("altered")
    with pytest.raises(ConfigError, match="run `make prompts`"):
        make_role("default", {"temperature": 0, "max_tokens": 1, **names}, tmp_path, None)


def test_prompts_that_were_not_fetched_end_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_PROMPTS", str(tmp_path))
    with pytest.raises(ConfigError, match=r"12 texts of clag are missing .* run `make prompts`.*, or set prompts=ours"):
        compose_plan(["memory=clag", "prompts=authors"])
    assert "prompts" in compose_plan(["memory=clag"]).settings
    with pytest.raises(ConfigError, match=r"prompts.source='theirs' is unknown"):
        compose_plan(["memory=clag", "prompts.source=theirs"])


def test_a_run_with_the_authors_prompts_records_both_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = fake_pack(tmp_path / "prompts", monkeypatch)
    monkeypatch.setattr(prompt_choice, "pack_of", lambda target: pack if "Reader" in target else None)
    with StubServer() as server:
        plan = compose_plan([
            "dataset=locomo_sample", "dataset.limit_questions=2", "memory=amem_small", "embedder=hashing",
            "prompts=authors", *attached(server.url), f"run_dir={tmp_path / 'run'}", f"cache_dir={tmp_path / 'cache'}",
            "progress=lines", "score=false",
        ])  # fmt: skip
        assert run_experiment(plan).complete
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    rows = {row["role"]: row for row in record["prompt_sources"]}
    assert rows["reader.default"]["cut_sha256"] == pack.prompts[0].sha256
    assert rows["reader.default"]["prompt_sha256"] == pack.prompts[0].prompt_sha256
    assert rows["reader.default"]["file_sha256"] == [pack.sources["code"].sha256]
    assert (rows["amem_small.analyse"]["source"], bool(rows["amem_small.analyse"]["why"])) == ("ours", True)
    assert record["identity"]["prompts"] == {"source": "authors"}


#: Either side of MemoryOS's pages, which the authors' prompts show apart.
OF_PAGES = {f"{page}_{side}" for page in ("previous", "page") for side in ("user", "agent")}


@pytest.mark.parametrize("pack", find_packs(ROOT), ids=lambda pack: pack.name)
def test_a_packs_placeholders_are_those_that_a_role_is_given(pack: Pack) -> None:
    files = [path for top in ("memsys", "baselines", "eval") for path in (ROOT / top).rglob("prompts/**/*.txt")]
    shipped = {name for path in files for name in re.findall(r"\$(\w+)", path.read_text())}
    mapped = " ".join(
        template
        for prompt in pack.prompts
        for template in (
            *map(str, prompt.mapped.slots.values()),
            *prompt.mapped.replace.values(),
            *(span[2] for span in prompt.mapped.spans),
            *(part for part in (*prompt.prompt, *prompt.system) if isinstance(part, str)),
        )
    )
    assert set(re.findall(r"\$(\w+)", mapped)) <= shipped | {"last_neighbour", *OF_PAGES, "known_or_none"}
    assert (CONF / "prompts" / "authors.yaml").is_file()
    assert all(len(prompt.sha256) == len(prompt.prompt_sha256) == 64 for prompt in pack.prompts)


def whys(preset: str) -> set[str]:
    """Why the roles of a preset have no authors' prompt; empty for one that has."""
    settings = {**compose_plan([f"memory={preset}"]).settings, "prompts": {"source": "authors"}}
    rows = [row for row in prompt_rows(settings) or () if not str(row["role"]).startswith("reader.")]
    return {str(row["why"]) for row in rows}


def test_a_system_without_a_pack_says_so_and_nothing_of_its_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_choice, "pack_of", lambda target: None)
    assert whys("memgpt") == {"no pack is catalogued for this system"}


def test_a_preset_that_asks_otherwise_than_the_release_has_none_of_its_prompts() -> None:
    assert all("as in memgpt_code" in why for why in whys("memgpt"))
    assert "as in memgpt_code" not in "".join(whys("memgpt_code"))


def test_a_reader_that_the_pack_does_not_name_has_no_catalogued_prompt() -> None:
    settings = {**compose_plan(["memory=rag", "reader=beam"]).settings, "prompts": {"source": "authors"}}
    whys = {row["why"] for row in prompt_rows(settings) or () if str(row["role"]).startswith("reader.")}
    assert whys == {"no prompt of its authors is catalogued for this reader"}
