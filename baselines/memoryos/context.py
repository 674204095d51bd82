"""The text that the reader sees: recent pages, pages found, profile and facts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from baselines.limits import count_within, room_for_context
from baselines.memoryos.long_term import SpeakerFact
from baselines.memoryos.pages import DialoguePage
from baselines.memoryos.roles import TEXTS
from baselines.memoryos.rules import MemoryOSContextRules, MemoryOSTexts
from memsys.llm.contract import LanguageModel

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


@dataclass(slots=True)
class _Section:
    heading: str
    blocks: list[str] = field(default_factory=list)


async def write_memories(
    llm: LanguageModel, rules: MemoryOSContextRules, texts: MemoryOSTexts, found: FoundMemories
) -> tuple[str, int, int]:
    """Write all sections that have something in them.

    Returns:
        The text, how many pages, facts and profiles the limit left out, and how many of the pages found it shows.

    Raises:
        ConfigError: the backbone's window leaves no room.
    """
    limit = room_for_context(llm, rules.max_tokens, rules.reserve_tokens)
    sections = [section for section in _sections(texts, found) if section.blocks]
    blocks = [f"{section.heading}\n{block}" for section in sections for block in section.blocks]
    left = kept = await count_within(llm, blocks, limit)
    written = []
    for section in sections:
        shown = section.blocks[: max(left, 0)]
        left -= len(section.blocks)
        written += ["\n".join([section.heading, *shown])] if shown else []
    pages = min(max(kept - len(found.recent), 0), len(found.pages))  # they follow the recent ones
    return "\n\n".join(written), len(blocks) - kept, pages


def _sections(texts: MemoryOSTexts, found: FoundMemories) -> list[_Section]:
    user, agent = found.user or TEXTS("user"), found.agent or TEXTS("assistant")
    return [
        _Section(texts.recent, [_page(texts, page, "") for page in found.recent]),
        _Section(texts.found, [_page(texts, page, chain) for page, chain in found.pages]),
        _Section(texts.profile.format(speaker=user), [_USER.sub(lambda _: user, found.profile)][: bool(found.profile)]),
        _Section(texts.facts.format(speaker=user), [_fact(texts, each, _USER, user) for each in found.user_facts]),
        _Section(texts.facts.format(speaker=agent), [_fact(texts, each, _AGENT, agent) for each in found.agent_facts]),
    ]


def _page(texts: MemoryOSTexts, page: DialoguePage, chain: str) -> str:
    shown = texts.page.format(text=page.text, date=page.date) if page.date else page.text
    return f"{shown}\n{texts.overview.format(overview=chain)}" if chain else shown


def _fact(texts: MemoryOSTexts, fact: SpeakerFact, who: re.Pattern[str], name: str) -> str:
    template = texts.fact if fact.date else texts.undated_fact
    return template.format(fact=who.sub(lambda _: name, fact.text), date=fact.date)
