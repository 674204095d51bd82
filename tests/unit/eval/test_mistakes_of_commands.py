"""Options, places and streams of the commands that cannot work, or have no effect: one message each, and status 2."""

import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from eval.audit.__main__ import main as audit
from eval.commands.commands import start, use_safe_streams
from eval.commands.places import HOME_VARIABLE, RESULTS, check_current_folder, use_checkout
from eval.data import main as data
from eval.floors import main as floors
from eval.models import main as models
from eval.parity.__main__ import main as parity
from eval.plots import main as plots
from eval.proxy import main as proxy
from eval.score import main as score
from eval.serve import main as serve
from eval.sweep.__main__ import main as sweep
from eval.tables import main as tables
from memsys.errors import RunDirectoryError
from tests.support.fake_run import FakeRun

Command = Callable[[list[str]], int]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a file, an empty folder and a run."""
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    FakeRun(questions_each=2).write(tmp_path).rename(tmp_path / "run")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (serve, ["backbone=smollm2_135m", "serving.folder=HERE/file"], "serving.folder=HERE/file is a file; name a"),
        (plots, ["--runs", "HERE/empty", "--out", "HERE/out"], "no run in HERE/empty, nor below"),
        (plots, ["--runs", "HERE/run", "--protocol", "nope", "--out", "HERE/out"], "protocol='nope' is unknown"),
        (tables, ["--table", "1", "--runs", "HERE/empty", "--out", "HERE/out"], "no run in HERE/empty"),
        (score, ["HERE/none"], "HERE/none does not exist and has no references.jsonl; name run"),
        (score, ["HERE/file"], "HERE/file is a file and has no references.jsonl; name run"),
        (score, ["HERE/run", "--list"], "--list shows every metric and scores nothing; leave HERE/run out, or --list"),
        (score, ["HERE/run", "--bertscore-layers", "3"], "--bertscore-layers changes nothing: no metric here needs it"),
        (score, ["HERE/run", "--bertscore-model", "x"], "--bertscore-model changes nothing: no metric here needs it"),
        (audit, ["--page", "human_labels"], "--page scores nothing; leave human_labels out, or --page"),
        (audit, ["--out", "HERE/out", "--cache", "HERE/file"], "--cache HERE/file is a file; name a folder"),
        (floors, ["locomo_sample", "--out", "HERE/file"], "--out HERE/file is a file; name a folder"),
        (floors, ["locomo_sample", "nope", "--out", "HERE/out"], "dataset='nope' is unknown"),
        (data, ["locomo", "--to", "HERE/file"], "--to HERE/file is a file; name a folder"),
        (data, ["locomo", "--from", "HERE/file", "--to", "HERE/out"], "--from HERE/file is not a folder"),
        (data, ["custom", "--to", "HERE/out"], "custom: there is nothing to fetch of data of your own"),
        (models, ["--list", "nope"], "--list shows every asset; leave nope out, or --list"),
        (proxy, ["--out", "HERE/file"], "--out HERE/file is a file; name a folder"),
        (parity, ["memory=clag_code", "against=authors_clag", "--out", "HERE/file"], "--out HERE/file is a file"),
        (sweep, ["plan", "memory=rag", "--out", "HERE/out"], "--out is for collect; plan writes nothing"),
        (sweep, ["status", "memory=rag", "--gpu", "h100"], "--gpu is for plan; status counts no hours"),
    ],
)  # fmt: skip
def test_a_command_refuses_what_it_cannot_use(
    place: Path, capsys: pytest.CaptureFixture[str], command: Command, arguments: list[str], message: str
) -> None:
    """Each ended in a traceback, did its work and failed at the end, or took what had no effect."""
    assert command([text.replace("HERE", str(place)) for text in arguments]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message.replace("HERE", str(place)) in said and said.count("error:") == 1, said


@pytest.mark.parametrize("folder", ["file", "empty"])
def test_an_audit_without_files_is_one_message(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str
) -> None:
    """It named each of some sixty files."""
    monkeypatch.setenv("MEMSYS_RECORDED", str(place / folder))
    assert audit(["--out", str(place / "out"), "--cache", str(place / "cache")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    wanted = {
        "file": f"MEMSYS_RECORDED={place}/file is a file",
        "empty": f"{place}/empty holds no file of the catalogue",
    }
    assert wanted[folder] in said and said.count("error:") == 1, said


@pytest.mark.parametrize("command", ["audit", "parity", "recorded"])
def test_what_nobody_named_lies_in_the_checkout(command: str) -> None:
    """It lay below the folder in which the command was started."""
    package = import_module(f"eval.{command}")
    module = import_module(f"eval.{command}.__main__") if hasattr(package, "__path__") else package
    places = [getattr(module, name) for name in ("OUT", "CACHE", "RUNS") if hasattr(module, name)]
    assert places and all(place.is_relative_to(RESULTS) for place in places)


def test_every_command_writes_into_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`memsys run` wrote into the current folder, `python -m eval.run` into the checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, "")  # so that it is restored
    monkeypatch.delenv(HOME_VARIABLE)
    with pytest.raises(SystemExit):
        start(lambda: 0)
    assert Path(os.environ[HOME_VARIABLE]) == RESULTS.parent


def test_what_cannot_be_fetched_is_not_offered(capsys: pytest.CaptureFixture[str]) -> None:
    """`memsys data --help` named `custom`, which no server has."""
    for arguments in (["--help"], ["nope"]):
        with pytest.raises(SystemExit):
            data(arguments)
        shown = "".join(capsys.readouterr())
        assert "beam, bioasq20, factconsolidation" in " ".join(shown.split()) and "custom" not in shown
    assert "'nope' (choose from" in shown


def test_a_table_is_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        tables(["--table", "x"])
    assert ended.value.code == 2 and "'x' cannot be used; give a whole number from 1 on" in capsys.readouterr().err


def test_a_closed_output_is_one_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``memsys compare RUN >&-`` ended in an ``AttributeError``."""
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as ended:
        use_safe_streams()
    assert ended.value.code == 2 and "standard output is closed" in capsys.readouterr().err


def test_a_folder_that_was_removed_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command ended in a ``FileNotFoundError``."""
    monkeypatch.chdir(tmp_path)
    check_current_folder()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    use_checkout()
    with pytest.raises(RunDirectoryError, match="the current folder has been removed; change to an existing one"):
        check_current_folder()


def test_a_data_set_with_a_slip_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of all was shown alone."""
    with pytest.raises(SystemExit):
        data(["locmo"])
    assert "'locmo'; did you mean locomo?" in " ".join(capsys.readouterr().err.split())
