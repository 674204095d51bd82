"""Exit statuses are the same for every command, and documented."""

import importlib
import re
from pathlib import Path

import pytest

from eval.commands.commands import EXIT_ERROR, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_STATUSES
from eval.run import compose_and_run

ROOT = Path(__file__).resolve().parents[3]
#: Every module that ends in ``start(main)``, as it is named after ``python -m``.
COMMANDS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "eval").rglob("*.py")
    if re.search(r"^    start\(main\)$", path.read_text(encoding="utf-8"), re.MULTILINE)
)
#: Commands that hand their arguments to Hydra, or take any text as a setting.
WITH_HYDRA = {"eval.run", "eval.__main__"}


def test_all_commands_are_known() -> None:
    assert {"eval.run", "eval.score", "eval.export", "eval.compare", "eval.sweep.__main__"} <= set(COMMANDS)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITH_HYDRA])
def test_an_unknown_option_is_an_error_everywhere(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module(name).main
    with pytest.raises(SystemExit) as ended:
        main(["--no-such-option"])
    assert ended.value.code == EXIT_ERROR
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "arguments", "least"),
    [
        ("eval.compare", ["--answers", "-1", "run"], 0),
        ("eval.explain", ["--worst=-2", "3", "rag", "F1"], 0),
        ("eval.score", ["--bertscore-layers", "0", "run"], 1),
        ("eval.audit.__main__", ["--workers", "0"], 1),
        ("eval.results.analysis.coverage", ["--resamples", "x"], 1),
        ("eval.parity.__main__", ["--spoil", "-1", "against=x"], 0),
        ("eval.judge.__main__", ["--people", "1"], 2),
    ],
)
def test_a_number_that_counts_nothing_is_refused_before_any_work(
    name: str, arguments: list[str], least: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(name).main(arguments)
    assert ended.value.code == EXIT_ERROR
    option = next(each for each in arguments if each.startswith("--")).partition("=")[0]
    assert f"argument {option}: " in (said := capsys.readouterr().err)
    assert f"cannot be used; give a whole number from {least} on" in said


def test_the_document_has_every_status() -> None:
    text = (ROOT / "docs" / "exit_codes.md").read_text(encoding="utf-8")
    assert [int(status) for status in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)] == sorted(EXIT_STATUSES)
    assert all(f"| {status} | {meaning} |" in text for status, meaning in EXIT_STATUSES.items())


def test_no_command_has_statuses_of_its_own() -> None:
    """A status is written as a name of the one table."""
    written = re.compile(r"(?:sys\.exit|SystemExit)\((\d+)\)|^    return ([1-9]\d*)$", re.MULTILINE)
    for name in COMMANDS:
        text = (ROOT / Path(*name.split("."))).with_suffix(".py").read_text(encoding="utf-8")
        assert not written.findall(text), name
    assert (EXIT_ERROR, EXIT_INCOMPLETE, EXIT_INTERRUPTED) == (2, 3, 130)


ONE_CELL = ("-m", "memory=rag", "mode=retrieval_only", "embedder=hashing", "dataset=locomo_sample", "score=false")


def test_a_sweep_whose_only_cell_failed_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["eval.run"])
    with pytest.raises(SystemExit) as ended:
        compose_and_run([*ONE_CELL, "memory.k=0", f"runs_dir={tmp_path}"])
    assert ended.value.code == EXIT_INCOMPLETE


def test_one_folder_for_the_runs_of_a_sweep_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All cells but the first were refused, and the sweep ended with 0."""
    monkeypatch.setattr("sys.argv", ["eval.run"])
    with pytest.raises(SystemExit) as ended:
        compose_and_run([*ONE_CELL, "seed=0,1", f"run_dir={tmp_path}/one", f"runs_dir={tmp_path}"])
    assert ended.value.code == EXIT_ERROR and "the sweep has 2 cells" in capsys.readouterr().err
    assert not (tmp_path / "one").exists()


@pytest.mark.filterwarnings("default")
def test_a_fault_of_a_sweeps_callback_is_no_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hydra warned of it, and the command ended with 0."""
    monkeypatch.setattr("sys.argv", ["eval.run"])
    monkeypatch.setattr("eval.sweep.comparison.sweep_jobs", lambda config, loader: {}["jobs"])
    with pytest.raises(UserWarning, match=r"SweepCallback\.on_multirun_start raised KeyError"):
        compose_and_run([*ONE_CELL, "memory.k=0", f"runs_dir={tmp_path}"])
