"""What holds for any answer: bounds, identity, symmetry; and for any ranking."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.metrics.evidence import evidence_scores, rank_by_lineage
from eval.metrics.registry import METRICS
from eval.scoring.aggregate import Mean, combine, describe, mean_of
from eval.scoring.answers import score_answer
from memsys.assets.catalog import asset_path
from memsys.errors import AssetError

LEXICAL = [metric for metric in METRICS.values() if metric.lexical]
SYMMETRIC = ("f1_set", "f1_word", "f1_gam", "f1_squad", "f1_locomo", "f1_memos", "em_lower", "em_squad", "em_set")
IDENTITY = (*SYMMETRIC, "f1_locomo_multi", "bleu1", "bleu1_gam", "rouge1", "rougeL")

WORDS = st.sampled_from(
    ["cat", "cats", "the", "and", "May", "7", "1,000", "self-care", "it's", "café", "—", ";", "''", "."]
)
TEXTS = st.one_of(st.lists(WORDS, max_size=8).map(" ".join), st.text(max_size=30))


@pytest.fixture(scope="module", autouse=True)
def corpora() -> None:
    try:
        asset_path("punkt_tab")
        asset_path("wordnet")
    except AssetError as error:
        pytest.skip(str(error))


@settings(max_examples=150, deadline=None)
@given(prediction=TEXTS, reference=TEXTS, category=st.integers(1, 6))
def test_scores_lie_between_0_and_1(prediction: str, reference: str, category: int) -> None:
    for metric in LEXICAL:
        score = score_answer(metric, prediction, (reference,), category)
        assert score is None or 0.0 <= score <= 1.0 + 1e-12, metric.name


@settings(max_examples=150, deadline=None)
@given(left=TEXTS, right=TEXTS)
def test_overlap_is_symmetric(left: str, right: str) -> None:
    for name in SYMMETRIC:
        forth, back = (score_answer(METRICS[name], *pair, 4) for pair in ((left, (right,)), (right, (left,))))
        assert forth == pytest.approx(back), name


@settings(max_examples=100, deadline=None)
@given(words=st.lists(st.sampled_from(["cat", "May", "2023", "pottery", "Sweden"]), min_size=1, max_size=8))
def test_an_answer_agrees_with_itself(words: list[str]) -> None:
    text = " ".join(words)
    for name in IDENTITY:
        assert score_answer(METRICS[name], text, (text,), 4) == pytest.approx(1.0), name


@settings(max_examples=100, deadline=None)
@given(prediction=TEXTS, answers=st.lists(TEXTS, min_size=1, max_size=4))
def test_more_references_never_hurt_a_best_of_metric(prediction: str, answers: list[str]) -> None:
    for name in ("f1_squad", "em_squad", "f1_gam", "bleu1_gam"):
        one, all_of_them = (score_answer(METRICS[name], prediction, chosen, 4) for chosen in (answers[:1], answers))
        assert one is not None and all_of_them is not None and all_of_them >= one, name


MEMORIES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=3), max_size=14)


@given(retrieved=MEMORIES, gold=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12))
def test_evidence_figures(retrieved: list[list[str]], gold: list[str]) -> None:
    scores = evidence_scores(rank_by_lineage(retrieved, gold))
    assert all(value is not None and 0.0 <= value <= 1.0 + 1e-12 for value in scores.values())
    assert scores["recall@10"] == scores["e_recall"]
    known = {name: value for name, value in scores.items() if value is not None}
    assert known["recall@5"] <= known["recall@10"]
    assert known["ndcg@10"] <= known["ndcg@10_clipped"] + 1e-12
    assert min(known["e_precision"], known["e_recall"]) <= known["e_f1"] + 1e-12
    assert (known["hit_rate"] == 1.0) == (known["mrr"] > 0) == (known["ndcg@10"] > 0)


@given(retrieved=MEMORIES, gold=st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12))
def test_a_memory_with_all_the_gold_in_front_finds_everything(retrieved: list[list[str]], gold: list[str]) -> None:
    scores = evidence_scores(rank_by_lineage([gold, *retrieved], gold))
    assert scores["e_recall"] == scores["recall@5"] == scores["mrr"] == 1.0


VALUES = st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=20)


@given(groups=st.lists(VALUES, min_size=1, max_size=5))
def test_question_mean_is_the_mean_over_all_questions(groups: list[list[float | None]]) -> None:
    whole = mean_of(value for group in groups for value in group)
    combined = combine([mean_of(group) for group in groups], "question_mean")
    assert (combined.scored, combined.unscored) == (whole.scored, whole.unscored)
    assert combined.value == (None if whole.value is None else pytest.approx(whole.value))


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=5), weight=st.integers(1, 9))
def test_equal_weights_make_both_means_equal(values: list[float], weight: int) -> None:
    means = [Mean(value, weight, 0) for value in values]
    assert combine(means, "question_mean").value == pytest.approx(combine(means, "category_mean").value)


@given(values=st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_descriptions(values: list[float]) -> None:
    sample, population = describe(values), describe(values, population=True)
    assert sample["min"] <= sample["median"] <= sample["max"]
    n = len(values)
    assert sample["std"] == pytest.approx(population["std"] * (n / (n - 1)) ** 0.5, abs=1e-12)
