"""Iterative evidence refinement: ask whether the evidence suffices, and for what is missing (paper, 3.4.2)."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from memsys.llm.contract import LanguageModel
from memsys.memfly.evidence import EvidenceWriter
from memsys.memfly.intent import Intent
from memsys.memfly.pathways import CandidatePool
from memsys.memfly.roles import TEXTS, MemFlyRoles
from memsys.memfly.rules import RefinementRules
from memsys.seeding import question_key

#: Why the loop ended. ``off``: ablation. ``malformed``: the check gave no valid object, which counts as sufficient.
Stop = Literal["off", "sufficient", "confident", "malformed", "no_subquery", "repeated_subquery", "max_rounds"]

_LABEL = re.compile(r"^(?:next |sub-?)?question\s*:\s*", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "null", "n/a"})


@dataclass(frozen=True, slots=True)
class Round:
    """One retrieval of the loop: its query, what was understood, and what was found."""

    query: str
    intent: Intent
    pool: CandidatePool


@dataclass(slots=True)
class Refined:
    """Result of the refinement loop.

    Attributes:
        rounds: retrievals, the first one by the question itself.
        stop: why it ended.
        drafts: answers on the evidence so far, one per check.
    """

    rounds: list[Round]
    stop: Stop
    drafts: list[str] = field(default_factory=list)

    @property
    def union(self) -> list[int]:
        """All notes found, by position, each where it was first found (equation 20)."""
        return list(dict.fromkeys(position for each in self.rounds for position, _ in each.pool.ranked))


Search = Callable[[str], Awaitable[Round]]
#: What the reader would be shown, by position and with scores, best first, if the loop ended now.
Rank = Callable[[Refined], Awaitable[list[tuple[int, float]]]]


@dataclass(frozen=True, slots=True)
class Refinement:
    """Runs the loop; changes nothing in the memory.

    Attributes:
        llm: the backbone.
        roles: ``draft``, ``sufficient`` and ``subquery`` are asked.
        rules: limits.
        writer: writes the evidence that is judged.
        search: retrieves by a query.
        rank: asked where the rules say that what is ``shown`` is judged.
    """

    llm: LanguageModel
    roles: MemFlyRoles
    rules: RefinementRules
    writer: EvidenceWriter
    search: Search
    rank: Rank

    async def refine(self, question: str, *, off: bool) -> Refined:
        """Retrieve by the question, then by what is missing, until the evidence suffices or the rounds are used up."""
        state = Refined([await self.search(question)], "off" if off else "max_rounds")
        if off:
            return state
        for number in range(self.rules.max_rounds):
            stop, query = await self._check(question, state, number)
            if stop is not None:
                state.stop = stop
                break
            state.rounds.append(await self.search(query))
        return state

    async def _check(self, question: str, state: Refined, number: int) -> tuple[Stop | None, str]:
        """Judge the evidence; returns why to stop, or the next query."""
        key = f"{question_key(question)}:{number}"
        evidence = (await self.writer.write(await self._judged(state))).text
        seen = {"question": question, "evidence": evidence}
        draft = (await self.llm.ask(self.roles.draft, seen, key=key)).text
        state.drafts.append(" ".join(draft.split()))
        values = {**seen, "answer": state.drafts[-1] or TEXTS("no_answer")}
        reply = await self.llm.ask(self.roles.sufficient, values, key=key)
        if reply.value is None:
            return "malformed", ""
        if reply.value["sufficient"]:
            return "sufficient", ""
        if self.rules.conf_stop is not None and reply.value["confidence"] >= self.rules.conf_stop:
            return "confident", ""
        missing = " ".join(reply.value["missing_info"].split()) or TEXTS("not_said")
        values = {**seen, "history": _history(state), "missing_info": missing}
        query = read_subquery((await self.llm.ask(self.roles.subquery, values, key=key)).text)
        if query is None:
            return "no_subquery", ""
        known = {each.query.casefold() for each in state.rounds}
        return ("repeated_subquery", "") if query.casefold() in known else (None, query)

    async def _judged(self, state: Refined) -> list[int]:
        if self.rules.judged == "union":
            return state.union
        return [position for position, _ in await self.rank(state)]


def read_subquery(text: str) -> str | None:
    """Read a reply of ``subquery``: its first line with words; ``None`` where it asks for nothing."""
    for line in text.splitlines():
        query = _LABEL.sub("", " ".join(line.split()).strip("\"'` ")).strip("\"'` ")
        if query:
            return None if query.rstrip(".!").casefold() in _NOTHING else query
    return None


def _history(state: Refined) -> str:
    """Write each retrieval's query with the answer drafted on what it brought."""
    pairs = zip(state.rounds, state.drafts, strict=True)
    return "\n".join(TEXTS("asked", question=each.query, answer=draft or TEXTS("no_answer")) for each, draft in pairs)
