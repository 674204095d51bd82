"""Replies of A-Mem's staged calls: sections below headings, as its robust release asks for, or one JSON object."""

import json
from collections.abc import Callable, Mapping, Sequence

from eval.parity.fake_replies import Draw
from memsys.vocabulary import Json

_DECISIONS = ("NO_EVOLUTION", "STRENGTHEN", "UPDATE_NEIGHBOR", "STRENGTHEN_AND_UPDATE")
#: Decisions as small models write them besides.
_LOOSE = ("strengthen", "Strengthen and update", "I would UPDATE the neighbours.", "none of them", "")
#: How a heading is written, the usual way first.
_HEADINGS = ("{}:", "{}:", "{}:", "{}:", "  {} :", "**{}:**", "{}")


def _sections(draw: Draw, given: Mapping[str, str]) -> str:
    """Return sections with headings in capitals; now and then one is missing, misspelt or moved."""
    names = [name for name in given if not draw.chance(12)]
    if draw.chance(8):
        draw.random.shuffle(names)
    return "\n".join(f"{draw.random.choice(_HEADINGS).format(_cased(draw, name))} {given[name]}" for name in names)


def _cased(draw: Draw, name: str) -> str:
    return name.capitalize() if draw.chance(10) else name


def _listed(draw: Draw, items: Sequence[str]) -> str:
    """Return a list written with commas, lines, bullets, numbers or quotation marks."""
    shapes = (
        ", ".join(items),
        "\n" + "\n".join(f"- {item}" for item in items),
        "\n" + "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1)),
        ", ".join(f'"{item}"' for item in items),
        "",
    )
    return shapes[0] if draw.chance(2) else draw.random.choice(shapes)


def _sections_or_json(draw: Draw, sections: str, given: Mapping[str, Json]) -> str:
    """Return sections; now and then an object, fenced or bare."""
    if not draw.chance(5):
        return sections
    text = json.dumps(given, ensure_ascii=False)
    return draw.random.choice((text, f"```json\n{text}\n```"))


def _keywords_of(draw: Draw) -> list[str]:
    return [*draw.some(draw.random.randint(1, 4)), draw.mark()]


def _analyse_sections(draw: Draw) -> str:
    keywords, context, tags = _keywords_of(draw), draw.text(6), draw.tags()
    shown = {"KEYWORDS": _listed(draw, keywords), "CONTEXT": context, "TAGS": _listed(draw, tags)}
    shapes: tuple[Mapping[str, Json], ...] = (
        {"keywords": [*keywords], "context": context, "tags": [*tags]},
        {"keywords": ", ".join(keywords), "context": [context, context], "tags": ""},
        {"context": context},
    )
    return _sections_or_json(draw, _sections(draw, shown), draw.random.choice(shapes))


def _decide(draw: Draw) -> str:
    word = draw.random.choice((*_DECISIONS, *_DECISIONS[1:], draw.random.choice(_LOOSE)))
    reason = draw.text(3)
    shapes: tuple[Mapping[str, Json], ...] = (
        {"decision": word, "reason": reason},
        {"should_evolve": True, "actions": ["strengthen", "update_neighbor"]},
        {"should_evolve": not draw.chance(2), "actions": ["strengthen"]},
        {"reason": reason},
    )
    return _sections_or_json(draw, _sections(draw, {"DECISION": word, "REASON": reason}), draw.random.choice(shapes))


def _strengthen(draw: Draw) -> str:
    notes = draw.facts.notes
    links: list[Json] = [*draw.random.sample(notes, draw.random.randint(0, len(notes)))]
    named, tags = [*map(str, links)], draw.tags()
    if draw.chance(8):
        named.append(draw.random.choice(("none", "1.5", "index")))
    shapes: tuple[Mapping[str, Json], ...] = (
        {"connections": links, "tags": [*tags]},
        {"suggested_connections": [*links, "none"], "tags_to_update": [*tags]},
        {"tags": []},
    )
    shown = {"CONNECTIONS": _listed(draw, named), "TAGS": _listed(draw, tags)}
    return _sections_or_json(draw, _sections(draw, shown), draw.random.choice(shapes))


def _update_neighbours(draw: Draw) -> str:
    """Return one block per neighbour, in order; now and then one is missing, or one too many."""
    count = max(len(draw.facts.notes) + draw.random.choice((0, 0, 0, -1, 1)), 0)
    blocks = [(draw.text(5), draw.tags()) for _ in range(count)]
    given: dict[str, Json] = {
        "new_context_neighborhood": [context for context, _ in blocks],
        "new_tags_neighborhood": [[*tags] for _, tags in blocks],
    }
    sections = "\n\n".join(
        f"NEIGHBOR {number}:\n{_sections(draw, {'CONTEXT': context, 'TAGS': _listed(draw, tags)})}"
        for number, (context, tags) in enumerate(blocks)
        if not draw.chance(12)
    )
    return _sections_or_json(draw, sections, given)


def _list_of_keywords(draw: Draw) -> str:
    return _listed(draw, _keywords_of(draw))


def _query(draw: Draw) -> str:
    words = ", ".join(_keywords_of(draw))
    return _sections_or_json(draw, words, {"keywords": words})


def _answer(draw: Draw) -> str:
    text = draw.text(draw.random.randint(1, 4))
    return _sections_or_json(draw, text, {"answer": text})


#: What a role says, by the name that ``phrases`` of ``released/`` uses.
SECTION_ROLES: Mapping[str, Callable[[Draw], str]] = {
    "analyse_sections": _analyse_sections,
    "focus_keywords": _list_of_keywords,
    "decide": _decide,
    "strengthen": _strengthen,
    "update_neighbours": _update_neighbours,
    "query": _query,
    "short_answer": _answer,
}
