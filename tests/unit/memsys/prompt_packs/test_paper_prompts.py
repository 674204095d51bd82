"""Prompts that are cut from the text of a paper: lines, repairs, checksums, and what is said where it is absent."""

import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from memsys.assets.paths import ROOT
from memsys.errors import ConfigError, DataError
from memsys.memfly.roles import make_roles
from memsys.prompt_packs.catalogue import PackPrompt, convert_prompt, find_packs, pack_of, read_pack
from memsys.prompt_packs.cutting import Slot
from memsys.prompt_packs.local import write_text
from memsys.prompt_packs.paper_cutting import REPAIRS, PaperCut, cut_lines
from memsys.prompt_packs.sources import MissingPaperError, PaperText, SourceFile, make_source, read_source
from scripts import fetch_prompts

PAPER = """A Paper About Notes

The prompt:
**File** the ﬁrst note. It is a conver-
sation about {subject} for $5.
  • Keywords:** as `a_list`
 – relation.type, $\\in [0, 1]$ \\rightarrow “so”

```
{"keywords": ["one"]}
```
The end.
"""
LIST = ("ligatures", "words", "dashes", "indents", "bold", "formulas", "quotes", "code")


def test_a_prompt_is_cut_by_its_lines_and_repaired_in_order() -> None:
    piece = cut_lines(PAPER, PaperCut((4, 11), [*LIST, {"from": "relation.type", "to": "relation_type"}]), "a paper")
    assert piece.source == "\n".join(PAPER.split("\n")[3:11])
    assert piece.segments == (
        "File the first note. It is a conversation about ",
        Slot("subject"),
        ' for 5.\n- Keywords: as a_list\n- relation_type, ∈ [0, 1] → "so"\n\n{"keywords": ["one"]}',
    )


@pytest.mark.parametrize("repair", sorted(REPAIRS))
def test_each_repair_does_its_part_alone(repair: str) -> None:
    text = "ﬁne com-\nputer\n • one\n **two** `three` \\geq $x$ “four”"
    piece = cut_lines(text, PaperCut((1, 4), [repair]), "a paper")
    assert piece.segments == (
        {
            "ligatures": text.replace("ﬁ", "fi"),
            "words": text.replace("com-\nputer", "computer"),
            "dashes": text.replace("•", "-"),
            "indents": text.replace("\n ", "\n"),
            "bold": text.replace("**", ""),
            "code": text.replace("`", ""),
            "formulas": text.replace("\\geq", "≥").replace("$", ""),
            "quotes": text.replace("“", '"').replace("”", '"'),
        }[repair],
    )


def test_lines_and_repairs_that_do_not_fit_are_named() -> None:
    with pytest.raises(DataError, match="has 13 lines, there is no line 40"):
        cut_lines(PAPER, PaperCut((4, 40)), "a paper")
    with pytest.raises(DataError, match="lines 1 to 3: the repair 'bold' changes nothing"):
        cut_lines(PAPER, PaperCut((1, 3), ["bold"]), "a paper")
    with pytest.raises(ValueError, match="counted from 1"):
        PaperCut((3, 2))
    with pytest.raises(ValueError, match="repair 'spelling' is unknown; there are ligatures"):
        PaperCut((1, 2), ["spelling"])


def paper_of(content: str) -> PaperText:
    return PaperText("A Paper About Notes", "papers/notes.txt", sha256(content.encode()).hexdigest())


def test_the_text_of_a_paper_lies_under_the_folder_of_sources_and_is_checked(tmp_path: Path) -> None:
    with pytest.raises(MissingPaperError, match=r"papers/notes.txt is missing: the text of the paper 'A Paper About"):
        read_source(paper_of(PAPER), tmp_path)
    with pytest.raises(MissingPaperError, match=r"MEMSYS_SOURCES is not set to a folder that holds papers/notes.txt"):
        read_source(paper_of(PAPER), None)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "notes.txt").write_text(PAPER, encoding="utf-8")
    assert read_source(paper_of(PAPER), tmp_path) == PAPER
    with pytest.raises(DataError, match=r"the catalogue says .*state its sha256 and the lines"):
        read_source(paper_of("other"), tmp_path)


