"""Replies of LightMem's calls: facts that name the messages they are from, and what becomes of a stored fact."""

import hashlib
import json
from collections.abc import Callable, Mapping

from eval.parity.fake_replies import Draw
from memsys.vocabulary import Json

_ACTIONS = ("update", "update", "delete", "ignore")
#: What no code knows as an action, or takes for one.
_UNKNOWN = ("Delete", "merge", "", None)


def _habit(draw: Draw) -> str:
    """Return a recurring fact; its mark follows from its words, so that repetitions show the same."""
    one, other = (draw.random.choice(draw.topics.tags[:4]) for _ in range(2))
    text = f"Often {one} and {other} with the whole family on Sundays in the summer"
    return f"{text} zq{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _fact(draw: Draw) -> str:
    """Return a fact; some repeat earlier ones, literally or nearly."""
    if not draw.chance(3):
        return draw.text(6)
    return f"{_habit(draw)} {draw.mark()}" if draw.chance(2) else _habit(draw)


def _source(draw: Draw, number: int) -> Json:
    """Return the number of a message, as models write it."""
    if not draw.chance(10):
        return number
    return draw.random.choice((str(number), float(number), f" {number} "))


def _sourced_facts(draw: Draw) -> dict[str, Json] | str:
    """Return up to two facts of each message, now and then in another order, or as a list without its object."""
    items: list[Json] = [
        {"source_id": _source(draw, number), "fact": _fact(draw)}
        for number in draw.facts.messages
        for _ in range(draw.random.choice((0, 1, 1, 2)))
    ]
    if draw.chance(6):
        draw.random.shuffle(items)
    return json.dumps(items) if draw.chance(4) else {"data": items}


def _revise(draw: Draw) -> dict[str, Json]:
    """Return a decision, a new text where one is due, and now and then something that is not a decision."""
    if draw.chance(8):
        return {"action": draw.random.choice(_UNKNOWN), "new_memory": draw.text(4)}
    if draw.chance(20):
        return {"new_memory": draw.text(4)}
    action = draw.random.choice(_ACTIONS)
    return {"action": action, "new_memory": draw.text(6)} if action == "update" else {"action": action}


#: What a role says, by the name that ``phrases`` of ``released/`` uses.
SOURCED_ROLES: Mapping[str, Callable[[Draw], dict[str, Json] | str]] = {
    "revise": _revise,
    "sourced_facts": _sourced_facts,
}
