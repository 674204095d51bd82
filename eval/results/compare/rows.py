"""Rows of a comparison: means with intervals, and costs, of each run."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from eval.config.prices import dates_of, load_embedding_prices, load_prices
from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE
from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.evidence import SHOWN_RECALL, TURN_RECALL
from eval.metrics.metric import Metric
from eval.metrics.registry import METRICS, is_share, listed, scale_of
from eval.metrics.sessions import BY_SESSION
from eval.results.compare.columns import ANSWERABLE, TEXT_RECALL, ComparisonColumn, judge_columns
from eval.results.compare.seeds import Repeats, group_repeats, listed_seeds
from eval.results.drawing.style import Point, point_of
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import engine_of
from eval.results.tables.costs import dollars_of, read_totals, write_tokens_per_turn
from eval.results.tables.judges import JudgeGroup
from eval.results.tables.variants import label_of
from eval.scoring import estimates
from eval.scoring.aggregate import mean_of, without_flagged
from eval.scoring.beam import AVERAGING, is_beam_score
from eval.scoring.call_costs import READ_PHASES
from eval.scoring.estimates import mean_value
from eval.scoring.inference import Interval
from eval.scoring.protocols import Averaging, Protocol
from eval.scoring.unanswered import unanswered_count

#: Share of the gold turns found, and whether all gold sessions were.
_RECALL, _SESSION_RECALL = "recall@10", "session_recall_all@10"


@dataclass(frozen=True, slots=True)
class ComparisonEstimate:
    """A mean with its interval, in the column's unit.

    Attributes:
        value: the mean.
        interval: of the mean; ``None`` if there is none.
        spread: standard deviation over seeds.
        questions: scored, that the mean is over; ``None`` where it is over something else.
        share: whether it is a share in percent.
    """

    value: float
    interval: Interval | None = None
    spread: float | None = None
    questions: int | None = None
    share: bool = False

    @property
    def shown_interval(self) -> Interval | None:
        """The interval as tables and figures show it: of a share from 0 to 100."""
        return self.interval.of_a_share(100.0) if self.share and self.interval is not None else self.interval

    @property
    def point(self) -> Point:
        """As a figure shows it."""
        return point_of(self.value, self.shown_interval)


@dataclass(frozen=True, slots=True)
class SystemRow:
    """One system of a comparison: a run, or several that differ in their seed alone.

    Attributes:
        label: what tells it from the other systems.
        run: the run; of several the first, with the mean scores of all.
        questions: questions asked.
        estimates: by column name; a column that the run cannot give is absent.
        by_category: the lead metric by category, percent; of adversarial questions only where the protocol counts them.
        repeats: the runs, one for each seed.
    """

    label: str
    run: StoredRun
    questions: int
    estimates: Mapping[str, ComparisonEstimate]
    by_category: Mapping[int, ComparisonEstimate]
    repeats: Repeats


def f1_metric(protocol: Protocol) -> str:
    """Return the metric behind a protocol's F1 column."""
    return protocol.columns.get("F1", "f1_set")


def answerable_alone(protocol: Protocol) -> Protocol:
    """Return the protocol without the questions that have no answer: that of the column F1 answerable."""
    return replace(protocol, adversarial="exclude")


def lead_metric(runs: Sequence[StoredRun], protocol: Protocol) -> tuple[str, str]:
    """Return the column and metric that rows are sorted by: that of answers, or recall where no run answered."""
    return recall_metric(runs) if all(run.retrieval_only for run in runs) else answer_metric(protocol)


def answer_metric(protocol: Protocol) -> tuple[str, str]:
    """Return column and metric of answers: F1, else the protocol's primary metric where it has a column."""
    named = {metric: column for column, metric in protocol.columns.items()}
    if "F1" not in protocol.columns and protocol.primary in named:
        return named[protocol.primary], protocol.primary
    return "F1", f1_metric(protocol)


