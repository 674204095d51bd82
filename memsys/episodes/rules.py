"""Groups of hyperparameters that Nemori and xMemory share, as they are under ``memory.<group>`` in the presets."""

from dataclasses import dataclass
from typing import Literal

from memsys.settings import check_choices, check_flags, check_minimum, check_optional

EpisodeVector = Literal["content", "title_content"]


@dataclass(frozen=True, slots=True)
class BoundaryRules:
    """Settings of the boundaries between episodes.

    Attributes:
        show_times: messages are shown with their times; without, a rule about time gaps in the prompt is blind.
        hide_last_after: with more buffered messages than this, the last one is not shown (a transition looks like a
            topic of its own); ``None`` always shows all.
        session_cut: a new session always begins a new episode, without a call.
        max_messages: a longer episode is cut without a call; ``None`` for no limit, as in the code.
    """

    show_times: bool
    hide_last_after: int | None
    session_cut: bool
    max_messages: int | None

    def __post_init__(self) -> None:
        check_flags(self, "memory.boundary", "show_times", "session_cut")
        check_optional(self, "memory.boundary", hide_last_after=1, max_messages=1)


@dataclass(frozen=True, slots=True)
class EpisodeRules:
    """Settings of what an episode keeps.

    Attributes:
        vector: text under which an episode is found.
        slack_days: a time given by the model is taken only if it lies so close to the block's own; else, and where the
            model gives none, the block's earliest is. ``None`` believes the model.
        quoted_chars: characters of the first and the last message that describe a block for which no reply does.
    """

    vector: EpisodeVector
    slack_days: int | None
    quoted_chars: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.episode", vector=EpisodeVector)
        check_optional(self, "memory.episode", slack_days=0)
        check_minimum(self, "memory.episode", quoted_chars=1)
