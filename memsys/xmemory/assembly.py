"""The text that the reader sees: facts and episodes, each after its time; themes are not shown."""

from collections.abc import Collection, Sequence

from memsys.episodes.context import ContextTexts, EpisodeContext, episode_entry, fact_line, write_sections
from memsys.episodes.nodes import Episode, Fact
from memsys.llm.contract import LanguageModel
from memsys.xmemory.rules import XMemoryContextRules


async def write_context(
    llm: LanguageModel,
    rules: XMemoryContextRules,
    texts: ContextTexts,
    facts: Sequence[Fact],
    episodes: Sequence[Episode],
    raw: Collection[str],
) -> EpisodeContext:
    """Write what was retrieved. Calls the backbone's tokenizer only where a limit is set.

    Args:
        llm: counts tokens.
        rules: order and limit.
        texts: words around the entries.
        facts: in the order they were chosen.
        episodes: in the order they were admitted.
        raw: ids of episodes that bring their messages.
    """
    entries = [episode_entry(episode, texts, raw=episode.episode_id in raw) for episode in episodes]
    lines = [fact_line(fact, texts) for fact in facts]
    return await write_sections(
        llm, texts, lines, entries, episodes_first=rules.episodes_first, max_tokens=rules.max_tokens
    )