def recall_metric(runs: Sequence[StoredRun]) -> tuple[str, str]:
    """Return column and metric of evidence recall: by turn, else by session, else by text, as is scored.

    By turn, that over the first ten turns, which does not grow with the turns in a memory; over the first ten memories
    where a run was scored by a version without it.
    """
    scored = [run for run in runs if run.columns.has(_RECALL)]
    by_turns = all(run.columns.has(TURN_RECALL) for run in scored)
    by_turn = (METRICS[TURN_RECALL].heading, TURN_RECALL) if scored and by_turns else ("R@10", _RECALL)
    choices = (by_turn, (BY_SESSION[_SESSION_RECALL], _SESSION_RECALL), TEXT_RECALL)
    return next((choice for choice in choices if _scored(runs, choice[1])), by_turn)


def _scored(runs: Sequence[StoredRun], metric: str) -> bool:
    return any(run.columns.has(metric) for run in runs)


def _untraced(run: StoredRun) -> bool:
    """Return whether some question has evidence by substring and none by turn ids."""
    by_ids, by_text = (np.isnan(run.columns.column(metric)) for metric in (_RECALL, TEXT_RECALL[1]))
    return bool((by_ids & ~by_text).any())


def system_rows(runs: Sequence[StoredRun], protocol: Protocol) -> list[SystemRow]:
    """Make one row per system, in the order given; runs that differ in their seed alone are one system."""
    lead = lead_metric(runs, protocol)[1]
    judges = judge_columns(runs)
    text = [TEXT_RECALL] if any(map(_untraced, runs)) else []  # of all systems, to be compared
    systems = group_repeats(runs)
    named = labels([system.averaged for system in systems], [system.seeds for system in systems])
    return [
        SystemRow(
            label=label,
            run=system.averaged,
            questions=len(system.averaged.rows),
            estimates=_with_spread(system, _estimates(system, protocol, judges, text), protocol),
            by_category=_categories(system.averaged, lead, protocol),
            repeats=system,
        )
        for system, label in zip(systems, named, strict=True)
    ]


def single_row(label: str, system: Repeats, column: str, metric: str, rule: Protocol) -> SystemRow:
    """Make the row of a system with one column alone, which is absent where nothing was scored."""
    found = estimate(system.averaged, metric, rule)
    spread = system.spread(lambda run: mean_value(run.rows, metric, None, rule))
    shown = (
        {} if found is None else {column: replace(found, spread=None if spread is None else scale_of(metric) * spread)}
    )
    return SystemRow(label, system.averaged, len(system.averaged.rows), shown, {}, system)


def labels(runs: Sequence[StoredRun], seeds: Sequence[Sequence[int]] = ()) -> list[str]:
    """Name each run by its memory and by whatever else differs between the runs.

    Args:
        runs: to name.
        seeds: of each run that represents several, all of theirs; none where each is a run of its own.
    """
    named = [label_of(run.memory, run.record) for run in runs]
    parts = [
        [run.backbone for run in runs],
        [run.dataset for run in runs],
        [f"seed{'s' if len(own) > 1 else ''} {listed_seeds(own)}" for own in seeds]
        or [f"seed {run.record['seed']}" for run in runs],
    ]
    for texts in parts:  # a constant has no backbone and no seed, and the data set of the runs shown with it
        if len({text for text, run in zip(texts, runs, strict=True) if not run.floor}) > 1:
            named = [
                name if run.floor else f"{name}, {text}" for name, text, run in zip(named, texts, runs, strict=True)
            ]
    return distinct_names(named, runs)


def distinct_names(names: Sequence[str], runs: Sequence[StoredRun]) -> list[str]:
    """Add what is needed to names that occur more than once: words that distinguish them, the run's hash at last."""
    parts: tuple[Callable[[StoredRun], str], ...] = (
        lambda run: f"{len(run.rows)} questions",
        lambda run: run.dataset,
        lambda run: run.prompts,
        lambda run: run.processor,
        _budget,
        lambda run: f"seed {run.record['seed']}" if run.record.get("seed") is not None else "",
        lambda run: " ".join(map(str, engine_of(run).values())),
        lambda run: run.run_id.rpartition("-")[2],
        lambda run: f"started {run.record.get('started')}",
    )
    for part in parts:
        texts: dict[str, set[str]] = {}
        for name, run in zip(names, runs, strict=True):
            texts.setdefault(name, set()).add(part(run))
        names = [
            f"{name}, {part(run)}" if len(texts[name]) > 1 and part(run) else name
            for name, run in zip(names, runs, strict=True)
        ]
    return list(names)


