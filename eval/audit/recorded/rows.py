"""Rows of a parsed file by a shape: every value is taken from its place, or the place is named."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

from eval.audit.recorded.shapes import PARENT, VALUE, Shape, ValuePlace, listed
from eval.loaders.trees import is_table, read_tree
from memsys.errors import DataError, quoted
from memsys.llm.thoughts import read_answer

_MISSING = object()
#: Settings of a shape that at least one row must have, where the shape has them.
PLACES_NEEDED = ("prediction", "question", "question_id", "gold", "category", "conversation")
_RIGHT = {"correct", "right", "yes", "true", "pass", "1", "1.0"}
_WRONG = {"wrong", "incorrect", "no", "false", "fail", "0", "0.0"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One row.

    Attributes:
        where: file and number of the row, for messages and lists.
        prediction: without thoughts (:mod:`memsys.llm.thoughts`); ``None`` where the row has no answer.
        raw: as recorded.
        gold: alternatives, each an answer by itself; ``None`` where the row has none.
        verdicts: judge -> verdict of each repetition; ``None`` where it cannot be read.
    """

    where: str
    prediction: str | None
    raw: str
    question: str | None = None
    question_id: str | None = None
    gold: tuple[str, ...] | None = None
    category: str | None = None
    conversation: str | None = None
    context: str | None = None
    retrieve_seconds: float | None = None
    answer_seconds: float | None = None
    verdicts: Mapping[str, Sequence[bool | None]] = field(default_factory=dict)

    @property
    def thought(self) -> bool:
        """Whether a thought, or a code fence around the answer, was cut."""
        return bool(read_answer(self.raw).rule)


def read_rows(files: Sequence[Path], shape: Shape, cutoff: str | None = None) -> list[Recorded]:
    """Read all rows of some files, in order.

    Args:
        files: part files in their order.
        shape: places of values.
        cutoff: which cut-off to take, for files that hold several.

    Raises:
        DataError: a file is damaged, the path of the rows or of a value matches nothing, or several cut-offs are there.
    """
    found: list[Recorded] = []
    matched: set[str] = set()
    before = 0
    for path in files:
        own = list(_rows_of(path, shape, cutoff, matched))
        if shape.conversation_is == "index_in_file":
            numbers = sorted({_number(row) for row in own})
            own = [replace(row, conversation=str(before + numbers.index(_number(row)))) for row in own]
            before += len(numbers)
        found += own
    _check_matched(found, matched, files, shape)
    return found


def _number(row: Recorded) -> int:
    try:
        return int(row.conversation or "")
    except ValueError:
        raise DataError(f"{row.where}: conversation {row.conversation!r} is not a position") from None


def _check_matched(rows: Sequence[Recorded], matched: Set[str], files: Sequence[Path], shape: Shape) -> None:
    """Refuse a shape with a required place that never matches."""
    named = ", ".join(map(str, files))
    if not rows:
        raise DataError(f"{named}: no row at `{shape.rows}` (setting rows of shape {shape.name})")
    for name in PLACES_NEEDED:
        place = getattr(shape, name)
        if place is not None and name not in matched:
            raise DataError(f"{named}: no row has `{place.path}` (setting {name} of shape {shape.name})")


def _rows_of(path: Path, shape: Shape, cutoff: str | None, matched: set[str]) -> Iterator[Recorded]:
    """Read the rows of one file; ``matched`` gets the settings of the shape that a row has, a blank cell included."""
    for take in _takers(path, read_tree(path, shape.encoding), shape):
        take = replace(take, cutoff=_cutoff(take.node, shape, cutoff, take.where))
        matched.update(_settings_of(take, shape))
        yield _row(shape, take, take.where)


def settings_found(path: Path, tree: Any, shape: Shape) -> set[str]:
    """Return which settings of a shape, verdicts among them, have a value in some row; of cut-offs the first counts.

    Args:
        path: of the file.
        tree: what it holds.
        shape: to be tried.

    Raises:
        DataError: the path of the rows does not fit.
    """
    found: set[str] = set()
    for take in _takers(path, tree, shape):
        there = _at(take.node, shape.cutoffs) if shape.cutoffs else None
        take = replace(take, cutoff=next(iter(there), "") if isinstance(there, Mapping) else "")
        found.update(_settings_of(take, shape))
        if any(take.value(place) is not None for place in chain.from_iterable(shape.verdicts.values())):
            found.add("verdicts")
    return found


