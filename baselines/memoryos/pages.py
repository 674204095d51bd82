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
    """What a page is about.

    Attributes:
        summary: of the topic.
        keywords: in lower case.
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
        topics: where the page will leave the queue; empty otherwise.
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


def user_of(conversation: Conversation) -> str:
    """Return who counts as the user: the conversation's first speaker."""
    return (*conversation.speakers, *(turn.speaker for turn in conversation.turns[:1]), "")[0]


def agent_of(conversation: Conversation) -> str:
    """Return who replies: the first to speak who is not the user; empty where only one speaks."""
    spoke, user = dict.fromkeys(turn.speaker for turn in conversation.turns), user_of(conversation)
    return next((speaker for speaker in spoke if speaker != user), "") if len(spoke) > 1 else ""


def pages_of(conversation: Conversation, turn_format: TurnFormat, cut: PageCut) -> list[DialoguePage]:
    """Cut a conversation into pages: no turn is lost, and none leaves its session.

    Turns of one speaker in a row belong together. What the user says opens a page, the reply closes it; a reply that
    nothing was said before has a page of its own. Where only one speaks (data that is no talk) each turn is a page.
    """
    user = user_of(conversation)
    paired = cut == "pairs" and bool(agent_of(conversation))
    return [
        _page(turns, user, turn_format)
        for session in sessions_of(conversation.turns)
        for turns in (_pairs(session, user) if paired else [[turn] for turn in session])
    ]


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
    """

    def __init__(self, conversation: Conversation, turn_format: TurnFormat, cut: PageCut) -> None:
        self.conversation = conversation
        self.pages = pages_of(conversation, turn_format, cut)
        self.user, self.agent = user_of(conversation), agent_of(conversation)
        self._place_of = {page.page_id: place for place, page in enumerate(self.pages)}

    def span(self, turns: Sequence[Turn]) -> tuple[int, int]:
        """Place of the first page of a session's turns, and of the first page after them."""
        places = [self._place_of[turn.turn_id] for turn in turns if turn.turn_id in self._place_of]
        return places[0], places[-1] + 1


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


def _page(turns: Sequence[Turn], user: str, turn_format: TurnFormat) -> DialoguePage:
    def side(*, by_user: bool) -> str:
        return "\n".join(turn_format.render(turn) for turn in turns if (turn.speaker == user) == by_user)

    first = turns[0]
    ids = tuple(turn.turn_id for turn in turns)
    return DialoguePage(first.turn_id, first.session_id, first.date_time, side(by_user=True), side(by_user=False), ids)
