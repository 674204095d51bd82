"""No memory system imports another one but those that its package names in ``BUILT_ON``.

Systems are found by the ``_target_`` of their presets; none is listed here.
"""

import importlib
from collections.abc import Sequence
from functools import cache

import pytest
from grimp import ImportGraph, build_graph

from memsys.deviations import module_of
from tests.support.composing import PRESETS, composed

MODULES = sorted({module_of(str(composed(preset)["_target_"])) for preset in PRESETS})


@cache
def graph() -> ImportGraph:
    return build_graph("memsys", "baselines")


def modules_of(system: str) -> set[str]:
    return {system, *graph().find_descendants(system)}


def built_on(system: str) -> Sequence[str]:
    """Systems that a system says it is built on."""
    return getattr(importlib.import_module(system), "BUILT_ON", ())


def test_every_system_is_in_the_graph() -> None:
    assert set(MODULES) <= graph().modules
    assert {"memsys.clag", "baselines.amem", "baselines.full_context"} <= set(MODULES)


@pytest.mark.parametrize("system", MODULES)
def test_a_system_imports_no_other_system(system: str) -> None:
    reached = {
        name for module in modules_of(system) for name in (module, *graph().find_upstream_modules(module))
    } - modules_of(system)
    allowed = {system, *built_on(system)}
    others = {module for other in MODULES if other not in allowed for module in modules_of(other)}
    assert reached & others == set(), "move what both need into a package that is not a system, or set BUILT_ON"


def test_a_chain_of_imports_is_followed() -> None:
    """Guards the check itself: what a system reaches through its own modules and shared packages counts."""
    assert "memsys.embedding.contract" in graph().find_upstream_modules("baselines.amem.memory")
