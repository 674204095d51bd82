"""Tables of our own, as the page shows them: memory quality, and what the runs say about each method."""

from collections.abc import Sequence

from eval.funnel.report import DEFINITIONS, evidence_table, quality_groups, size_table
from eval.tables.methods import LEGEND, method_groups, method_table
from eval.tables.plain import PlainTable
from eval.tables.stored import StoredRun
from memsys.vocabulary import Json


def own_tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Groups of tables with their legends; none where no run has a memory."""
    quality = [
        _page("quality", group.title, [evidence_table(group), size_table(group)], DEFINITIONS)
        for group in quality_groups(runs)
    ]
    methods = [
        _page("method", f"{group.system} on {group.dataset}", [method_table(group)], LEGEND)
        for group in method_groups(runs)
    ]
    return [*quality, *methods]


def _page(kind: str, title: str, tables: Sequence[PlainTable], legend: Sequence[str]) -> Json:
    shown = [
        {
            "title": table.title,
            "headings": list(table.headings),
            "rows": [list(row) for row in table.rows],
            "left": table.left,
            "notes": list(table.notes),
        }
        for table in tables
    ]
    return {"kind": kind, "title": title, "tables": shown, "legend": list(legend)}
