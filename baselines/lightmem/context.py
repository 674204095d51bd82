"""The text that the reader sees: facts with their dates."""

from collections.abc import Sequence

from baselines.lightmem.entries import DatedFact, weekday
from baselines.lightmem.rules import LightMemContextRules, LightMemTexts
from baselines.limits import count_within, room_for_context
from memsys.llm.contract import LanguageModel


async def write_facts(
    llm: LanguageModel, rules: LightMemContextRules, texts: LightMemTexts, found: Sequence[DatedFact]
) -> tuple[str, int]:
    """Write facts, best first, in one section or in one for each speaker.

    Returns:
        The text, and how many facts the limit left out.

    Raises:
        ConfigError: the backbone's window leaves no room.
    """
    limit = room_for_context(llm, rules.max_tokens, rules.reserve_tokens)
    entries = [_entry(texts, fact) for fact in found]
    kept = await count_within(llm, [texts.facts, *entries], limit) - 1 if entries else 0
    shown = list(zip(found, entries, strict=True))[: max(kept, 0)]
    if not shown:
        return "", len(found)
    return "\n\n".join(_sections(rules, texts, shown)), len(found) - len(shown)


def _sections(rules: LightMemContextRules, texts: LightMemTexts, shown: Sequence[tuple[DatedFact, str]]) -> list[str]:
    if rules.layout == "speakers":
        speakers = dict.fromkeys(fact.speaker for fact, _ in shown)
        return [
            "\n".join([texts.speaker.format(speaker=name), *(entry for fact, entry in shown if fact.speaker == name)])
            for name in speakers
        ]
    empty = [f"{texts.episodes}\n{texts.nothing}"] if texts.episodes else []
    return ["\n".join([texts.facts, *(entry for _, entry in shown)]), *empty]


def _entry(texts: LightMemTexts, fact: DatedFact) -> str:
    day = weekday(fact.date)
    if not fact.date:
        return texts.entry.format(fact=fact.text)
    return texts.dated_entry.format(fact=fact.text, date=fact.date, weekday=day)
