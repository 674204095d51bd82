"""The released agent's loop: its step, its warning of a full window, and its eviction of messages into a summary."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from baselines.limits import cut_to_tokens
from baselines.memgpt.code_functions import ReleasedFunctions, as_queued, asks_again
from baselines.memgpt.code_messages import event, result, said
from baselines.memgpt.code_store import ReleasedStore
from baselines.memgpt.functions import CallChain
from baselines.memgpt.messages import QueuedMessage
from baselines.memgpt.reading import read_call
from baselines.memgpt.roles import TEXTS, described
from baselines.memgpt.rules import AgentRules, MainContextRules
from baselines.memgpt.summarising import Summariser
from memsys.errors import ConfigError
from memsys.llm.contract import LanguageModel, Role


@dataclass(frozen=True, slots=True)
class StepResult:
    """Request of a step for the next one."""

    warning: bool
    failed: bool
    again: bool


@dataclass(frozen=True, slots=True)
class ReleasedAgent:
    """Shows events to the backbone and runs the functions that it calls, as release 0.2.11 does.

    Attributes:
        llm: the backbone.
        role: that it is asked in.
        rules: of steps.
        window: that messages are evicted from.
        summariser: writes summaries.
        store: the memory.
        functions: on it.
        counts: of what happens, changed here.
    """

    llm: LanguageModel
    role: Role
    rules: AgentRules
    window: MainContextRules
    summariser: Summariser
    store: ReleasedStore
    functions: ReleasedFunctions
    counts: Counter[str]

    async def take_in(self, shown: QueuedMessage, chain: CallChain, most: int, key: str) -> str:
        """Show an event and go on until the agent is done; the warning comes in the place of what it asked for.

        Returns:
            Why it ended: ``yielded``, ``failures`` or ``steps``.
        """
        following, done = shown, 0
        while True:
            told = await self._step(following, chain, f"{key}:{done}")
            done += 1
            if told.warning:
                self.counts["alerts"] += 1
                following = event("system_alert", chain.date, TEXTS("pressure"))
            elif told.failed:
                following = event("heartbeat", chain.date, TEXTS("failed"))
            elif told.again:
                following = event("heartbeat", chain.date, TEXTS("heartbeat"))
            else:
                return "yielded"
            if len(chain.failures) >= self.rules.max_failures:
                return "failures"
            if done >= most:
                return "steps"

    async def _step(self, shown: QueuedMessage, chain: CallChain, key: str) -> StepResult:
        shown = await self._counted(shown)
        shown = await self._with_room(shown, chain, key)
        values = self._values(chain, [*self.store.queue, shown])
        before = await self._total(shown, chain)
        reply = await self.llm.ask(self.role, values, key=key)
        self.counts["steps"] += 1
        call = read_call(reply)
        if call is None:
            self.counts["thoughts_alone"] += 1
            new, failed, again = [said(chain.date, None, reply.text)], False, False
        else:
            returned = await self.functions.run(call, chain)
            new = [said(chain.date, as_queued(call), call.thought), result(returned.ok, chain.date, returned.text)]
            failed, again = not returned.ok, returned.ok and asks_again(call)
        new = [await self._counted(message) for message in new]
        warning = self._warned(before + new[0].tokens)
        self.store.add([shown, *new])
        return StepResult(warning, failed, again)

    def _warned(self, total: int) -> bool:
        """Return whether to warn the agent, by the tokens of a prompt and its reply; once between two evictions."""
        due = total > self.window.warn_share * self.window.window and not self.store.alerted
        self.store.alerted = self.store.alerted or due
        return due

    async def _with_room(self, shown: QueuedMessage, chain: CallChain, key: str) -> QueuedMessage:
        """Evict messages before the event until the prompt fits; an event that is too long alone is cut."""
        while (over := await self._total(shown, chain) - self._limit()) > 0:
            if len(self.store.queue) < 2:
                self.counts["messages_cut"] += 1
                short = await cut_to_tokens(self.llm, shown.text, max(shown.tokens - over - 4, 1))
                cut = QueuedMessage(shown.sender, short, shown.date, shown.lines, shown.turn_ids)
                return await self._counted(cut)
            await self._evict(key)
        return shown

    async def _evict(self, key: str) -> None:
        """Sum up the oldest messages; the summary is a message like the others, and the next eviction's first one."""
        store = self.store
        cut = self._cut()
        evicted, rest = store.queue[:cut], store.queue[cut:]
        hidden = store.total - len(rest)
        text = await self.summariser.summarise(evicted, f"{key}:{self.counts['evictions']}")
        summary = event("system_alert", store.time, TEXTS("summary", hidden=hidden, summary=text))
        turn_ids = tuple(dict.fromkeys(turn for each in evicted for turn in each.turn_ids))
        summary = QueuedMessage("user", summary.text, summary.date, turn_ids=turn_ids)
        store.queue = []
        store.add([await self._counted(summary)])
        store.queue += rest
        store.alerted, store.summary = False, text
        self.counts["evictions"] += 1
        self.counts["evicted_messages"] += cut

    def _cut(self) -> int:
        """Count the messages to evict: as many as stay within a share of the queue's tokens, but the latest ones never.

        An event at the cut goes too. Where this leaves less than two messages the release stops with an error; two are
        taken here.
        """
        queue = self.store.queue
        wanted = int(self.window.evict_share * sum(message.tokens for message in queue))
        cut = taken = 0
        for place, message in enumerate(queue[: -self.window.keep_messages]):
            cut = place
            taken += message.tokens
            if taken > wanted:
                break
        cut += queue[cut].sender == "user"
        if cut < 2:
            self.counts["evictions_stuck"] += 1
        return min(max(cut, 2), len(queue))

    async def check_room(self, chain: CallChain) -> None:
        """Make sure that instructions, core memory and a summary leave room for messages.

        Raises:
            ConfigError: they do not.
        """
        needed = await self._frame(chain) + self.summariser.most_tokens
        if needed >= self._limit():
            raise ConfigError(
                f"memory.main_context.window={self.window.window}: instructions, core memory and a summary take "
                f"{needed} tokens, and messages are evicted above {self._limit()}; raise the window, or, where that "
                "is shorter, backbone.context_length"
            )

    def _limit(self) -> int:
        room = self.llm.context_length - self.role.max_tokens - self.window.spare_tokens
        return min(int(self.window.flush_share * self.window.window), room)

    async def _total(self, shown: QueuedMessage, chain: CallChain) -> int:
        queued = sum(message.tokens for message in self.store.queue)
        return await self._frame(chain) + queued + shown.tokens

    async def _frame(self, chain: CallChain) -> int:
        return await self.llm.count_tokens(self.role.prompt.render(self._values(chain, [])))

    def _values(self, chain: CallChain, messages: Sequence[QueuedMessage]) -> Mapping[str, str]:
        recall, archival = self.store.shown_counts
        return {
            "words": str(self.rules.thought_words),
            "functions": "\n".join(described(function) for function in chain.offered),
            "core": self.store.core.shown(),
            "counts": TEXTS("counts", recall=recall, archival=archival),
            "messages": "\n".join(message.shown for message in messages),
        }

    async def _counted(self, message: QueuedMessage) -> QueuedMessage:
        return message.counted(await self.llm.count_tokens(f"{message.shown}\n"))