def _settings_of(take: "_Taker", shape: Shape) -> Iterator[str]:
    return (name for name in PLACES_NEEDED if take.with_blanks.value(getattr(shape, name)) is not None)


def _takers(path: Path, tree: Any, shape: Shape) -> Iterator["_Taker"]:
    for number, found in enumerate(nodes_at(path, tree, shape.rows), 1):
        if isinstance(found.node, list) or isinstance(found.node, Mapping) == (shape.prediction.path == VALUE):
            wanted = "text" if shape.prediction.path == VALUE else "object"
            raise DataError(
                f"{path}: row {number} at `{shape.rows}` is no {wanted} (setting rows of shape {shape.name})"
            )
        keys = {f"@{index}": key for index, key in enumerate(found.keys, 1)}
        context = {"@file": path.stem, VALUE: found.node, **keys}
        yield _Taker(found.node, f"{path.name} row {number}", context, found.around, "", is_table(path))


def nodes_at(path: Path, tree: Any, rows: str) -> Iterator["FoundNode"]:
    """Yield what is at the path of the rows.

    Raises:
        DataError: the path leads nowhere.
    """
    steps = [step for step in re.split(r"\.|(?=\[\])", rows) if step]
    return _walk(FoundNode(tree), steps, f"{path}: rows `{rows}`")


@dataclass(frozen=True, slots=True)
class FoundNode:
    """A value of a file, with the keys that stars met on the way and the objects around it, the nearest first."""

    node: Any
    keys: tuple[str, ...] = ()
    around: tuple[Mapping[str, Any], ...] = ()

    def inside(self, node: Any, *keys: str) -> "FoundNode":
        """Return a value inside this one."""
        around = (self.node, *self.around) if isinstance(self.node, Mapping) else self.around
        return FoundNode(node, (*self.keys, *keys), around)


def _walk(found: FoundNode, steps: Sequence[str], where: str) -> Iterator[FoundNode]:
    if not steps:
        yield found
        return
    step, rest, node = steps[0], steps[1:], found.node
    if step == "[]":
        if not isinstance(node, list):
            raise DataError(f"{where}: `[]` needs a list, found {type(node).__name__}")
        for item in node:
            yield from _walk(found.inside(item), rest, where)
    elif not isinstance(node, Mapping):
        raise DataError(f"{where}: `{step}` needs an object, found {type(node).__name__}")
    elif step == "*":
        for key, item in node.items():
            yield from _walk(found.inside(item, str(key)), rest, where)
    elif step not in node:
        raise DataError(f"{where}: `{step}` is not there; found {listed(node)}")
    else:
        yield from _walk(found.inside(node[step]), rest, where)


def _cutoff(node: Mapping[str, Any], shape: Shape, chosen: str | None, where: str) -> str:
    if not shape.cutoffs:
        return ""
    there = _at(node, shape.cutoffs)
    names = list(there) if isinstance(there, Mapping) else []
    if chosen is None and len(names) > 1:
        raise DataError(f"{where}: holds cut-offs {', '.join(names)}; choose one with --cutoff")
    if chosen is not None and names and chosen not in names:
        raise DataError(f"{where}: has no cut-off {chosen}; choose one of {', '.join(names)}")
    return chosen or (names[0] if names else "")


def _at(node: Any, path: str) -> Any:
    """Return the value at a path; ``_MISSING`` if there is none."""
    if isinstance(node, Mapping) and path in node:
        return node[path]
    for key in path.split("."):
        if isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        elif isinstance(node, Mapping) and (name := _key_of(node, key)) is not None:
            node = node[name]
        else:
            return _MISSING
    return node


def _key_of(node: Mapping[str, Any], key: str) -> str | None:
    """Return the key of an object, which may be given with a ``*`` for a part that differs from file to file."""
    if key in node or "*" not in key:
        return key if key in node else None
    names = [name for name in node if fnmatchcase(name, key)]
    if len(names) > 1:
        raise DataError(f"`{key}` may be {listed(names)}; name one of them in a YAML (--shape FILE)")
    return names[0] if names else None


