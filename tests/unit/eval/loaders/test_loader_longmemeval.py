"""LongMemEval: a memory per question, evidence by turn and session, abstentions, and the 500 real questions' types."""

import gzip
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.locate import sample_path
from eval.loaders.longmemeval import LONGMEMEVAL, LongmemevalConfig
from memsys.errors import ConfigError, DataError

QUESTIONS = "vectorize-io+agent-memory-benchmark/data/longmemeval/s/queries.json.gz"


def test_the_sample_has_every_irregularity() -> None:
    data = LongmemevalConfig(sample=True).load()
    assert data.counts["turns_per_conversation"] == [8, 6, 4, 6, 8, 8, 6, 6, 2]
    assert data.counts["questions_by_category"] == {"21": 1, "22": 1, "23": 1, "24": 2, "25": 1, "26": 1, "27": 2}
    assert data.notes == {
        "pinned": False,
        "sample": True,
        "answer_sessions_missing": 1,
        "empty_sessions": 1,
        "evidence_turns_by_assistant": 1,
        "number_answers": 1,
        "questions_without_evidence_turn": 1,
        "repeated_sessions": 1,
        "unsorted_histories": 1,
    }


@pytest.mark.parametrize("kind", ["adversarial", "abstention"])
def test_a_kind_may_have_the_data_sets_own_name(kind: str) -> None:
    data = LongmemevalConfig(name="mine", file="x", sample=True, categories=[kind]).load()
    assert {question.category for sample in data.samples for question in sample.questions} == {27}
    with pytest.raises(ConfigError, match=r"26 \(temporal_reasoning or temporal\), 27 \(abstention or adversarial\)"):
        LongmemevalConfig(name="mine", file="x", sample=True, categories=["time"]).load()


def test_each_question_has_a_memory_a_date_and_evidence_of_both_kinds() -> None:
    samples = {sample.conversation.conversation_id: sample for sample in LongmemevalConfig(sample=True).load().samples}
    crown = samples["gpt4_f6abacus"]
    gold = crown.references["gpt4_f6abacus"]
    assert crown.questions[0].question_date == "2023/05/30 (Tue) 22:30"
    assert [turn.turn_id for turn in crown.conversation.turns][:3] == [
        "answer_dentist_1:1",
        "answer_dentist_1:2",
        "sharegpt_tea_0:1",
    ]
    assert crown.conversation.turns[4].session_id == "sharegpt_tea_0#2"
    assert gold.evidence == ("answer_dentist_1:1", "answer_dentist_2:1")
    assert gold.extra["evidence_sessions"] == ["answer_dentist_1", "answer_dentist_2"]
    assert gold.unresolved_evidence == ("answer_dentist_3",)
    assert samples["d4beaded"].references["d4beaded"].answers == ("4",)
    unmarked = [ref for one in samples.values() for ref in one.references.values() if "related_sessions" in ref.extra]
    assert all(not ref.evidence and "evidence_sessions" not in ref.extra for ref in unmarked) and len(unmarked) == 3
    abstention = samples["a1c0ffee_abs"]
    assert (abstention.questions[0].kind, abstention.references["a1c0ffee_abs"].evidence) == ("adversarial", ())


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda one: one["haystack_dates"].pop(), "3 ids, 2 dates, 3 sessions"),
        (lambda one: one.update(question_type="riddle"), r"\[0\].question_type: unknown question type 'riddle'"),
        (lambda one: one["haystack_sessions"][1][0].update(has_answer="yes"), "has_answer: must be true or false"),
        (lambda one: one["haystack_sessions"][0][0].update(role="system"), "role: must be user or assistant"),
        (lambda one: one.pop("question_date"), "question_date: missing field"),
    ],
)
def test_bad_files_are_named_with_place(tmp_path: Path, spoil: Callable[[Any], Any], message: str) -> None:
    top = json.loads(sample_path("longmemeval").read_text())
    spoil(top[0])
    path = tmp_path / "s.json"
    path.write_text(json.dumps(top))
    with pytest.raises(DataError, match=message):
        LongmemevalConfig(path=str(path)).load()


def test_the_real_questions_have_the_types_that_the_card_counts(tmp_path: Path) -> None:
    folder = os.environ.get("MEMSYS_RECORDED")
    if not folder or not (Path(folder) / QUESTIONS).is_file():
        pytest.skip("the published list of LongMemEval's questions is not here: set MEMSYS_RECORDED")
    rows = json.loads(gzip.decompress((Path(folder) / QUESTIONS).read_bytes()))
    made = [
        {
            "question_id": row["id"],
            "question_type": row["meta"]["question_type"],
            "question": row["query"],
            "answer": row["gold_answers"][0],
            "question_date": row["meta"]["query_timestamp"],
            "haystack_session_ids": [gold.removeprefix(f"{row['id']}_") for gold in row["gold_ids"]] or ["none"],
            "haystack_dates": ["2023/05/01 (Mon) 10:00"] * (len(row["gold_ids"]) or 1),
            "haystack_sessions": [[{"role": "user", "content": "?"}]] * (len(row["gold_ids"]) or 1),
            "answer_session_ids": [gold.removeprefix(f"{row['id']}_") for gold in row["gold_ids"]],
        }
        for row in rows
    ]
    path = tmp_path / "s.json"
    path.write_text(json.dumps(made))
    data = LongmemevalConfig(path=str(path)).load()
    assert data.counts["questions_by_category"] == {str(n): many for n, many in LONGMEMEVAL.question_counts.items()}
    assert [sample.conversation.conversation_id for sample in data.samples] == [row["id"] for row in rows]
    assert (data.notes["number_answers"], data.notes["answer_sessions_missing"]) == (32, 0)
    types = Counter(
        sample.references[sample.questions[0].question_id].extra["question_type"] for sample in data.samples
    )
    assert types["multi-session"] == 133 and types["knowledge-update"] == 78
