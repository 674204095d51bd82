"""Scores of answers by the metrics that run a model: BERTScore, and similarity of sentence embeddings."""

from collections.abc import Sequence
from typing import Any

from eval.metrics.metric import Metric
from eval.metrics.neural import BertScorer, SentenceScorer
from eval.metrics.ordering import ORDERED_ITEMS, SEMANTIC_ORDER_METRICS, semantic_order_scores
from eval.runs.records import AnswerRecord, ReferenceRecord
from eval.scoring.answers import gold_answers, references_of
from eval.scoring.config import Scores, ScoringConfig

#: Next to the fingerprints: texts of which BERTScore's model read only the beginning.
BERTSCORE_CUT = "bertscore_cut"


def neural_scores(
    answered: Sequence[tuple[AnswerRecord, ReferenceRecord]], metrics: Sequence[Metric], config: ScoringConfig
) -> tuple[dict[str, Scores], dict[str, Any]]:
    """Score answers by the metrics that run a model.

    Args:
        answered: answers with their references; those without gold are skipped, of an order those without items.
        metrics: those that run no model are skipped.
        config: names the models.

    Returns:
        Scores by question id, and fingerprints of the models that ran; next to them :data:`BERTSCORE_CUT`, where there
        are such texts.

    Raises:
        ScoringError: a model is missing.
    """
    names = {metric.name for metric in metrics}
    pairs = [
        (reference.question_id, answer.prediction, text)
        for answer, reference in answered
        for text in references_of(gold_answers(reference), reference.kind)
    ]
    found: dict[str, Scores] = {question_id: {} for question_id, _, _ in pairs}
    models: dict[str, Any] = {}
    if any(name.startswith("bert_") for name in names):
        scorer = BertScorer(
            config.bertscore_model, config.bertscore_layers, config.bertscore_rescaled, config.batch_size
        )
        models["bertscore"] = scorer.fingerprint()
        for question_id, scores in _bert_scores(scorer, pairs).items():
            found[question_id] |= {name: value for name, value in scores.items() if name in names}
        if scorer.cut:
            models[BERTSCORE_CUT] = scorer.cut
    ordered = [pair for pair in answered if pair[1].extra.get(ORDERED_ITEMS)]
    orders = names.intersection(SEMANTIC_ORDER_METRICS) if ordered else set()
    if "sbert" in names or orders:
        sentences = SentenceScorer(config.sbert_model, config.batch_size)
        models["sbert"] = sentences.fingerprint()
        if "sbert" in names:
            values = sentences.score([pair[1] for pair in pairs], [pair[2] for pair in pairs])
            for (question_id, _, _), value in sorted(zip(pairs, values, strict=True), key=lambda pair: pair[1]):
                found[question_id]["sbert"] = value  # the best alternative comes last
        for answer, reference in ordered:
            aligned = semantic_order_scores(answer.prediction, reference.extra[ORDERED_ITEMS], sentences.cosines)
            own = found.setdefault(reference.question_id, {})
            own |= {name: value for name, value in aligned.items() if name in orders}
    return found, models


def _bert_scores(scorer: BertScorer, pairs: Sequence[tuple[str, str, str]]) -> dict[str, Scores]:
    """Return BERTScore by question id, with the alternative of the best F1.

    A-Mem's rule for an empty side: F1 counts as 0, precision and recall do not exist.
    """
    empty: Scores = {"bert_f1": 0.0, "bert_precision": None, "bert_recall": None}
    full = [pair for pair in pairs if pair[1].strip() and pair[2].strip()]
    values = scorer.score([pair[1] for pair in full], [pair[2] for pair in full])
    found: dict[str, Scores] = {question_id: dict(empty) for question_id, _, _ in pairs}
    best_last = sorted(zip(full, values, strict=True), key=lambda pair: pair[1].f1)
    for (question_id, _, _), value in best_last:
        found[question_id] = {
            "bert_f1": value.f1,
            "bert_precision": value.precision,
            "bert_recall": value.recall,
        }
    return found
