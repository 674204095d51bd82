"""Rows that are not their record's: one message with file, line and field, whoever reads them; no traceback."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.export import export_run
from eval.results.frame import Skipped, read_run
from eval.runs.load import (
    find_record,
    load_answers,
    load_calls,
    load_conversations,
    load_references,
    load_retrievals,
    load_scores,
)
from eval.runs.records import AnswerRecord, ConversationRecord, HitRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.runs.rundir import RunDirectory
from eval.scoring.score_run import score_run
from memsys.errors import MemsysError, RunDirectoryError, ScoringError
from memsys.llm.ledger import CallRecord
from memsys.rows import RowError, check_fields, record_from
from memsys.vocabulary import Completion, TokenLogprob
from tests.support.fake_run import FakeRun

#: One value of every type that JSON has, and numbers that are none.
ODD = (None, True, 3, -1.5, 1e999, 10**400, "text", [], [None], [[]], {}, {"a": None}, float("nan"))
#: What a field of a record takes; the rest of ODD is refused.
FITS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: type(value) is int and abs(value) < 2**63,
    "float": lambda value: type(value) in (int, float) and abs(value) < 2**63,
    "list": lambda value: value == [],
    "dict": lambda value: isinstance(value, dict),
}
HIT = {"memory_id": "m", "text": "t", "score": 1, "turn_ids": ["D1:1"]}
WHERE = {"question_id": "q", "conversation_id": "c", "category": 1}
ROWS: dict[type, dict[str, Any]] = {
    ConversationRecord: {
        "conversation_id": "c", "turns": 1, "units": 1, "ingest_seconds": 0.1, "prepare_seconds": [0.1],
        "write_seconds": [1], "consolidate_seconds": 0.0, "statistics": {"notes": 1},
    },
    AnswerRecord: {
        **WHERE, "question": "q", "prediction": "p", "raw": "r", "malformed": False, "options": ["a"],
        "retrieve_seconds": 0.1, "answer_seconds": 0.1, "measured": False, "prompt_tokens": 1, "completion_tokens": 1,
    },
    RetrievalRecord: {
        **WHERE, "hits": [HIT], "context": "c", "context_chars": 1, "context_tokens": None, "trace": {"a": [1]},
        "ranked": True, "rankings": {"named": [0]},
    },
    ReferenceRecord: {
        **WHERE, "answers": ["a"], "adversarial_answer": None, "evidence": [], "unresolved_evidence": [],
        "evidence_texts": [], "extra": {},
    },
    ScoreRow: {**WHERE, "metrics": {"f1": 0.5, "em": None}},
    CallRecord: {
        "conversation_id": "c", "phase": "write", "role": "r", "key": "k", "item": "i", "attempt": 0,
        "prompt_tokens": 1, "completion_tokens": 1, "seconds": 0.1, "queue_seconds": 0.0, "finish_reason": "stop",
        "cache_hit": False, "malformed": False, "repaired": False, "transport_retries": 0, "request_hash": "h",
        "endpoint": "e",
    },
    Completion: {
        "text": "t", "prompt_tokens": 1, "completion_tokens": 1, "seconds": 0.1, "finish_reason": "stop",
        "logprobs": [{"token": "a", "logprob": -0.5, "top": {"b": -1}}],
    },
}  # fmt: skip


def kind_of(value: Any) -> str:
    return {bool: "bool", int: "int", float: "float", str: "str", list: "list", dict: "dict"}.get(type(value), "none")


@pytest.mark.parametrize("record", ROWS)
def test_a_row_becomes_its_record(record: type) -> None:
    made = record_from(record, ROWS[record])
    assert isinstance(made, record)
    assert {field.name for field in fields(record)} >= set(ROWS[record])
    if record is RetrievalRecord:
        assert made.hits == [HitRecord("m", "t", 1, ["D1:1"])]  # type: ignore[attr-defined]
    if record is Completion:
        assert made.logprobs == (TokenLogprob("a", -0.5, {"b": -1}),)  # type: ignore[attr-defined]


@pytest.mark.parametrize("record", ROWS)
def test_a_value_of_another_type_is_refused_by_field(record: type) -> None:
    refused = 0
    for name, given_value in ROWS[record].items():
        kind = kind_of(given_value)
        for value in ODD:
            if kind == "none" or FITS[kind](value) or (kind == "int" and "float" in str(record.__annotations__[name])):
                continue
            if value is None and "None" in str(record.__annotations__[name]):
                continue
            if kind == "int" and type(value) is int:
                continue
            with pytest.raises(RowError, match=f"field {name}"):
                record_from(record, {**ROWS[record], name: value})
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("record", ROWS)
def test_a_missing_field_an_unknown_one_and_no_object_are_refused(record: type) -> None:
    first = next(iter(ROWS[record]))
    with pytest.raises(RowError, match=f"field {first}: is missing"):
        record_from(record, {name: value for name, value in ROWS[record].items() if name != first})
    with pytest.raises(RowError, match="field later: is not a field of this version"):
        record_from(record, {**ROWS[record], "later": 1})
    for value in ODD:
        if not isinstance(value, dict):
            with pytest.raises(RowError, match="expected an object"):
                record_from(record, value)


def test_the_message_names_the_place_inside() -> None:
    row = {**ROWS[RetrievalRecord], "hits": [HIT, {**HIT, "turn_ids": ["a", 3]}]}
    with pytest.raises(RowError, match=r"field hits\[1\]\.turn_ids\[1\]: expected a text, found 3"):
        record_from(RetrievalRecord, row)
    with pytest.raises(RowError, match=r"field metrics\.f1: expected a finite number, found a text 'x'"):
        record_from(ScoreRow, {**WHERE, "metrics": {"f1": "x"}})
    with pytest.raises(RowError, match="an integer of thousands of digits"):
        record_from(AnswerRecord, {**ROWS[AnswerRecord], "category": 10**5000})


def test_a_ranking_of_a_hit_that_is_not_there_is_refused() -> None:
    with pytest.raises(RowError, match=r"field rankings: rankings\.named=\[1\] must be indices into 1 hits"):
        record_from(RetrievalRecord, {**ROWS[RetrievalRecord], "rankings": {"named": [1]}})


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["question_id", "hits", "metrics", "trace", "x"])
    return st.lists(inner) | st.dictionaries(names, inner)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), nested))
def test_no_value_ends_in_another_error(value: Any) -> None:
    for record in ROWS:
        try:
            record_from(record, value)
        except RowError as error:
            assert str(error)


def test_fields_that_are_there_are_checked_and_others_left(tmp_path: Path) -> None:
    assert check_fields(CallRecord, {"key": "k", "later": 1}, ("key",)) == {"key": "k", "later": 1}
    with pytest.raises(RowError, match="field role: is missing"):
        check_fields(CallRecord, {"key": "k"}, ("key", "role"))
    with pytest.raises(RowError, match="field attempt: expected an integer"):
        check_fields(CallRecord, {"attempt": "0"}, ())


def opened(read: Callable[[RunDirectory], Any]) -> Callable[[Path], None]:
    """Read as a run that is taken up does."""

    def run(path: Path) -> None:
        with closing(RunDirectory(path)) as directory:
            read(directory)

    return run


READERS: dict[str, tuple[Callable[[Path], Any], ...]] = {
    "answers.jsonl": (load_answers, score_run, opened(lambda run: run.finished_questions("answers"))),
    "retrievals.jsonl": (load_retrievals, score_run, opened(lambda run: run.finished_questions("retrieval_only"))),
    "references.jsonl": (load_references, score_run),
    "conversations.jsonl": (load_conversations, opened(lambda run: run.ingested_conversations())),
    "calls.jsonl": (load_calls, opened(lambda run: run.path)),
    "scores.jsonl": (load_scores, export_run),
}


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize("name", READERS)
def test_every_reader_names_file_and_line(tmp_path: Path, name: str) -> None:
    path = FakeRun(questions_each=2).write(tmp_path / "runs")
    lines = (path / name).read_text().splitlines()
    whole = json.loads(lines[1])
    first = next(key for key, value in whole.items() if isinstance(value, str))
    odd = [json.dumps(value) for value in ODD if not isinstance(value, dict)]
    odd += [json.dumps({**whole, first: value}) for value in ODD if not isinstance(value, str)]
    odd += ["[" * 100_000, '{"a": NaN}', "{}", '"\\ud800"']
    for text in odd:
        (path / name).write_text("\n".join([lines[0], text, *lines[2:]]) + "\n")
        for read in READERS[name]:
            with pytest.raises((RunDirectoryError, ScoringError)) as caught:
                read(path)
            message = str(caught.value)
            assert f"{name}:2 " in message
            assert "restore the file" in message or "run `memsys" in message


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize("field", ["status", "identity", "prompts", "resumed", "schema_version", "config", "problems"])
def test_run_json_with_a_field_of_another_type_is_named(tmp_path: Path, field: str) -> None:
    path = FakeRun(questions_each=2).write(tmp_path / "runs")
    record = json.loads((path / "run.json").read_text())
    for value in (3.5, [1], "x", None):
        if field == "identity" and value is None:
            continue
        (path / "run.json").write_text(json.dumps({**record, field: value}))
        for read in (find_record, read_run):
            with pytest.raises(MemsysError, match=rf"run\.json does not fit this version \(field {field}"):
                read(path)


@pytest.mark.usefixtures("unsigned")
def test_a_question_that_is_scored_twice_is_named(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path)
    first, *others = (path / "scores.jsonl").read_text().splitlines(keepends=True)
    (path / "scores.jsonl").write_text("".join([first, *others, first]))
    line = len(others) + 2
    with pytest.raises(ScoringError, match=rf"scores\.jsonl:{line} repeats question_id .* of line 1; "):
        load_scores(path)
    run = read_run(path)
    assert isinstance(run, Skipped) and f"scores.jsonl:{line} repeats" in run.reason


@pytest.mark.usefixtures("unsigned")
def test_a_complete_run_whose_ledger_was_cut_is_refused(tmp_path: Path) -> None:
    """Costs over the calls that are left would look like those of a cheaper system."""
    (tmp_path / "run.json").write_text('{"status": "complete", "counts": {"calls": 2}}')
    with pytest.raises(ScoringError, match=r"calls\.jsonl holds 0 of the 2 calls that run\.json counts"):
        load_calls(tmp_path)
    (tmp_path / "run.json").write_text('{"status": "interrupted", "counts": {"calls": 2}}')
    assert load_calls(tmp_path) == []


@pytest.mark.usefixtures("unsigned")
def test_calls_of_judges_do_not_stand_in_for_lost_ones(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"status": "complete", "counts": {"calls": 2}}')
    judge = {**ROWS[CallRecord], "phase": "judge"}
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (ROWS[CallRecord], judge, judge)))
    with pytest.raises(ScoringError, match=r"calls\.jsonl holds 1 of the 2 calls that run\.json counts"):
        load_calls(tmp_path)
