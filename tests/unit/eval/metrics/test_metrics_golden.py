"""Every metric agrees with the papers' own code on every recorded pair."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval.metrics.evidence import evidence_scores, rank_by_substring
from eval.metrics.locomo import stems
from eval.metrics.ngrams import punkt_tokens
from eval.metrics.registry import METRICS
from eval.metrics.text import ValueRule, amem_tokens, as_text
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import Mean, aggregate_metrics, combine
from eval.scoring.answers import score_answer
from memsys.assets.catalog import asset_path
from memsys.errors import AssetError

TOLERANCE = 1e-9
OWN = json.loads((Path(__file__).resolve().parents[3] / "golden" / "metrics.json").read_text(encoding="utf-8"))

_AMEM, _MEM0 = "clag_amem.calculate_metrics.", "mem0_xmemory_nemori_sage."
#: Key of the recorded value -> our metric.
NAMES = {
    f"{_AMEM}exact_match": "em_lower",
    f"{_AMEM}f1": "f1_set",
    f"{_AMEM}rouge1_f": "rouge1",
    f"{_AMEM}rouge2_f": "rouge2",
    f"{_AMEM}rougeL_f": "rougeL",
    f"{_AMEM}bleu1": "bleu1",
    f"{_AMEM}bleu2": "bleu2",
    f"{_AMEM}bleu3": "bleu3",
    f"{_AMEM}bleu4": "bleu4",
    f"{_AMEM}meteor": "meteor",
    f"{_MEM0}calculate_metrics.exact_match": "em_lower",
    f"{_MEM0}calculate_metrics.f1": "f1_set",
    f"{_MEM0}calculate_metrics.bleu1": "bleu1",
    f"{_MEM0}calculate_bleu_scores.bleu1": "bleu1",
    "memoryos.calculate_f1": "f1_word",
    "gam_english.f1_score": "f1_squad",
    "gam_english.exact_match_score": "em_squad",
    "gam_english.f1_score_locomo": "f1_gam",
    "gam_english.bleu1_score": "bleu1_gam",
    "gam_research.locomo_test.f1_score": "f1_gam",
    "gam_research.locomo_test.bleu1_score": "bleu1_gam",
    "gam_research.hotpotqa_test.qa_f1_score": "f1_squad",
    "locomo_official.f1_score": "f1_locomo",
    "locomo_official.f1_multi": "f1_locomo_multi",
    "locomo_official.exact_match_score": "em_set",
    "locomo_official.rougel_score(actually rouge-1 f)": "rouge1_locomo",
    "locomo_official.eval_question_answering[category]": "locomo_official",
    "memos.calculate_f1_score(word_tokenize)": "f1_memos",
    "memos.meteor(word_tokenize)": "meteor_tokenized",
    "rouge_score.rougeL_f.stem": "rougeL",
    "nltk.meteor_score(split)": "meteor",
}


def _skip_without(*assets: str) -> None:
    for asset in assets:
        try:
            asset_path(asset)
        except AssetError as error:
            pytest.skip(str(error))


def _shared_pairs(data_dir: Path) -> list[dict[str, Any]]:
    path = data_dir.parent / "gold" / "gold_metrics.json"
    if not path.is_file():
        pytest.skip("the recorded pairs that quote data sets are not part of the repository")
    pairs: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["pairs"]
    return pairs


def _disagreements(pairs: list[dict[str, Any]], key: str, name: str) -> list[tuple[Any, ...]]:
    wrong = []
    for pair in pairs:
        if key in pair["metrics"]:
            ours = score_answer(METRICS[name], pair["prediction"], (pair["reference"],), pair["category"])
            if ours is None or abs(ours - pair["metrics"][key]) > TOLERANCE:
                wrong.append((pair["id"], pair["tag"], ours, pair["metrics"][key]))
    return wrong


@pytest.mark.parametrize(("key", "name"), NAMES.items())
def test_own_pairs_agree(key: str, name: str) -> None:
    _skip_without("punkt_tab", "wordnet")
    assert sum(key in pair["metrics"] for pair in OWN["pairs"]) >= 70
    assert _disagreements(OWN["pairs"], key, name) == []


@pytest.mark.real_data
@pytest.mark.parametrize(("key", "name"), NAMES.items())
def test_pairs_from_data_sets_agree(key: str, name: str, data_dir: Path) -> None:
    _skip_without("punkt_tab", "wordnet")
    pairs = _shared_pairs(data_dir)
    assert sum(key in pair["metrics"] for pair in pairs) > 200
    assert _disagreements(pairs, key, name) == []


def _check_tokens(pairs: list[dict[str, Any]]) -> None:
    cutters = {"word_tokenize_lower": punkt_tokens, "clag_simple": amem_tokens, "locomo_stems": stems}
    for pair in pairs:
        for name, cut in cutters.items():
            for side, text in (("pred", pair["prediction"]), ("ref", pair["reference"])):
                assert list(cut(text)) == pair["tokens"][f"{name}_{side}"], (pair["id"], name, side)


def test_tokens_of_own_pairs_agree() -> None:
    _skip_without("punkt_tab")
    _check_tokens(OWN["pairs"])


@pytest.mark.real_data
def test_tokens_of_pairs_from_data_sets_agree(data_dir: Path) -> None:
    _skip_without("punkt_tab")
    _check_tokens(_shared_pairs(data_dir))


@pytest.mark.real_data
def test_recorded_runs_reproduce(data_dir: Path) -> None:
    """F1 and BLEU-1 as SAGE and Mem0 runs stored them."""
    _skip_without("punkt_tab")
    recorded = [pair for pair in _shared_pairs(data_dir) if "recorded_f1" in pair]
    assert len(recorded) == 60
    for pair in recorded:
        for key, name in (("recorded_f1", "f1_set"), ("recorded_bleu1", "bleu1")):
            ours = score_answer(METRICS[name], pair["prediction"], (pair["reference"],), pair["category"])
            assert ours == pytest.approx(pair[key], abs=TOLERANCE), (pair["id"], name)


VALUE_RULES: dict[str, tuple[str, ValueRule]] = {
    "clag_amem.exact_match": ("em_lower", "amem"),
    "clag_amem.f1": ("f1_set", "amem"),
    "clag_amem.bleu1": ("bleu1", "amem"),
    "mem0 evals.py path (str() first).f1": ("f1_set", "mem0"),
    "memoryos.calculate_f1": ("f1_word", "amem"),
    "gam_english.f1_score_locomo": ("f1_gam", "gam"),
}


@pytest.mark.parametrize("case", OWN["non_string_inputs"], ids=lambda case: repr(case["prediction"]))
def test_values_that_are_no_strings(case: dict[str, Any]) -> None:
    _skip_without("punkt_tab")
    for key, (name, rule) in VALUE_RULES.items():
        function = METRICS[name].function
        assert function is not None
        ours = function(as_text(case["prediction"], rule), as_text(case["reference"], rule))
        assert ours == pytest.approx(case[key], abs=TOLERANCE), key


@pytest.mark.parametrize("case", OWN["multi_reference"], ids=lambda case: case["prediction"] or "empty")
def test_best_of_several_references(case: dict[str, Any]) -> None:
    names = {
        "gam_english.f1_score": "f1_squad",
        "gam_english.exact_match_score": "em_squad",
        "gam_research.hotpotqa_test._calculate_f1": "f1_squad",
        "gam_english.compute_locomo_metrics.f1": "f1_gam",
        "gam_english.compute_locomo_metrics.bleu1": "bleu1_gam",
    }
    for key, name in names.items():
        ours = score_answer(METRICS[name], case["prediction"], case["references"], 4)
        assert ours == pytest.approx(case[key], abs=TOLERANCE), key


RANKING_NAMES = {
    "e_precision": "e_precision",
    "e_recall": "e_recall",
    "e_f1": "e_f1",
    "recall_at_5": "recall@5",
    "recall_at_10": "recall@10",
    "ndcg_at_10_retrieved_ideal": "ndcg@10_retrieved",
    "ndcg_at_10_novel_gold_ideal": "ndcg@10",
    "ndcg_at_10_gold_ideal_clipped": "ndcg@10_clipped",
    "hit": "hit_rate",
    "mrr": "mrr",
}


@pytest.mark.parametrize("case", OWN["ranking"], ids=lambda case: case["tag"])
def test_ranked_lists(case: dict[str, Any]) -> None:
    ranking = rank_by_substring(case["retrieved"], case["gold"])
    expected = case["expected"]
    if expected.get("excluded"):
        assert ranking is None
        return
    assert ranking is not None
    assert list(ranking.gold_ranks) == expected["gold_ranks"]
    assert [int(flag) for flag in ranking.relevant] == expected["rel"]
    ours = evidence_scores(ranking)
    for key, name in RANKING_NAMES.items():
        assert ours[name] == pytest.approx(expected[key], abs=TOLERANCE), name


@pytest.mark.parametrize("case", OWN["averaging"], ids=lambda case: case["row"])
def test_printed_averages(case: dict[str, Any]) -> None:
    """CLAG's, MemFly's and xMemory's averages weigh by questions, SAGE's does not."""
    values = case["per_category_1_to_n"]
    means = [Mean(value, OWN["question_counts"][str(number)], 0) for number, value in enumerate(values, start=1)]
    by_question, by_category = combine(means, "question_mean").value, combine(means, "category_mean").value
    assert by_question == pytest.approx(case["weighted_by_question_count"], abs=1e-4)
    assert by_category == pytest.approx(case["mean_of_categories"], abs=1e-9)
    if "does not follow" not in case["row"]:
        assert case["printed"] == pytest.approx(by_category if "SAGE" in case["row"] else by_question, abs=0.05)


def test_amem_aggregate() -> None:
    scores = {1: [0.0, 1.0], 2: [0.25], 4: [0.5]}
    rows = [
        ScoreRow(f"q{category}{value}", "c", category, {"f1": value})
        for category, values in scores.items()
        for value in values
    ]
    expected = OWN["aggregate_metrics_example"]
    ours = aggregate_metrics(rows)
    assert ours.keys() == expected.keys()
    for group, metrics in expected.items():
        assert ours[group]["f1"] == pytest.approx(metrics["f1"], abs=1e-12)


@pytest.mark.real_model
def test_sentence_similarity_agrees() -> None:
    _skip_without("all_minilm_l6_v2")
    from eval.metrics.neural import SentenceScorer

    pairs = OWN["pairs"]
    ours = SentenceScorer("all-MiniLM-L6-v2").score(
        [pair["prediction"] for pair in pairs], [pair["reference"] for pair in pairs]
    )
    recorded = [pair["metrics"]["clag_amem.calculate_metrics.sbert_similarity"] for pair in pairs]
    assert ours == pytest.approx(recorded, abs=1e-3)


@pytest.mark.real_model
def test_bertscore_of_a_small_model_agrees() -> None:
    _skip_without("all_minilm_l6_v2")
    from eval.metrics.neural import BertScorer

    key = "bert_score(all-MiniLM-L6-v2,num_layers=6)."
    pairs = [pair for pair in OWN["pairs"] if f"{key}F" in pair["metrics"]]
    assert len(pairs) >= 70
    scorer = BertScorer("all-MiniLM-L6-v2")
    ours = scorer.score([pair["prediction"] for pair in pairs], [pair["reference"] for pair in pairs])
    for name, attribute in (("P", "precision"), ("R", "recall"), ("F", "f1")):
        recorded = [pair["metrics"][key + name] for pair in pairs]
        assert [getattr(score, attribute) for score in ours] == pytest.approx(recorded, abs=2e-3)
    assert scorer.fingerprint() == {
        "model": "all-MiniLM-L6-v2",
        "weights_sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "layers": 6,
        "rescaled": False,
    }
