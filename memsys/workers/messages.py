"""Messages between memsys and a package's worker: what is sent, and checks of what comes back.

A request is ``{"id": 3, "op": "add", ...}``, its reply ``{"id": 3, "result": {...}}`` or ``{"id": 3, "error": "..."}``,
one line of JSON each. Requests are ``open``, ``add``, ``replay``, ``finish``, ``retrieve`` and ``export``;
:mod:`memsys.workers.worker_loop` says what each holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from memsys.dates import iso, parse_date
from memsys.errors import WorkerError, quoted
from memsys.turns import TurnFormat
from memsys.vocabulary import Json, Turn, Unit

PROTOCOL = 1

Lineage = Literal["changes", "none"]
ChangeKind = Literal["add", "update", "delete"]


@dataclass(frozen=True, slots=True)
class WorkerDescription:
    """A worker's description of itself when it is opened.

    Attributes:
        package: name on the package index.
        version: of the installed package.
        lineage: ``changes``: it reports which memories each write made, changed or deleted; ``none``: it cannot.
        lineage_reason: why it cannot.
    """

    package: str
    version: str
    lineage: Lineage
    lineage_reason: str


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """Effect of a write on one memory of the package, named by the package's own id."""

    memory_id: str
    change: ChangeKind


@dataclass(frozen=True, slots=True)
class WorkerHit:
    """A memory that a worker retrieved; ``date`` as the package keeps it, empty where it keeps none."""

    memory_id: str
    text: str
    score: float
    date: str = ""


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory as a worker exports it."""

    memory_id: str
    text: str
    extra: Mapping[str, Json] = field(default_factory=dict)


def unit_message(unit: Unit, turn_format: TurnFormat) -> dict[str, Json]:
    """Return a unit as a message to a worker.

    Each turn has its ids, speaker and date, ``time`` (the date as ``2023-05-08T13:56:00``, empty where it cannot be
    read), ``text`` (with caption, without speaker) and ``line`` (as the run's turn format writes it). ``speakers`` are
    those of the whole conversation.
    """
    bare = TurnFormat("bare", turn_format.captions, turn_format.queries)
    speakers = unit.conversation.speakers if unit.conversation else ()
    return {
        "unit_id": unit.unit_id,
        "speakers": list(speakers or dict.fromkeys(turn.speaker for turn in unit.turns)),
        "turns": [_turn_message(turn, bare, turn_format) for turn in unit.turns],
    }


def _turn_message(turn: Turn, bare: TurnFormat, turn_format: TurnFormat) -> dict[str, Json]:
    moment = parse_date(turn.date_time)
    return {
        "turn_id": turn.turn_id,
        "session_id": turn.session_id,
        "speaker": turn.speaker,
        "date": turn.date_time,
        "time": iso(moment) if moment else "",
        "text": bare.render(turn),
        "line": turn_format.render(turn),
    }


def read_description(reply: Mapping[str, Any], worker: str) -> WorkerDescription:
    """Check the reply to ``open``.

    Raises:
        WorkerError: a field is missing or wrong.
    """
    names = ("package", "version", "lineage", "lineage_reason")
    found = WorkerDescription(*(_text(reply, name, worker, "open") for name in names))
    if found.lineage not in get_args(Lineage):
        raise WorkerError(f"{worker}: lineage={found.lineage!r}; a worker has one of {', '.join(get_args(Lineage))}")
    if found.lineage == "none" and not found.lineage_reason:
        raise WorkerError(f"{worker}: lineage=none needs a lineage_reason that says why")
    return found


def read_changes(reply: Mapping[str, Any], worker: str) -> list[MemoryChange]:
    """Check the reply to ``add``, ``replay`` or ``finish``.

    Raises:
        WorkerError: a field is missing or wrong.
    """
    changes = []
    for row in _rows(reply, "changes", worker):
        change: Any = _text(row, "change", worker, "changes")
        if change not in get_args(ChangeKind):
            raise WorkerError(f"{worker}: change={change!r}; it must be one of {', '.join(get_args(ChangeKind))}")
        changes.append(MemoryChange(_text(row, "memory_id", worker, "changes"), change))
    return changes


def read_hits(reply: Mapping[str, Any], worker: str) -> list[WorkerHit]:
    """Check the reply to ``retrieve``.

    Raises:
        WorkerError: a field is missing or wrong, or a memory occurs twice.
    """
    hits = []
    for row in _rows(reply, "hits", worker):
        memory_id, text = (_text(row, name, worker, "hits") for name in ("memory_id", "text"))
        hits.append(WorkerHit(memory_id, text, _number(row, "score", worker), str(row.get("date") or "")))
    if len({hit.memory_id for hit in hits}) < len(hits):
        raise WorkerError(f"{worker}: hits names a memory twice")
    return hits


def read_memories(reply: Mapping[str, Any], worker: str) -> list[StoredMemory]:
    """Check the reply to ``export``.

    Raises:
        WorkerError: a field is missing or wrong.
    """
    memories = []
    for row in _rows(reply, "memories", worker):
        memory_id, text = (_text(row, name, worker, "memories") for name in ("memory_id", "text"))
        extra = {name: value for name, value in row.items() if name not in ("memory_id", "text")}
        memories.append(StoredMemory(memory_id, text, extra))
    return memories


def _rows(reply: Mapping[str, Any], name: str, worker: str) -> Sequence[Mapping[str, Any]]:
    rows = reply.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise WorkerError(f"{worker}: {name} must be a list of objects, not {quoted(rows, 80)}")
    return rows


def _text(row: Mapping[str, Any], name: str, worker: str, where: str) -> Any:
    value = row.get(name)
    if not isinstance(value, str):
        raise WorkerError(f"{worker}: {where}.{name} must be a text, not {quoted(value, 80)}")
    return value


def _number(row: Mapping[str, Any], name: str, worker: str) -> float:
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        raise WorkerError(f"{worker}: hits.{name} must be a finite number, not {quoted(value, 80)}")
    return float(value)
