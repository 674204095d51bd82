"""The text that the reader sees: recent pages, pages found, profile and facts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from baselines.limits import count_within, room_for_context
from baselines.memoryos.long_term import SpeakerFact
from baselines.memoryos.pages import DialoguePage
from baselines.memoryos.roles import TEXTS
from baselines.memoryos.rules import MemoryOSContextRules, MemoryOSTexts
from memsys.llm.contract import LanguageModel
from memsys.vocabulary import Hit

_USER = re.compile(r"\b(?:the )?user\b", re.IGNORECASE)
_AGENT = re.compile(r"\bI\b|\b(?:[Tt]he )?[Aa]ssistant\b")


@dataclass(frozen=True, slots=True)
class FoundMemories:
    """Retrieved entries, best first, and what every question sees.

    Attributes:
        recent: pages of the queue, oldest first.
        pages: found, each with the summary of its chain.
        profile: of the user.
        user_facts: about the user.
        agent_facts: about the other speaker.
        user: name.
        agent: name.
    """

    recent: Sequence[DialoguePage]
    pages: Sequence[tuple[DialoguePage, str]]
    profile: str
    user_facts: Sequence[SpeakerFact]
    agent_facts: Sequence[SpeakerFact]
    user: str
    agent: str


class WrittenMemories(NamedTuple):
    """The text, and what it shows.

    Attributes:
        text: what the reader sees.
        left_out: pages, facts and profiles that found no room.
        pages: how many of the pages found are in it.
        others: recent pages and facts that are in it, as it has them.
    """

    text: str
    left_out: int
    pages: int
    others: tuple[Hit, ...]


@dataclass(slots=True)
class _Section:
    heading: str
    blocks: list[str] = field(default_factory=list)


async def write_memories(
    llm: LanguageModel, rules: MemoryOSContextRules, texts: MemoryOSTexts, found: FoundMemories
) -> WrittenMemories:
    """Write all sections that have something in them.

    Raises:
        ConfigError: the backbone's window leaves no room.
    """
    limit = room_for_context(llm, rules.max_tokens, rules.reserve_tokens)
    sections = _sections(texts, found)
    blocks = [f"{section.heading}\n{block}" for section in sections for block in section.blocks]
    left = kept = await count_within(llm, blocks, limit)
    written, shown = [], list[int]()
    for section in sections:
        shown.append(min(max(left, 0), len(section.blocks)))
        left -= len(section.blocks)
        written += ["\n".join([section.heading, *section.blocks[: shown[-1]]])] if shown[-1] else []
    recent, pages, _, user, agent = shown
    others = [page.hit(0.0) for page in found.recent[:recent]]
    others += [_hit(fact, _USER, _user(found)) for fact in found.user_facts[:user]]
    others += [_hit(fact, _AGENT, _agent(found)) for fact in found.agent_facts[:agent]]
    return WrittenMemories("\n\n".join(written), len(blocks) - kept, pages, tuple(others))


def _sections(texts: MemoryOSTexts, found: FoundMemories) -> list[_Section]:
    user, agent = _user(found), _agent(found)
    return [
        _Section(texts.recent, [_page(texts, page, "") for page in found.recent]),
        _Section(texts.found, [_page(texts, page, chain) for page, chain in found.pages]),
        _Section(texts.profile.format(speaker=user), [_USER.sub(lambda _: user, found.profile)][: bool(found.profile)]),
        _Section(texts.facts.format(speaker=user), [_fact(texts, each, _USER, user) for each in found.user_facts]),
        _Section(texts.facts.format(speaker=agent), [_fact(texts, each, _AGENT, agent) for each in found.agent_facts]),
    ]


def _user(found: FoundMemories) -> str:
    return found.user or TEXTS("user")


def _agent(found: FoundMemories) -> str:
    return found.agent or TEXTS("assistant")


def _page(texts: MemoryOSTexts, page: DialoguePage, chain: str) -> str:
    shown = texts.page.format(text=page.text, date=page.date) if page.date else page.text
    return f"{shown}\n{texts.overview.format(overview=chain)}" if chain else shown


def _fact(texts: MemoryOSTexts, fact: SpeakerFact, who: re.Pattern[str], name: str) -> str:
    template = texts.fact if fact.date else texts.undated_fact
    return template.format(fact=_said_of(fact, who, name), date=fact.date)


def _said_of(fact: SpeakerFact, who: re.Pattern[str], name: str) -> str:
    return who.sub(lambda _: name, fact.text)


def _hit(fact: SpeakerFact, who: re.Pattern[str], name: str) -> Hit:
    return Hit(_said_of(fact, who, name), 0.0, fact.turn_ids, fact.fact_id)
