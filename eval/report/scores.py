"""The leaderboard's figures: every metric of every run, by category and over all of them in each way."""

from collections.abc import Sequence
from itertools import product
from typing import get_args

from eval.metrics.registry import METRICS, higher_is_better, listed
from eval.report.config import PageConfig
from eval.results.compare.rows import ComparisonEstimate, estimate
from eval.results.stored_run import StoredRun
from eval.results.tables.judges import judge_texts, score_texts
from eval.scoring.beam import AVERAGING, is_beam_score, meaning, missing_kinds
from eval.scoring.protocols import Adversarial, Averaging, Weighting
from memsys.vocabulary import Json

#: Decimals of figures in the page's data.
PAGE_DECIMALS = 4

_Way = tuple[Adversarial, Weighting]
_WAYS: tuple[_Way, ...] = tuple(product(get_args(Adversarial), get_args(Weighting)))


def metric_list(runs: Sequence[StoredRun], config: PageConfig) -> list[dict[str, Json]]:
    """Return the metrics to choose from: those that at least one run holds, judges last with what is known of them.

    Returns:
        Of each its name, its group in the menu, its source, its unit, and whether a lower value is better.
    """
    held = {name for run in runs for row in run.rows for name, value in row.metrics.items() if value is not None}
    found: list[dict[str, Json]] = [
        _entry(name, group, METRICS[name].source if name in METRICS else "")
        for group, names in config.leaderboard.items()
        for name in names
        if name in held
    ]
    found += [
        _entry(metric.name, group, metric.source)
        for group, retrieval in (("answers", False), ("evidence", True))
        for metric in listed(retrieval=retrieval)
        if metric.name in held and metric.name not in {entry["name"] for entry in found}
    ]
    judges = judge_texts(runs)
    judges |= {
        score: f"{meaning(score, missing_kinds([run.rows for run in runs], score))}, by {text}"
        for score, text in score_texts(runs).items()
        if score in held
    }
    return found + [_entry(name, "judge", judges[name]) for name in sorted(judges) if name in held]


def _entry(name: str, group: str, source: str) -> dict[str, Json]:
    unit = METRICS[name].unit if name in METRICS else "percent"
    return {"name": name, "group": group, "source": source, "unit": unit, "lower": not higher_is_better(name)}


def run_scores(run: StoredRun, metrics: Sequence[str]) -> dict[str, dict[str, Json]]:
    """Return every metric of one run.

    Returns:
        metric -> cell -> ``[value, low, high, unit of the interval, questions scored]`` in the metric's unit; of one
        question the value alone. Cells are category numbers and
        ``<treatment of category 5>/<weighting>`` over all categories; what was not scored is absent.
    """
    present = {name for row in run.rows for name, value in row.metrics.items() if value is not None}
    return {name: _cells(run, name) for name in metrics if name in present}


def _cells(run: StoredRun, metric: str) -> dict[str, Json]:
    categories = sorted({row.category for row in run.rows})
    adversarial = run.asks_unanswerable
    found = {str(category): estimate(run, metric, Averaging(*_WAYS[0]), category) for category in categories}
    known: dict[_Way, ComparisonEstimate | None] = {}
    for way in _WAYS:
        effective = _effective(way, metric, categories, adversarial)
        if effective is not None:
            if effective not in known:
                known[effective] = estimate(run, metric, Averaging(*effective))
            found["/".join(way)] = known[effective]
    return {key: _figures(value) for key, value in found.items() if value is not None}


def _effective(way: _Way, metric: str, categories: Sequence[int], has_adversarial: bool) -> _Way | None:
    """Return the first of the ways that must give the same mean; ``None`` for one that the metric does not have."""
    adversarial, weighting = way
    if is_beam_score(metric):  # the mean of its kinds, whatever is chosen
        return AVERAGING.adversarial, AVERAGING.weighting
    if metric not in METRICS:  # verdicts and shares are plain means over what was judged; a verdict stays what it is
        kept: Adversarial = "exclude" if adversarial == "exclude" and has_adversarial else "paper_trap"
        return (kept, "question_mean") if weighting == "question_mean" else None
    retrieval = "retrievals" in METRICS[metric].needs
    if not has_adversarial or (retrieval and adversarial == "abstain"):
        adversarial = "paper_trap"
    return adversarial, "question_mean" if len(categories) == 1 else weighting


def _figures(found: ComparisonEstimate) -> list[Json]:
    value = round(found.value, PAGE_DECIMALS)
    interval = found.shown_interval
    if interval is None:
        return [value]
    return [
        value,
        round(interval.low, PAGE_DECIMALS),
        round(interval.high, PAGE_DECIMALS),
        interval.by,
        found.questions,
    ]
