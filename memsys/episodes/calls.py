"""Expected calls of the roles that xMemory and Nemori share: boundaries, episodes, facts."""

from collections.abc import Sequence
from typing import Any

from memsys.call_model import DataShape, ExpectedCalls
from memsys.llm.scope import Phase

#: Turns of an episode in the paper's LoCoMo memories; a small model cuts sooner.
EPISODE_TURNS = 8


def online_episode_calls(config: Any, shape: DataShape) -> list[ExpectedCalls]:
    """Return a boundary call for each message and a call that writes each episode.

    Where a session always begins a new one, sessions are cut and described ahead, and their first messages are not
    asked about.
    """
    ahead, cutting, describing = config.boundary["session_cut"], config.roles["boundary"], config.roles["episode"]
    messages = sum(shape.turns) - (len(shape.sessions) if ahead else 0)
    cut = f"{sorted(config.boundary.items())} {sorted(cutting.items(), key=str)}"
    episode_key = f"{cut} {sorted(describing.items(), key=str)}"
    prompt = episode_prompt_tokens(shape)
    phase: Phase = "prepare" if ahead else "write"
    boundaries = ExpectedCalls(phase, "boundary", messages, 350 + 10 * shape.turn_tokens, 40, cut)
    written = [
        ExpectedCalls(phase, "episode", calls, prompt, 200, episode_key)
        for phase, calls in episodes_by_phase(shape, ahead=ahead)
    ]
    return [boundaries, *written]


def fact_calls(roles: Sequence[str], shape: DataShape, shared: str, *, ahead: bool = False) -> list[ExpectedCalls]:
    """Return one call of each role for each episode; ``ahead``: with its session, before anything is stored."""
    prompt = 600 + EPISODE_TURNS * shape.turn_tokens
    return [
        ExpectedCalls(phase, role, calls, prompt, 200, shared)
        for phase, calls in episodes_by_phase(shape, ahead=ahead)
        for role in roles
    ]


def episodes_by_phase(shape: DataShape, *, ahead: bool = False) -> tuple[tuple[Phase, float], ...]:
    """Return the episodes by phase: a conversation's last one ends with the conversation, unless all are ahead."""
    last, episodes = len(shape.turns), sum(shape.turns) / EPISODE_TURNS
    return (("prepare", episodes),) if ahead else (("write", episodes - last), ("consolidate", last))


def episode_prompt_tokens(shape: DataShape) -> float:
    """Return the tokens of the prompt that writes an episode."""
    return 400 + EPISODE_TURNS * shape.turn_tokens
