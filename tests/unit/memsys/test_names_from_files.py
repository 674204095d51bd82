"""A name that was read from a file leads to no other place than that of its own."""

import json
from pathlib import Path

import pytest

from eval.export import main
from eval.judge.config import JudgeConfig
from eval.running.plan import experiment_name
from memsys.errors import ConfigError
from memsys.files import name_problem
from memsys.settings import check_name
from tests.support.fake_run import FakeRun

BAD = [
    "../../evil", "..", ".", "/tmp/evil", "a/b", "a\\b", "..\\evil", "a\0b", "a\nb", "\x7f", "\ud800", "", "  ", " a",
    "a ", "a.", ".cells", "NUL", "con.json", "x" * 201, "ä" * 101, "\u202egnp.exe", None, 7, ["a"],
]  # fmt: skip
GOOD = ["rag-qwen25_05b-s0-3f2a9c01", "A b", "v1.5", "мемори", "x" * 200, "nullable", "a+b=c", "gpt-4o:mini"]


@pytest.mark.parametrize("value", BAD)
def test_what_is_no_name_of_a_file_says_why(value: object) -> None:
    assert name_problem(value)
    with pytest.raises(ConfigError, match="is a part of the name of a folder; give it one that"):
        check_name("memory.name", value)


@pytest.mark.parametrize("value", GOOD)
def test_names_that_people_give_are_taken(value: str) -> None:
    assert not name_problem(value)


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize("run_id", [each for each in BAD if each not in ("a/b", "\ud800")])
def test_an_export_stays_in_its_folder(run_id: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = FakeRun().write(tmp_path / "runs")
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, "run_id": run_id}))
    out = tmp_path / "deep" / "er"
    out.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    assert main([str(path), "--out", str(out)]) != 0
    said = capsys.readouterr().err
    assert "run_id" in said
    assert "Traceback" not in said
    assert "\0" not in said
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["../x", "a\0b", "a/.cells", "", "a//b", "x" * 300])
def test_an_experiment_stays_under_the_folder_of_runs(name: str) -> None:
    with pytest.raises(ConfigError, match="must be the name of a folder under runs_dir"):
        experiment_name(name)


def test_a_judge_names_its_files() -> None:
    with pytest.raises(ConfigError, match=r"judge\.name='\.\./x' is a part of the name"):
        JudgeConfig("../x", "correct", False, {}, 1, "abstain", "none")
