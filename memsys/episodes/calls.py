"""Expected calls of the roles that xMemory and Nemori share: boundaries, episodes, facts."""

from collections.abc import Sequence
from typing import Any

from memsys.call_model import DataShape, ExpectedCalls
from memsys.llm.scope import Phase

#: Turns of an episode in the paper's LoCoMo memories; a small model cuts sooner.
EPISODE_TURNS = 8


def online_episode_calls(config: Any, shape: DataShape) -> list[ExpectedCalls]:
    """For each message whether it begins an episode; then each episode is written."""
    messages, cutting, telling = sum(shape.turns), config.roles["boundary"], config.roles["episode"]
    cut = f"{sorted(config.boundary.items())} {sorted(cutting.items(), key=str)}"
    episode_key = f"{cut} {sorted(telling.items(), key=str)}"
    prompt = episode_prompt_tokens(shape)
    boundaries = ExpectedCalls("write", "boundary", messages, 350 + 10 * shape.turn_tokens, 40, cut)
    written = [
        ExpectedCalls(phase, "episode", calls, prompt, 200, episode_key) for phase, calls in episodes_by_phase(shape)
    ]
    return [boundaries, *written]


def fact_calls(roles: Sequence[str], shape: DataShape, shared: str) -> list[ExpectedCalls]:
    """Each role is asked of each episode."""
    prompt = 600 + EPISODE_TURNS * shape.turn_tokens
    return [
        ExpectedCalls(phase, role, calls, prompt, 200, shared)
        for phase, calls in episodes_by_phase(shape)
        for role in roles
    ]


def episodes_by_phase(shape: DataShape) -> tuple[tuple[Phase, float], ...]:
    """Episodes by phase: a conversation's last one is written when the conversation is over."""
    last = len(shape.turns)
    return ("write", sum(shape.turns) / EPISODE_TURNS - last), ("consolidate", last)


def episode_prompt_tokens(shape: DataShape) -> float:
    """Tokens of the prompt that writes an episode."""
    return 400 + EPISODE_TURNS * shape.turn_tokens
