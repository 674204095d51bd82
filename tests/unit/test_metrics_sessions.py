"""Metrics of LongMemEval's retrieval and of BEAM's event ordering, worked out by hand; who judges what."""

from dataclasses import replace
from math import log2
from types import SimpleNamespace
from typing import Any

import pytest

from eval.judge.__main__ import make_plan
from eval.judge.judging import items_of
from eval.judge.store import AnswerVerdict, StoredVerdicts
from eval.metrics.ordering import order_scores
from eval.metrics.registry import groups
from eval.metrics.sessions import session_scores
from eval.runs.records import ReferenceRecord
from memsys.errors import ConfigError

ITEMS = ("Planning the bed", "Slug traps", "Watering schedule", "Harvest party")


def test_turns_and_sessions_are_scored_apart() -> None:
    """Gold turns at ranks 2 and 4 of five; gold sessions b and c at places 2 and 3 of the sessions found."""
    retrieved = [["a:1"], ["b:3"], ["a:2"], ["c:1", "c:2"], ["d:1"]]
    scores = session_scores(retrieved, ["b:3", "c:1"], ["b", "c"])
    assert (scores["turn_recall_any@5"], scores["turn_recall_all@5"]) == (1.0, 1.0)
    assert scores["turn_ndcg_any@5"] == pytest.approx((1 + 1 / log2(4)) / 2)  # the ideal: 1 + 1 / log2(2)
    assert scores["session_ndcg_any@5"] == pytest.approx((1 + 1 / log2(3)) / 2)
    late = session_scores([[f"s{n}:1"] for n in range(7)], ["s0:1", "s6:1"], ["s0", "s6"])
    assert (late["session_recall_any@5"], late["session_recall_all@5"], late["session_recall_all@10"]) == (
        1.0,
        0.0,
        1.0,
    )


def test_without_gold_or_ranking_there_is_no_score() -> None:
    assert set(session_scores([["a:1"]], [], ["a"]).values()) == {None, 1.0}
    assert set(session_scores([["a:1"]], ["a:1"], ["a"], ranked=False).values()) == {None}


@pytest.mark.parametrize(
    ("answer", "tau", "f1"),
    [
        ("1. Planning the bed\n2. Slug traps\n3. Watering schedule\n4. The harvest party", 1.0, 1.0),
        ("- the harvest party\n- a watering schedule\n- traps for slug\n- planning a bed", 0.0, 1.0),
        # one swap among four: 5 pairs agree and 1 does not, tau = 4 / 6
        ("slug traps\nplanning the bed\nwatering schedule\nharvest party", 5 / 6, 1.0),
        # two of four: ranks 1 2 3 4 against 1 2 5 5: 5 pairs agree, one is tied: tau-b = 5 / sqrt(6 * 5)
        ("planning the bed\nslug traps", (5 / 30**0.5 + 1) / 2, 2 / 3),
        ("", 0.0, 0.0),
    ],
)
def test_order_of_events(answer: str, tau: float, f1: float) -> None:
    scores = order_scores(answer, ITEMS)
    assert scores["order_tau"] == pytest.approx(tau)
    assert scores["order_f1"] == pytest.approx(f1)
    assert scores["order_score"] == pytest.approx(tau * f1)


def test_other_questions_have_no_order_and_no_model_is_needed() -> None:
    assert order_scores("first, second", ()) == {}
    assert order_scores("planning the bed", ITEMS[:1])["order_tau"] is None
    assert not {"order_tau", "session_recall_any@5"} & set(groups()["neural"])


def reference(name: str, kind: str, **extra: Any) -> ReferenceRecord:
    return ReferenceRecord(name, "c", 31, ["gold"], None, [], [], [], extra, kind)


def test_a_rubric_is_judged_item_by_item() -> None:
    config = make_plan(["judge=beam_rubric"]).judge
    answers: list[Any] = [SimpleNamespace(question_id=name, question="?", prediction="!") for name in ("a", "b")]
    items = items_of(config, [reference("a", "adversarial", rubric=["x", "y"]), reference("b", "temporal")], answers)
    assert [(item.item_id, item.gold, item.item) for item in items] == [("a", "x", 0), ("a", "y", 1)]
    verdicts = (
        AnswerVerdict("a", 0, "CORRECT", "", "", 0),
        AnswerVerdict("a", 0, "PARTIAL", "", "", 1),
        AnswerVerdict("a", 1, "WRONG", "", "", 0),
        AnswerVerdict("a", 1, "PARTIAL", "", "", 1),
        AnswerVerdict("b", 0, "WRONG", "", "", 0),
    )
    judged = StoredVerdicts("judge_beam", {}, verdicts)
    assert judged.shares() == {"a": 0.5, "b": 0.0}
    assert judged.by_repeat() == [{"a": 0.75, "b": 0.0}, {"a": 0.25}]
    assert judged.changed() == 1


def test_wrong_settings_of_these_judges_name_the_choices() -> None:
    config = make_plan(["judge=beam_rubric"]).judge
    with pytest.raises(ConfigError, match=r"judge.unit='word'; choose one of answer, rubric"):
        replace(config, unit="word")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"judge.by_kind.temporal='kind' is unknown; choose one of"):
        replace(config, by_kind={"temporal": "kind"})


def test_each_type_of_longmemeval_has_its_criterion() -> None:
    config = make_plan(["judge=longmemeval_types"]).judge
    texts = {kind: config.make_role(kind).prompt.text for kind in ("temporal", "knowledge_update", "adversarial", "")}
    assert "off by one" in texts["temporal"] and "holds now" in texts["knowledge_update"]
    assert "cannot be answered" in texts["adversarial"] and len(set(texts.values())) == 4
    assert config.golds(reference("a", "adversarial")) == ["gold"]
