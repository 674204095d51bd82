"""Replies of MemGPT's calls: the agent's thoughts and calls of functions, and summaries of what leaves its queue."""

import json
from collections.abc import Callable, Mapping

from eval.parity.fake_replies import Draw
from memsys.vocabulary import Json

#: Pages as models write them; the last are none.
_PAGES: tuple[Json, ...] = (0, 0, 0, 1, "1", None, "none", 1.0, -1, "first", [0])
#: Days of LoCoMo, and what is not a day.
_DAYS = ("2022-01-01", "2023-01-20", "2023-05-08", "2023-07-01", "2023-12-31", "2024-03-01")
_NO_DAYS = ("8 May 2023", "2023-13-01", "", 2023)
#: Shorter words are in the events and warnings of either side, which are worded differently, and so do these.
_SHORTEST = 7
_OF_EVENTS = frozenset(
    ("activated", "automated", "bootup", "calling", "complete", "constraints", "control", "conversation", "following",
     "function", "functionality", "general", "heartbeat", "history", "immediately", "important", "information",
     "maximum", "memories", "message", "messages", "messaging", "moments", "persona", "previous", "reaching",
     "remember", "request", "returning", "sequence", "summary", "testing", "trimmed", "waiting", "warning", "earlier",
     "searched", "another", "archival")
)  # fmt: skip


def _sought(draw: Draw) -> str:
    """Return a search term: a visible mark, or a longer word."""
    if draw.facts.marks and draw.chance(2):
        return draw.random.choice(draw.facts.marks)
    words = [word for word in draw.words if len(word) >= _SHORTEST and word not in _OF_EVENTS]
    return draw.random.choice(words).capitalize() if words else draw.mark()


def _page(draw: Draw) -> dict[str, Json]:
    return {} if draw.chance(4) else {"page": draw.random.choice(_PAGES)}


def _day(draw: Draw) -> Json:
    return draw.random.choice(_NO_DAYS if draw.chance(10) else _DAYS)


def _send(draw: Draw) -> dict[str, Json]:
    return {"message": draw.text(draw.random.randint(1, 6))}


def _block(draw: Draw) -> str:
    return "notes" if draw.chance(12) else draw.random.choice(("persona", "human", "human"))


def _append(draw: Draw) -> dict[str, Json]:
    content: Json = 7 if draw.chance(20) else draw.text(draw.random.randint(2, 8))
    return {"name": _block(draw), "content": content}


def _replace(draw: Draw) -> dict[str, Json]:
    """Return a replacement of a visible mark, in core memory or elsewhere."""
    old = draw.random.choice(draw.facts.marks) if draw.facts.marks and not draw.chance(6) else draw.mark()
    return {"name": _block(draw), "old_content": old, "new_content": "" if draw.chance(4) else draw.text(2)}


def _search(draw: Draw) -> dict[str, Json]:
    return {"query": 7 if draw.chance(20) else _sought(draw), **_page(draw)}


def _days(draw: Draw) -> dict[str, Json]:
    return {"start_date": _day(draw), "end_date": _day(draw), **_page(draw)}


def _note(draw: Draw) -> dict[str, Json]:
    return {"content": draw.text(draw.random.randint(3, 9))}


def _notes(draw: Draw) -> dict[str, Json]:
    """Return a query in new words, or one of a few that repeat: the release caches what a query found."""
    query = draw.random.choice(draw.topics.tags[:3]) if draw.chance(2) else " ".join(draw.some(3))
    return {"query": query, **_page(draw)}


_FUNCTIONS: Mapping[str, Callable[[Draw], dict[str, Json]]] = {
    "send_message": _send,
    "core_memory_append": _append,
    "core_memory_replace": _replace,
    "conversation_search": _search,
    "conversation_search_date": _days,
    "archival_memory_insert": _note,
    "archival_memory_search": _notes,
}
#: What stands for a wish for another step, and is none.
_NO_HEARTBEATS: tuple[Json, ...] = (False, False, "true", None, 1)


def _step(draw: Draw) -> str:
    """Return a call, most of which request another step; now and then a thought, or an invalid call."""
    if draw.chance(14):
        return draw.text(draw.random.randint(2, 6))
    name = "send_message" if draw.chance(3) else draw.random.choice(sorted(_FUNCTIONS))
    args = _FUNCTIONS[name](draw)
    if draw.chance(20):
        del args[draw.random.choice(sorted(args))]
    if draw.chance(30):
        name = draw.topics.unknown_action
    again = draw.chance(10) if name == "send_message" else not draw.chance(8)
    if again:
        args["request_heartbeat"] = True
    elif draw.chance(2):
        args["request_heartbeat"] = draw.random.choice(_NO_HEARTBEATS)
    return json.dumps({"thought": draw.text(3), "function": name, "args": args}, ensure_ascii=False)


def _sum_up(draw: Draw) -> str:
    return draw.text(draw.random.randint(6, 12))


#: What a role says, by the name that ``phrases`` of ``released/`` uses.
AGENT_ROLES: Mapping[str, Callable[[Draw], str]] = {"step": _step, "sum_up": _sum_up}
