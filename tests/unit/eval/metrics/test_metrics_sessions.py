"""Metrics of LongMemEval's retrieval and of BEAM's event ordering, worked out by hand; who judges what."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from eval.judge.__main__ import make_plan
from eval.judge.judging import items_of
from eval.metrics.ordering import order_scores, semantic_order_scores
from eval.metrics.registry import groups
from eval.metrics.sessions import session_scores
from eval.runs.load import load_json
from eval.runs.records import ReferenceRecord
from eval.scoring.config import ScoringConfig
from eval.scoring.score_run import score_run
from eval.scoring.verdicts.store import AnswerVerdict, StoredVerdicts
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun, rewrite

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


def test_a_turn_without_evidence_does_not_find_its_session() -> None:
    """Session a holds the evidence in its second turn: the first, at rank 1, is not a success; b marks no turn."""
    scores = session_scores([["a:1"], ["c:1"], ["a:2"], ["b:1"]], ["a:2"], ["a", "b"])
    assert (scores["session_recall_any@5"], scores["session_recall_all@5"]) == (1.0, 1.0)
    assert scores["session_ndcg_any@5"] == pytest.approx(1 / log2(3))
    assert session_scores([["a:1"]], ["a:2"], ["a"])["session_recall_any@5"] == 0.0


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


def test_rankings_that_tie_everything_have_no_tau() -> None:
    """A line that stands three times beside one item has the rank of what is missing: scipy gives NaN."""
    scores = order_scores("fence\nfence\nfence", ITEMS[:1])
    assert (scores["order_tau"], scores["order_f1"], scores["order_score"]) == (None, 0.0, None)


def test_an_order_aligned_by_embeddings() -> None:
    """The nearest item at 0.65 or more; one that is taken leaves a line as it is, also where the second is near."""
    near = {"bed": [0.9, 0.1, 0, 0], "slugs": [0.2, 0.65, 0.1, 0], "soil": [0.8, 0.7, 0, 0], "far": [0.64, 0, 0, 0]}
    scores = semantic_order_scores("1. bed\n\n- slugs", ITEMS, lambda lines, items: [near[line] for line in lines])
    assert scores["order_tau_semantic"] == pytest.approx((5 / 30**0.5 + 1) / 2)
    assert scores["order_f1_semantic"] == pytest.approx(2 / 3)
    more = semantic_order_scores("bed\nsoil\nfar", ITEMS, lambda lines, items: [near[line] for line in lines])
    assert more["order_f1_semantic"] == pytest.approx(2 * (1 / 3) * (1 / 4) / (1 / 3 + 1 / 4))
    nothing = semantic_order_scores("", ITEMS, lambda lines, items: [])
    assert nothing == dict.fromkeys(("order_tau_semantic", "order_f1_semantic", "order_score_semantic"), 0.0)
    assert semantic_order_scores("bed", (), lambda lines, items: []) == {}
    assert set(nothing) <= set(groups()["all"]) and not set(nothing) & set(groups()["neural"])  # of one data set only


def test_orders_are_aligned_by_embeddings_where_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Sentences:
        """Encodes a text by its last word: equal words are near."""

        def __init__(self, model: str, batch_size: int) -> None:
            self.model = model

        def cosines(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
            return [[float(one.split()[-1] == other.split()[-1]) for other in others] for one in texts]

        def fingerprint(self) -> dict[str, str]:
            return {"model": self.model}

    path = FakeRun(conversations=("beam-1",), categories=(33, 34)).write(tmp_path)
    rewrite(path, "answers.jsonl", lambda n, row: row.update(prediction="the bed\nthe slugs"))
    items = {"ordered_items": ["making a bed", "killing slugs"]}
    rewrite(path, "references.jsonl", lambda n, row: row.update(extra=items if row["category"] == 33 else {}))
    monkeypatch.setattr("eval.scoring.neural.SentenceScorer", Sentences)
    first, second, *_ = score_run(path, ScoringConfig(metrics=("f1_set", "order_tau_semantic")))
    assert first.metrics["order_tau_semantic"] == 1.0 and "order_f1_semantic" not in first.metrics
    assert "order_tau_semantic" not in second.metrics
    assert load_json(path / "scores_meta.json")["models"] == {"sbert": {"model": "all-MiniLM-L6-v2"}}
    again = score_run(path)  # without a model: what is there is kept, and so is what made it
    assert again[0].metrics["order_tau_semantic"] == 1.0
    assert load_json(path / "scores_meta.json")["models"] == {"sbert": {"model": "all-MiniLM-L6-v2"}}


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


def test_halves_of_a_rubric_count_or_are_cut() -> None:
    """The authors take the whole number of 0.5; settings that count halves are those of judges without the option."""
    verdicts = (AnswerVerdict("a", 0, "CORRECT", "", "", 0), AnswerVerdict("a", 0, "PARTIAL", "", "", 1))
    plans = {halves: make_plan(["judge=beam_rubric", f"judge.halves={halves}"]) for halves in ("count", "cut")}
    judged = {name: StoredVerdicts("j", {"identity": plan.identity()}, verdicts) for name, plan in plans.items()}
    assert {name: one.shares() for name, one in judged.items()} == {"count": {"a": 0.75}, "cut": {"a": 0.5}}
    assert [one["a"] for one in judged["cut"].by_repeat()] == [0.5]
    asked: dict[str, Any] = {name: plan.identity()["judge"] for name, plan in plans.items()}
    assert "halves" not in asked["count"] and asked["cut"] == {**asked["count"], "halves": "cut"}


def test_wrong_settings_of_these_judges_name_the_choices() -> None:
    config = make_plan(["judge=beam_rubric"]).judge
    with pytest.raises(ConfigError, match=r"judge.unit='word' is unknown; choose one of answer, rubric"):
        replace(config, unit="word")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"judge.halves='round' is unknown; choose one of count, cut"):
        replace(config, halves="round")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"judge.halves=cut is for rubrics"):
        replace(config, halves="cut", unit="answer")
    with pytest.raises(ConfigError, match=r"judge.by_kind.temporal='kind' is unknown; choose one of"):
        replace(config, by_kind={"temporal": "kind"})


def test_each_type_of_longmemeval_has_its_criterion() -> None:
    config = make_plan(["judge=longmemeval_types"]).judge
    texts = {kind: config.make_role(kind).prompt.text for kind in ("temporal", "knowledge_update", "adversarial", "")}
    assert "off by one" in texts["temporal"] and "holds now" in texts["knowledge_update"]
    assert "cannot be answered" in texts["adversarial"] and len(set(texts.values())) == 4
    assert config.golds(reference("a", "adversarial")) == ["gold"]
