"""Pages with their gists, and the text that mixes both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.readagent.paragraphs import TranscriptParagraph
from baselines.readagent.roles import TEXTS
from baselines.readagent.rules import Dates
from memsys.vocabulary import Hit


@dataclass(frozen=True, slots=True)
class GistPage:
    """A page and its gist.

    Attributes:
        header: date of the session in brackets, or empty; precedes the page and the gist.
        text: the paragraphs, one per line.
        turn_ids: turns that the page has a part of; the gist's origin too.
        words: of the text, between white space.
        gist: what is remembered of the page.
        tokens: of the page as shown with its number, counted with the backbone's tokenizer; 0 before it is stored.
        gist_tokens: the same of the gist.
    """

    header: str
    text: str
    turn_ids: tuple[str, ...]
    words: int
    gist: str = ""
    tokens: int = 0
    gist_tokens: int = 0

    @property
    def full(self) -> str:
        """The page with its header."""
        return f"{self.header}\n{self.text}" if self.header else self.text

    @property
    def short(self) -> str:
        """The gist with the page's header."""
        return f"{self.header}\n{self.gist}" if self.header else self.gist

    def hit(self, number: int) -> Hit:
        """Return the page as a retrieved memory. Pages are asked for, not scored."""
        return Hit(text=self.text, score=1.0, turn_ids=self.turn_ids, memory_id=f"page_{number}")

    def state(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "GistPage":
        """Make the page that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


def page_of(paragraphs: Sequence[TranscriptParagraph], dates: Dates) -> GistPage:
    """Make a page of consecutive paragraphs; a header names the dates of all its sessions."""
    days = [day for day in dict.fromkeys(each.date_time for each in paragraphs) if day] if dates == "header" else []
    return GistPage(
        header=f"[{'; '.join(days)}]" if days else "",
        text="\n".join(each.text for each in paragraphs),
        turn_ids=tuple(dict.fromkeys(each.turn_id for each in paragraphs)),
        words=sum(each.words for each in paragraphs),
    )


def tagged(number: int, text: str) -> str:
    """Write a page or gist after its number."""
    return TEXTS("page", number=number, text=text)


@dataclass(frozen=True, slots=True)
class Mixed:
    """A text of pages and gists in order.

    Attributes:
        text: what is shown.
        opened: pages in full, in the order of request.
        gists: pages shown by their gist, in order.
    """

    text: str
    opened: tuple[int, ...]
    gists: tuple[int, ...]


def mix(pages: Sequence[GistPage], requested: Sequence[int], limit: int, *, tags: bool = True) -> Mixed:
    """Show requested pages in full and the others by their gists, within a limit of tokens.

    Requested pages come first, in the order of request; one that does not fit is shown by its gist. Then come the gists
    nearest to an opened page, earlier ones first (with none opened, the last ones), up to the first that does not fit.
    """
    room = limit
    opened: list[int] = []
    for number in requested:
        if pages[number].tokens <= room:
            opened.append(number)
            room -= pages[number].tokens
    gists: list[int] = []
    for number in _by_distance(len(pages), opened):
        room -= pages[number].gist_tokens
        if room < 0:
            break
        gists.append(number)
    shown = {number: pages[number].full for number in opened} | {number: pages[number].short for number in gists}
    blocks = [tagged(number, shown[number]) if tags else f"{shown[number]}\n" for number in sorted(shown)]
    return Mixed("".join(blocks), tuple(opened), tuple(sorted(gists)))


def _by_distance(count: int, opened: Sequence[int]) -> list[int]:
    others = [number for number in range(count) if number not in opened]
    if not opened:
        return others[::-1]
    return sorted(others, key=lambda number: (min(abs(number - near) for near in opened), number))
