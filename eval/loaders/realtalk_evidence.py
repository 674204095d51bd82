"""REALTALK's evidence strings: ids, several in one string, ranges, and ids of messages that the file merged."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memsys.vocabulary import Turn

#: Session and number of a turn.
Place = tuple[int, int]

_ID = re.compile(r"D\s?:?([0-9]{1,9})[:;]([0-9]{1,9})(?![0-9])")
_RANGE = re.compile(rf"{_ID.pattern}\s?-\s?{_ID.pattern}")


@dataclass(frozen=True, slots=True)
class TurnIds:
    """The turns of a chat by session and number.

    Attributes:
        known: place -> turn id.
        pictures: places of turns with a picture.
        gaps: numbers that a session leaves out before its last turn.
    """

    known: Mapping[Place, str]
    pictures: frozenset[Place]
    gaps: frozenset[Place]

    @classmethod
    def of(cls, turns: Iterable[Turn]) -> "TurnIds":
        """Read the ids of a chat; one that is not written ``D1:2`` cannot be cited."""
        placed = {_place(match): turn for turn in turns if (match := _ID.fullmatch(turn.turn_id))}
        sessions: dict[int, list[int]] = {}
        for session, number in placed:
            sessions.setdefault(session, []).append(number)
        # Between neighbours alone: a number of nine digits would make a list of that length.
        gaps = {
            (session, low + 1)
            for session, numbers in sessions.items()
            for low, high in zip([0, *sorted(numbers)], sorted(numbers), strict=False)
            if high - low == 2
        }
        return cls(
            {place: turn.turn_id for place, turn in placed.items()},
            frozenset(place for place, turn in placed.items() if turn.extra),
            frozenset(gaps),
        )

    def merged_into(self, place: Place) -> str | None:
        """Return the turn that holds a message which the file lacks: the only neighbour with a picture.

        Chat programs send a picture and its text as two messages. The file has them as one, under the text's number.
        """
        if place not in self.gaps:
            return None
        session, number = place
        near = [side for side in ((session, number - 1), (session, number + 1)) if side in self.pictures]
        return self.known[near[0]] if len(near) == 1 else None

    def between(self, first: Place, last: Place) -> list[str]:
        """Return the ids of the turns from one place to another of the same session, both included."""
        return [
            turn_id
            for (session, number), turn_id in self.known.items()
            if session == first[0] == last[0] and first[1] <= number <= last[1]
        ]


def _place(match: re.Match[str]) -> Place:
    return int(match[1]), int(match[2])


def resolve(strings: Sequence[str], ids: TurnIds, quirks: Counter[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Turn a question's evidence strings into turn ids.

    Args:
        strings: as written.
        ids: of the chat's turns.
        quirks: counters to raise.

    Returns:
        The ids of existing turns without repetition, and what names no turn, as written.
    """
    whole = set(ids.known.values())
    resolved: dict[str, None] = {}
    unresolved: list[str] = []
    for string in strings:
        quirks["evidence_strings"] += 1
        if string in whole:
            quirks["evidence_repeated"] += string in resolved
            resolved[string] = None
            continue
        quirks["evidence_strings_irregular"] += 1
        quirks["evidence_strings_empty"] += not string.strip()
        found, lost = _read(string, ids, quirks)
        quirks["evidence_strings_repaired"] += bool(found)
        resolved |= dict.fromkeys(found)
        unresolved += lost
    quirks["evidence_ids_unresolved"] += len(unresolved)
    quirks["questions_without_evidence"] += not resolved
    return tuple(resolved), tuple(unresolved)


def _read(string: str, ids: TurnIds, quirks: Counter[str]) -> tuple[list[str], list[str]]:
    """Read an irregular string: ranges first, then single ids in what is left."""
    found: list[str] = []
    for match in _RANGE.finditer(string):
        found += ids.between((int(match[1]), int(match[2])), (int(match[3]), int(match[4])))
        quirks["evidence_ranges"] += 1
    singles = list(_ID.finditer(_RANGE.sub(" ", string)))
    lost = [] if found or singles or not string.strip() else [string]
    for match in singles:
        place = _place(match)
        merged = ids.merged_into(place)
        quirks["evidence_of_pictures"] += merged is not None
        turn_id = ids.known.get(place) or merged
        found += [turn_id] if turn_id else []
        lost += [] if turn_id else [match[0]]
    return found, lost
