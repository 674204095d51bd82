"""How a turn becomes text, and turns fall into sessions.

One rule per run, shared by every system, so that memory is the only difference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from memsys.errors import ConfigError
from memsys.vocabulary import Turn

Style = Literal["plain", "clag", "bare"]
Captions = Literal["all", "with_img_url", "none"]


@dataclass(frozen=True, slots=True)
class TurnFormat:
    """A named way to write a turn.

    Attributes:
        style: ``plain`` is ``"SPEAKER: text [shares caption]"``; ``clag`` is the string of the A-Mem and CLAG drivers,
            ``"Speaker Xsays : [Image: caption] text"`` with its missing space; ``bare`` is the text alone.
        captions: which captions are kept. ``with_img_url`` is the A-Mem and CLAG loaders' rule, which loses 316 of
            LoCoMo's 1,226 captions.
    """

    style: Style = "plain"
    captions: Captions = "all"

    def __post_init__(self) -> None:
        for name, choices in (("style", get_args(Style)), ("captions", get_args(Captions))):
            if getattr(self, name) not in choices:
                raise ConfigError(f"turn_{name}={getattr(self, name)!r} is unknown; choose one of {', '.join(choices)}")

    def caption(self, turn: Turn) -> str:
        """Return the caption to show, or the empty string."""
        if self.captions == "none" or (self.captions == "with_img_url" and not turn.extra.get("img_url")):
            return ""
        return turn.caption

    def label(self, turn: Turn) -> str:
        """Return how the turn's line names its speaker, without the punctuation; empty where it does not."""
        return {"plain": turn.speaker, "clag": f"Speaker {turn.speaker}says", "bare": ""}[self.style]

    def render(self, turn: Turn) -> str:
        """Write the turn."""
        caption, label = self.caption(turn), self.label(turn)
        if self.style == "clag":
            text = f"[Image: {caption}] {turn.text}" if caption else turn.text
            return f"{label} : {text}"
        text = f"{turn.text} [shares {caption}]" if caption else turn.text
        return f"{label}: {text}" if self.style == "plain" else text


def sessions_of(turns: Iterable[Turn]) -> list[tuple[Turn, ...]]:
    """Cut turns wherever another session begins."""
    return [tuple(session) for _, session in groupby(turns, key=lambda turn: turn.session_id)]
