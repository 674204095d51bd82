"""What a comparison shows, and the text of its cells, the same on the terminal and in files."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.compare.pairs import compare_with_first
from eval.compare.rows import COLUMNS, Column, Estimate, SystemRow, judge_columns, system_rows
from eval.scoring.inference import BY_QUESTION, ONE_CONVERSATION
from eval.scoring.protocols import Protocol
from eval.tables.pairs import Pair
from eval.tables.stored import StoredRun

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
    judges: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, judges last."""
        return (*COLUMNS, *self.judges)

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
        lines.append("[low, high]: 95 % cluster t interval over conversations")
        if by_question:
            lines.append(ONE_CONVERSATION)
        return lines


def make_report(runs: Sequence[StoredRun], protocol: Protocol) -> Report:
    """Compute everything that is shown."""
    rows = system_rows(runs, protocol)
    return Report(protocol, tuple(rows), tuple(compare_with_first(rows, protocol)), tuple(judge_columns(runs)))


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