def _budget(run: StoredRun) -> str:
    return f"at most {run.context_budget:,} tokens of context" if run.context_budget else ""


def evidence_metrics(run: StoredRun) -> list[Metric]:
    """Return the metrics of evidence with a column, of contexts only where a run shows them."""
    return [one for one in listed(retrieval=True) if one.name != SHOWN_RECALL or run.shows_contexts]


def estimate(
    run: StoredRun, metric: str, averaging: Averaging, category: int | None = None
) -> ComparisonEstimate | None:
    """Return a score's mean with its interval, in the metric's unit (shares: percent); ``None`` if unscored."""
    found = estimates.estimate(run.rows, metric, averaging, category, scale_of(metric))
    if found is None:
        return None
    return ComparisonEstimate(found.value, found.interval, questions=found.questions, share=is_share(metric))


def value_of(run: StoredRun, metric: str, averaging: Averaging) -> float | None:
    """Return a score's mean in the metric's unit, without its interval; ``None`` if unscored."""
    found = mean_value(run.rows, metric, None, averaging)
    return None if found is None else scale_of(metric) * found


def _categories(run: StoredRun, metric: str, protocol: Protocol) -> dict[int, ComparisonEstimate]:
    counted = {row.category for row in run.rows if protocol.counts(row.kind)}
    found = {category: estimate(run, metric, protocol, category) for category in sorted(counted)}
    return {category: value for category, value in found.items() if value is not None}


def _with_spread(
    system: Repeats, estimates: Mapping[str, ComparisonEstimate], protocol: Protocol
) -> dict[str, ComparisonEstimate]:
    """Add the standard deviation over seeds to the metrics that have a score for each question."""
    if len(system.runs) == 1:
        return dict(estimates)
    shown = (*listed(retrieval=False), *listed(retrieval=True))
    column, lead = answer_metric(protocol)
    metrics = {**{metric.heading: metric.name for metric in shown}, "F1": f1_metric(protocol), column: lead}
    metrics |= dict([TEXT_RECALL])

    def spread(name: str) -> float | None:
        found = (
            system.spread(lambda run: mean_value(run.rows, metrics[name], None, protocol)) if name in metrics else None
        )
        return None if found is None else scale_of(metrics[name]) * found

    return {name: replace(value, spread=spread(name)) for name, value in estimates.items()}


def _estimates(
    system: Repeats,
    protocol: Protocol,
    judges: Mapping[ComparisonColumn, JudgeGroup],
    text: Sequence[tuple[str, str]],
) -> dict[str, ComparisonEstimate]:
    run = system.averaged
    shown = (*listed(retrieval=False), *evidence_metrics(run))
    found = {metric.heading: estimate(run, metric.name, protocol) for metric in shown}
    found |= {column: estimate(run, metric, protocol) for column, metric in text}
    if not run.retrieval_only:
        column, lead = answer_metric(protocol)
        found |= {column: estimate(run, lead, protocol), "F1": estimate(run, f1_metric(protocol), protocol)}
        if run.asks_unanswerable:  # elsewhere it would be F1 once more
            found[ANSWERABLE] = estimate(run, f1_metric(protocol), answerable_alone(protocol))
        found["abstain"] = _abstentions(run)
    found |= {
        name: estimate(run, metric, AVERAGING if is_beam_score(metric) else protocol)
        for name, metric in graded_columns(system, judges).items()
    }
    found |= _audited(run, protocol)
    context = mean_value(run.rows, "context_tokens", None, protocol)
    found["context"] = None if context is None else ComparisonEstimate(context)
    known = {name: value for name, value in found.items() if value is not None}
    return known | _mean_cost(system.runs) | _unanswered(system.runs)


def graded_columns(system: Repeats, judges: Mapping[ComparisonColumn, JudgeGroup]) -> dict[str, str]:
    """Return the columns and metrics of the judges that graded all runs of a system."""
    own = {run.run_id for run in system.runs}
    return {column.name: group.metric for column, group in judges.items() if own <= group.runs}


