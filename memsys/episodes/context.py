"""The text that the reader sees of facts and episodes: each after its time, in headed sections."""

from collections.abc import Sequence
from dataclasses import dataclass

from memsys.dates import in_words
from memsys.episodes.nodes import Episode, Fact, joined
from memsys.llm.contract import LanguageModel
from memsys.settings import check_template

#: A heading and its entries.
Section = tuple[str, list[str]]


@dataclass(frozen=True, slots=True)
class ContextTexts:
    """Words of the context around facts and episodes (``memory.context_texts``).

    Attributes:
        facts: heading of the facts.
        episodes: heading of the episodes.
        nothing: text under a heading without an entry.
        entry: an entry of ``{text}``.
        dated_entry: an entry that has a time: ``{time}`` is its time stamp, ``{date}`` the same in words.
    """

    facts: str
    episodes: str
    nothing: str
    entry: str
    dated_entry: str

    def __post_init__(self) -> None:
        for key in ("facts", "episodes", "nothing"):
            check_template(f"memory.context_texts.{key}", getattr(self, key))
        check_template("memory.context_texts.entry", self.entry, "text")
        check_template("memory.context_texts.dated_entry", self.dated_entry, "text", "time", "date")

    def line(self, time: str, text: str) -> str:
        """Write an entry, with its time where it has one."""
        if not time:
            return self.entry.format(text=text)
        return self.dated_entry.format(time=time, date=in_words(time), text=text)


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """The text, and how many facts and episodes the token limit left out.

    ``facts`` and ``episodes`` are how many of each are in it, the first ones of those given.
    """

    text: str
    dropped: int
    facts: int = 0
    episodes: int = 0


def fact_line(fact: Fact, texts: ContextTexts) -> str:
    """Write a fact."""
    return texts.line(fact.time, fact.text)


def episode_entry(episode: Episode, texts: ContextTexts, *, raw: bool, titled: bool = False) -> str:
    """Write an episode, after its title where ``titled``, followed by its messages where ``raw``."""
    head = texts.line(episode.time, episode.headline if titled else episode.content)
    return f"{head}\n{joined(episode.messages, dated=False)}" if raw else head


async def write_sections(
    llm: LanguageModel,
    texts: ContextTexts,
    facts: list[str],
    episodes: list[str],
    *,
    episodes_first: bool,
    max_tokens: int | None,
) -> EpisodeContext:
    """Write both sections; nothing at all where there is no entry. Counts tokens only where a limit is set.

    Args:
        llm: counts tokens.
        texts: headings, and what is under one without an entry.
        facts: entries, best first.
        episodes: entries, best first.
        episodes_first: episodes precede facts.
        max_tokens: what does not fit is left out from there on; ``None`` for no limit.
    """
    if not facts and not episodes:
        return EpisodeContext("", 0)
    sections: list[Section] = [(texts.facts, facts), (texts.episodes, episodes)]
    if episodes_first:
        sections.reverse()
    if max_tokens is not None:
        sections = await _within(llm, sections, max_tokens)
    kept_facts, kept_episodes = (len(entries) for _, entries in sections[:: -1 if episodes_first else 1])
    dropped = len(facts) + len(episodes) - kept_facts - kept_episodes
    written = ("\n".join([heading, *(entries or [texts.nothing])]) for heading, entries in sections)
    return EpisodeContext("\n\n".join(written), dropped, kept_facts, kept_episodes)


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
