"""What a comparison shows of each run: means with intervals, and what they cost."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE
from eval.metrics.locomo import ADVERSARIAL
from eval.metrics.registry import matching
from eval.plots.figures import Point, point_of
from eval.scoring.aggregate import undoubted
from eval.scoring.inference import Interval, bootstrap_interval
from eval.scoring.protocols import Protocol
from eval.tables.judges import JudgeGroup, judge_groups, unlike_judges
from eval.tables.measure import mean_value, scores_and_mean
from eval.tables.stored import StoredRun
from eval.tables.variants import overrides, variant_label


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its interval, in the column's unit."""

    value: float
    interval: Interval | None = None

    @property
    def point(self) -> Point:
        """As a figure shows it."""
        return point_of(self.value, self.interval)


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the comparison: name, decimals, what it says; ``matching``: how it finds evidence."""

    name: str
    digits: int
    meaning: str
    matching: str = ""

    @property
    def heading(self) -> str:
        """The name with what tells it from a column of another definition."""
        return f"{self.name} ({self.matching})" if self.matching else self.name


#: Evidence is found here by the ids of the turns a memory came from; CLAG looks for their text instead.
_LINEAGE = matching("recall@10")

ANSWER_COLUMNS = (
    Column("F1", 1, "token F1, percent"),
    Column("F1 w/o 5", 1, "token F1 without category 5, percent"),
    Column("BLEU-1", 1, "percent"),
    Column("METEOR", 1, "percent"),
    Column("ROUGE-L", 1, "percent"),
    Column("abstain", 1, "questions of category 5 that were declined, percent"),
)
EVIDENCE_COLUMNS = (
    Column("E-F1", 1, "evidence F1, percent", _LINEAGE),
    Column("R@5", 1, "evidence recall, percent", _LINEAGE),
    Column("R@10", 1, "evidence recall, percent", _LINEAGE),
    Column("nDCG@10", 1, "of the evidence, percent", _LINEAGE),
    Column("context", 0, "tokens of retrieved context per question"),
)
AUDITED_COLUMNS = (
    Column("F1 audited", 1, "token F1 without the questions whose gold answer is in doubt, percent"),
    Column("R@10 audited", 1, "evidence recall without the questions whose gold is in doubt, percent", _LINEAGE),
)
COST_COLUMNS = (
    Column("calls", 1, "calls of the backbone per question"),
    Column("tokens", 0, "prompt and completion tokens per question"),
    Column("write", 0, "prompt and completion tokens per turn written"),
    Column("malformed", 1, "replies that did not parse, percent of calls"),
)
#: Columns that every comparison may have; those of judges depend on the runs.
COLUMNS = (*ANSWER_COLUMNS, *EVIDENCE_COLUMNS, *AUDITED_COLUMNS, *COST_COLUMNS)

_UNLIKE = "; not with the settings or the model of the other judge of this name"

_SHARES = {
    "BLEU-1": "bleu1", "METEOR": "meteor", "ROUGE-L": "rougeL", "E-F1": "e_f1", "R@5": "recall@5",
    "R@10": "recall@10", "nDCG@10": "ndcg@10",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class SystemRow:
    """One run of a comparison.

    Attributes:
        label: what tells it from the other runs.
        run: the run.
        questions: questions asked.
        estimates: by column name; a column that the run cannot give is absent.
        by_category: the lead metric by category, percent.
    """

    label: str
    run: StoredRun
    questions: int
    estimates: Mapping[str, Estimate]
    by_category: Mapping[int, Estimate]


def f1_metric(protocol: Protocol) -> str:
    """The metric behind a protocol's F1 column."""
    return protocol.columns.get("F1", "f1_set")


def lead_metric(runs: Sequence[StoredRun], protocol: Protocol) -> tuple[str, str]:
    """Column and metric that the plot shows: F1, or recall where no run answered."""
    if all(run.retrieval_only for run in runs):
        return "R@10", "recall@10"
    return "F1", f1_metric(protocol)


def system_rows(runs: Sequence[StoredRun], protocol: Protocol) -> list[SystemRow]:
    """Make one row per run, in the order given."""
    lead = lead_metric(runs, protocol)[1]
    judges = judge_columns(runs)
    return [
        SystemRow(label, run, len(run.rows), _estimates(run, protocol, judges), _categories(run, lead, protocol))
        for run, label in zip(runs, labels(runs), strict=True)
    ]


def judge_columns(runs: Sequence[StoredRun]) -> dict[Column, JudgeGroup]:
    """A column per judge, settings and model that graded any of the runs."""
    groups = judge_groups(runs)
    repeated = set(unlike_judges(runs))
    names = ["judge"] if len(groups) == 1 else [f"judge {number}" for number in range(1, len(groups) + 1)]
    return {
        Column(
            name, 1, f"answers called right, percent, by {group.text}{_UNLIKE if group.metric in repeated else ''}"
        ): group
        for name, group in zip(names, groups, strict=True)
    }


