"""Scores of an answer by the metrics that run no model."""

from collections.abc import Sequence

from eval.loaders.question_types import ADVERSARIAL, LIST
from eval.metrics.locomo import CATEGORY_5, abstains, chosen_option, is_trapped
from eval.metrics.metric import Metric
from eval.metrics.ordering import ORDERED_ITEMS, order_scores
from eval.runs.records import AnswerRecord, ReferenceRecord
from eval.scoring.config import Scores

#: Joins the answers to a question for a list, as the BioASQ references of CLAG are joined.
JOINER = " ; "
#: An abstention in words that every rule takes for one.
DECLINED = "Not mentioned in the conversation"
#: Ends the name of a score against a corrected gold answer (:mod:`eval.scoring.labels`).
CORRECTED = "@corrected"


def gold_answers(reference: ReferenceRecord) -> tuple[str, ...]:
    """Return the texts that count as the answer; empty where the question cannot be scored.

    In category 5 this is the data set's *false* answer, as in the code of A-Mem and CLAG. A protocol decides whether
    these values enter its means.
    """
    if reference.kind == ADVERSARIAL and reference.adversarial_answer is not None:
        return (reference.adversarial_answer,)
    return tuple(reference.answers)


def references_of(answers: Sequence[str], kind: str) -> tuple[str, ...]:
    """Return the texts that each count as the whole answer: alternatives, or a list's parts as one text."""
    return (JOINER.join(answers),) if kind == LIST and answers else tuple(answers)


def score_answer(
    metric: Metric, prediction: str, answers: Sequence[str], category: int, kind: str = ""
) -> float | None:
    """Score one prediction by one lexical metric: against the alternative that it comes nearest to.

    Args:
        metric: from the registry, with a function or a rule.
        prediction: the reader's answer.
        answers: reference answers, alternatives of each other; of a question for a list its parts. Not empty.
        category: the question's category.
        kind: what is asked (:mod:`eval.loaders.question_types`).

    Raises:
        ScoringError: the metric returned something that is not a score.
        ValueError: the metric is not lexical.
    """
    if metric.rule is not None:
        by_rule = [metric.rule(prediction, text, category) for text in references_of(answers, kind)]
        return max((metric.checked(one) for one in by_rule if one is not None), default=None)
    if metric.function is None:
        raise ValueError(f"{metric.name} is not a lexical metric")
    function = metric.function
    texts = references_of(answers, kind) if metric.references == "joined" else answers
    return max(metric.checked(function(prediction, text)) for text in texts)


def answer_scores(answer: AnswerRecord, reference: ReferenceRecord, metrics: Sequence[Metric]) -> Scores:
    """Score an answer by every lexical metric, and say whether it abstains or falls for a false answer.

    Args:
        answer: of the run.
        reference: of the same question.
        metrics: those that are not lexical are skipped.
    """
    answers = gold_answers(reference)
    scores: Scores = {}
    adversarial = reference.kind == ADVERSARIAL
    false_answer = reference.adversarial_answer if adversarial else None
    # A bare letter names an option; the official rule maps it back before it looks for the abstention.
    reply = in_known_words(chosen_option(answer.prediction, answer.options), answer.options, false_answer)
    # LoCoMo's rules go by its own numbers: a 5 that is not adversarial, or the reverse, is another data set's.
    category = answer.category if (answer.category == CATEGORY_5) == adversarial else 0
    for metric in metrics:
        if metric.lexical:
            prediction = reply if metric.rule is not None else answer.prediction
            scored = score_answer(metric, prediction, answers, category, reference.kind) if answers else None
            scores[metric.name] = scored
    scores |= order_scores(answer.prediction, reference.extra.get(ORDERED_ITEMS, ()))
    scores["abstained"] = float(abstains(reply))
    scores["trapped"] = None if false_answer is None else float(is_trapped(reply, false_answer))
    return scores


def in_known_words(reply: str, options: Sequence[str], false_answer: str | None) -> str:
    """Return a reply with the reader's abstention (``reader.abstention``) replaced by the phrase of LoCoMo's rules.

    Args:
        reply: as it was given.
        options: what was offered: the abstention next to the false answer; empty where nothing was.
        false_answer: of the question; ``None`` where it has none.
    """
    if false_answer is None:
        return reply
    declining = {_plain(option) for option in options} - {_plain(false_answer)}
    return DECLINED if _plain(reply) in declining else reply


def _plain(text: str) -> str:
    return text.strip().rstrip(".").lower()


def corrected_scores(answer: AnswerRecord, correction: str, metrics: Sequence[Metric]) -> Scores:
    """Return the lexical scores against the gold answer of a label audit, by names that end in :data:`CORRECTED`."""
    return {
        metric.name + CORRECTED: score_answer(metric, answer.prediction, (correction,), answer.category)
        for metric in metrics
        if metric.lexical
    }
