"""Long-term memory: a profile, and facts about either speaker."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from baselines.memoryos.pages import DialoguePage
from baselines.memoryos.roles import TEXTS
from baselines.memoryos.rules import LongTermRules, PromptLayout
from memsys.index.vector import VectorIndex
from memsys.llm.contract import Role
from memsys.protocol import Parts

_EDGES = re.compile(r"^\W+|\W+$")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s*")
_NOTHING = {"", "none", "none.", "n/a"}
#: Of replies that are taken as they are written, these are no facts.
_WRITTEN_NOTHING = {"", "- None", "- None."}
#: What a reply without a second part says of the user where it is taken as it is written: a fact like others.
_WRITTEN_NONE = "None"


@dataclass(frozen=True, slots=True)
class SpeakerFact:
    """A fact about a speaker.

    Attributes:
        fact_id: unique within the conversation.
        text: one line.
        date: of the last page it was found in.
        turn_ids: of all pages it was found in.
    """

    fact_id: str
    text: str
    date: str
    turn_ids: tuple[str, ...]

    def state(self) -> dict[str, Any]:
        """Return the fact as JSON values."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "turn_ids": list(self.turn_ids)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "SpeakerFact":
        """Make the fact that :meth:`state` described."""
        return cls(**{**state, "turn_ids": tuple(state["turn_ids"])})


class FactQueue:
    """The latest facts about a speaker, with their vectors."""

    def __init__(self, dimension: int, name: str, capacity: int | None) -> None:
        self._name, self._capacity = name, capacity
        self.index = VectorIndex(dimension)
        self.facts: dict[str, SpeakerFact] = {}
        self._made = 0

    async def add(self, parts: Parts, texts: Sequence[str], pages: Sequence[DialoguePage]) -> None:
        """Append facts found in these pages; the oldest beyond the capacity go."""
        turn_ids = tuple(dict.fromkeys(turn for page in pages for turn in page.turn_ids))
        made = [
            SpeakerFact(f"{self._name}_{number}", text, pages[-1].date, turn_ids)
            for number, text in enumerate(texts, start=self._made)
        ]
        self._made += len(made)
        self.index.add([fact.fact_id for fact in made], await parts.embedder.embed(list(texts)))
        self.facts.update({fact.fact_id: fact for fact in made})
        gone = list(self.facts)[: max(len(self.facts) - (self._capacity or len(self.facts)), 0)]
        self.index.remove(gone)
        for fact_id in gone:
            del self.facts[fact_id]

    def state(self) -> dict[str, Any]:
        """Return facts and vectors."""
        facts = [fact.state() for fact in self.facts.values()]
        return {"facts": facts, "index": self.index.state(), "made": self._made}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.facts = {each["fact_id"]: SpeakerFact.from_state(each) for each in state["facts"]}
        self.index.load_state(state["index"])
        self._made = state["made"]


