"""A memory that got worse fails, one that did not passes, and what cannot be compared is an error."""

import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from eval.gate import main as gate
from eval.pack import main as pack
from eval.results.compare.regression import regression
from memsys.errors import RunDirectoryError
from tests.support.fake_run import EVIDENCE, FakeRun, rewrite, stored

TEN = tuple(f"conv-{number}" for number in range(10))


def fake(folder: Path, share: float, **settings: object) -> Path:
    """A run whose scores vary about a share, by question."""
    values = lambda number, metric: min(1.0, max(0.0, share + (number % 5) / 50))  # noqa: E731
    run = FakeRun(conversations=TEN, values=values, **settings)  # type: ignore[arg-type]
    return run.write(folder)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack."""
    folder = tmp_path_factory.mktemp("baseline")
    assert pack([str(fake(folder, 0.5)), "--out", str(folder / "baseline.zip")]) == 0
    return folder / "baseline.zip"


@pytest.mark.parametrize(
    ("share", "margin", "status", "said"),
    [
        (0.3, "0", 5, "failed: it got worse on these questions (F1 -20.0"),
        (0.3, "25", 0, "passed: no loss is confirmed (margin 25 points)"),
        (0.5, "0", 0, "passed"),
        (0.7, "0", 0, "passed"),
    ],
)
def test_the_status_says_whether_it_got_worse(
    share: float,
    margin: str,
    status: int,
    said: str,
    baseline: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = fake(tmp_path, share)
    assert gate([str(run), "--against", str(baseline), "--margin", margin]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("On 100 questions of 10 conversations")
    assert said in lines[-1]


def test_a_run_is_a_baseline_too_and_one_conversation_is_judged_by_its_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {}
    for name, share in (("before", 0.9), ("after", 0.4)):
        values = lambda number, metric, share=share: share + (number % 3) / 100  # noqa: E731
        runs[name] = FakeRun(conversations=("conv-1",), values=values).write(tmp_path / name)
    assert gate([str(runs["after"]), "--against", str(runs["before"])]) == 5
    assert "no verdict follows from one conversation" in capsys.readouterr().out
    assert gate([str(runs["before"]), "--against", str(runs["after"])]) == 0


def test_what_cannot_be_compared_is_an_error(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = FakeRun(conversations=TEN[:5]).write(tmp_path / "fewer")
    assert gate([str(fewer), "--against", str(baseline)]) == 2
    assert "lacks 50 of the 100 questions of the baseline" in capsys.readouterr().err
    other = FakeRun(conversations=TEN, data_sha256="2" * 64).write(tmp_path / "other")
    assert gate([str(other), "--against", str(baseline)]) == 2
    assert "ran on other data" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        gate([str(fewer), "--against", str(baseline), "--margin", "-1"])
    assert "not a number of points" in capsys.readouterr().err


@pytest.mark.usefixtures("unsigned")
def test_results_that_nothing_traces_are_named_as_why_no_score_is_shared(tmp_path: Path) -> None:
    """It said to score both runs, and the same again after they were."""
    before = stored(fake(tmp_path / "before", 0.5, mode="retrieval_only"))
    path = FakeRun(memory="object", mode="retrieval_only", conversations=TEN).write(tmp_path / "after")
    rewrite(path, "scores.jsonl", lambda number, row: row["metrics"].update(dict.fromkeys(EVIDENCE)))
    counts = {"traced.ids": {"mean": 0.5, "count": 4}, "traced.none": {"mean": 2.0, "count": 4}}
    after = replace(stored(path), summary={"trace": {"numbers": counts}})
    with pytest.raises(RunDirectoryError) as caught:
        regression(before, after)
    said = "shares no R@10 (turn ids) with the baseline; of this run 8 of 10 results could not be traced to turns"
    assert said in str(caught.value) and "memsys score" not in str(caught.value)


def test_a_pack_that_was_altered_is_no_baseline(
    baseline: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A figure was changed in the file, and the build passed."""
    altered = tmp_path / "altered.zip"
    with zipfile.ZipFile(baseline) as whole, zipfile.ZipFile(altered, "w") as pack:
        for name in whole.namelist():
            content = whole.read(name)
            pack.writestr(name, content.rstrip() + b" \n" if name == "runs.jsonl" else content)
    assert gate([str(fake(tmp_path / "run", 0.5)), "--against", str(altered)]) == 2
    assert "altered.zip: runs.jsonl was changed after packing" in capsys.readouterr().err
