"""Metrics that cannot tokenize a gold answer's script, and the metrics that score it instead."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from eval.metrics.metric import Metric
from eval.metrics.registry import select_metrics
from memsys.assets.hints import of_source
from memsys.scripts import has_joined_words, has_marks, is_mostly_latin

#: By what a definition takes for words: whether it misses those of a text.
_MISSES: Mapping[str, Callable[[str], bool]] = {
    "spaces": has_joined_words,
    "word_characters": lambda text: has_joined_words(text) or has_marks(text),
    "latin": lambda text: not is_mostly_latin(text),
}


def unsplit_answers(golds: Iterable[Sequence[str]], metrics: Sequence[Metric]) -> dict[str, int]:
    """Count, by metric, the questions with a gold answer whose words the metric does not split; metrics of 0 left out.

    Args:
        golds: gold answers of each question.
        metrics: that were chosen.
    """
    kept = list(golds)
    counts = {words: sum(any(map(misses, texts)) for texts in kept) for words, misses in _MISSES.items()}
    return {metric.name: counts[metric.words] for metric in metrics if counts.get(metric.words)}


def with_mixed(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    """Add the metrics for text in any script, but for those that need a corpus that none of the metrics needs."""
    at_hand = {need for metric in metrics for need in metric.needs}
    added = [metric for metric in select_metrics(["mixed"]) if at_hand.issuperset(metric.needs)]
    return select_metrics([metric.name for metric in (*metrics, *added)])


def advice(unsplit: Mapping[str, int], questions: int) -> str:
    """Say which metrics do not split how many answers, and which to read instead."""
    named: dict[int, list[str]] = {}
    for metric, count in unsplit.items():
        named.setdefault(count, []).append(metric)
    counted = "; ".join(f"{', '.join(names)} ({count} of {questions})" for count, names in sorted(named.items()))
    return (
        f"these metrics do not split the words of gold answers in their script: {counted}; "
        f"read {', '.join(metric.name for metric in select_metrics(['mixed']))} instead, which are in the scores too "
        f"({of_source('docs/scores.md')})"
    )
