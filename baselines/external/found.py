"""Reading of what a search returned, as :class:`Found`: texts, mappings or objects of many shapes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from baselines.external.store import Found
from memsys.errors import MemoryProtocolError, quoted

#: Key of an added text's metadata that carries the item's key, and of a result's metadata where it comes back.
ITEM_KEY = "memsys_item"

#: Names under which results are listed, a result's text, id, score, and what it was made from; first found is taken.
_LISTS = (
    "results", "hits", "memories", "matches", "documents", "items", "data", "edges", "nodes", "points",
    "entities", "result",
)  # fmt: skip
_TEXTS = (
    "memory", "text", "content", "page_content", "fact", "value", "document", "body", "summary", "matched_chunk",
    "data", "observations", "title", "name",
)  # fmt: skip
_IDS = ("id", "memory_id", "uuid", "id_", "node_id", "doc_id", "key", "uid")
_SCORES = ("score", "similarity", "relevance", "rank_score")
_SOURCES = ("turn_ids", "source_ids", "sources", "episodes", "ref_doc_id", "name", "title", "permalink", ITEM_KEY)
_METADATA = ("metadata", "meta", "payload", "attributes")


def read_found(given: object, where: str = "search()") -> list[Found]:
    """Read search results, best first.

    Args:
        given: a text, a sequence of results, or something that lists them under a usual name. A result is a text, a
            pair of result and score, a mapping, or an object.
        where: what returned it, for messages.

    Raises:
        MemoryProtocolError: it is nothing of that, or a result has no text under any usual name.
    """
    if isinstance(given, str):
        return [Found(given)] if given.strip() else []
    listed = given if isinstance(given, list | tuple) else _first(given, _LISTS)
    if listed is None and not isinstance(given, Mapping) and isinstance(given, Iterable):
        listed = list(given)
    if isinstance(listed, list | tuple):
        return [_result(one, f"{where}, result {number},") for number, one in enumerate(listed, 1)]
    return [_result(given, where)]


def _result(given: Any, where: str) -> Found:
    if isinstance(given, str):
        return Found(given)
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], int | float):
        inner = _result(given[0], where)
        return Found(inner.text, float(given[1]), inner.memory_id, inner.sources)
    inside = _first(given, ("node", "document", "record"))
    wrapped = inside if inside is not None and not isinstance(inside, str) else given
    text = _first(wrapped, _TEXTS)
    if text is None and callable(content := getattr(wrapped, "get_content", None)):
        text = content()
    if isinstance(text, Mapping):
        text = _first(text, _TEXTS)
    if isinstance(text, list | tuple) and all(isinstance(line, str) for line in text):
        text = "\n".join(text)
    if not isinstance(text, str):
        raise MemoryProtocolError(
            f"{where} is {quoted(given)}, which has no text; results are a list, empty where nothing is found, of "
            f"texts or of objects with one of {', '.join(_TEXTS)}"
        )
    score = _first(given, _SCORES)
    memory_id = _first(wrapped, _IDS)
    sources = [
        name for each in (given, wrapped, *_metadata(given), *_metadata(wrapped)) for name in _ids_of(each, _SOURCES)
    ]
    return Found(
        text,
        float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None,
        "" if memory_id is None else str(memory_id),
        tuple(dict.fromkeys(sources)),
    )


def read_ids(given: object) -> list[str]:
    """Read the ids of what was stored from what ``add`` returned; empty where it says nothing."""
    if given is None or isinstance(given, bool):
        return []
    if isinstance(given, str | int):
        return [str(given)]
    episode = _first(given, ("episode",))
    if episode is not None:
        return _ids_of(episode, _IDS)
    listed = given if isinstance(given, list | tuple) else _first(given, (*_LISTS, "ids"))
    if isinstance(listed, list | tuple):
        return [key for one in listed for key in ([str(one)] if isinstance(one, str | int) else _ids_of(one, _IDS))]
    return _ids_of(given, _IDS)


def _metadata(given: object) -> list[Any]:
    found = _first(given, _METADATA)
    return [] if found is None else [found]


def _ids_of(given: object, names: Sequence[str]) -> list[str]:
    """Return the ids under the names that there are, each a text, a number, or a sequence of them."""
    keys: list[str] = []
    for name in names:
        value = _first(given, (name,))
        if isinstance(value, str):
            keys += [value, *value.split()]
        elif isinstance(value, int) and not isinstance(value, bool):
            keys.append(str(value))
        elif isinstance(value, list | tuple):
            keys += [str(each) for each in value if isinstance(each, str | int)]
    return list(dict.fromkeys(keys))


def _first(given: object, names: Iterable[str]) -> Any:
    """Return the first value that there is under some names, of a mapping or of an object that holds data."""
    for name in names:
        value = given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
        if value is not None and not callable(value):
            return value
    return None
