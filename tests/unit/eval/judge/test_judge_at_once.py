"""A judge of several runs: its model is opened once, and its batches are sent at the same time."""

from pathlib import Path

import pytest

from eval.judge.__main__ import main
from eval.judge.probe import load_probe
from eval.runs.load import load_calls
from eval.scoring.verdicts.store import load_judged, read_meta
from tests.support.batch_process import batch_process
from tests.support.fake_run import FakeRun, rewrite
from tests.support.stub_process import attached
from tests.support.stub_server import stub

PROBES = len(load_probe())
#: Answers of the fake run that are graded.
GRADED = 8


def two_runs(root: Path) -> list[Path]:
    runs = [FakeRun(conversations=("conv-26",)).write(root / name) for name in ("one", "other")]
    rewrite(runs[1], "answers.jsonl", lambda n, row: row.update(prediction=f"answer {n}"))
    return runs


def check(runs: list[Path]) -> None:
    for run in runs:
        calls = [call for call in load_calls(run) if call.phase == "judge"]
        assert len(calls) == GRADED and not any("probe" in call.key for call in calls)
        (judged,) = load_judged(run)
        assert len(judged.verdicts) == GRADED
        (meta,) = (run / "judgements").glob("*.json")
        assert read_meta(meta)["probe"]["items"] == PROBES


def test_a_model_is_opened_once_for_the_probe_set_and_all_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = two_runs(tmp_path)
    with stub() as server:
        cache = f"cache_dir={tmp_path / 'cache'}"
        assert main([*map(str, runs), *attached(server.url), cache, "judge=lenient"]) == 0
    assert capsys.readouterr().out.count("loading backbone") == 1
    check(runs)


def test_the_probe_set_and_all_runs_are_one_batch(tmp_path: Path) -> None:
    """In turn they were a batch each, of which each can take a day."""
    runs = two_runs(tmp_path)
    with batch_process(tmp_path / "state") as server:
        server.finish()
        engine = (
            "backbone=endpoint",
            "backbone/engine=openai_batch",
            "backbone.model=m",
            f"backbone.engine.base_urls=[{server.url}]",
            "backbone.engine.api_key_env=null",
            "backbone.engine.quiet_s=2",
            "backbone.engine.poll_s=0.1",
        )
        assert main([*map(str, runs), *engine, f"cache_dir={tmp_path / 'cache'}", "judge=lenient"]) == 0
        assert [len(batch["keys"]) for batch in server.lines("created")] == [PROBES + 2 * GRADED]
    check(runs)
