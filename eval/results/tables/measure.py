"""One measured cell: mean as the paper takes it, interval, coverage, and what keeps it from being compared."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from eval.metrics.registry import is_share
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import LATENCY_METRICS, Selected, is_retrieval, run_figure
from eval.results.tables.comparability import other_judge_terms
from eval.results.tables.determinism import repeats_exactly, search_reading
from eval.results.tables.label_view import views
from eval.results.tables.spec import DatasetSpec, PaperSpec
from eval.scoring.columns import columns_of
from eval.scoring.config import is_verdict
from eval.scoring.estimates import estimate, is_plain, mean_value
from eval.scoring.inference import Interval
from eval.scoring.protocols import Protocol

#: Conversations named when a run covers a part; of more only the number is given.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """A measured value in the table's unit.

    Attributes:
        value: the mean.
        interval: 95 % cluster t interval, ``None`` with fewer than two questions or one figure per run.
        detectable: smallest true difference that this many conversations find with 80 % power.
        questions: questions that were scored.
        covered: questions that the run asked.
        conversations: conversations that the run covers.
        seeds: seeds averaged over.
        runs: ids of the runs.
        caveats: why it may not be compared with the printed number; empty when it may.
        by_run: the value of each run, in the order of the seeds.
        repeats_exactly: why another run would give the same value; empty where it varies from run to run.
        recorded: where the answers come from if they were recorded elsewhere; empty for runs of this harness.
        by_others: recorded by third parties, not the paper's authors.
        metric: name of the scores.
        whole: the largest value of a share, in the unit of the value; ``None`` where it is none.
        prompts: whose or which they are, see :func:`eval.config.answer_prompts.prompts_of`.
        reading: what of the paper's set-up was assumed where it does not say it; a verdict is on this condition.
    """

    value: float
    interval: Interval | None
    detectable: float | None
    questions: int
    covered: int
    conversations: tuple[str, ...]
    seeds: tuple[int, ...]
    runs: tuple[str, ...]
    caveats: tuple[str, ...]
    by_run: tuple[float, ...] = ()
    repeats_exactly: str = ""
    recorded: str = ""
    by_others: bool = False
    metric: str = ""
    whole: float | None = None
    prompts: str = ""
    reading: str = ""

    @property
    def shown_interval(self) -> Interval | None:
        """The interval as tables and figures show it: of a share from 0 to the whole."""
        if self.interval is None or self.whole is None:
            return self.interval
        return self.interval.of_a_share(self.whole)


@dataclass(frozen=True, slots=True)
class MeasurementContext:
    """Inputs of a cell's measurement.

    Attributes:
        paper: whose table it is in.
        protocol: the paper's.
        dataset: with its full size.
        other_terms: settings of the run that are not the paper's.
        hardware: the paper's GPU.
    """

    paper: PaperSpec
    protocol: Protocol
    dataset: DatasetSpec
    other_terms: tuple[str, ...] = ()
    hardware: str = ""


def measure(selected: Selected, metric: str, category: int | None, terms: MeasurementContext) -> Measured | str:
    """Measure a cell.

    Args:
        selected: the runs behind it.
        metric: name in ``scores.jsonl``, or of a figure of ``summary.json``.
        category: question category, ``None`` for all that the protocol counts.
        terms: how the mean is taken, and what makes it comparable.

    Returns:
        The cell in the stored unit, or why it is empty.
    """
    if metric in terms.paper.run_figures:
        return _figure_of_runs(selected, metric, terms)
    found = estimate(selected.rows, metric, terms.protocol, category)
    if found is None:
        return "no question of this category" if category is not None else f"{metric} not scored"
    return Measured(
        value=found.value,
        interval=found.interval,
        detectable=found.detectable,
        questions=found.questions,
        covered=len(selected.rows),
        conversations=selected.run.conversations,
        seeds=selected.seeds,
        runs=selected.runs,
        caveats=_caveats(selected, metric, terms),
        by_run=_by_run(selected, metric, category, terms.protocol) if len(selected.repeats) > 1 else (found.value,),
        repeats_exactly=repeats_exactly(selected.run, metric),
        recorded=selected.run.recorded,
        by_others=bool(selected.run.recorded_row.get("differs")),
        metric=metric,
        prompts=selected.run.prompts,
        reading=search_reading(selected.run, metric),
        whole=None if is_plain(metric) or not is_share(metric) else 1.0,
    )


def _figure_of_runs(selected: Selected, metric: str, terms: MeasurementContext) -> Measured:
    """Return one figure per run, averaged over the seeds; nothing can be resampled."""
    paths = terms.paper.run_figures[metric]
    figures = [value for run in selected.repeats if (value := run_figure(run.summary, paths)) is not None]
    return Measured(
        value=fsum(figures) / len(figures),
        interval=None,
        detectable=None,
        questions=len(selected.rows),
        covered=len(selected.rows),
        conversations=selected.run.conversations,
        seeds=selected.seeds,
        runs=selected.runs,
        caveats=_caveats(selected, metric, terms),
        by_run=tuple(figures),
        repeats_exactly=repeats_exactly(selected.run, metric),
        recorded=selected.run.recorded,
        by_others=bool(selected.run.recorded_row.get("differs")),
        metric=metric,
        prompts=selected.run.prompts,
    )


def _by_run(selected: Selected, metric: str, category: int | None, protocol: Protocol) -> tuple[float, ...]:
    found = [mean_value(run.rows, metric, category, protocol) for run in selected.repeats]
    return tuple(value for value in found if value is not None)


def _caveats(selected: Selected, metric: str, terms: MeasurementContext) -> tuple[str, ...]:
    run, dataset, found = selected.run, terms.dataset, []
    conversations, questions = len(run.conversations), int(columns_of(selected.rows).counted(terms.protocol).sum())
    if conversations < dataset.conversations:
        names = f" ({', '.join(run.conversations)})" if conversations <= _NAMED else ""
        found.append(f"{conversations} of {dataset.conversations} conversations{names}")
    elif questions < dataset.questions:
        found.append(f"{questions} of {dataset.questions} questions")
    found += [run.recorded_row["differs"]] if run.recorded_row.get("differs") else []
    found += _labels(run, metric)
    found += terms.other_terms
    if metric in LATENCY_METRICS and terms.hardware and not any(terms.hardware in gpu for gpu in run.gpus):
        found.append(f"other hardware than {terms.hardware}")
    if is_verdict(metric):
        found += other_judge_terms(run, metric)
    if metric in terms.paper.not_compared:
        found.append(terms.paper.not_compared[metric])
    return tuple(found)


def _labels(run: StoredRun, metric: str) -> list[str]:
    """Return the labels that are not as printed; a corrected answer moves nothing that was retrieved."""
    if run.labels == "corrected" and is_retrieval(metric):
        return []
    return views([run])


def mean_of(cells: Sequence[Measured]) -> Measured:
    """Return the plain mean of a row's cells over several backbones, in their unit; nothing is resampled."""
    value = fsum(cell.value for cell in cells) / len(cells)
    return replace(
        cells[0],
        value=value,
        interval=None,
        detectable=None,
        seeds=tuple(sorted({seed for cell in cells for seed in cell.seeds})),
        runs=tuple(run for cell in cells for run in cell.runs),
        caveats=tuple(dict.fromkeys(caveat for cell in cells for caveat in cell.caveats)),
        by_run=(value,),
        repeats_exactly=cells[0].repeats_exactly if all(cell.repeats_exactly for cell in cells) else "",
    )


def scaled(measured: Measured, factor: float) -> Measured:
    """Convert to the table's unit."""
    interval = None if measured.interval is None else measured.interval.scaled(factor)
    detectable = None if measured.detectable is None else measured.detectable * factor
    by_run = tuple(value * factor for value in measured.by_run)
    whole = None if measured.whole is None else measured.whole * factor
    return replace(
        measured, value=measured.value * factor, interval=interval, detectable=detectable, by_run=by_run, whole=whole
    )
