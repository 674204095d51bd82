"""The main context: core memory, a summary of what was evicted, and the queue of messages within a window."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from baselines.limits import cut_to_tokens
from baselines.memgpt.core import CoreMemory
from baselines.memgpt.messages import EvictionSummary, QueuedMessage, summary_message
from baselines.memgpt.roles import TEXTS, described
from baselines.memgpt.rules import AgentRules, FunctionName, MainContextRules
from baselines.memgpt.storage import ArchivalStorage, RecallStorage
from baselines.memgpt.summarising import Summariser
from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel, Role


class MainContext:
    """The agent's view, kept within a window by evicting the oldest messages into a summary.

    Tokens are counted before a call, message by message, with the backbone's tokenizer.

    Args:
        llm: the backbone.
        rules: of the window.
        agent: functions and lengths that prompts name.
        summariser: writes the summary.
        storages: core memory, recall storage, which keeps what is evicted, and archival storage.
        counts: of what happens, changed here.

    Attributes:
        messages: the queue, oldest first.
        summary: of what was evicted; ``None`` before the first eviction.
        alerted: whether the agent was warned since the last eviction.
    """

    def __init__(
        self,
        llm: LanguageModel,
        rules: MainContextRules,
        agent: AgentRules,
        summariser: Summariser,
        storages: tuple[CoreMemory, RecallStorage, ArchivalStorage],
        counts: Counter[str],
    ) -> None:
        self._llm, self._rules, self._agent, self._summariser = llm, rules, agent, summariser
        self._core, self._recall, self._archival = storages
        self._counts = counts
        self._frames: dict[tuple[str, str], int] = {}
        self.messages: list[QueuedMessage] = []
        self.summary: EvictionSummary | None = None
        self.alerted = False

    async def counted(self, message: QueuedMessage) -> QueuedMessage:
        """Return a message with its number of tokens."""
        return message.counted(await self._llm.count_tokens(f"{message.shown}\n"))

    async def append(self, message: QueuedMessage) -> None:
        """Queue a message; what is not a turn of the conversation goes into recall storage here."""
        self.messages.append(await self.counted(message))
        if not message.turn_ids:
            self._recall.others.append(self.messages[-1])

    def values(self, functions: Sequence[FunctionName], messages: Sequence[QueuedMessage]) -> dict[str, str]:
        """Fill the places of the agent's prompts, with the summary before these messages."""
        lines = [message.shown for message in (*self._summary_messages(), *messages)]
        counts = TEXTS("counts", recall=len(self._recall), archival=len(self._archival.records))
        return self._values(functions, counts, "\n".join(lines) or TEXTS("nothing"))

    def _values(self, functions: Sequence[FunctionName], counts: str, messages: str) -> dict[str, str]:
        return {
            "words": str(self._agent.thought_words),
            "functions": "\n".join(described(function) for function in functions),
            "core": self._core.shown(),
            "counts": counts,
            "messages": messages,
        }

    def _summary_messages(self) -> list[QueuedMessage]:
        return [] if self.summary is None else [self.summary.message]

    @property
    def summary_tokens(self) -> int:
        """Tokens of the summary."""
        return sum(message.tokens for message in self._summary_messages())

    async def frame(self, role: Role, functions: Sequence[FunctionName]) -> int:
        """Count the tokens of a prompt without messages; the numbers of stored messages are taken as zero."""
        key = role.name, self._core.shown()
        if key not in self._frames:
            values = self._values(functions, TEXTS("counts", recall=0, archival=0), "")
            self._frames = {each: cost for each, cost in self._frames.items() if each[1] == key[1]}
            self._frames[key] = await self._llm.count_tokens(role.prompt.render(values))
        return self._frames[key]

    def limit(self, role: Role) -> int:
        """Return the tokens above which messages are evicted: a share of the window, or what the backbone has room for.

        Args:
            role: whose reply needs room too.
        """
        room = self._llm.context_length - role.max_tokens - self._rules.spare_tokens
        return min(int(self._rules.flush_share * self._rules.window), room)

    async def check_room(self, role: Role, functions: Sequence[FunctionName]) -> None:
        """Make sure that instructions, core memory and a summary leave room for messages.

        Raises:
            ConfigError: they do not.
        """
        needed = await self.frame(role, functions) + self._summariser.most_tokens
        if needed >= self.limit(role):
            raise ConfigError(
                f"memory.main_context.window={self._rules.window}: instructions, core memory and a summary take "
                f"{needed} tokens, and messages are evicted above {self.limit(role)}; raise the window, or, where that "
                "is shorter, backbone.context_length"
            )

    async def total(self, role: Role, functions: Sequence[FunctionName]) -> int:
        """Count the tokens of the next prompt."""
        queued = sum(message.tokens for message in self.messages)
        return await self.frame(role, functions) + self.summary_tokens + queued

    async def under_pressure(self, role: Role, functions: Sequence[FunctionName]) -> bool:
        """Return whether to warn the agent: the window is nearly full, for the first time since an eviction."""
        return not self.alerted and await self.total(role, functions) > self._rules.warn_share * self._rules.window

    async def make_room(self, role: Role, functions: Sequence[FunctionName]) -> None:
        """Evict messages until the next prompt fits; a single one that is too long is cut."""
        limit = self.limit(role)
        while (over := await self.total(role, functions) - limit) > 0:
            if len(self.messages) < 2:
                await self._cut_last(over)
                return
            await self._evict()

    async def _cut_last(self, over: int) -> None:
        last = self.messages.pop()
        short = await cut_to_tokens(self._llm, last.text, max(last.tokens - over - 4, 1))
        kept = QueuedMessage(last.sender, short, last.date, last.lines, last.turn_ids)
        self.messages.append(await self.counted(kept))
        self._counts["messages_cut"] += 1

    async def _evict(self) -> None:
        cut = self._cut()
        evicted, self.messages = self.messages[:cut], self.messages[cut:]
        hidden = cut + (self.summary.hidden if self.summary else 0)
        turn_ids = self.summary.turn_ids if self.summary else {}
        text = await self._summariser.summarise([*self._summary_messages(), *evicted], str(self._counts["evictions"]))
        message = await self.counted(summary_message(evicted[-1].date, hidden, text))
        turn_ids.update(dict.fromkeys(turn for each in evicted for turn in each.turn_ids))
        self.summary, self.alerted = EvictionSummary(text, hidden, turn_ids, message), False
        self._counts["evictions"] += 1
        self._counts["evicted_messages"] += cut

    def _cut(self) -> int:
        """Count the messages to evict: a share of the queue's tokens, but not the latest ones.

        The queue shall not begin with an event whose call is the next message: that event goes too.
        """
        messages, keep = self.messages, self._rules.keep_messages
        most = len(messages) - (keep if len(messages) > keep else 1)
        taken = self.summary_tokens
        target = self._rules.evict_share * (taken + sum(message.tokens for message in messages))
        cut = 0
        while cut < most and (taken < target or not cut):
            taken += messages[cut].tokens
            cut += 1
        shifts = cut < most and messages[cut].sender == "user" and messages[cut + 1].sender != "user"
        return cut + shifts

    def state(self) -> dict[str, Any]:
        """Return queue and summary."""
        return {
            "messages": [message.state() for message in self.messages],
            "summary": None if self.summary is None else self.summary.state(),
            "alerted": self.alerted,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.messages = [QueuedMessage.from_state(each) for each in state["messages"]]
        self.summary = None if state["summary"] is None else EvictionSummary.from_state(state["summary"])
        self.alerted = state["alerted"]
