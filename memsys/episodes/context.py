"""The text that the reader sees of facts and episodes: each after its time, in headed sections."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.episodes.nodes import Episode, Fact, joined
from memsys.llm.contract import LanguageModel

FACTS_HEADING = "Semantic memories:"
EPISODES_HEADING = "Episodic memories:"
NOTHING = "(none)"

#: A heading and its entries.
Section = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class Context:
    """The text, and how many facts and episodes the token limit left out."""

    text: str
    dropped: int


def fact_line(fact: Fact) -> str:
    """Write a fact."""
    return _dated(fact.time, fact.text)


def episode_entry(episode: Episode, *, raw: bool, titled: bool = False) -> str:
    """Write an episode, after its title where ``titled``, followed by its messages where ``raw``."""
    head = _dated(episode.time, episode.headline if titled else episode.content)
    return f"{head}\n{joined(episode.messages, dated=False)}" if raw else head


def _dated(time: str, text: str) -> str:
    return f"- [{time}] {text}" if time else f"- {text}"


async def write_sections(
    llm: LanguageModel, facts: list[str], episodes: list[str], *, episodes_first: bool, max_tokens: int | None
) -> Context:
    """Write both sections; nothing at all where there is no entry. Counts tokens only where a limit is set.

    Args:
        llm: counts tokens.
        facts: entries, best first.
        episodes: entries, best first.
        episodes_first: episodes stand before facts.
        max_tokens: what does not fit is left out from there on; ``None`` for no limit.
    """
    if not facts and not episodes:
        return Context("", 0)
    sections: list[Section] = [(FACTS_HEADING, facts), (EPISODES_HEADING, episodes)]
    if episodes_first:
        sections.reverse()
    if max_tokens is not None:
        sections = await _within(llm, sections, max_tokens)
    dropped = len(facts) + len(episodes) - sum(len(entries) for _, entries in sections)
    return Context("\n\n".join("\n".join([heading, *(entries or [NOTHING])]) for heading, entries in sections), dropped)


async def _within(llm: LanguageModel, sections: Sequence[Section], limit: int) -> list[Section]:
    """Keep entries, in the order shown, up to the first that does not fit."""
    kept: list[Section] = []
    room = limit
    for heading, entries in sections:
        fitting: list[str] = []
        for entry in entries:
            room -= await llm.count_tokens(entry + "\n") if room >= 0 else 0
            if room < 0:
                break
            fitting.append(entry)
        kept.append((heading, fitting))
    return kept
