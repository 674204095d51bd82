"""From per-question scores to the means a table prints. Unscored values (null) never count as 0; they are counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import median

from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.registry import METRICS
from eval.runs.records import ScoreRow
from eval.scoring.means import mean_or_none
from eval.scoring.protocols import Adversarial, Averaging, Protocol, Weighting
from memsys.vocabulary import Json

#: The metric that represents every column in category 5 when abstaining is right.
ABSTENTION = "abstained"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its denominator. ``value`` is ``None`` when nothing could be scored."""

    value: float | None
    scored: int
    unscored: int


@dataclass(frozen=True, slots=True)
class CategoryMeans:
    """Means of one category, by column."""

    category: int
    kind: str
    label: str
    printed_label: str
    questions: int
    columns: Mapping[str, Mean]


@dataclass(frozen=True, slots=True)
class ProtocolMeans:
    """Means of a run under a protocol.

    Attributes:
        protocol: how.
        categories: those that count, in the protocol's order.
        overall: by column, over these categories.
        without_adversarial: by column, over these categories but adversarial ones.
        left_out: questions of categories that do not count.
        unlabelled: kinds that the protocol has no label for; they count, under their own name.
    """

    protocol: Protocol
    categories: Sequence[CategoryMeans]
    overall: Mapping[str, Mean]
    without_adversarial: Mapping[str, Mean]
    left_out: int
    unlabelled: Sequence[str] = ()

    def as_json(self) -> Json:
        """Return the plain values for ``summary.json``."""
        return {
            "adversarial": self.protocol.adversarial,
            "weighting": self.protocol.weighting,
            "metrics": dict(self.protocol.columns),
            "left_out": self.left_out,
            "overall": _as_json(self.overall),
            "without_adversarial": _as_json(self.without_adversarial),
            "categories": _categories_as_json(self.categories),
            "unlabelled_kinds": list(self.unlabelled),
        }


def _categories_as_json(categories: Sequence[CategoryMeans]) -> Json:
    return {
        str(means.category): {
            "label": means.label,
            "printed_label": means.printed_label,
            "questions": means.questions,
            "columns": _as_json(means.columns),
        }
        for means in categories
    }


def _as_json(columns: Mapping[str, Mean]) -> Json:
    return {
        column: {"mean": mean.value, "scored": mean.scored, "unscored": mean.unscored}
        for column, mean in columns.items()
    }


def mean_of(values: Iterable[float | None]) -> Mean:
    """Return the mean over the scored questions."""
    everything = list(values)
    scored = [value for value in everything if value is not None]
    return Mean(mean_or_none(scored), len(scored), len(everything) - len(scored))


def without_flagged(rows: Sequence[ScoreRow], mark: str) -> list[ScoreRow]:
    """Leave out the questions that have a mark of :mod:`eval.loaders.label_problems`."""
    return [row for row in rows if not row.metrics.get(mark)]


def combine(means: Sequence[Mean], weighting: Weighting) -> Mean:
    """Return the overall mean from category means; a category without any scored question does not count.

    ``question_mean`` weighs by scored questions, which reproduces CLAG's Table 1 from its Table 3; ``category_mean``
    is the plain mean that SAGE prints.
    """
    known = [(mean.value, mean.scored) for mean in means if mean.value is not None]
    scored, unscored = sum(mean.scored for mean in means), sum(mean.unscored for mean in means)
    if not known:
        return Mean(None, scored, unscored)
    weights = [float(count) if weighting == "question_mean" else 1.0 for _, count in known]
    total = fsum(value * weight for (value, _), weight in zip(known, weights, strict=True))
    return Mean(total / fsum(weights), scored, unscored)


def score_name(metric: str, kind: str, adversarial: Adversarial) -> str:
    """Name the score that represents a metric in questions of a kind.

    It is abstention in adversarial questions whose right answer is to abstain. What was retrieved is not an abstention,
    a judge's verdict stays what it is, and so does what is not a score of an answer: latencies and sizes.
    """
    if kind != ADVERSARIAL or adversarial != "abstain" or metric not in METRICS:
        return metric
    return metric if "retrievals" in METRICS[metric].needs else ABSTENTION