def test_a_pack_names_the_kind_of_each_source(tmp_path: Path) -> None:
    named = {"title": "T", "path": "papers/t.txt", "sha256": "0" * 64, "arxiv": "2401.00001"}
    assert make_source({"kind": "paper", **named}) == PaperText(**named)
    file = {"repository": "owner/name", "commit": "c", "path": "p", "sha256": "0"}
    assert make_source(file) == SourceFile(**file)
    with pytest.raises(ValueError, match="kind='book' is unknown"):
        make_source({"kind": "book", **named})


PACK = """
sources:
  paper: {{kind: paper, title: A Paper About Notes, path: papers/notes.txt, sha256: "0"}}
  code: {{repository: owner/name, commit: c, path: p, sha256: "0"}}
prompts:
  - id: one
    role: one
    source: {source}
    prompt: [{place}]
    slots: {{subject: $content}}
    sha256: ""
    prompt_sha256: ""
"""


def written(folder: Path, source: str, place: str) -> Path:
    path = folder / "prompt_pack.yaml"
    path.write_text(PACK.format(source=source, place=place), encoding="utf-8")
    return path


def test_a_pack_cuts_papers_by_lines_and_files_by_names(tmp_path: Path) -> None:
    pack = read_pack(written(tmp_path, "paper", "{lines: [5, 5], repairs: []}"))
    made = convert_prompt(pack, pack.prompts[0], {"paper": PAPER})
    assert made.texts == {"prompt": "sation about ${content} for $$5."}
    assert made.cut_sha256 == sha256(b"sation about {subject} for $5.").hexdigest()
    for source, place in (("code", "{lines: [1, 2]}"), ("paper", "{assign: P}")):
        with pytest.raises(ConfigError, match=f"source {source}: a paper is cut by its lines, and nothing else is"):
            read_pack(written(tmp_path, source, place))
    with pytest.raises(ConfigError, match="unexpected keyword argument 'repair'"):
        read_pack(written(tmp_path, "paper", "{lines: [1, 2], repair: [bold]}"))


def test_memflys_pack_has_the_papers_prompts_for_all_roles_that_the_paper_prints() -> None:
    pack = pack_of("memsys.memfly.config.MemflyConfig")
    assert pack is not None
    found = {role: pack.find(role, {}) for role in ("ingest", "update", "intent", "draft", "sufficient", "subquery")}
    assert [role for role, entry in found.items() if not isinstance(entry, PackPrompt)] == ["draft"]
    assert {type(source) for source in pack.sources.values()} == {PaperText}


def test_a_fetched_prompt_of_memfly_keeps_its_dollar_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_PROMPTS", str(tmp_path))
    name = str(write_text("memfly", "update", "It costs $$5: ${content}"))
    role = {"temperature": 0, "max_tokens": 1}
    settings = dict.fromkeys(("ingest", "intent", "draft", "sufficient", "subquery"), role)
    roles = make_roles({**settings, "update": {**role, "prompt": name}}, thresholds=True)
    assert roles.update.prompt.render({"content": "c"}) == "It costs $5: c"


def test_the_command_says_which_paper_is_missing_and_how_to_make_its_text(tmp_path: Path) -> None:
    environment = {"MEMSYS_SOURCES": str(tmp_path), "MEMSYS_PROMPTS": str(tmp_path / "prompts"), "PATH": ""}
    command = [sys.executable, str(ROOT / "scripts" / "fetch_prompts.py"), "memfly"]
    named = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert named.returncode == 2
    assert f"memfly: {tmp_path / 'papers' / 'memfly.txt'} is missing: the text of the paper 'MemFly: " in named.stderr
    assert "take it from the paper's PDF as Markdown" in named.stderr


def test_an_absent_paper_is_a_failure_only_where_its_pack_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MEMSYS_SOURCES", str(tmp_path))
    monkeypatch.setenv("MEMSYS_PROMPTS", str(tmp_path / "prompts"))
    monkeypatch.setattr(
        fetch_prompts, "find_packs", lambda root: [one for one in find_packs(root) if one.name == "memfly"]
    )
    for names, status in (((), 0), (("memfly",), 2)):
        monkeypatch.setattr(sys, "argv", ["fetch_prompts.py", *names])
        assert fetch_prompts.main() == status
        assert "memfly.txt is missing" in capsys.readouterr().err
