"""Each system against the first one on the questions that both answered."""

from collections.abc import Sequence

from eval.compare.rows import SystemRow, evidence_columns, lead_metric
from eval.scoring.protocols import Protocol
from eval.tables.pairs import Contestant, Pair, compare_family


def compare_with_first(rows: Sequence[SystemRow], protocol: Protocol) -> list[Pair]:
    """Compare every system with the first on the lead metric and on evidence recall; none without shared questions."""
    lead = lead_metric([row.run for row in rows], protocol)
    first, recall = rows[0], next(column for column in evidence_columns() if column.name == "R@10")
    baseline = Contestant(first.label, first.run.rows, first.run)
    others = [
        (Contestant(row.label, row.run.rows, row.run), baseline)
        for row in rows[1:]
        if row.run.dataset == first.run.dataset
    ]
    return [
        pair
        for metric, column in {lead[1]: lead[0], "recall@10": recall.heading}.items()
        for pair in compare_family(others, metric, protocol, "", column)
    ]
