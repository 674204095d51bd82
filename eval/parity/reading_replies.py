"""Replies of ReadAgent's calls: where a page ends, its gist, and which pages are read again."""

import re
from collections.abc import Callable, Mapping

from eval.parity.fake_replies import Draw

_LABEL = re.compile(r"^<(\d+)>$", re.MULTILINE)
_PAGE = re.compile(r"^<Page (\d+)>$", re.MULTILINE)
#: Pages that a prompt of the notebook lets a reply name.
_MOST_PAGES = 6


def _paginate(draw: Draw) -> str:
    """Return a label of the passage; now and then the place before the first one, one beyond it, or none."""
    labels = [int(label) for label in _LABEL.findall(draw.prompt)]
    chosen = draw.random.choice((min(labels) - 1, max(labels) + 1000) if draw.chance(3) else labels)
    because = f"Because {draw.text(4)}"
    shapes = (
        f"<{chosen}>",
        f"<{chosen}> {because}",
        f"I see no such place. {because}",
        "<none>",
        f"Break point: {chosen}",
    )
    return draw.random.choice(shapes) if draw.chance(4) else f"Break point: <{chosen}>\n {because}"


def _gist(draw: Draw) -> str:
    text = draw.text(draw.random.randint(4, 12))
    return f" {text}\n" if draw.chance(5) else text


def _lookup(draw: Draw) -> str:
    """Return some pages; now and then one twice, one that does not exist, a word, or none."""
    pages = list(map(str, _PAGE.findall(draw.prompt)))
    named = draw.random.choices(pages, k=draw.random.choice((1, 1, 2, 3, _MOST_PAGES)))
    if draw.chance(5):
        named[0] = draw.random.choice(("99", "one", "-1", "", "2.0"))
    shapes = (
        "I want to look up no page.",
        "[]",
        f"Page {named[0]}",
        f"[{','.join(named)}]",
        f"] [{named[0]}",
        f"[{named[0]}",
    )
    listed = f"I want to look up Page [{', '.join(named)}] to read it again, [not] that."
    return draw.random.choice(shapes) if draw.chance(4) else listed


#: What a role says, by the name that ``phrases`` of ``released/`` uses.
READING_ROLES: Mapping[str, Callable[[Draw], str]] = {"gist": _gist, "lookup": _lookup, "paginate": _paginate}
