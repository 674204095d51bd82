"""Summaries of messages that leave the queue."""

from collections import Counter
from collections.abc import Sequence

from baselines.limits import cut_to_tokens
from baselines.memgpt.messages import QueuedMessage, summary_message
from baselines.memgpt.rules import MainContextRules, SummaryRules
from memsys.llm.contract import LanguageModel, Role

#: Of the messages that fit, how many the release sums up first.
_RELEASED_SHARE = 0.8


class Summariser:
    """Asks the backbone to sum up messages, the summary of earlier ones being the first of them.

    Args:
        llm: the backbone.
        role: that writes summaries.
        rules: of summaries.
        window: of the main context.
        counts: of what happens, changed here.
    """

    def __init__(
        self, llm: LanguageModel, role: Role, rules: SummaryRules, window: MainContextRules, counts: Counter[str]
    ) -> None:
        self._llm, self._role, self._rules, self._window, self._counts = llm, role, rules, window, counts

    @property
    def most_tokens(self) -> int:
        """Tokens of a summary, at most."""
        return self._role.max_tokens

    async def summarise(self, messages: Sequence[QueuedMessage], key: str) -> str:
        """Sum messages up; where they exceed the share of the window, the first half before all else."""
        limit = await self._limit()
        if sum(message.tokens for message in messages) <= limit:
            return await self._ask(messages, "\n".join(message.shown for message in messages), key)
        if len(messages) <= 2:
            shown = [await cut_to_tokens(self._llm, each.shown, limit // len(messages)) for each in messages]
            return await self._ask(messages, "\n".join(shown), key)
        half = -(-len(messages) // 2)
        first = await self.summarise(messages[:half], f"{key}:0")
        made = summary_message(messages[half - 1].date, half, first)
        made = made.counted(await self._llm.count_tokens(f"{made.shown}\n"))
        return await self.summarise([made, *messages[half:]], f"{key}:1")

    async def _limit(self) -> int:
        return max(min(int(self._window.warn_share * self._window.window), await self._room()), 2)

    async def _room(self) -> int:
        """Count the tokens that the backbone has room for besides the prompt's own and a reply."""
        frame = await self._llm.count_tokens(self._role.prompt.render(self._values("")))
        return self._llm.context_length - self._role.max_tokens - self._window.spare_tokens - frame

    async def _ask(self, messages: Sequence[QueuedMessage], shown: str, key: str) -> str:
        self._counts["summaries"] += 1
        text = (await self._llm.ask(self._role, self._values(shown), key=key)).text.strip()
        if text:
            return await cut_to_tokens(self._llm, text, self._role.max_tokens)
        self._counts["fallback.summarise"] += 1
        first_words = (" ".join(each.shown.split()[: self._rules.fallback_words]) for each in messages)
        return await cut_to_tokens(self._llm, "\n".join(first_words), self._role.max_tokens)

    def _values(self, messages: str) -> dict[str, str]:
        return {"words": str(self._rules.words), "messages": messages}


class ReleasedSummariser(Summariser):
    """Sums up as the release does: of too many messages the first ones before all else, and then all.

    How many is a share of the messages, not of their tokens, so that the second prompt may still be longer than the
    window; what the backbone has no room for is cut off.
    """

    async def summarise(self, messages: Sequence[QueuedMessage], key: str) -> str:
        """Sum messages up."""
        shown = [message.shown for message in messages]
        limit, total = self._window.warn_share * self._window.window, sum(message.tokens for message in messages)
        first = int(len(messages) * (limit / total) * _RELEASED_SHARE) if total > limit else 0
        if first:
            shown = [await self.summarise(messages[:first], f"{key}:0"), *shown[first:]]
            key = f"{key}:1"
        return await self._ask(messages, await cut_to_tokens(self._llm, "\n".join(shown), await self._room()), key)
