"""Context of the paper's extraction besides the new messages: a running summary and the messages just before."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baselines.mem0.roles import TEXTS
from memsys.facts.batches import TEXTS as FACT_TEXTS
from memsys.facts.batches import batch_date
from memsys.llm.contract import LanguageModel, Role
from memsys.turns import TurnFormat
from memsys.vocabulary import Completion, Unit


@dataclass(slots=True)
class Dialogue:
    """The conversation so far, the same for every scope.

    The paper does not say how often its summary is refreshed: here with the first batch after a session has ended.

    Attributes:
        keep: messages just before that are shown (the paper's m).
        summary: of all sessions that have ended.
        recent: the last messages, also of the session before.
        session: id of the session under way.
        date: of the session under way.
        messages: of the session under way.
    """

    keep: int
    summary: str = ""
    recent: list[str] = field(default_factory=list)
    session: str | None = None
    date: str = ""
    messages: list[str] = field(default_factory=list)

    def ends_before(self, unit: Unit) -> bool:
        """Return whether the session under way has ended when a batch comes in."""
        return bool(self.messages) and self.session != unit.turns[0].session_id

    async def refresh(self, llm: LanguageModel, role: Role, key: str) -> tuple[Completion, bool]:
        """Bring the summary up to date with one call; an empty reply keeps the old one, and is counted."""
        values = {
            "summary": self.summary or TEXTS("no_summary"),
            "messages": "\n".join(self.messages),
            "date": self.date or FACT_TEXTS("unknown_date"),
        }
        reply = await llm.ask(role, values, key=key)
        text = reply.text.strip()
        self.summary = text or self.summary
        self.messages = []
        return reply.completion, not text

    def values(self) -> dict[str, str]:
        """Return what the prompt of an extraction shows."""
        return {
            "summary": self.summary or TEXTS("no_summary"),
            "history": "\n".join(self.recent) or TEXTS("nothing"),
        }

    def follow(self, unit: Unit, turn_format: TurnFormat) -> None:
        """Take note of a batch that has been extracted."""
        lines = [turn_format.render(turn) for turn in unit.turns]
        self.session, self.date = unit.turns[0].session_id, batch_date(unit)
        self.messages += lines
        self.recent = [*self.recent, *lines][-self.keep :] if self.keep else []

    def state(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {
            "summary": self.summary,
            "recent": list(self.recent),
            "session": self.session,
            "date": self.date,
            "messages": list(self.messages),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.summary, self.session, self.date = state["summary"], state["session"], state["date"]
        self.recent, self.messages = list(state["recent"]), list(state["messages"])
