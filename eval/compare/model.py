"""What a comparison shows, and the text of its cells, the same on the terminal and in files."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.compare.pairs import Pair, compare_with_first
from eval.compare.rows import Column, Estimate, SystemRow, system_rows
from eval.protocols import Protocol
from eval.tables.stored import StoredRun

BY_QUESTION = "‡"

_CATEGORY_5 = {
    "paper_trap": "category 5 scored against the false answer, so that being fooled counts as right",
    "abstain": "category 5 right when the question is declined",
    "exclude": "category 5 left out",
}


@dataclass(frozen=True, slots=True)
class Report:
    """All that a comparison shows."""

    protocol: Protocol
    rows: tuple[SystemRow, ...]
    pairs: tuple[Pair, ...]

    @property
    def legend(self) -> list[str]:
        """What the columns mean."""
        by_question = any(
            estimate.interval is not None and estimate.interval.by == "question"
            for row in self.rows
            for estimate in row.estimates.values()
        )
        answered = any(not row.run.retrieval_only for row in self.rows)
        lines = [f"protocol {self.protocol.name}"]
        if answered:
            lines[0] += f": {_CATEGORY_5[self.protocol.adversarial]}"
        lines.append("[low, high]: 95 % percentile bootstrap over conversations")
        if by_question:
            lines.append(f"{BY_QUESTION} one conversation: the interval resamples its questions, not conversations")
        return lines


def make_report(runs: Sequence[StoredRun], protocol: Protocol) -> Report:
    """Compute everything that is shown."""
    rows = system_rows(runs, protocol)
    return Report(protocol, tuple(rows), tuple(compare_with_first(rows, protocol)))


def cell(estimate: Estimate | None, column: Column) -> str:
    """Rounded mean; empty where there is none."""
    return "" if estimate is None else f"{estimate.value:.{column.digits}f}"


def interval_text(estimate: Estimate | None) -> str:
    """``[low, high]`` with the mark of an interval over questions."""
    if estimate is None or estimate.interval is None:
        return ""
    mark = BY_QUESTION if estimate.interval.by == "question" else ""
    return f"[{estimate.interval.low:.1f}, {estimate.interval.high:.1f}]{mark}"


def shown_columns(report: Report, columns: Sequence[Column]) -> list[Column]:
    """Columns that at least one run fills."""
    return [column for column in columns if any(column.name in row.estimates for row in report.rows)]


PAIR_HEADINGS = ("system", "against", "metric", "n", "diff", "95 %", "p (Holm)", "win/tie/loss", "detect")


def pair_cells(pair: Pair) -> tuple[str, ...]:
    """One line of the paired tests."""
    result = pair.result
    interval = "" if result.interval is None else f"[{result.interval.low:+.1f}, {result.interval.high:+.1f}]"
    if result.interval is not None and result.interval.by == "question":
        interval += BY_QUESTION
    return (
        pair.system,
        pair.baseline,
        pair.column,
        str(result.questions),
        f"{result.difference:+.1f}",
        interval,
        "" if pair.adjusted is None else p_text(pair.adjusted),
        f"{result.wins}/{result.ties}/{result.losses}",
        "" if result.detectable is None else f"{result.detectable:.1f}",
    )


def p_text(p_value: float) -> str:
    """Three decimals, never a zero."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"
