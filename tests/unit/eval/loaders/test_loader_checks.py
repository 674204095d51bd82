"""What a loader of one's own may not let through is named before a run begins."""

from dataclasses import replace
from typing import Any

import pytest

from eval.loaders.checks import check_samples
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn

GOOD = Sample(
    Conversation("one", (Turn("1", "a", "Ann", "My cat is Pixel."),)),
    (Question("q1", "one", "What is the cat called?", 1),),
    {"q1": Reference("q1", ("Pixel",), ("1",), ("gone",))},
)


def changed(**parts: Any) -> Sample:
    """The good conversation with other turns, question or gold."""
    turns = parts.pop("turns", GOOD.conversation.turns)
    question = replace(GOOD.questions[0], **parts.pop("question", {}))
    gold = replace(GOOD.references["q1"], **parts.pop("gold", {}))
    return Sample(Conversation("one", turns), (question,), parts.pop("references", {"q1": gold}))


def test_what_a_run_can_use_is_let_through() -> None:
    check_samples([GOOD, Sample(Conversation("two", GOOD.conversation.turns), (), {})], [1])


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (changed(turns=()), "conversation 'one' has no turn"),
        (changed(turns=(Turn("1", "a", "Ann", None),)), "turn 1: text is None"),  # type: ignore[arg-type]
        (changed(turns=(Turn(1, "a", "Ann", "x"),)), "turn 1: turn_id is 1"),  # type: ignore[arg-type]
        (changed(turns=GOOD.conversation.turns * 2), r"duplicate turn ids \['1'\]"),
        (changed(gold={"evidence": ("99",)}), "question 'q1': evidence '99' names no turn .* unresolved_evidence"),
        (changed(gold={"evidence": "1"}), "evidence of its reference are '1'"),
        (changed(gold={"answers": "Pixel"}), "answers of its reference are 'Pixel'"),
        (changed(gold={"answers": None}), "answers of its reference are None"),
        (changed(gold={"unresolved_evidence": "99"}), "unresolved_evidence of its reference are '99'"),
        (changed(question={"text": None}), "question 'q1': text is None; it must be a text"),
        (changed(question={"question_id": ["q1"]}), r"question_id is \['q1'\]; it must be a text"),
        (changed(gold={"answers": (3,)}), r"answers of its reference are \(3,\)"),
        (changed(references={}), "question 'q1': has no reference"),
        (changed(question={"conversation_id": "two"}), "says that it is of conversation 'two'"),
        (changed(question={"category": 7}), "category 7 has no name; the data set names 1"),
    ],
)
def test_what_it_cannot_use_is_named(sample: Sample, said: str) -> None:
    """Each was a ``KeyError`` in the middle of a run, or a score of nothing."""
    with pytest.raises(DataError, match=said):
        check_samples([sample], [1])
