"""The tables that are no paper's: every subject has a page."""

from collections.abc import Sequence

from eval.results.compare.roles import roles_page
from eval.results.evidence.equal import equal_groups, equal_page
from eval.results.evidence.report import quality_groups, quality_page
from eval.results.evidence.systems import systems_page
from eval.results.evidence.updates import update_groups, updates_page
from eval.results.stored_run import StoredRun
from eval.results.tables.life_cycle import life_page
from eval.results.tables.methods import methods_page
from eval.results.tables.page import TablePage


def own_pages(runs: Sequence[StoredRun]) -> list[TablePage]:
    """Return our own tables of runs."""
    quality = quality_groups(runs)
    return [
        systems_page(quality),
        quality_page(quality),
        equal_page(equal_groups(quality)),
        life_page(quality),
        methods_page(runs),
        roles_page(runs),
        updates_page(update_groups(quality)),
    ]
