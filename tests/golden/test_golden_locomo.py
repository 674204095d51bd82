"""Golden counts of the published LoCoMo file."""

import time
from collections import Counter
from pathlib import Path

import pytest

from eval.loaders.contract import LoadedData
from eval.loaders.locomo import LocomoConfig

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def published(locomo_file: Path) -> LoadedData:
    return LocomoConfig(path=str(locomo_file)).load()


def test_the_file_is_the_pinned_one(published: LoadedData) -> None:
    assert published.notes["pinned"] is True


def test_counts(published: LoadedData) -> None:
    assert published.counts == {
        "conversations": 10,
        "sessions": 272,
        "turns": 5882,
        "turns_per_conversation": [419, 369, 663, 629, 680, 675, 689, 681, 509, 568],
        "questions": 1986,
        "questions_by_category": {"1": 282, "2": 321, "3": 96, "4": 841, "5": 446},
        "captions": 1226,
        "captions_with_img_url": 910,
        "evidence_ids": 2820,
        "unresolved_evidence_ids": 3,
        "questions_without_evidence": 4,
    }


def test_irregularities(published: LoadedData) -> None:
    notes = {key: value for key, value in published.notes.items() if isinstance(value, int)}
    assert notes == {
        "pinned": True,
        "sample": False,
        "adversarial_with_answer": 2,
        "adversarial_without_answer": 444,
        "dates_without_session": 16,
        "empty_sessions": 0,
        "evidence_ids_unresolved": 3,
        "evidence_repeated": 1,
        "evidence_strings": 2815,
        "evidence_strings_irregular": 9,
        "evidence_strings_repaired": 6,
        "number_answers": 6,
        "questions_without_evidence": 4,
        "repeated_questions": 11,
    }


def test_what_does_not_resolve_and_what_does_after_repair(published: LoadedData) -> None:
    references = {key: value for sample in published.samples for key, value in sample.references.items()}
    assert {key: value.unresolved_evidence for key, value in references.items() if value.unresolved_evidence} == {
        "conv-42:q058": ("D10:19",),
        "conv-42:q088": ("D",),
        "conv-47:q038": ("D4:36",),
    }
    assert references["conv-26:q037"].evidence == ("D8:6", "D9:17")
    assert "D11:26" in references["conv-43:q018"].evidence
    assert references["conv-50:q069"].evidence == ("D30:5",)
    without = [key for key, value in references.items() if not value.evidence]
    assert without == ["conv-26:q030", "conv-26:q046", "conv-50:q039", "conv-50:q042"]


def test_every_evidence_id_names_a_turn_and_sessions_follow_their_numbers(published: LoadedData) -> None:
    for sample in published.samples:
        turns = {turn.turn_id: turn for turn in sample.conversation.turns}
        assert all(turn_id in turns for reference in sample.references.values() for turn_id in reference.evidence)
        numbers = [int(turn.session_id.removeprefix("session_")) for turn in sample.conversation.turns]
        assert numbers == sorted(numbers)
        assert {turn.speaker for turn in turns.values()} <= set(sample.conversation.speakers)


def test_category_5_never_loses_its_missing_answer(published: LoadedData) -> None:
    traps = [
        (reference.answers, reference.adversarial_answer)
        for sample in published.samples
        for question in sample.questions
        if question.category == 5
        for reference in [sample.references[question.question_id]]
    ]
    assert Counter(answers for answers, _ in traps) == {(): 444, ("No",): 2}
    assert all(adversarial for _, adversarial in traps)


def test_the_audited_view_leaves_out_99_questions(locomo_file: Path) -> None:
    audited = LocomoConfig(path=str(locomo_file), labels="audited").load()
    assert audited.counts["questions_by_category"] == {"1": 254, "2": 295, "3": 87, "4": 805, "5": 446}
    assert audited.counts["questions_without_evidence"] == 4 + 54


def test_loading_is_quick(locomo_file: Path) -> None:
    started = time.perf_counter()
    LocomoConfig(path=str(locomo_file)).load()
    assert time.perf_counter() - started < 3
