"""Notes in the order they were stored. A note's position is the memory index that the evolution prompt shows."""

from collections.abc import Iterator, Mapping
from typing import Any

from memsys.errors import DataError
from memsys.notes.note import Note


class NoteStore:
    """Insertion-ordered notes with their positions; nothing is ever deleted, so positions stay valid."""

    def __init__(self) -> None:
        self._notes: list[Note] = []
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[Note]:
        return iter(self._notes)

    def __contains__(self, note_id: str) -> bool:
        return note_id in self._positions

    def __getitem__(self, note_id: str) -> Note:
        return self._notes[self._positions[note_id]]

    def at(self, position: int) -> Note:
        """Return the note at a position, counted from 0."""
        return self._notes[position]

    def position(self, note_id: str) -> int:
        """Return how many notes were stored before this one."""
        return self._positions[note_id]

    def add(self, note: Note) -> None:
        """Append a note.

        Raises:
            DataError: a note of that id is stored already.
        """
        if note.note_id in self._positions:
            raise DataError(f"unit id {note.note_id!r} occurs twice in one conversation; turn ids must be unique")
        self._positions[note.note_id] = len(self._notes)
        self._notes.append(note)

    def state(self) -> list[dict[str, Any]]:
        """Return all notes as JSON values, in order."""
        return [note.state() for note in self._notes]

    def load_state(self, state: list[Mapping[str, Any]]) -> None:
        """Replace the content by what :meth:`state` returned."""
        self._notes = [Note.from_state(entry) for entry in state]
        self._positions = {note.note_id: position for position, note in enumerate(self._notes)}
