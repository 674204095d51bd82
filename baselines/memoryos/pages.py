"""Pages: what the user says and what the other speaker replies, within one session."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.memoryos.rules import PageCut
from memsys.turns import TurnFormat, sessions_of
from memsys.vocabulary import Conversation, Hit, Turn


@dataclass(frozen=True, slots=True)
class DialoguePage:
    """A page; one side may be empty.

    Attributes:
        page_id: id of its first turn.
        session_id: of its session.
        date: of the session, as the data set writes it.
        user: what the user says, turn by turn.
        agent: what others reply.
        turn_ids: all of its turns.
    """

    page_id: str
    session_id: str
    date: str
    user: str
    agent: str
    turn_ids: tuple[str, ...]

    @property
    def text(self) -> str:
        """Both sides, in the order said."""
        return "\n".join(side for side in (self.user, self.agent) if side)

    @property
    def dated(self) -> str:
        """Both sides after the date; what is embedded."""
        return f"[{self.date}]\n{self.text}" if self.date else self.text

    @property
    def run_on(self) -> str:
        """Both sides and the date between them, with no space; what the released code embeds when it searches."""
        return f"{self.user}{self.date}{self.agent}"

    def sides(self, name: str) -> dict[str, str]:
        """Return both sides as values of a prompt: ``NAME_user`` and ``NAME_agent``."""
        return {f"{name}_user": self.user, f"{name}_agent": self.agent}

    def hit(self, score: float) -> Hit:
        """Return the page as a retrieved memory."""
        return Hit(text=self.text, score=score, turn_ids=self.turn_ids, memory_id=self.page_id)

    def state(self) -> dict[str, Any]:
        """Return the page as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "DialoguePage":
        """Make the page that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


@dataclass(frozen=True, slots=True, eq=False)
class PageTopic:
    """Topic of a page.

    Attributes:
        summary: of the topic.
        keywords: as they are compared, in lower case unless the run keeps them as written.
        vector: embedding of the summary, shape (d,).
    """

    summary: str
    keywords: tuple[str, ...]
    vector: NDArray[np.float32]

    def state(self) -> dict[str, Any]:
        """Return the topic as JSON values and a vector."""
        return {"summary": self.summary, "keywords": list(self.keywords), "vector": self.vector}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "PageTopic":
        """Make the topic that :meth:`state` described."""
        return cls(state["summary"], tuple(state["keywords"]), np.asarray(state["vector"], np.float32))


@dataclass(frozen=True, slots=True, eq=False)
class QueuedPage:
    """A page in the queue, with what is known of it from its preparation.

    Attributes:
        page: of the conversation.
        vector: embedding of the page, shape (d,).
        continues: the page goes on with the one before it.
        chain: summary of its chain up to it; ``None`` where the chain began in an earlier session.
        topics: where the page will leave the queue; empty otherwise, and where it will be dropped.
    """

    page: DialoguePage
    vector: NDArray[np.float32]
    continues: bool = False
    chain: str | None = None
    topics: Sequence[PageTopic] = ()

    def state(self) -> dict[str, Any]:
        """Return page and preparation as JSON values and vectors."""
        return {
            "page": self.page.state(),
            "vector": self.vector,
            "continues": self.continues,
            "chain": self.chain,
            "topics": [topic.state() for topic in self.topics],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "QueuedPage":
        """Make what :meth:`state` described."""
        topics = [PageTopic.from_state(topic) for topic in state["topics"]]
        vector = np.asarray(state["vector"], np.float32)
        return cls(DialoguePage.from_state(state["page"]), vector, state["continues"], state["chain"], topics)


def agent_of(conversation: Conversation) -> str:
    """Return who replies: the first to speak who is not the user; empty where only one speaks."""
    spoke, user = conversation.speaking, conversation.user
    return next((speaker for speaker in spoke if speaker != user), "") if len(spoke) > 1 else ""


def pages_of(conversation: Conversation, turn_format: TurnFormat, cut: PageCut) -> list[DialoguePage]:
    """Cut a conversation into pages: no turn is lost, and none leaves its session, but for ``released_pairs``.

    Turns of one speaker in a row belong together. What the user says opens a page, the reply closes it; a reply that
    nothing was said before has a page of its own. Where only one speaks (data that is not talk) each turn is a page.
    """
    user = conversation.user
    if cut == "turns" or not agent_of(conversation):
        groups: Sequence[Sequence[Turn]] = [[turn] for turn in conversation.turns]
    elif cut == "released_pairs":
        groups = [turns for turns in _released_pairs(conversation.turns, user) if len(turns) > 1]
    else:
        groups = [turns for session in sessions_of(conversation.turns) for turns in _pairs(session, user)]
    return [_page(turns, user, turn_format) for turns in groups]


class PagedConversation:
    """A conversation cut into pages once, for all of its units.

    Args:
        conversation: what is cut.
        turn_format: how turns are written.
        cut: into what.

    Attributes:
        conversation: the same.
        pages: in order.
        user: who counts as the user.
        agent: who replies.
        idle: of each page, how many pages with one side were lost right before it, and of these after the last one.
    """

    def __init__(self, conversation: Conversation, turn_format: TurnFormat, cut: PageCut) -> None:
        self.conversation = conversation
        self.pages = pages_of(conversation, turn_format, cut)
        self.user, self.agent = conversation.user, agent_of(conversation)
        self.idle = _idle(conversation, len(self.pages), cut)
        self._place_of = {page.turn_ids[-1]: place for place, page in enumerate(self.pages)}
        self._session_of = {turn: page.session_id for page in self.pages for turn in page.turn_ids}

    def span(self, turns: Sequence[Turn]) -> tuple[int, int]:
        """Return the place of the first page that a session's turns complete, and of the first page after them.

        A page that waits for a reply of the next session belongs to that one: nothing is known before it was said.
        """
        places = [self._place_of[turn.turn_id] for turn in turns if turn.turn_id in self._place_of]
        return (places[0], places[-1] + 1) if places else (0, 0)

    def lost(self, turns: Sequence[Turn]) -> int:
        """Count the turns that no page has."""
        return sum(turn.turn_id not in self._session_of for turn in turns)

    def misdated(self, turns: Sequence[Turn]) -> int:
        """Count the turns that are on a page of another session, under its date."""
        return sum(self._session_of.get(turn.turn_id, turn.session_id) != turn.session_id for turn in turns)


def _pairs(turns: Sequence[Turn], user: str) -> list[list[Turn]]:
    pages: list[list[Turn]] = []
    is_open = False
    for by_user, run in groupby(turns, key=lambda turn: turn.speaker == user):
        if by_user or not is_open:
            pages.append(list(run))
        else:
            pages[-1] += run
        is_open = by_user
    return pages


def _released_pairs(turns: Sequence[Turn], user: str) -> list[list[Turn]]:
    """Pair turns as the released evaluation does, including pages with one side, which it later loses.

    Each of the user's turns opens a page. Whatever another says is the reply of the latest page, also of a session
    before, and replaces the reply that the page had. Without pages with one side, on LoCoMo's 5,882 turns that makes
    2,864 pages; 154 turns are lost, and 118 replies are under the date of the session before.

    Source: BAI-LAB/MemoryOS 1d71706, ``eval/main_loco_parse.py`` and ``eval/dynamic_update.py``.
    """
    pages: list[dict[bool, Turn]] = []
    for turn in turns:
        by_user = turn.speaker == user
        if by_user or not pages:
            pages.append({})
        pages[-1][by_user] = turn
    return [[page[by_user] for by_user in (True, False) if by_user in page] for page in pages]


def _idle(conversation: Conversation, pages: int, cut: PageCut) -> list[int]:
    """Count the pages with one side before each page of the released pairs, and after the last."""
    if cut != "released_pairs" or not agent_of(conversation):
        return [0] * (pages + 1)
    counts = [0]
    for turns in _released_pairs(conversation.turns, conversation.user):
        if len(turns) > 1:
            counts.append(0)
        else:
            counts[-1] += 1
    return counts


def _page(turns: Sequence[Turn], user: str, turn_format: TurnFormat) -> DialoguePage:
    def side(*, by_user: bool) -> str:
        return "\n".join(turn_format.render(turn) for turn in turns if (turn.speaker == user) == by_user)

    first = turns[0]
    ids = tuple(turn.turn_id for turn in turns)
    return DialoguePage(first.turn_id, first.session_id, first.date_time, side(by_user=True), side(by_user=False), ids)
