"""Settings of a sweep's cells that what is above the cells does not have.

Hydra applies a setting with one value above the cells too, where the default memory is instead of those that the
sweep is over, and ends if that has no such setting.
"""

from collections.abc import Sequence
from typing import Any

from eval.config.checker import Checker
from eval.config.compose import is_sweep
from eval.config.composed_nodes import has_node
from eval.config.override_values import of_one_value
from eval.config.presets import GLOBAL_GROUPS


def settings_for_hydra(checker: Checker, parsed: Sequence[Any], multirun: bool) -> tuple[str, ...]:
    """Return the settings of a command line, with those that its cells alone have as sweeps of one value.

    Args:
        checker: knows ``conf/``.
        parsed: settings of a command line.
        multirun: whether its options ask for a sweep; its choices may do so too.
    """
    from hydra.errors import HydraException

    given = tuple(override.input_line for override in parsed)
    settings = [override for override in parsed if _is_plain_setting(checker, override)]
    if not settings or not (multirun or any(override.key_or_group in GLOBAL_GROUPS for override in parsed)):
        return given
    try:
        choices = [override.input_line for override in parsed if checker.is_group(override.key_or_group)]
        above = checker.compose_above_cells(choices)
    except HydraException:  # explained() says later what does not fit
        return given
    missing = [override for override in settings if not has_node(above, override.key_or_group)]
    if not missing or not (multirun or is_sweep(above)):
        return given
    return tuple(of_one_value(each) if each in missing else each.input_line for each in parsed)


def _is_plain_setting(checker: Checker, override: Any) -> bool:
    if override.is_hydra_override() or checker.is_group(override.key_or_group):
        return False
    return not (override.is_add() or override.is_force_add() or override.is_delete() or override.is_sweep_override())
