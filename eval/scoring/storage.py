"""Storage of a run's memories, from their snapshots: entries, texts, repetitions, overruled entries.

Numbers alone, no text: they are in ``summary.json`` under ``storage`` and are exported with it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.metrics.updates import is_overruled
from eval.runs.load import load_updates, raw_record
from eval.runs.memories import naming_turns
from eval.runs.records import ConversationRecord, RetrievalRecord
from eval.runs.snapshot import load_texts
from eval.runs.snapshots import snapshot_name
from eval.scoring.entry_places import EntryPlace, entry_places, reach
from eval.scoring.means import mean_if_known
from eval.scoring.shown import shown_memories
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One entry of a memory.

    Attributes:
        kind: what tables call it.
        text: its main text, in the parts that it is stored in.
        characters: of all its texts.
        turns: ids of the turns it came from; empty where it does not say.
        said: all that it holds as text, its date among it, without ids.
    """

    kind: str
    text: tuple[str, ...]
    characters: int
    turns: frozenset[str]
    said: str = ""


@dataclass(slots=True)
class EntryCounts:
    """Counts over the entries of one kind.

    Attributes:
        entries: how many.
        characters: of all their texts.
        duplicates: entries beyond the first of their conversation with the same main text.
        overruled: entries that are overruled, see :func:`eval.metrics.updates.is_overruled`.
        origins: turns that entries came from, counted for each entry.
    """

    entries: int = 0
    characters: int = 0
    duplicates: int = 0
    overruled: int = 0
    origins: int = 0

    def add(self, entries: Sequence[StoredEntry], successors: Mapping[str, str]) -> None:
        """Count the entries of one conversation."""
        self.entries += len(entries)
        self.characters += sum(entry.characters for entry in entries)
        self.duplicates += len(entries) - len({entry.text for entry in entries})
        self.overruled += sum(is_overruled(entry.turns, successors) for entry in entries)
        self.origins += sum(len(entry.turns) for entry in entries)


def read_entries(state: Any, places: Iterable[EntryPlace]) -> list[StoredEntry]:
    """Read the entries of a memory.

    Args:
        state: its state, as :meth:`memsys.protocol.MemorySystem.state` gave it; arrays are not needed.
        places: where the entries are.
    """
    return [entry for place in places for entry in _of_place(state, place)]


def _of_place(state: Any, place: EntryPlace) -> Iterator[StoredEntry]:
    origins = _origins(state, place.origin) if place.origin else {}
    for node in reach(state, place.at):
        main, *others = _texts(node, place) or [[]]
        turns = _turns(node) | origins.get(_name(node, place.origin), frozenset())
        characters = sum(len(text) for texts in (main, *others) for text in texts)
        yield StoredEntry(place.kind, tuple(main), characters, turns, "\n".join(_said(node)))


def _texts(node: Any, place: EntryPlace) -> list[list[str]]:
    """Return the main text and the others, each in the parts that it is stored in."""
    if isinstance(node, str):
        return [[node]]
    return [[part for keys in text for part in reach(node, keys) if isinstance(part, str)] for text in place.text]


def _said(node: Any) -> Iterator[str]:
    """Yield the texts of an entry and of what it holds; ids of turns and of other entries are none."""
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for key, value in node.items():
            if "turn" not in key and not key.endswith(("id", "ids")):
                yield from _said(value)
    elif isinstance(node, list):
        for value in node:
            yield from _said(value)


def _turns(node: Any) -> frozenset[str]:
    return frozenset(turn for turns, _ in naming_turns(node) for turn in turns)


def _name(node: Any, key: str) -> str:
    return str(node.get(key)) if key and isinstance(node, dict) else ""


def _origins(state: Any, key: str) -> dict[str, frozenset[str]]:
    """Return the turns of named mappings by their name under a key."""
    found: dict[str, frozenset[str]] = {}
    for node in _mappings(state):
        if key in node and (turns := _turns(node)):
            found[_name(node, key)] = found.get(_name(node, key), frozenset()) | turns
    return found


def _mappings(node: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(node, dict):
        yield node
    for value in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _mappings(value)


def storage(
    run_dir: Path,
    conversations: Iterable[ConversationRecord],
    retrievals: Collection[RetrievalRecord],
    entries: Callable[[str], Sequence[StoredEntry] | None],
) -> Json:
    """Count what the memories of a run store.

    Args:
        run_dir: directory of the run.
        conversations: all that the run ingested.
        retrievals: all of the run.
        entries: returns those of a conversation's memory, see :func:`stored_entries`.

    Returns:
        ``conversations`` and ``turns`` ingested of which there is a snapshot; ``kinds``, name -> :class:`EntryCounts`,
        null for a system that does not say where its entries are; ``judged``, whether the run says what is overruled
        in every conversation; ``hits`` and ``hits_naming_turns``, retrieved memories and those of them that name their
        turns; ``context_turns``, distinct turns that the memories in a question's context name, mean over the
        questions, null where it is not known of one of them which these are.
        ``None`` where there is no snapshot.

    Raises:
        RunDirectoryError: a snapshot is damaged.
        ConfigError: the system's ``entries.yaml`` is broken.
    """
    written = {record.conversation_id: record.turns for record in conversations}
    states = [name for name in written if _snapshot(run_dir, name).is_file()]
    if not states:
        return None
    places, updates = run_places(run_dir), load_updates(run_dir)
    counts = None if places is None else _counts({name: entries(name) or () for name in states}, places, updates)
    return {
        "conversations": len(states),
        "turns": sum(written[name] for name in states),
        "kinds": None if counts is None else {kind: asdict(found) for kind, found in counts.items()},
        "judged": updates.keys() >= set(states),
        **_hits(retrievals),
    }


def _snapshot(run_dir: Path, conversation_id: str) -> Path:
    return run_dir / "snapshots" / snapshot_name(conversation_id)


def stored_entries(run_dir: Path, conversation_id: str) -> list[StoredEntry] | None:
    """Return the entries of one conversation's memory.

    Returns:
        ``None`` where there is no snapshot, or the system does not say where its entries are.
    """
    places, tree = run_places(run_dir), load_texts(_snapshot(run_dir, conversation_id))
    return None if places is None or tree is None else read_entries(tree.get("memory"), places)


def run_places(run_dir: Path) -> tuple[EntryPlace, ...] | None:
    """Return the places of entries in a run's memories; ``None`` where its system does not declare them."""
    config = raw_record(run_dir).get("config") or {}
    return entry_places(config.get("memory") or {})


def _counts(
    stored: Mapping[str, Sequence[StoredEntry]], places: Sequence[EntryPlace], updates: Mapping[str, Mapping[str, str]]
) -> dict[str, EntryCounts]:
    counts = {place.kind: EntryCounts() for place in places}
    for name, entries in stored.items():
        for kind, found in counts.items():
            found.add([entry for entry in entries if entry.kind == kind], updates.get(name, {}))
    return counts


def _hits(retrievals: Collection[RetrievalRecord]) -> dict[str, Json]:
    hits = [hit for retrieval in retrievals for hit in retrieval.hits]
    shown = [shown_memories(retrieval) for retrieval in retrievals]
    named = [None if found is None else len({turn for hit in found for turn in hit.turn_ids}) for found in shown]
    return {
        "hits": len(hits),
        "hits_naming_turns": sum(bool(hit.turn_ids) for hit in hits),
        "context_turns": mean_if_known(named),
    }
