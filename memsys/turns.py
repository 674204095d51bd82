"""Turns as text, and their grouping into sessions.

One rule per run, shared by every system, so that memory is the only difference.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal, get_args

from memsys.errors import ConfigError
from memsys.texts import ShownTexts
from memsys.vocabulary import Turn

TEXTS = ShownTexts(Path(__file__).with_name("turns.texts.yaml"))

Style = Literal["plain", "clag", "bare", "with_id"]
Captions = Literal["all", "with_img_url", "none"]
ImageQueries = Literal["all", "none"]


@dataclass(frozen=True, slots=True)
class TurnFormat:
    """A named way to write a turn.

    Attributes:
        style: ``plain`` is ``"SPEAKER: text [shares caption]"``; ``clag`` is the string of the A-Mem and CLAG drivers,
            ``"Speaker Xsays : [Image: caption] text"`` with its missing space; ``bare`` is the text alone;
            ``with_id`` is ``plain`` with the turn's id in round brackets behind the speaker, as in GAM's script.
        captions: which captions are kept. ``with_img_url`` is the A-Mem and CLAG loaders' rule, which loses 316 of
            LoCoMo's 1,226 captions.
        queries: whether the words are kept with which a turn's image was searched for (888 turns of LoCoMo), behind
            the text and the caption. The released code of xMemory and Nemori keeps them.
    """

    style: Style = "plain"
    captions: Captions = "all"
    queries: ImageQueries = "none"

    def __post_init__(self) -> None:
        known = (("style", get_args(Style)), ("captions", get_args(Captions)), ("queries", get_args(ImageQueries)))
        for name, choices in known:
            if getattr(self, name) not in choices:
                raise ConfigError(
                    f"dataset.turn_{name}={getattr(self, name)!r} is unknown; choose one of {', '.join(choices)}"
                )

    def caption(self, turn: Turn) -> str:
        """Return the caption to show, or the empty string."""
        if self.captions == "none" or (self.captions == "with_img_url" and not turn.extra.get("img_url")):
            return ""
        return turn.caption

    def query(self, turn: Turn) -> str:
        """Return the words that the turn's image was searched for with, to show, or the empty string."""
        return str(turn.extra.get("image_query", "")) if self.queries == "all" else ""

    def label(self, turn: Turn) -> str:
        """Return how the turn's line names its speaker, without the punctuation; empty where it does not."""
        if self.style == "clag":
            return TEXTS("clag_speaker", speaker=turn.speaker)
        if self.style == "with_id":
            return TEXTS("speaker_with_id", speaker=turn.speaker, turn_id=turn.turn_id)
        return turn.speaker if self.style == "plain" else ""

    def render(self, turn: Turn) -> str:
        """Write the turn."""
        between = {"plain": ": ", "clag": " : ", "bare": "", "with_id": ": "}[self.style]
        query, text = self.query(turn), turn.text
        if caption := self.caption(turn):
            words = {"text": text, "caption": caption}
            text = TEXTS("clag_image", **words) if self.style == "clag" else TEXTS("shares", **words)
        line = f"{self.label(turn)}{between}{text}"
        return TEXTS("searched", line=line, query=query) if query else line


def sessions_of(turns: Iterable[Turn]) -> list[tuple[Turn, ...]]:
    """Cut turns wherever another session begins."""
    return [tuple(session) for _, session in groupby(turns, key=lambda turn: turn.session_id)]