def labels(runs: Sequence[StoredRun]) -> list[str]:
    """Name each run by its memory and by whatever else differs between the runs."""
    named = []
    for run in runs:
        variant = variant_label(overrides(run.record["config"]["memory"]))
        named.append(f"{run.memory} [{variant}]" if variant else run.memory)
    parts: list[Callable[[StoredRun], str]] = [
        lambda run: run.backbone,
        lambda run: run.dataset,
        lambda run: f"seed {run.record['seed']}",
    ]
    for part in parts:
        if len({part(run) for run in runs}) > 1:
            named = [f"{name}, {part(run)}" for name, run in zip(named, runs, strict=True)]
    repeated = Counter(named)
    return [
        f"{name}, {run.run_id.rpartition('-')[2]}" if repeated[name] > 1 else name
        for name, run in zip(named, runs, strict=True)
    ]


def estimate(run: StoredRun, metric: str, protocol: Protocol, category: int | None = None) -> Estimate | None:
    """Mean of a share with its interval, percent; ``None`` where nothing was scored."""
    value = mean_value(run.rows, metric, category, protocol)
    if value is None:
        return None
    interval = bootstrap_interval(*scores_and_mean(run.rows, metric, category, protocol))
    if interval is not None:
        interval = replace(interval, low=100 * interval.low, high=100 * interval.high)
    return Estimate(100 * value, interval)


def _categories(run: StoredRun, metric: str, protocol: Protocol) -> dict[int, Estimate]:
    found = {category: estimate(run, metric, protocol, category) for category in sorted(protocol.categories)}
    return {category: value for category, value in found.items() if value is not None}


def _estimates(run: StoredRun, protocol: Protocol, judges: Mapping[Column, JudgeGroup]) -> dict[str, Estimate]:
    answerable = replace(protocol, adversarial="exclude")
    found = {name: estimate(run, metric, protocol) for name, metric in _SHARES.items()}
    if not run.retrieval_only:
        found["F1"] = estimate(run, f1_metric(protocol), protocol)
        found["F1 w/o 5"] = estimate(run, f1_metric(protocol), answerable)
        found["abstain"] = _abstentions(run)
    graded = {column.name: group.metric for column, group in judges.items() if run.run_id in group.runs}
    found |= {name: estimate(run, metric, protocol) for name, metric in graded.items()}
    found |= _audited(run, protocol)
    context = mean_value(run.rows, "context_tokens", None, protocol)
    found["context"] = None if context is None else Estimate(context)
    return {name: value for name, value in found.items() if value is not None} | cost_estimates(run.summary)


def _audited(run: StoredRun, protocol: Protocol) -> dict[str, Estimate | None]:
    """The lead figures without the questions that the loader marked as doubtful; nothing where it marked none."""
    wanted = {"R@10 audited": ("recall@10", DOUBTFUL_EVIDENCE)}
    if not run.retrieval_only:
        wanted["F1 audited"] = (f1_metric(protocol), DOUBTFUL_ANSWER)
    kept = {name: undoubted(run.rows, mark) for name, (_, mark) in wanted.items()}
    return {
        name: estimate(replace(run, rows=tuple(kept[name])), metric, protocol)
        for name, (metric, _) in wanted.items()
        if len(kept[name]) < len(run.rows)
    }


def _abstentions(run: StoredRun) -> Estimate | None:
    values = [row.metrics.get("abstained") for row in run.rows if row.category == ADVERSARIAL]
    known = [value for value in values if value is not None]
    return Estimate(100 * sum(known) / len(known)) if known else None


def cost_estimates(summary: Mapping[str, Any]) -> dict[str, Estimate]:
    """Calls and tokens from the run's ledger; nothing for a run without one."""
    total = (summary.get("calls") or {}).get("total") or {}
    if not total.get("calls"):
        return {}
    found = {"malformed": Estimate(100 * total["malformed"] / total["calls"])}
    read = (summary.get("cost") or {}).get("read_per_question")
    if read:
        found["calls"] = Estimate(read["calls"])
        found["tokens"] = Estimate(read["prompt_tokens"] + read["completion_tokens"])
    turns = _turns(summary)
    if turns:
        phases = (summary["calls"].get("by_phase") or {}).items()
        totals = [phase["total"] for name, phase in phases if name in ("prepare", "write", "consolidate")]
        found["write"] = Estimate(sum(t["prompt_tokens"] + t["completion_tokens"] for t in totals) / turns)
    return found


def _turns(summary: Mapping[str, Any]) -> float:
    sizes = (summary.get("memory") or {}).get("sizes") or {}
    return float((sizes.get("turns") or {}).get("sum", 0.0))
