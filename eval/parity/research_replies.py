"""Replies of GAM's roles: abstracts of pages, and what its research plans, integrates, checks and asks for next."""

import json
from collections.abc import Callable, Mapping

from eval.parity.fake_replies import Draw
from memsys.vocabulary import Json

#: Tools as small models name them; the last are none.
_TOOLS = ("keyword", "vector", "page_index", "web", "Keyword")
#: One reply in N comes after thinking aloud.
_THINKS = 5


def _said(draw: Draw, fields: Mapping[str, Json]) -> str:
    """Return an object; now and then after reasoning, or in a fence."""
    text = json.dumps(fields, ensure_ascii=False)
    if draw.chance(_THINKS):
        return f"<think>{draw.text(2)} {{</think>\n{text}"
    return f"```json\n{text}\n```" if draw.chance(8) else text


def _abstract(draw: Draw) -> str:
    """Return a paragraph; now and then none, one that other pages share, or one after reasoning."""
    if draw.chance(8):
        return draw.random.choice(("", f"They talk about {draw.topics.tags[0]}."))
    text = draw.text(draw.random.randint(6, 12))
    return f"<think>{draw.text(2)}</think>\n{text}\n" if draw.chance(_THINKS) else text


def _plan(draw: Draw) -> str:
    """Return tools in random order with search terms, about one mark per page."""
    rand, pages = draw.random, len(draw.facts.marks)
    tools = rand.sample(_TOOLS[:3], rand.randint(0, 3)) + ([rand.choice(_TOOLS)] if draw.chance(6) else [])
    numbers: list[Json] = [rand.randint(-1, pages + 1) for _ in range(rand.choice((0, 1, 2, 2, 3, 5, 9, 12)))]
    if numbers and draw.chance(8):
        numbers[0] = rand.choice((str(numbers[0]), f" {numbers[0]} ", True, 2.0, "first", None))
    found: dict[str, Json] = {
        "info_needs": [draw.text(3)],
        "tools": [*tools],
        "keyword_collection": [*draw.some(rand.randint(0, 4)), *(["", " the "] if draw.chance(6) else [])],
        "vector_queries": [draw.text(rand.randint(2, 5)) for _ in range(rand.choice((0, 1, 1, 2, 3)))],
        "page_index": numbers,
    }
    if draw.chance(10):
        del found[rand.choice(sorted(found))]
    return _said(draw, found)


def _integrate(draw: Draw) -> str:
    """Return a text; often none after an earlier one, now and then one in white space, or another type."""
    text = draw.text(draw.random.randint(4, 10))
    contents: tuple[Json, ...] = ("", f" {text}\n", None, 7, [text])
    content = draw.random.choice(contents) if draw.chance(6) else text
    if draw.facts.marks and draw.chance(2):  # of an earlier text, which an empty one erases
        content = ""
    shapes: tuple[Mapping[str, Json], ...] = (
        {"content": content, "sources": ["0", "1"]},
        {"content": content, "sources": [0, None]},
        {"content": content, "sources": "0, 1", "note": "none"},
        {"content": content},
        {"sources": []},
    )
    return _said(draw, shapes[0] if draw.chance(2) else draw.random.choice(shapes))


def _check(draw: Draw) -> str:
    enough: Json = draw.chance(3)
    if draw.chance(6):
        enough = draw.random.choice(("yes", "false", "", 0, 1, None))
    return _said(draw, {"other": enough} if draw.chance(15) else {"enough": enough})


def _requests(draw: Draw) -> str:
    """Return up to seven questions; now and then a blank one, one of another type, or a text for the list."""
    asked: list[Json] = [f"{draw.text(3)}?" for _ in range(draw.random.choice((0, 1, 2, 3, 5, 7)))]
    if draw.chance(8):
        asked.append(draw.random.choice(("", " ", 7, None)))
    return _said(draw, {"new_requests": draw.text(3) if draw.chance(12) else asked})


#: What a role says, by the name that ``phrases`` of ``released/`` uses.
RESEARCH_ROLES: Mapping[str, Callable[[Draw], str]] = {
    "abstract": _abstract,
    "check": _check,
    "integrate": _integrate,
    "plan": _plan,
    "requests": _requests,
}
