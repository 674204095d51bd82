"""A run to its end against a server that does not answer everything: what is settled, scored, shown and asked again."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.lens import main as lens
from eval.report.runs import run_cards
from eval.results.compare.model import make_report
from eval.results.frame import Skipped, read_run
from eval.results.own.memory_quality import quality_groups, quality_page
from eval.results.own.systems import systems_page
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import other_terms
from eval.results.tables.spec import load_spec
from eval.running.composed import compose_plan
from eval.running.experiment import RunResult, run_experiment
from eval.runs.files import read_json_lines
from eval.runs.load import find_record
from eval.score import main as score
from eval.scoring.protocols import load_protocol
from eval.settle import main as settle
from memsys.errors import ConfigError, RunDirectoryError
from tests.support.stub_server import StubServer, prompt_of, stub

QUESTIONS = 6
Bodies = Callable[[Mapping[str, Any]], tuple[int, Any] | None]


@pytest.fixture
def server() -> Iterator[StubServer]:
    with stub() as running:
        yield running


def body(content: str | None, finish: str = "stop") -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    return {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 7}}


def run(
    server: StubServer, folder: Path, *overrides: str, memory: str = "bm25_turn", cached: bool = False
) -> RunResult:
    settings = [
        f"memory={memory}", "embedder=hashing", "backbone=endpoint", "backbone.model=m", "progress=lines",
        f"backbone.engine.base_urls=[{server.url}]", "backbone.transport_retries=1", "backbone.backoff_s=0.01",
        "dataset.limit_conversations=1", f"dataset.limit_questions={QUESTIONS}", f"use_cache={str(cached).lower()}",
        f"cache_dir={folder / 'cache'}", f"run_dir={folder / 'run'}", *overrides,
    ]  # fmt: skip
    return run_experiment(compose_plan(settings))


def questions(folder: Path) -> list[str]:
    """Texts of the run's questions, in its order."""
    return [row["question"] for row in read_json_lines(folder / "run" / "answers.jsonl")]


def instead(text: str, sent: tuple[int, Any]) -> Bodies:
    """Send this in place of a reply to requests that hold a text."""
    return lambda request: sent if text in prompt_of(request) else None


@pytest.fixture
def asked(server: StubServer, tmp_path: Path) -> list[str]:
    """Texts of the questions, from an undisturbed run."""
    assert run(server, tmp_path / "whole").complete
    return questions(tmp_path / "whole")


def settled(folder: Path) -> list[tuple[str, str]]:
    return [(row["outcome"], row["reason"]) for row in read_json_lines(folder / "run" / "settled.jsonl")]


def stored(folder: Path) -> StoredRun:
    found = read_run(folder / "run")
    assert isinstance(found, StoredRun)
    return found


FILTERED = {"error": {"message": "filtered", "code": "content_filter"}}


@pytest.mark.parametrize(
    ("sent", "outcome", "reason"),
    [
        ((200, body(None, "content_filter")), "withheld", "finish_reason content_filter"),
        ((200, body("half an ans", "content_filter")), "withheld", "finish_reason content_filter"),
        ((400, FILTERED), "withheld", "finish_reason content_filter: filtered"),
        ((400, {"error": {"message": "too odd"}}), "failed", "too odd"),
        ((400, {"error": {"message": "maximum context length is 10"}}), "failed", "maximum context length is 10"),
        ((500, {"error": {"message": "crashed"}}), "failed", "status 500: crashed"),
        ((200, body("half", "error")), "failed", "finish_reason error"),
    ],
)
def test_one_question_without_an_answer_is_settled_and_the_others_stay_usable(
    server: StubServer, tmp_path: Path, asked: list[str], sent: tuple[int, Any], outcome: str, reason: str
) -> None:
    server.state.bodies = instead(asked[2], sent)
    assert run(server, tmp_path).complete and len(questions(tmp_path)) == QUESTIONS - 1
    ((found, why),) = settled(tmp_path)
    assert found == outcome and reason in why
    before = server.state.count
    assert run(server, tmp_path).complete and server.state.count == before  # it is not asked at each start
    found_run = stored(tmp_path)
    assert found_run.summary["counts"]["outcomes"] == {outcome: 1} and len(found_run.rows) == QUESTIONS
    assert [row.metrics["f1_set"] for row in found_run.rows].count(None) == 1
    report = make_report([found_run], load_protocol("clag"))
    assert report.rows[0].estimates["unanswered"].value == 1
    assert (
        f"1 of {QUESTIONS} questions without a whole answer (1 {outcome}: left out of the means)" in report.conclusion
    )


def test_a_setting_says_how_a_question_without_an_answer_counts(
    server: StubServer, tmp_path: Path, asked: list[str]
) -> None:
    server.state.bodies = instead(asked[0], (400, FILTERED))
    run(server, tmp_path)
    left_out = stored(tmp_path).summary["metrics"]["overall"]["f1_set"]
    run(server, tmp_path, "scoring.unanswered.withheld=wrong")
    wrong = stored(tmp_path)
    counted = wrong.summary["metrics"]["overall"]["f1_set"]
    assert (left_out["count"], counted["count"]) == (QUESTIONS - 1, QUESTIONS)
    assert counted["mean"] == pytest.approx(left_out["mean"] * (QUESTIONS - 1) / QUESTIONS, abs=1e-6)
    assert "1 withheld: counted as wrong" in make_report([wrong], load_protocol("clag")).conclusion
    with pytest.raises(ConfigError, match=r"scoring\.unanswered\.withheld='text'; choose one of wrong, left_out"):
        compose_plan(["scoring.unanswered.withheld=text"])


