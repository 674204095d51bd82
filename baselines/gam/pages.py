"""Pages: turns of a session, word for word, under a line that names the session."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.gam.roles import TEXTS
from baselines.gam.rules import GamPageRules, GamTexts
from memsys.llm.contract import LanguageModel
from memsys.turns import TurnFormat
from memsys.vocabulary import Hit, Turn

_NUMBER = re.compile(r"[0-9]+$")


@dataclass(frozen=True, slots=True)
class AbstractedPage:
    """A page.

    Attributes:
        page_id: id of its first turn.
        text: header and turns.
        turn_ids: the turns.
        abstract: what the backbone wrote of it; may be empty.
    """

    page_id: str
    text: str
    turn_ids: tuple[str, ...]
    abstract: str = ""

    def hit(self, score: float) -> Hit:
        """Return the page as a retrieved memory."""
        return Hit(text=self.text, score=score, turn_ids=self.turn_ids, memory_id=self.page_id)

    def state(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "AbstractedPage":
        """Make the page that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


async def cut_pages(
    llm: LanguageModel, turns: Sequence[Turn], turn_format: TurnFormat, rules: GamPageRules, texts: GamTexts
) -> list[AbstractedPage]:
    """Cut a session into pages between turns; a turn that alone exceeds the limit has a page of its own."""
    lines = [turn_format.render(turn) for turn in turns]
    costs = [0] * len(lines)
    if rules.max_tokens is not None:
        costs = list(await asyncio.gather(*(llm.count_tokens(f"{line}\n") for line in lines)))
    groups: list[list[int]] = []
    for row, turn in enumerate(turns):
        full = bool(groups) and sum(costs[each] for each in groups[-1]) + costs[row] > (rules.max_tokens or 0)
        crossed = rules.bound == "record" and bool(groups) and _record(turns[groups[-1][0]]) != _record(turn)
        if not groups or crossed or (rules.max_tokens is not None and full):
            groups.append([])
        groups[-1].append(row)
    return [_page([turns[row] for row in group], [lines[row] for row in group], texts) for group in groups]


def _record(turn: Turn) -> str:
    return str(turn.extra.get("record", ""))


def _page(turns: Sequence[Turn], lines: Sequence[str], texts: GamTexts) -> AbstractedPage:
    first = turns[0]
    header = texts.header if first.date_time else texts.undated_header
    head = header.format(session=first.session_id, date=first.date_time, index=_index(first.session_id))
    return AbstractedPage(first.turn_id, "\n".join([head, "", *lines]), tuple(turn.turn_id for turn in turns))


def _index(session_id: str) -> int | str:
    """Return the number at the end of a session's id, counted from 0; the id where there is none."""
    number = _NUMBER.search(session_id)
    return int(number[0]) - 1 if number else session_id


class AbstractLines:
    """Every page's abstract after its number, a line each, as pages come.

    Args:
        rules: the text shown for a page without an abstract, and how lines are numbered.

    Attributes:
        lines: so far.
    """

    def __init__(self, rules: GamPageRules) -> None:
        self._rules = rules
        self._known: set[str] = set()
        self.lines: list[str] = []

    def __contains__(self, abstract: object) -> bool:
        """Return whether some page has this abstract."""
        return abstract in self._known

    def add(self, page: AbstractedPage) -> None:
        """Append a page; by position, one with an abstract of its own alone."""
        if not self._rules.by_position:
            self._write(page.abstract or page.text[: self._rules.abstract_chars])
        elif page.abstract and page.abstract not in self._known:
            self._write(page.abstract)
        self._known.add(page.abstract)

    def _write(self, abstract: str) -> None:
        self.lines.append(TEXTS("page", number=len(self.lines), abstract=abstract))


def drifted(pages: Sequence[AbstractedPage]) -> int:
    """Count pages whose place in the list of different abstracts is not their own, or that have none there."""
    listed = list(dict.fromkeys(page.abstract for page in pages if page.abstract))
    return sum(number >= len(listed) or listed[number] != page.abstract for number, page in enumerate(pages))
