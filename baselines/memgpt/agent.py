"""The control loop: the agent takes in an event, call by call."""

from collections import Counter

from baselines.memgpt.counts import add_calls
from baselines.memgpt.functions import CallChain, MemoryFunctions, written_call
from baselines.memgpt.messages import QueuedMessage, event, result, said
from baselines.memgpt.paging import MainContext
from baselines.memgpt.reading import FunctionCall, read_call
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import SEND, AgentRules
from memsys.llm.contract import LanguageModel, Role


class MemGptAgent:
    """Shows events to the backbone and runs the functions that it calls.

    Args:
        llm: the backbone.
        role: that it is asked in.
        rules: of steps.
        context: the main context.
        functions: on the memory.
        counts: of what happens, changed here.
    """

    def __init__(
        self,
        llm: LanguageModel,
        role: Role,
        rules: AgentRules,
        context: MainContext,
        functions: MemoryFunctions,
        counts: Counter[str],
    ) -> None:
        self._llm, self._role, self._rules = llm, role, rules
        self._context, self._functions, self._counts = context, functions, counts

    async def take_in(self, shown: QueuedMessage) -> None:
        """Show an event and go on until the agent is done, has failed too often or has used up its steps.

        A warning that the window is nearly full goes before the next step that the agent asked for; that step
        comes after it.
        """
        offered = self._rules.ingest_functions
        chain = CallChain(shown.date, offered, sources=dict.fromkeys(shown.turn_ids))
        following: QueuedMessage | None = shown
        pending = False
        for step in range(self._rules.ingest_steps):
            assert following is not None
            await self._context.append(following)
            await self._context.make_room(self._role, offered)
            asks, failed = await self._step(chain, f"{shown.turn_ids[0]}:{step}")
            pending = pending or asks
            if len(chain.failures) >= self._rules.max_failures:
                self._counts["ended.failures"] += 1
                break
            if step + 1 == self._rules.ingest_steps:
                self._counts["ended.steps"] += pending or failed
                break
            following, pending = await self._following(shown.date, pending, failed)
            if following is None:
                break
        add_calls(self._counts, chain)

    async def _following(self, date: str, pending: bool, failed: bool) -> tuple[QueuedMessage | None, bool]:
        """Return the next event, if there is one, and whether another step is still owed after it."""
        if await self._context.under_pressure(self._role, self._rules.ingest_functions):
            self._context.alerted = True
            self._counts["alerts"] += 1
            return event("system_alert", date, TEXTS("pressure")), pending or failed
        if failed:
            return event("heartbeat", date, TEXTS("failed")), False
        return (event("heartbeat", date, TEXTS("heartbeat")), False) if pending else (None, False)

    async def _step(self, chain: CallChain, key: str) -> tuple[bool, bool]:
        """Make a call; return whether it asks for another step, and whether it failed."""
        values = self._context.values(chain.offered, self._context.messages)
        reply = await self._llm.ask(self._role, values, key=key)
        self._counts["steps"] += 1
        call = read_call(reply)
        if call is None:
            self._counts["thoughts_alone"] += 1
            await self._context.append(said(chain.date, self._rules.return_chars, thought=reply.text))
            return False, False
        return await self._run(call, chain)

    async def _run(self, call: FunctionCall, chain: CallChain) -> tuple[bool, bool]:
        returned = await self._functions.run(call, chain)
        await self._context.append(said(chain.date, self._rules.return_chars, **written_call(call)))
        await self._context.append(result(returned.ok, chain.date, returned.text))
        return call.heartbeat and returned.ok and call.name != SEND, not returned.ok