def test_every_table_counts_the_questions_without_an_answer(
    server: StubServer, tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    server.state.bodies = instead(asked[0], (400, FILTERED))
    run(server, tmp_path)
    text = f"1 of {QUESTIONS} questions without a whole answer (1 withheld: left out of the means)"
    found = stored(tmp_path)
    assert found.unanswered == text == run_cards([found], [False])[0]["unanswered"]
    groups = quality_groups([found])
    assert all(text in page(groups).files[f"{page(groups).name}.md"] for page in (systems_page, quality_page))
    assert text in other_terms(found, "locomo", load_spec("clag"))
    assert lens([str(tmp_path / "run"), "--out", str(tmp_path / "lens.md")]) == 0
    assert text in " ".join(capsys.readouterr().out.split()) and text in (tmp_path / "lens.md").read_text()


def test_an_empty_answer_counts_as_wrong_and_is_named(
    server: StubServer, tmp_path: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    server.state.bodies = instead(asked[0], (200, body("", "length")))
    assert run(server, tmp_path, "scoring.unanswered.empty=left_out").complete
    rows = {row.question_id: row.metrics["f1_set"] for row in stored(tmp_path).rows}
    assert list(rows.values()).count(None) == 1
    run(server, tmp_path)
    assert all(row.metrics["f1_set"] is not None for row in stored(tmp_path).rows)
    capsys.readouterr()
    assert score([str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert f"{QUESTIONS - 1} of {QUESTIONS} questions answered" in said and "1 empty: counted as wrong" in said
    assert settle([str(tmp_path / "run")]) == 0
    assert "empty, cut at its limit of tokens (finish_reason length) after 7" in capsys.readouterr().out


@pytest.mark.parametrize(("sent", "kinds"), [((400, FILTERED), []), ((200, body("")), ["--kinds", "empty"])])
def test_settle_asks_again(
    server: StubServer, tmp_path: Path, asked: list[str], sent: tuple[int, Any], kinds: list[str]
) -> None:
    server.state.bodies = instead(asked[0], sent)
    assert run(server, tmp_path, cached=True).complete
    server.state.bodies = None
    assert settle([str(tmp_path / "run"), "--again", *kinds]) == 0
    assert isinstance(read_run(tmp_path / "run"), Skipped)
    before = server.state.count
    assert run(server, tmp_path, cached=True).complete and server.state.count == before + 1
    assert settled(tmp_path) == [] and sorted(questions(tmp_path)) == sorted(asked)
    assert "outcomes" not in stored(tmp_path).summary["counts"]


def test_a_server_that_is_down_settles_nothing_until_somebody_closes_the_run(
    server: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.state.every = "500"
    assert not run(server, tmp_path).complete and not (tmp_path / "run" / "settled.jsonl").exists()
    found = read_run(tmp_path / "run")
    assert isinstance(found, Skipped) and "memsys settle" in found.reason
    assert settle([str(tmp_path / "run"), "--close"]) == 0
    assert len(settled(tmp_path)) == QUESTIONS and "status 500" in settled(tmp_path)[0][1]
    record = find_record(tmp_path / "run") or {}
    assert (record["status"], record["counts"]["settled"]) == ("complete", QUESTIONS)
    assert run(server, tmp_path).complete
    assert stored(tmp_path).summary["counts"]["outcomes"] == {"failed": QUESTIONS}
    assert settle([str(tmp_path / "run")]) == 0 and f"{QUESTIONS} questions without an answer, 0 open" in (
        capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("limit", "memory"),
    [
        ("schedule.questions_in_flight=1", "bm25_turn"),
        ("backbone.max_in_flight=1", "bm25_turn"),
        ("backbone.max_in_flight=1", "amem"),
    ],
)
@pytest.mark.parametrize("cached", [False, True])
def test_no_credit_ends_the_run_at_once(
    server: StubServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], limit: str, memory: str, cached: bool
) -> None:
    """A question that waited for the refused one was sent before the run had ended."""
    server.state.bodies = lambda request: (200, {"error": {"message": "Insufficient credits", "code": 402}})
    assert not run(server, tmp_path, limit, memory=memory, cached=cached).complete
    assert server.state.count == 2  # the look at what the server takes, and the first call
    assert "Insufficient credits; no credit or quota is left: add credit" in capsys.readouterr().err
    server.state.bodies = None
    assert run(server, tmp_path, memory=memory, cached=cached).complete


@pytest.mark.parametrize("memory", ["amem", "mem0", "nemori", "memorybank", "xmemory"])
def test_calls_that_are_withheld_while_a_memory_is_written_take_its_fallback(
    server: StubServer, tmp_path: Path, memory: str
) -> None:
    seen = []

    def some(request: Mapping[str, Any]) -> tuple[int, Any] | None:
        seen.append(request)
        sent = ((400, FILTERED), (200, body('{"half', "content_filter")))[len(seen) % 2]
        return sent if len(seen) % 3 == 1 else None

    server.state.bodies = some
    assert run(server, tmp_path, "unanswered.stop_share=null", memory=memory).complete
    calls = [row for row in read_json_lines(tmp_path / "run" / "calls.jsonl") if row["phase"] != "answer"]
    assert any(row["outcome"] == "withheld" for row in calls)


def test_what_settle_cannot_do_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="leave --kinds out"):
        settle.__wrapped__([str(tmp_path), "--close", "--kinds", "empty"])  # type: ignore[attr-defined]
    with pytest.raises(RunDirectoryError, match=r"holds no run\.json"):
        settle.__wrapped__([str(tmp_path)])  # type: ignore[attr-defined]
