"""The read path: the agent searches for a question, on a copy of the main context."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from baselines.memgpt.functions import CallChain, FunctionResult, MemoryFunctions, written_call
from baselines.memgpt.messages import QueuedMessage, event, result, said
from baselines.memgpt.paging import MainContext
from baselines.memgpt.reading import FunctionCall, read_call
from baselines.memgpt.roles import TEXTS
from baselines.memgpt.rules import SEND, AgentRules
from memsys.llm.contract import LanguageModel, Role
from memsys.seeding import question_key


@dataclass(slots=True)
class QuestionSearch:
    """Result of the search for a question.

    Attributes:
        chain: calls and what they found.
        asked: calls of the backbone.
        ended_by: ``send_message``, ``thought`` (a reply without a call), ``failures``, ``steps`` or ``room``.
        forced: no search was made, so that one for the question's own words was.
        unseen: messages of the queue that a prompt had to leave out, at most.
        answer: the agent's own, where it is asked for one and gave one.
        local: messages of this search alone.
    """

    chain: CallChain
    asked: int = 0
    ended_by: str = "steps"
    forced: bool = False
    unseen: int = 0
    answer: str | None = None
    local: list[QueuedMessage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class QuestionSearcher:
    """Searches for questions; nothing of it is kept, so that questions do not see each other.

    Attributes:
        llm: the backbone.
        role: that it is asked in.
        rules: of steps.
        context: the main context, which is read only.
        functions: on the memory.
    """

    llm: LanguageModel
    role: Role
    rules: AgentRules
    context: MainContext
    functions: MemoryFunctions

    async def search(self, question: str) -> QuestionSearch:
        """Let the agent search until it ends; a question that it neither searched for nor answered is searched for."""
        found = QuestionSearch(CallChain("", self.rules.question_functions, read_only=True))
        found.local.append(await self.context.counted(event("user_message", "", TEXTS("question", question=question))))
        key = question_key(question)
        for step in range(self.rules.question_steps):
            found.ended_by = await self._step(found, f"{key}:{step}")
            if found.ended_by != "steps":
                break
        if found.answer is None and not found.chain.searched:
            found.forced = True
            found.chain.take(await self.functions.archival.search(question, 0))
            found.chain.take(await self.functions.recall.search(question, 0))
        return found

    async def _step(self, found: QuestionSearch, key: str) -> str:
        """Make a call; return why this ends the search, or ``steps`` where it does not."""
        values = await self._values(found)
        if values is None:
            return "room"
        reply = await self.llm.ask(self.role, values, key=key)
        found.asked += 1
        call = read_call(reply)
        if call is None:
            return "thought"
        returned = await self.functions.run(call, found.chain)
        if len(found.chain.failures) >= self.rules.max_failures:
            return "failures"
        if call.name == SEND:
            found.answer = self._answer(call)
            return SEND
        await self._note(found, call, returned)
        return "steps"

    def _answer(self, call: FunctionCall) -> str | None:
        """Return the text of the message where the agent answers itself; ``None`` where there is none."""
        message = call.args.get("message")
        if self.rules.answer != "agent" or not isinstance(message, str):
            return None
        return message.strip() or None

    async def _note(self, found: QuestionSearch, call: FunctionCall, returned: FunctionResult) -> None:
        for message in (
            said("", self.rules.return_chars, **written_call(call)),
            result(returned.ok, "", returned.text),
        ):
            found.local.append(await self.context.counted(message))

    async def _values(self, found: QuestionSearch) -> Mapping[str, str] | None:
        """Fill the prompt; the queue's oldest messages are left out where it would be too long.

        Returns:
            The values, or ``None`` where this search's own messages alone are too long.
        """
        context, functions = self.context, self.rules.question_functions
        own = sum(message.tokens for message in found.local)
        room = context.limit(self.role) - own - await context.frame(self.role, functions) - context.summary_tokens
        if room < 0:
            return None
        kept = 0
        for message in reversed(context.messages):
            room -= message.tokens
            if room < 0:
                break
            kept += 1
        first = len(context.messages) - kept
        found.unseen = max(found.unseen, first)
        return context.values(functions, [*context.messages[first:], *found.local])