class LongTermMemory:
    """Profile and facts, which grow when a segment is hot.

    Args:
        parts: backbone and embedder.
        roles: by name.
        rules: how much is kept.
        layout: pages in the prompts, headings in the replies.
    """

    def __init__(self, parts: Parts, roles: Mapping[str, Role], rules: LongTermRules, layout: PromptLayout) -> None:
        self._parts, self._roles, self._rules, self._layout = parts, roles, rules, layout
        self.profile = ""
        self.user_facts = FactQueue(parts.embedder.dimension, "user_fact", rules.capacity)
        self.agent_facts = FactQueue(parts.embedder.dimension, "agent_fact", rules.capacity)
        self.counts: Counter[str] = Counter()

    async def read(self, pages: Sequence[DialoguePage], user: str, agent: str, key: str) -> None:
        """Learn from pages: two calls at once, and a third where there is a profile already."""
        layout = self._layout
        profile_values = {"pages": _shown(pages, layout.page, layout.between), "user": user}
        agent_values = {"pages": _shown(pages, layout.agent_page, layout.between), "agent": agent or TEXTS("other")}
        described, told = await asyncio.gather(
            self._parts.llm.ask(self._roles["profile"], profile_values, key=key),
            self._parts.llm.ask(self._roles["agent_facts"], agent_values, key=key),
        )
        written = self._rules.reading == "as_written"
        profile, facts = (profile_as_written if written else read_profile)(described.text, self._layout)
        self.counts["fallback.profile"] += facts is None
        self.profile = await self._merged(profile, user, key)
        if written:
            said = self._unmarked(told.text)
            agent_facts = written_facts([said] if said != _WRITTEN_NONE else [])
            facts = written_facts([_WRITTEN_NONE] if facts is None else facts)
        else:
            agent_facts = fact_lines(_without_heading(told.text, self._layout.agent_facts))
        await self.user_facts.add(self._parts, facts or [], pages)
        await self.agent_facts.add(self._parts, agent_facts, pages)
        self.counts["promotions"] += 1

    def _unmarked(self, text: str) -> str:
        mark = self._layout.agent_facts
        return (text.replace(mark, "") if mark else text).strip()

    async def _merged(self, profile: str, user: str, key: str) -> str:
        written = self._rules.reading == "as_written"
        if not self.profile or not (profile or written):
            return profile or self.profile
        values = {"old": self.profile, "new": profile, "user": user}
        text = (await self._parts.llm.ask(self._roles["merge_profile"], values, key=key)).text.strip()
        if written:
            return text
        usable = text.lower() not in _NOTHING and len(text) >= self._rules.shortest_profile
        self.counts["fallback.merge_profile"] += not usable
        return text if usable else self.profile

    def state(self) -> dict[str, Any]:
        """Return profile and facts."""
        return {"profile": self.profile, "user": self.user_facts.state(), "agent": self.agent_facts.state()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.profile = state["profile"]
        self.user_facts.load_state(state["user"])
        self.agent_facts.load_state(state["agent"])


def _shown(pages: Sequence[DialoguePage], template: str, between: str) -> str:
    return between.join(
        template.format(user=page.user, agent=page.agent, date=page.date, dated=page.dated) for page in pages
    )


def read_profile(text: str, layout: PromptLayout) -> tuple[str, list[str] | None]:
    """Split a reply at the mark of its second part; without the mark all of it is profile, and facts are ``None``."""
    profile, *rest = re.split(_heading("^", layout.facts), text.strip(), maxsplit=1)
    return _without_heading(profile, layout.profile).strip(), fact_lines(rest[0]) if rest else None


def _heading(start: str, mark: str) -> re.Pattern[str]:
    """Return a heading at the start of a line or a text, whatever signs or number (``Part 2:``) precede its words."""
    words = re.escape(_EDGES.sub("", mark))
    return re.compile(rf"{start}\W*(?:(?:part\W+)?\d+\W+)?{words}\b\W*", re.MULTILINE | re.IGNORECASE)


def _without_heading(text: str, mark: str) -> str:
    return _heading(r"\A", mark).sub("", text) if mark else text


def profile_as_written(text: str, layout: PromptLayout) -> tuple[str, list[str] | None]:
    """Split a reply at the mark of its second part, to the letter; its lines are the facts, without white space.

    Source: BAI-LAB/MemoryOS 1d71706, ``eval/utils.py`` and ``eval/main_loco_parse.py``.
    """
    profile, found, facts = text.partition(layout.facts)
    lines = [line.strip() for line in facts.strip().split("\n")] if found else None
    return profile.replace(layout.profile, "").strip(), lines


def written_facts(lines: Sequence[str]) -> list[str]:
    """Return the lines that count as facts where replies are taken as they are written."""
    return [line for line in lines if line not in _WRITTEN_NOTHING]


def fact_lines(text: str) -> list[str]:
    """Read one fact per line; headings, and lines that say there is none, are left out."""
    lines = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line.lower() not in _NOTHING and not line.endswith(":")]
