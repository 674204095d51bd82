"""Cutting the stream into blocks: role ``boundary``, one call per message (paper, appendix C; Nemori)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memsys.episodes.nodes import Cut, Message, MessageBlock, joined, messages_from
from memsys.episodes.recovery import flag_of, loose_object, text_of
from memsys.episodes.roles import TEXTS
from memsys.episodes.rules import BoundaryRules
from memsys.llm.contract import LanguageModel, Role


class Segmenter:
    """Buffers messages until one begins a new episode.

    Fallback of ``boundary``: the flag is read from a reply that does not validate; where it has none, no cut.

    Attributes:
        buffer: messages of the open block.
        counts: how blocks ended, and malformed replies.
    """

    def __init__(self, llm: LanguageModel, role: Role, rules: BoundaryRules) -> None:
        self._llm, self._role, self._rules = llm, role, rules
        self.buffer: list[Message] = []
        self.counts: Counter[str] = Counter()

    async def take(self, message: Message) -> MessageBlock | None:
        """Add a message; returns the block that it closed, if it begins a new one."""
        closed = await self._cut_before(message) if self.buffer else None
        self.buffer.append(message)
        return closed

    async def take_all(self, messages: Iterable[Message]) -> list[MessageBlock]:
        """Add messages one after the other; returns the blocks that they closed."""
        blocks = [await self.take(message) for message in messages]
        return [block for block in blocks if block is not None]

    def flush(self, cut: Cut) -> MessageBlock | None:
        """Close the open block, if there is one."""
        return self._close(cut, "") if self.buffer else None

    async def _cut_before(self, message: Message) -> MessageBlock | None:
        rules = self._rules
        if rules.session_cut and message.session_id != self.buffer[-1].session_id:
            return self._close("session", TEXTS("new_session"))
        if rules.max_messages is not None and len(self.buffer) >= rules.max_messages:
            return self._close("limit", TEXTS("long_enough"))
        reply = await self._llm.ask(self._role, self._shown(message), key=message.turn_id)
        found = loose_object(reply, self._role.reading)
        ends = flag_of(found, "should_end", self._role.reading)
        if reply.value is None:
            self.counts["fallback.boundary"] += 1
            self.counts[f"boundary.{'no_cut' if ends is None else 'recovered'}"] += 1
        return self._close("model", text_of(found, "reason", self._role.reading)) if ends else None

    def _shown(self, message: Message) -> dict[str, str]:
        rules, history = self._rules, self.buffer
        if rules.hide_last_after is not None and len(history) > rules.hide_last_after:
            history = history[:-1]
        dated = rules.show_times
        return {"history": joined(history, dated=dated), "message": joined([message], dated=dated)}

    def _close(self, cut: Cut, reason: str) -> MessageBlock:
        self.counts[f"cut.{cut}"] += 1
        block, self.buffer = MessageBlock(tuple(self.buffer), cut, reason), []
        return block

    def state(self) -> list[dict[str, Any]]:
        """Return the open block's messages as JSON values."""
        return list(MessageBlock(tuple(self.buffer), "end", "").state()["messages"])

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore the open block."""
        self.buffer = list(messages_from(state))
