"""Tables of our own, as the page shows them: all systems, calls by role, memory quality, the methods' own counts."""

from collections.abc import Sequence

from eval.results.compare.roles import LEGEND as ROLES_LEGEND
from eval.results.compare.roles import role_groups, role_table
from eval.results.evidence.report import DEFINITIONS, QualityGroup, evidence_table, quality_groups, size_table
from eval.results.evidence.systems import LEGEND as SYSTEMS_LEGEND
from eval.results.evidence.systems import system_lines, system_table
from eval.results.tables.methods import LEGEND as METHODS_LEGEND
from eval.results.tables.methods import method_groups, method_table
from eval.results.tables.plain import PlainTable
from eval.results.tables.stored import StoredRun
from memsys.vocabulary import Json


def own_tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Groups of tables with their legends; none of a kind that no run has anything for."""
    groups = quality_groups(runs)
    systems = [_systems_page(group) for group in groups]
    roles = [_page("roles", group.title("backbone "), [role_table(group)], ROLES_LEGEND) for group in role_groups(runs)]
    quality = [
        _page("quality", group.title, [evidence_table(group), size_table(group)], DEFINITIONS) for group in groups
    ]
    methods = [
        _page("method", f"{group.system} on {group.dataset}", [method_table(group)], METHODS_LEGEND)
        for group in method_groups(runs)
    ]
    return [*systems, *roles, *quality, *methods]


def _systems_page(group: QualityGroup) -> Json:
    """The table of a group, and how many answers stand behind it."""
    answers = sum(len(one.run.rows) for one in group.systems if not one.run.retrieval_only)
    table = system_table(group.title, system_lines(group))
    return {**_page("systems", group.title, [table], SYSTEMS_LEGEND), "answers": answers}


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
