"""Expected calls of a gated system."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from memsys.call_model import DataShape, ExpectedCalls, PlansCalls
from memsys.gate.config import GatedConfig

#: Share of units that a gate drops (SAGE's Table 5 prints 16 to 18 percent).
DROPPED = 0.17


def expected_calls(config: GatedConfig, shape: DataShape) -> Sequence[ExpectedCalls] | None:
    """Return the host's calls less the dropped units: a sixth (the paper: a sixth to a third)."""
    if not isinstance(config.host, PlansCalls):
        return None
    passed = 1 - DROPPED
    turns, sessions = ([ceil(count * passed) for count in counts] for counts in (shape.turns, shape.sessions))
    calls = config.host.expected_calls(replace(shape, turns=turns, sessions=sessions))
    if calls is None:
        return None
    # A unit that passes is analysed as without the gate; what follows depends on what was dropped before.
    return [each if each.phase in ("prepare", "retrieve") else replace(each, shared="") for each in calls]


def context_tokens(config: GatedConfig, shape: DataShape) -> float:
    """Return the host's context tokens; 0 where the host does not say."""
    return config.host.context_tokens(shape) if isinstance(config.host, PlansCalls) else 0.0
