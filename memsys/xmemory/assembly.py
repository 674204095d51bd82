"""The text that the reader sees: facts and episodes, each after its time; themes are not shown."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memsys.llm.contract import LanguageModel
from memsys.xmemory.nodes import Episode, Fact, joined
from memsys.xmemory.rules import ContextRules

FACTS_HEADING = "Semantic memories:"
EPISODES_HEADING = "Episodic memories:"
NOTHING = "(none)"


@dataclass(frozen=True, slots=True)
class Context:
    """The text, and how many facts and episodes the token limit left out."""

    text: str
    dropped: int


def fact_line(fact: Fact) -> str:
    """Write a fact."""
    return f"- [{fact.time}] {fact.text}" if fact.time else f"- {fact.text}"


def episode_entry(episode: Episode, *, raw: bool) -> str:
    """Write an episode, followed by its messages where ``raw``."""
    head = f"- [{episode.time}] {episode.content}" if episode.time else f"- {episode.content}"
    return f"{head}\n{joined(episode.messages, dated=False)}" if raw else head


async def write_context(
    llm: LanguageModel, rules: ContextRules, facts: Sequence[Fact], episodes: Sequence[Episode], raw: Collection[str]
) -> Context:
    """Write what was retrieved. Calls the backbone's tokenizer only where a limit is set.

    Args:
        llm: counts tokens.
        rules: order and limit.
        facts: in the order they were chosen.
        episodes: in the order they were admitted.
        raw: ids of episodes that bring their messages.
    """
    if not facts and not episodes:
        return Context("", 0)
    sections = [
        (FACTS_HEADING, [fact_line(fact) for fact in facts]),
        (EPISODES_HEADING, [episode_entry(episode, raw=episode.episode_id in raw) for episode in episodes]),
    ]
    if rules.episodes_first:
        sections.reverse()
    wanted = [len(entries) for _, entries in sections]
    if rules.max_tokens is not None:
        sections = await _within(llm, sections, rules.max_tokens)
    dropped = sum(wanted) - sum(len(entries) for _, entries in sections)
    return Context("\n\n".join("\n".join([heading, *(entries or [NOTHING])]) for heading, entries in sections), dropped)


async def _within(
    llm: LanguageModel, sections: Sequence[tuple[str, list[str]]], limit: int
) -> list[tuple[str, list[str]]]:
    """Keep entries, in the order shown, up to the first that does not fit."""
    kept: list[tuple[str, list[str]]] = []
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
