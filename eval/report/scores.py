"""The leaderboard's figures: every metric of every run, by category and over all of them in each way."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import get_args

import numpy as np

from eval.loaders.registry import DATASETS
from eval.metrics.locomo import ADVERSARIAL
from eval.metrics.registry import METRICS
from eval.report.config import PageConfig
from eval.scoring.inference import Scores, resampling_units
from eval.scoring.protocols import Adversarial, Protocol, Weighting
from eval.scoring.several import category_means, intervals
from eval.tables.judges import judge_texts
from eval.tables.measure import scores_and_mean
from eval.tables.stored import StoredRun
from memsys.vocabulary import Json

#: Decimals of figures in the page's data.
DIGITS = 4

_Way = tuple[Adversarial, Weighting]
_WAYS: tuple[_Way, ...] = tuple(product(get_args(Adversarial), get_args(Weighting)))


def category_names(run: StoredRun) -> dict[int, str]:
    """What the categories of a run's questions are called, by number."""
    present = sorted({row.category for row in run.rows})
    keys = sorted((key for key in DATASETS if run.dataset.startswith(key)), key=len, reverse=True)
    names = DATASETS[keys[0]].category_names if keys else {}
    return {category: names.get(category, f"category {category}").replace("_", " ") for category in present}


def metric_list(runs: Sequence[StoredRun], config: PageConfig) -> list[dict[str, Json]]:
    """The metrics to choose from: those that at least one run holds, judges last with what is known of them."""
    held = {name for run in runs for row in run.rows for name, value in row.metrics.items() if value is not None}
    found: list[dict[str, Json]] = [
        {"name": name, "group": group, "source": METRICS[name].source if name in METRICS else ""}
        for group, names in config.leaderboard.items()
        for name in names
        if name in held
    ]
    judges = judge_texts(runs)
    return found + [{"name": name, "group": "judge", "source": judges[name]} for name in sorted(judges) if name in held]


def run_scores(run: StoredRun, metrics: Sequence[str]) -> dict[str, dict[str, Json]]:
    """Every metric of one run.

    Returns:
        metric -> cell -> ``[value, low, high, unit of the interval]`` in percent. Cells are category numbers and
        ``<treatment of category 5>/<weighting>`` over all categories; what was not scored is absent.
    """
    present = {name for row in run.rows for name, value in row.metrics.items() if value is not None}
    names = [name for name in metrics if name in present]
    categories = sorted({row.category for row in run.rows})
    found: dict[str, dict[str, Json]] = {name: {} for name in names}
    for category in categories:
        for name, figures in _plain_means(run, names, _protocol(categories, *_WAYS[0]), category).items():
            found[name][str(category)] = figures
    for way in _WAYS:
        for effective, own in _by_effective(way, names, categories).items():
            for name, figures in _plain_means(run, own, _protocol(categories, *effective), None).items():
                found[name]["/".join(way)] = figures
    return found


def _by_effective(way: _Way, names: Sequence[str], categories: Sequence[int]) -> dict[_Way, list[str]]:
    found: dict[_Way, list[str]] = {}
    for name in names:
        effective = _effective(way, name, categories)
        if effective is not None:
            found.setdefault(effective, []).append(name)
    return found


def _plain_means(
    run: StoredRun, names: Sequence[str], protocol: Protocol, category: int | None
) -> dict[str, list[Json]]:
    """Means by metric; metrics that were scored on the same questions are resampled together."""
    together: dict[tuple[tuple[str, ...], bytes], dict[str, Scores]] = {}
    for name in names:
        scores, _ = scores_and_mean(run.rows, name, category, protocol)
        if len(scores.values):
            together.setdefault((scores.conversations, scores.strata.tobytes()), {})[name] = scores
    by_category = category is None and protocol.weighting == "category_mean"
    found: dict[str, list[Json]] = {}
    for columns in together.values():
        found |= _resampled(columns, by_category=by_category)
    return found


def _resampled(columns: Mapping[str, Scores], *, by_category: bool) -> dict[str, list[Json]]:
    first = next(iter(columns.values()))
    values = np.stack([100 * scores.values for scores in columns.values()], axis=1)
    if by_category:
        means, ends = category_means(values, first.conversations, first.strata)
    else:
        means, ends = values.mean(axis=0), intervals(values, first.conversations)
    unit = resampling_units(first.conversations)[0]
    found: dict[str, list[Json]] = {}
    for column, name in enumerate(columns):
        own = ends[column] if ends else ()
        figures: list[Json] = [round(float(value), DIGITS) for value in (means[column], *own)]
        found[name] = [*figures, unit] if own else figures
    return found


def _effective(way: _Way, metric: str, categories: Sequence[int]) -> _Way | None:
    """The first of the ways that must give the same mean; ``None`` for one that the metric does not have."""
    adversarial, weighting = way
    if metric not in METRICS:  # verdicts and shares are plain means over what was judged
        return _WAYS[0] if weighting == "question_mean" else None
    retrieval = "retrievals" in METRICS[metric].needs
    if ADVERSARIAL not in categories or (retrieval and adversarial == "abstain"):
        adversarial = "paper_trap"
    return adversarial, "question_mean" if len(categories) == 1 else weighting


def _protocol(categories: Sequence[int], adversarial: Adversarial, weighting: Weighting) -> Protocol:
    names = {category: str(category) for category in categories}
    return Protocol("page", "", categories, adversarial, weighting, names, {})
