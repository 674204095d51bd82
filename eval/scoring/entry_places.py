"""Places of entries in the snapshots of a memory system: ``entries.yaml`` next to the system's code.

An entry is what the memory's search can return, or what its context is made of: a note, a fact, an episode, a page.
The file names each kind of entry with the keys that lead to it in the system's state (``*``: every element of a list
or mapping) and the fields that hold its text, the main one first. Fields that are one text only together (the two ends
of a relation and what joins them) are in a list of their own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from eval.config.presets import read_settings
from memsys.deviations import system_of
from memsys.errors import ConfigError

FILE = "entries.yaml"
#: Key of the file: where the state of another memory lies, whose entries these are (a gate keeps its host's).
_WITHIN = "within"
_KEYS = frozenset({"at", "text", "origin"})

KeyPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EntryPlace:
    """One kind of entry.

    Attributes:
        kind: what tables call it.
        at: keys that lead from the state to each entry.
        text: keys that lead from an entry to its texts, the main text first, several where they make one text together;
            none where the entry is a text itself.
        origin: field that names the entry it was made from, by the field of the same name there; empty where the entry
            names its turns itself.
    """

    kind: str
    at: KeyPath
    text: tuple[tuple[KeyPath, ...], ...]
    origin: str = ""


def entry_places(memory: Mapping[str, Any]) -> tuple[EntryPlace, ...] | None:
    """Return the places of a memory's entries.

    Args:
        memory: the resolved memory config of a run; of a gate, ``host`` holds the host's.

    Returns:
        One place for each kind of entry; ``None`` for a system that is not installed or says nothing.

    Raises:
        ConfigError: the system's file is broken.
    """
    try:
        file = system_of(str(memory.get("_target_")), FILE)[1]
    except ConfigError:
        return None
    if not file.is_file():
        return None
    within, own = _read(file)
    host = memory.get("host")
    if not within or not isinstance(host, Mapping):
        return own
    below = entry_places(host)
    return None if below is None else (*own, *(replace(each, at=(within, *each.at)) for each in below))


@cache
def _read(file: Path) -> tuple[str, tuple[EntryPlace, ...]]:
    settings = read_settings(file)
    within = str(settings.pop(_WITHIN, ""))
    return within, tuple(_place(kind, entry, f"{file}: {kind}") for kind, entry in settings.items())


def _place(kind: str, entry: Any, where: str) -> EntryPlace:
    if not isinstance(entry, Mapping) or not {"at"} <= set(entry) <= _KEYS:
        raise ConfigError(f"{where} must hold at, and may hold text and origin, not {entry!r}")
    texts = entry.get("text", [])
    if not isinstance(entry["at"], str) or not isinstance(texts, list):
        raise ConfigError(f"{where}: at must be keys joined by points, and text a list of such; {entry!r} is not")
    together = tuple(tuple(_keys(str(key)) for key in (text if isinstance(text, list) else [text])) for text in texts)
    return EntryPlace(kind, _keys(entry["at"]), together, str(entry.get("origin", "")))


def _keys(text: str) -> KeyPath:
    return tuple(text.split("."))


def reach(node: Any, keys: KeyPath) -> Iterator[Any]:
    """Yield what is at the end of some keys; nothing where a key is missing."""
    if not keys:
        yield node
        return
    first, *rest = keys
    if first == "*":
        below = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    else:
        below = [node[first]] if isinstance(node, dict) and first in node else []
    for each in below:
        yield from reach(each, tuple(rest))