@dataclass(frozen=True, slots=True)
class _Taker:
    """Takes values from one row.

    Attributes:
        node: the row as parsed.
        where: file and number of the row, for messages.
        context: what is outside of it, ``@file`` and ``@1``, and ``@value``, the row itself.
        around: the objects that the row lies in, the nearest first.
        cutoff: the chosen one.
        table: a table has no null, so that its blank cells hold no value, unless the place's ``values`` name them.
    """

    node: Any
    where: str
    context: Mapping[str, Any]
    around: tuple[Mapping[str, Any], ...]
    cutoff: str
    table: bool

    @property
    def with_blanks(self) -> "_Taker":
        """Takes a blank cell as the empty text that it is."""
        return replace(self, table=False)

    def value(self, place: ValuePlace | None) -> Any:
        if place is None:
            return None
        path = place.path.replace("{cutoff}", self.cutoff)
        found = self._at(path)
        if found is _MISSING or found is None or (self.table and not found.strip() and found not in place.values):
            return None
        if place.pattern:
            match = re.search(place.pattern, str(found), re.DOTALL)
            found = match[1] if match else None
        return place.values.get(str(found), found) if place.values else found

    def _at(self, path: str) -> Any:
        if path in self.context:
            return self.context[path]
        if not path.startswith(PARENT):
            return _at(self.node, path)
        inside = (_at(node, path.removeprefix(PARENT)) for node in self.around)
        return next((found for found in inside if found is not _MISSING), _MISSING)

    def text(self, place: ValuePlace | None) -> str | None:
        """Take a text; a number is one, and a list of them is one text."""
        found = self.value(place)
        if found is None or isinstance(found, str):
            return found
        if isinstance(found, list) and not _is_nested(found):
            return " ; ".join(map(str, found))
        return str(self._plain(place, found))

    def texts(self, place: ValuePlace | None) -> tuple[str, ...] | None:
        """Take alternatives, which JSON writes as a list; an empty list holds none."""
        found = self.value(place)
        if isinstance(found, list):
            return tuple(str(self._plain(place, one)) for one in found if one is not None) or None
        return None if found is None else (str(self._plain(place, found)),)

    def shown(self, place: ValuePlace | None) -> str | None:
        """Take what a reader was shown, which files hold in any form."""
        found = self.value(place)
        return str(found) if isinstance(found, Mapping | bool) or _is_nested(found) else self.text(place)

    def seconds(self, place: ValuePlace | None) -> float | None:
        """Take a time in milliseconds, a number or, as tables have nothing else, the text of one."""
        found = self.value(place)
        if found is None or (isinstance(found, str) and not found.strip()):
            return None
        try:
            seconds = float(self._plain(place, found)) / 1000
        except (ValueError, OverflowError):
            raise DataError(
                f"{self.where}: {self._named(place)} is {quoted(found, 60)}; a time is a number, in ms"
            ) from None
        return seconds if 0 < seconds < inf else None  # files write 0 for what was not timed

    def _plain(self, place: ValuePlace | None, found: Any) -> str | int | float:
        if _is_plain(found):
            plain: str | int | float = found
            return plain
        kind = {dict: "an object", list: "a list", bool: "true or false"}.get(type(found), type(found).__name__)
        raise DataError(
            f"{self.where}: {self._named(place)} holds {kind} ({quoted(found, 60)}); expected a text, a number or "
            "null; name the path of the text inside it in a YAML (--shape FILE)"
        )

    def _named(self, place: ValuePlace | None) -> str:
        return f"`{place.path}`" if place else "a value"


def _is_nested(found: Any) -> bool:
    return isinstance(found, list) and not all(_is_plain(one) for one in found)


def _is_plain(found: Any) -> bool:
    return isinstance(found, str | int | float) and not isinstance(found, bool)


def _row(shape: Shape, take: _Taker, where: str) -> Recorded:
    raw = take.with_blanks.text(shape.prediction)  # a blank cell here is an answer: an empty one
    conversation = take.text(shape.conversation)
    return Recorded(
        where=where,
        prediction=None if raw is None else read_answer(raw).text,
        raw=raw or "",
        question=take.text(shape.question),
        question_id=take.text(shape.question_id),
        gold=take.texts(shape.gold),
        category=take.text(shape.category),
        conversation=shape.conversations.get(conversation or "", conversation),
        context=take.shown(shape.context),
        retrieve_seconds=take.seconds(shape.retrieve_ms),
        answer_seconds=take.seconds(shape.answer_ms),
        verdicts={
            judge: [_verdict(take.value(place)) for place in places]
            for judge, places in shape.verdicts.items()
            if any(take.value(place) is not None for place in places)
        },
    )


def _verdict(value: Any) -> bool | None:
    """Read a verdict; an empty list of faults means right, as in labels by hand."""
    if isinstance(value, list):
        return not value
    word = str(value).strip().lower()
    return True if word in _RIGHT else False if word in _WRONG else None
