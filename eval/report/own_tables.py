"""Tables of our own, as the page shows them: all systems, calls by role, memory quality, the methods' own counts."""

from collections.abc import Sequence

from eval.rendering.table import Table, text_of
from eval.results.compare.roles import NAME as ROLES
from eval.results.evidence.report import NAME as QUALITY
from eval.results.evidence.systems import NAME as SYSTEMS
from eval.results.own_tables import own_pages
from eval.results.stored_run import StoredRun
from eval.results.tables.methods import NAME as METHODS
from eval.results.tables.page import Section, TablePage, captioned
from memsys.vocabulary import Json

#: Pages that are shown, in this order -> their kind in the script of the page.
_KINDS = {SYSTEMS: "systems", ROLES: "roles", QUALITY: "quality", METHODS: "method"}


def own_tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Return groups of tables with their legends; none of a kind that no run has anything for."""
    pages = {page.name: page for page in own_pages(runs)}
    return [_section(pages[name], section) for name in _KINDS for section in pages[name].sections]


def _section(page: TablePage, section: Section) -> Json:
    """Return the tables of some runs; of all systems also how many answers are behind them."""
    kind = _KINDS[page.name]
    shown = [_table(table) for table in captioned(section)]
    found = {"kind": kind, "title": section.title, "tables": shown, "legend": list(page.legend)}
    answers = sum(len(run.rows) for _, run in section.runs if not run.retrieval_only)
    return {**found, "answers": answers} if kind == "systems" else found


def _table(table: Table) -> Json:
    return {
        "title": table.title,
        "headings": [column.heading for column in table.columns],
        "rows": [[text_of(*one) for one in zip(row, table.columns, strict=True)] for row in table.rows],
        "left": sum(column.align == "left" for column in table.columns),
        "notes": list(table.notes),
    }
