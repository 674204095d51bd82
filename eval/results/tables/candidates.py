"""Assignment of runs to the rows of a table, with the reasons for those without a row."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from pathlib import PurePath
from typing import Any

from eval.config.answer_prompts import AUTHORS, answer_prompts
from eval.metrics.registry import METRICS
from eval.results.stored_run import NO_BACKBONE, StoredRun
from eval.results.tables.spec import PaperSpec
from eval.results.tables.variants import run_variant
from eval.runs.records import ScoreRow
from eval.runs.run_json import has_random_weights
from eval.scoring.aggregate import ABSTENTION
from eval.scoring.means import mean_if_known
from eval.scoring.shown import SHOWN_CHARS

#: Begins the columns of verdicts that were recorded with the answers.
RECORDED_JUDGE = "judge_recorded_"
LATENCY_METRICS = frozenset({"retrieval_ms", "end_to_end_ms"})
#: Sizes of what was retrieved, next to the metrics of the registry.
_RETRIEVED = frozenset({SHOWN_CHARS, "hit_chars", "hits"})


@dataclass(frozen=True, slots=True)
class RowKey:
    """Identity of a measured row: backbone, system, and the settings overridden in it (empty for the plain system)."""

    backbone: str
    system: str
    variant: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """The run (or its repetitions with several seeds) behind one cell.

    Attributes:
        run: one of them, for what they share.
        rows: values by question; means over the seeds where there are several.
        seeds: seeds that entered, one run each.
        runs: ids of these runs.
        repeats: the runs themselves, one a seed.
    """

    run: StoredRun
    rows: tuple[ScoreRow, ...]
    seeds: tuple[int, ...]
    runs: tuple[str, ...]
    repeats: tuple[StoredRun, ...]


def is_retrieval(metric: str) -> bool:
    """Return whether a metric is of what was retrieved, so that no answer enters it."""
    return metric in _RETRIEVED or (metric in METRICS and "retrievals" in METRICS[metric].needs)


def asks_the_question(run: StoredRun) -> bool:
    """Return whether the memory is written without a model and searched with the question itself, as plain RAG is."""
    return bool((run.record["config"].get("memory") or {}).get("query") == "question")


def candidates_of(found: "Candidates", key: RowKey, dataset: str, metric: str) -> tuple[StoredRun, ...]:
    """Return the runs that may be in a cell: the row's own, and those without a backbone where it does not matter.

    What a memory retrieves does not depend on the backbone if no model writes it and the question is the query.
    """
    own = tuple(found.get(key, {}).get(dataset, ()))
    if not is_retrieval(metric) or key.backbone == NO_BACKBONE:
        return own
    asked_nothing = key.variant.removeprefix(AUTHORS).removeprefix(", ")  # a run without a backbone has no prompts
    others = found.get(RowKey(NO_BACKBONE, key.system, asked_nothing), {}).get(dataset, ())
    return (*own, *(run for run in others if asks_the_question(run)))


#: Runs of a row on a data set.
Candidates = Mapping[RowKey, Mapping[str, Sequence[StoredRun]]]


def in_printed_row(run: StoredRun, spec: PaperSpec) -> StoredRun:
    """Return recorded answers under the names of their printed row; the run itself if it has none here."""
    row = run.recorded_row
    if row.get("paper") != spec.paper:
        return run
    dataset = spec.dataset_of(run.dataset)
    names = {**row, "reader": spec.readers_of(dataset)[0] if dataset else run.reader}
    config = run.record["config"] | {part: {"name": names[part]} for part in ("memory", "backbone", "reader")}
    return replace(run, record={**run.record, "config": config})


def recorded_judge(runs: Iterable[StoredRun]) -> str | None:
    """Return the column of the verdicts that authors recorded with their answers; ``None`` if there is none."""
    names = {name for run in runs for row in run.rows[:1] for name in row.metrics if name.startswith(RECORDED_JUDGE)}
    return min(names, default=None)


def group_runs(runs: Iterable[StoredRun], spec: PaperSpec) -> tuple[Candidates, dict[str, str]]:
    """Sort runs into the rows of a paper's tables.

    Returns:
        The runs by row and data set, and the reasons why the others are not used, by run id.
    """
    grouped: dict[RowKey, dict[str, list[StoredRun]]] = defaultdict(lambda: defaultdict(list))
    unused = {}
    for run in (in_printed_row(run, spec) for run in runs):
        dataset = spec.dataset_of(run.dataset)
        if run.recorded and run.recorded_row.get("paper") != spec.paper:
            unused[run.run_id] = f"recorded answers that match no row of {spec.label}'s tables"
        elif dataset is None:
            unused[run.run_id] = f"data set {run.dataset} is in no table of {spec.label}"
        elif run.of_sample:
            unused[run.run_id] = "the project's own sample is not the published data set"
        elif run.floor and run.memory not in spec.further:
            unused[run.run_id] = f"the tables of {spec.label} have no row for it: they exclude category 5"
        elif not (run.retrieval_only or run.floor) and run.reader not in spec.readers_of(dataset):
            readers = " or ".join(spec.readers_of(dataset))
            unused[run.run_id] = f"reader {run.reader} is not {spec.label}'s ({readers})"
        else:
            variant = run_variant(run.record)
            grouped[RowKey(run.backbone, spec.system_of(run.memory), variant)][dataset].append(run)
    return grouped, unused


def choose(runs: Sequence[StoredRun], dataset: str, metric: str, spec: PaperSpec) -> Selected | str:
    """Take the run for one cell: most questions, then the paper's own data set and memory config, then the latest.

    Never the one with the highest score. Runs that differ from it in the seed alone enter with it, and so do all
    repetitions that were recorded of one row, which name no seed; a row of
    former prompts may hold several, whose answers are not averaged.

    Args:
        runs: candidates of the cell's row on the data set.
        dataset: name in the spec.
        metric: what the cell shows.
        spec: the paper's tables.

    Returns:
        The choice, or why there is none.
    """
    if not runs:
        return "no run"
    able = [run for run in runs if _obstacle(run, metric, spec) is None]
    if not able:
        return _obstacle(runs[-1], metric, spec) or "no run"
    preferred = spec.datasets[dataset].runs

    def rank(run: StoredRun) -> tuple[int, int, int, str, str]:
        config, memory = preferred.index(run.dataset), spec.memory_place(run.memory)
        return len(run.rows), -config, -memory, str(run.record.get("finished")), run.run_id

    ranked = sorted(able, key=rank, reverse=True)
    best = ranked[0]
    by_seed: dict[tuple[int, str], StoredRun] = {}
    for run in ranked:
        if _repeats(run, best):
            by_seed.setdefault((int(run.record["seed"]), run.run_id if run.recorded else ""), run)
    chosen = [by_seed[key] for key in sorted(by_seed)]
    seeds = tuple(seed for seed, _ in sorted(by_seed))
    names = tuple(run.run_id for run in chosen)
    rows = mean_over_runs(chosen, metric)
    return Selected(best, rows, seeds, names, tuple(chosen))


def _repeats(run: StoredRun, best: StoredRun) -> bool:
    """Return whether a run differs from the chosen one of its row in the seed alone."""
    if run.recorded_row:
        return run.recorded_row == best.recorded_row and len(run.rows) == len(best.rows)
    same_prompts = answer_prompts(run.record) == answer_prompts(best.record)
    return run.settings_hash() == best.settings_hash() and len(run.rows) == len(best.rows) and same_prompts


def _obstacle(run: StoredRun, metric: str, spec: PaperSpec) -> str | None:
    """Return why a run cannot give a metric, ``None`` when it can."""
    if metric in spec.run_figures:
        found = run_figure(run.summary, spec.run_figures[metric])
        return f"{metric} not recorded" if found is None else None
    if run.columns.has(metric):
        return _wrong_encoder(run, metric, spec)
    if metric in LATENCY_METRICS:
        return "latency not measured (timing=latency)"
    if has_random_weights(run.record):
        return "random weights answered"
    if run.retrieval_only:
        return "retrieval only"
    return f"{metric} not scored"


def run_figure(summary: Mapping[str, Any], paths: Sequence[str]) -> float | None:
    """Add up figures of ``summary.json``; ``None`` when none of them is there.

    Args:
        summary: of one run.
        paths: keys joined by ``/``.
    """
    known = [value for path in paths if (value := _figure(summary, path.split("/"))) is not None]
    return fsum(known) if known else None


def _figure(tree: Any, keys: Sequence[str]) -> float | None:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return float(tree) if isinstance(tree, int | float) else None


def _wrong_encoder(run: StoredRun, metric: str, spec: PaperSpec) -> str | None:
    if not metric.startswith("bert_"):
        return None
    config = run.meta.get("config") or {}
    model = PurePath(str(config.get("bertscore_model", "unknown"))).name
    if model == spec.bertscore_model and not config.get("bertscore_rescaled"):
        return None
    return f"BERTScore of {model}{', rescaled' if config.get('bertscore_rescaled') else ''}"


def mean_over_runs(runs: Sequence[StoredRun], metric: str) -> tuple[ScoreRow, ...]:
    """Average one metric question by question; a question counts when every run scored it."""
    if len(runs) == 1:
        return runs[0].rows
    return averaged_rows(runs, (metric, ABSTENTION))  # which represents the metric in category 5


def averaged_rows(runs: Sequence[StoredRun], names: Sequence[str] = ()) -> tuple[ScoreRow, ...]:
    """Average scores question by question, all of them unless named; one that a run could not score stays unscored."""
    by_run = [{row.question_id: row.metrics for row in run.rows} for run in runs]
    return tuple(
        replace(
            row,
            metrics={
                name: mean_if_known([rows.get(row.question_id, {}).get(name) for rows in by_run])
                for name in names or row.metrics
            },
        )
        for row in runs[0].rows
    )