def aggregate(rows: Sequence[ScoreRow], protocol: Protocol) -> ProtocolMeans:
    """Average scores the way a paper did.

    Args:
        rows: scores of one run.
        protocol: treatment of adversarial questions, weights, columns and labels.
    """
    groups = sorted(_by_category(rows, protocol), key=lambda own: (protocol.place(own[0].kind), own[0].category))
    categories = [_category_means(group, protocol) for group in groups]
    columns, weighting = protocol.columns, protocol.weighting
    answerable = [means for means in categories if means.kind != ADVERSARIAL]
    return ProtocolMeans(
        protocol=protocol,
        categories=categories,
        overall={column: combine([means.columns[column] for means in categories], weighting) for column in columns},
        without_adversarial={
            column: combine([means.columns[column] for means in answerable], weighting) for column in columns
        },
        left_out=len(rows) - sum(means.questions for means in categories),
        unlabelled=unlabelled_kinds(rows, protocol),
    )


def unlabelled_kinds(rows: Iterable[ScoreRow], protocol: Protocol) -> list[str]:
    """Return the categories without a label in a protocol, sorted; they count under their own names."""
    return sorted({row.kind for row in rows} - {*protocol.labels, ADVERSARIAL})


def _group_mean(rows: Sequence[ScoreRow], metric: str, averaging: Averaging) -> Mean:
    return mean_of(row.metrics.get(score_name(metric, row.kind, averaging.adversarial)) for row in rows)


def _by_category(rows: Sequence[ScoreRow], averaging: Averaging) -> list[list[ScoreRow]]:
    """Group the rows that count by category."""
    groups: dict[int, list[ScoreRow]] = {}
    for row in rows:
        if averaging.counts(row.kind):
            groups.setdefault(row.category, []).append(row)
    return list(groups.values())


def _category_means(rows: Sequence[ScoreRow], protocol: Protocol) -> CategoryMeans:
    kind = rows[0].kind
    return CategoryMeans(
        category=rows[0].category,
        kind=kind,
        label=protocol.label(kind),
        printed_label=protocol.printed_label(kind),
        questions=len(rows),
        columns={column: _group_mean(rows, metric, protocol) for column, metric in protocol.columns.items()},
    )


def describe(values: Sequence[float], population: bool = False) -> dict[str, float | int]:
    """Return the mean, standard deviation, median, minimum, maximum and count.

    Args:
        values: at least one.
        population: divide by n (CLAG's latency and cluster figures) and not by n - 1 (A-Mem's ``aggregate_metrics``,
            where one value has deviation 0).
    """
    mean = fsum(values) / len(values)
    divisor = len(values) if population else len(values) - 1
    variance = fsum((value - mean) ** 2 for value in values) / divisor if divisor else 0.0
    return {
        "mean": mean,
        "std": sqrt(variance),
        "median": median(values),
        "min": min(values),
        "max": max(values),
        "count": len(values),
    }


def described(values: Iterable[float | None]) -> dict[str, float | int] | None:
    """Describe the values that there are, with population deviation; ``None`` when there is none."""
    known = [float(value) for value in values if value is not None]
    return describe(known, population=True) if known else None


def aggregate_metrics(rows: Sequence[ScoreRow]) -> dict[str, dict[str, dict[str, float | int]]]:
    """Describe every metric overall and per category, as A-Mem's ``aggregate_metrics`` does; nulls are left out.

    Returns:
        ``{"overall" or "category_<n>": {metric: description}}``.
    """
    groups: dict[str, list[ScoreRow]] = {"overall": list(rows)}
    for category in sorted({row.category for row in rows}):
        groups[f"category_{category}"] = [row for row in rows if row.category == category]
    return {name: _describe_metrics(group) for name, group in groups.items()}


def _describe_metrics(rows: Sequence[ScoreRow]) -> dict[str, dict[str, float | int]]:
    described = {}
    for name in sorted({name for row in rows for name in row.metrics}):
        values = [value for row in rows if (value := row.metrics.get(name)) is not None]
        if values:
            described[name] = describe(values)
    return described
