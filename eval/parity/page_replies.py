"""Replies of MemoryOS's calls: about pages, chains and segments, and about who speaks."""

import json
from collections.abc import Callable, Mapping

from eval.parity.fake_replies import Draw
from memsys.vocabulary import Json

#: Headings of the two parts of a profile, as the authors' prompt asks for them, and as ours does.
_PARTS = (("【User Profile】", "【User Data】"), ("PROFILE:", "FACTS:"))
#: Heading of the facts about the other speaker, where the prompt asks for one.
_AGENT = "【Assistant Knowledge】"


def _continues(draw: Draw) -> str:
    """Return the word true or false; now and then with a full stop, in capitals, in a sentence, or something else."""
    if draw.chance(3):
        return draw.random.choice((" True\n", "true.", "TRUE", "It is true that they do", "True, they do.", ""))
    return draw.random.choice(("true", "false"))


def _chain(draw: Draw) -> str:
    return "" if draw.chance(12) else f" {draw.text(draw.random.randint(3, 8))}. "


def _topic(draw: Draw) -> dict[str, Json]:
    """Return a topic, some of which are nearly alike; now and then a blank one, or one without keywords."""
    often = f"Often {draw.random.choice(draw.topics.tags[:4])} with the family on Sundays"
    content = f"{often} {draw.mark()}" if draw.chance(2) else draw.text(8)
    if draw.chance(15):
        content = draw.random.choice(("", f" {content} "))
    topic: dict[str, Json] = {"theme": draw.text(2), "keywords": list(draw.tags()), "content": content}
    if draw.chance(15):
        del topic[draw.random.choice(("theme", "keywords"))]
    return topic


def _topics(draw: Draw) -> str:
    """Return a list of two topics at most; now and then of none, or no list."""
    if draw.chance(12):
        return draw.random.choice(("[]", "They talk about many things", '[{"theme": "t", "content": "cut'))
    return json.dumps([_topic(draw) for _ in range(draw.random.choice((1, 1, 2)))], ensure_ascii=False)


def _facts(draw: Draw) -> str:
    """Return facts, one a line; now and then none, phrased as models do."""
    if draw.chance(6):
        return draw.random.choice(("None", "None.", "- None", "- None.", "", "- None\n- None."))
    lines = [f"- {draw.text(5)}" for _ in range(draw.random.randint(1, 3))]
    return draw.random.choice(("\n", "\n\n", "\n  ")).join(lines)


def _persona(draw: Draw) -> str:
    """Return profile and facts below the requested headings; now and then without the second part."""
    first, second = next(marks for marks in (*_PARTS, _PARTS[-1]) if marks[1] in draw.prompt or marks == _PARTS[-1])
    profile = "" if draw.chance(10) else f"1. Traits\n   - {draw.text(6)}\n"
    facts = "" if draw.chance(8) else f"{second}\n{_facts(draw)}\n"
    return f"{first}\n{profile}\n{facts}"


def _agent_facts(draw: Draw) -> str:
    facts = _facts(draw)
    return f"{_AGENT}\n{facts}" if draw.chance(2) and _AGENT in draw.prompt else facts


def _merge_profile(draw: Draw) -> str:
    return draw.random.choice(("", "None", "n/a")) if draw.chance(10) else f"1. Traits\n   - {draw.text(8)}"


def _topic_keywords(draw: Draw) -> str:
    """Return the keywords with commas, more than three now and then, or none."""
    if draw.chance(12):
        return draw.random.choice(("", " , ", ","))
    return ", ".join(draw.random.sample(list(draw.topics.tags), draw.random.randint(1, 4)))


#: What a role says, by the name that ``phrases`` of ``released/`` uses.
PAGE_ROLES: Mapping[str, Callable[[Draw], str]] = {
    "continues": _continues,
    "chain": _chain,
    "topics": _topics,
    "persona": _persona,
    "agent_facts": _agent_facts,
    "merge_profile": _merge_profile,
    "topic_keywords": _topic_keywords,
}
