"""Runs that have not ended: how far they are, from their files alone."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from eval.runs.exports import is_exported_run
from eval.runs.files import rows_done
from eval.runs.load import read_record


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A run on its way, or one that was stopped.

    Attributes:
        run_id: names it.
        system: name of its memory.
        backbone: name of its backbone.
        status: as its record says.
        asked: questions it has to answer; 0 before they are known.
        answered: questions that it has answered.
        written: conversations whose memory is written.
        changed: seconds since the epoch of its last row.
    """

    run_id: str
    system: str
    backbone: str
    status: str
    asked: int
    answered: int
    written: int
    changed: float


def unfinished(folders: Iterable[Path]) -> list[Unfinished]:
    """Return the runs whose record does not say ``complete``, or that have no scores yet."""
    found = []
    for folder in folders:
        record = read_record(folder)
        if record.get("status") == "complete" and (is_exported_run(folder) or (folder / "scores.jsonl").is_file()):
            continue
        config = record.get("config") or {}
        status = str(record.get("status"))
        found.append(
            Unfinished(
                str(record.get("run_id")),
                str((config.get("memory") or {}).get("name", "")),
                str((config.get("backbone") or {}).get("name", "")),
                "answered, not scored yet" if status == "complete" else status,
                _lines(folder / "references.jsonl"),
                rows_done(folder, str(record.get("mode"))),
                _lines(folder / "conversations.jsonl"),
                max((path.stat().st_mtime for path in folder.glob("*.jsonl")), default=0.0),
            )
        )
    return found


def _lines(path: Path) -> int:
    """Return the whole lines; a line that is being written is not counted."""
    return path.read_bytes().count(b"\n") if path.is_file() else 0
