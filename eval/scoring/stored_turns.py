"""Turns that the memories of a run still come from, and the texts made of them, read from their snapshots."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from eval.runs.memories import Memories
from eval.scoring.storage import StoredEntry, run_places, stored_entries


class StoredTurns:
    """Reads the snapshots of a run when the first question asks for them.

    Args:
        run_dir: the run's directory.
    """

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self._entries: dict[str, Sequence[StoredEntry] | None] = {}
        self._texts: dict[str, dict[str, list[str]]] = {}
        self._turns: dict[str, frozenset[str] | None] = {}

    @cached_property
    def _memories(self) -> Memories:
        return Memories(self._run_dir)

    @cached_property
    def _says_entries(self) -> bool:
        return run_places(self._run_dir) is not None

    def of(self, conversation_id: str) -> frozenset[str] | None:
        """Return the ids of the turns that entries of a conversation's memory name.

        ``None`` where there is no snapshot, or where the system does not say where its entries are: the turns that its
        snapshot names may be what was written, of which nothing need be kept.
        """
        if conversation_id not in self._turns:
            known = self._says_entries and self._memories.known(conversation_id)
            self._turns[conversation_id] = self._memories.turns(conversation_id) if known else None
        return self._turns[conversation_id]

    def texts(self, conversation_id: str, turns: Iterable[str]) -> list[str] | None:
        """Return all that the entries say that came from some turns; ``None`` where :meth:`of` knows nothing."""
        if self.entries(conversation_id) is None:
            return None
        known = self._texts[conversation_id]
        return list(dict.fromkeys(text for turn in turns for text in known.get(turn, ())))

    def entries(self, conversation_id: str) -> Sequence[StoredEntry] | None:
        """Return the entries of a conversation's memory; ``None`` where :meth:`of` knows nothing."""
        if conversation_id not in self._entries:
            found = stored_entries(self._run_dir, conversation_id)
            self._entries[conversation_id] = found
            texts = self._texts.setdefault(conversation_id, {})
            for entry in found or ():
                for turn in entry.turns:
                    texts.setdefault(turn, []).append(entry.said)
        return self._entries[conversation_id]


def stored_share(evidence: Iterable[str], stored: frozenset[str] | None, shown: Iterable[str]) -> float | None:
    """Return the share of a question's gold turns that some entry of the memory came from.

    Args:
        evidence: gold turn ids; repetitions count once.
        stored: turns that the entries name; ``None`` where that is not known.
        shown: turns that the retrieved memories name: what is retrieved is stored, wherever the snapshot keeps it.

    Returns:
        ``None`` where there is no gold, or where it is not known what is stored.
    """
    gold = frozenset(evidence)
    if not gold or stored is None:
        return None
    return len(gold & (stored | frozenset(shown))) / len(gold)