def _audited(run: StoredRun, protocol: Protocol) -> dict[str, ComparisonEstimate | None]:
    """Return the lead figures without the questions marked as doubtful; nothing where none is marked."""
    wanted = {"R@10 audited": ("recall@10", DOUBTFUL_EVIDENCE)}
    if not run.retrieval_only:
        wanted["F1 audited"] = (f1_metric(protocol), DOUBTFUL_ANSWER)
    kept = {name: without_flagged(run.rows, mark) for name, (_, mark) in wanted.items()}
    return {
        name: estimate(replace(run, rows=tuple(kept[name])), metric, protocol)
        for name, (metric, _) in wanted.items()
        if len(kept[name]) < len(run.rows)
    }


def _abstentions(run: StoredRun) -> ComparisonEstimate | None:
    found = mean_of(row.metrics.get("abstained") for row in run.rows if row.kind == ADVERSARIAL)
    return None if found.value is None else ComparisonEstimate(100 * found.value, questions=found.scored)


def _mean_cost(runs: Sequence[StoredRun]) -> dict[str, ComparisonEstimate]:
    """Return the means over the seeds of what all of them recorded."""
    costs = [cost_estimates(run.summary) | _dollars(run) for run in runs]
    shared = [name for name in costs[0] if all(name in cost for cost in costs)]
    return {name: ComparisonEstimate(fsum(cost[name].value for cost in costs) / len(costs)) for name in shared}


def _unanswered(runs: Sequence[StoredRun]) -> dict[str, ComparisonEstimate]:
    """Return the mean number, over seeds, of questions without a whole answer; nothing if there are none."""
    counts = [unanswered_count(run.summary) for run in runs]
    return {"unanswered": ComparisonEstimate(sum(counts) / len(counts))} if any(counts) else {}


def _dollars(run: StoredRun) -> dict[str, ComparisonEstimate]:
    found = dollars_per_question(run)
    return {} if found is None else {"dollars": ComparisonEstimate(1000 * found)}


def dollars_per_question(run: StoredRun) -> float | None:
    """Return what reading costs for one question, with the embeddings that the run paid for.

    ``None`` where no price is known, two backbones share the calls, or the tokens of a paid embedder were not counted.
    """
    price, read = load_prices().get(run.backbone), read_totals(run.summary)
    if price is None or not read or not run.asked or run.record["config"].get("second"):
        return None
    embedded = _embedding_dollars(run)
    return None if embedded is None else dollars_of(price, read) / run.asked + embedded


def _embedding_dollars(run: StoredRun) -> float | None:
    """Return the dollars per question of what was embedded for questions; ``None`` where that was not counted."""
    price, counted = load_embedding_prices().get(run.embedder), run.summary.get("embeddings")
    if price is None or not price.embedding:
        return 0.0
    if counted is None:
        return None
    return price.of(sum(counted["by_phase"].get(phase, 0) for phase in READ_PHASES)) / run.asked


def price_dates(runs: Iterable[StoredRun]) -> str:
    """Return the days of the prices behind the dollars of runs; empty where none has dollars."""
    known = [run for run in runs if dollars_per_question(run) is not None]
    return dates_of(
        price for run in known for price in (load_prices().get(run.backbone), load_embedding_prices().get(run.embedder))
    )


def cost_estimates(summary: Mapping[str, Any]) -> dict[str, ComparisonEstimate]:
    """Return the calls and tokens from the run's ledger; nothing for a run without one."""
    total = (summary.get("calls") or {}).get("total") or {}
    if not total.get("calls"):
        return {}
    found = {}
    if total.get("malformed") is not None:
        found["malformed"] = ComparisonEstimate(100 * total["malformed"] / total["calls"])
    if total.get("cached_share") is not None:
        found["cached"] = ComparisonEstimate(100 * total["cached_share"])
    read = (summary.get("cost") or {}).get("read_per_question")
    if read:
        found["calls"] = ComparisonEstimate(read["calls"])
        found["tokens"] = ComparisonEstimate(read["prompt_tokens"] + read["completion_tokens"])
    write = write_tokens_per_turn(summary)
    if write is not None:
        found["write"] = ComparisonEstimate(write)
    return found
