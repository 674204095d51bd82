"""The tables that are no paper's: every subject has a page."""

from collections.abc import Sequence

from eval.results.own.equal import equal_groups, equal_page
from eval.results.own.life_cycle import life_page
from eval.results.own.memory_quality import quality_groups, quality_page
from eval.results.own.methods import methods_page
from eval.results.own.roles import roles_page
from eval.results.own.systems import systems_page
from eval.results.own.updates import update_groups, updates_page
from eval.results.stored_run import StoredRun
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
