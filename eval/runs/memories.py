"""Entries of a memory that name a turn, as text, from the run's snapshots."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from eval.runs.snapshot import load_texts

#: Entries shown of one turn, and characters of one entry; what is left out is counted.
SHOWN, LONGEST = 4, 1200
_DATE = re.compile(r"^(\d{1,2}:\d{2} [ap]m) on (\d{1,2} \w+,? \d{4})$")
_TURN = re.compile(r"^[A-Za-z]+\d+:\d+$")


class Memories:
    """The memories of one run by turn.

    Args:
        folder: the run directory; without snapshots nothing is known.
    """

    def __init__(self, folder: Path) -> None:
        self._entries: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
        for path in sorted((folder / "snapshots").glob("*.npz")):
            found: dict[str, list[Mapping[str, Any]]] = {}
            tree = load_texts(path) or {}
            for turns, entry in naming_turns(tree):
                for turn in turns:
                    found.setdefault(turn, []).append(entry)
            # The name of the file is the id with its capitals and signs encoded; earlier versions wrote no id.
            self._entries[tree.get("conversation_id") or path.stem] = found

    def of(self, conversation: str, turn: str) -> tuple[list[str], int]:
        """Return the entries that name a turn, as text, and how many more there are."""
        found = self._entries.get(conversation, {}).get(turn, [])
        return [entry_text(entry) for entry in found[:SHOWN]], max(0, len(found) - SHOWN)

    def turns(self, conversation: str) -> frozenset[str]:
        """Return every turn that an entry names."""
        return frozenset(self._entries.get(conversation, {}))

    def known(self, conversation: str) -> bool:
        """Return whether there is a snapshot of a conversation."""
        return conversation in self._entries

    def dates(self, conversation: str) -> dict[str, datetime | None]:
        """Return every turn that an entry names, with its date where the entry has one."""
        found: dict[str, datetime | None] = {}
        for turn, entries in self._entries.get(conversation, {}).items():
            if _TURN.match(turn):
                dates = [date for entry in entries for value in entry.values() if (date := parse_date(value))]
                found[turn] = min(dates, default=None)
        return found


def parse_date(value: object) -> datetime | None:
    """Parse a session's date in LoCoMo's form (``1:56 pm on 8 May, 2023``) or ISO 8601; ``None`` for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    written = _DATE.match(value.strip())
    try:
        if written:
            text = f"{written[1]} {written[2].replace(',', '')}"
            return datetime.strptime(text, "%I:%M %p %d %B %Y")  # noqa: DTZ007 - LoCoMo's dates have no zone
        return datetime.fromisoformat(value).replace(tzinfo=None) if re.match(r"^\d{4}-\d\d-\d\d", value) else None
    except ValueError:
        return None


def naming_turns(node: Any) -> Iterator[tuple[list[str], Mapping[str, Any]]]:
    """Yield mappings that hold ids of turns themselves, not in a mapping below, with these ids."""
    if isinstance(node, dict):
        if turns := _turns(node):
            yield turns, node
        for value in node.values():
            yield from naming_turns(value)
    elif isinstance(node, list):
        for value in node:
            yield from naming_turns(value)


def _turns(entry: Mapping[str, Any]) -> list[str]:
    found = []
    for key, value in entry.items():
        if "turn" in key:
            values = value if isinstance(value, list) else [value]
            found += [one for one in values if isinstance(one, str)]
    return list(dict.fromkeys(found))


def entry_text(entry: Mapping[str, Any]) -> str:
    """Return an entry's own fields, one a line, without nested values; long texts are shortened."""
    lines = []
    for key, value in entry.items():
        if isinstance(value, str | int | float | bool):
            lines.append(f"{key}: {value}")
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            lines.append(f"{key}: {' | '.join(value)}")
    text = "\n".join(lines)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"
