"""Cases: one file of a run, or of the cache beside it, is damaged, then a command reads the run."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from eval.runs.files import CHECKSUM, read_json_lines
from tests.support.faults.bench import Bench
from tests.support.faults.commands import READERS, Said, preload, read_with, run_again
from tests.support.faults.inside import Kill
from tests.support.faults.runs import unlike

STATES = ("complete", "interrupted")

#: Not part of what a run tells: the lock, logs.
_LEFT_OUT = (".lock", ".log", ".tmp", "bound.json")


@dataclass(frozen=True)
class DamageCase:
    """``file`` is relative to the folder of run and cache; ``number`` chooses byte or row."""

    preset: str
    state: str
    file: str
    damage: str
    command: str
    number: int = 0

    def label(self) -> str:
        """Say what is done."""
        return f"{self.preset}, {self.state}: {self.file} {self.damage} ({self.number}), then {self.command}"


def _row_of(data: bytes, number: int, row: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    place = number % (len(lines) + 1)
    return b"".join([*lines[:place], row + b"\n", *lines[place:]])


def _twice(data: bytes, number: int) -> bytes:
    lines = data.splitlines(keepends=True)
    return _row_of(data, number, lines[number % len(lines)].rstrip(b"\n")) if lines else data


def _flipped(data: bytes, number: int) -> bytes:
    place = number % max(len(data), 1)
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] if data else data


#: Name -> what becomes of the bytes; ``None``: the file is deleted.
DAMAGES: dict[str, Callable[[bytes, int], bytes | None]] = {
    "deleted": lambda data, number: None,
    "emptied": lambda data, number: b"",
    "truncated": lambda data, number: data[: number % max(len(data), 1)],
    "one bit flipped": _flipped,
    "row that is a number": lambda data, number: _row_of(data, number, b"7"),
    "row that is a list": lambda data, number: _row_of(data, number, b'["a"]'),
    "row without fields": lambda data, number: _row_of(data, number, b"{}"),
    "row with nulls": lambda data, number: _row_of(data, number, _nulls(data)),
    "row twice": _twice,
    "CRLF": lambda data, number: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data, number: b"\xef\xbb\xbf" + data,
    "UTF-16": lambda data, number: data.decode("utf-8", "replace").encode("utf-16"),
}
#: Taken from another run of the same preset: other seed.
SWAPPED = "of another run"
#: What makes no sense for a file that is not lines of text.
_FOR_LINES = frozenset(name for name in DAMAGES if name.startswith("row")) | {"CRLF", "UTF-16"}


def _nulls(data: bytes) -> bytes:
    try:
        row = json.loads(data.splitlines()[0])
    except (ValueError, IndexError):
        row = {}
    names = [name for name in (row if isinstance(row, dict) else ()) if name != CHECKSUM]
    return json.dumps(dict.fromkeys(names)).encode()


def files_of(folder: Path) -> list[str]:
    """Files that can be damaged, relative to the folder of run and cache."""
    found = (path for top in ("run", "cache") for path in (folder / top).rglob("*") if path.is_file())
    kept = [path for path in found if not path.name.endswith(_LEFT_OUT) and not path.name.startswith(".")]
    return sorted(path.relative_to(folder).as_posix() for path in kept if "comparison" not in path.parts)


class Pristine:
    """Undamaged runs (complete and scored; interrupted; with another seed) and what commands say of them."""

    def __init__(self, bench: Bench, preset: str) -> None:
        preload()
        self.bench, self.preset = bench, preset
        self.work = bench.folder()
        self.complete, self.interrupted, self.other = bench.folder(), bench.folder(), bench.folder()
        ended = run_again(bench, preset, self.complete)
        assert ended.code == 0, ended
        calls = sum(1 for _ in read_json_lines(self.complete / "run" / "calls.jsonl"))
        answers = sum(1 for _ in read_json_lines(self.complete / "run" / "answers.jsonl"))
        killed = bench.run(preset, self.interrupted, Kill("answers.jsonl", max(answers // 2, 1)))
        assert killed.code == -9 and calls, killed
        changed = bench.run(preset, self.other, seed=5)
        assert changed.code == 0, changed

    def lay_out(self, state: str) -> Path:
        """Copy a run to the one place where all are damaged, so that messages and outputs name the same paths."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.complete if state == "complete" else self.interrupted, self.work)
        return self.work

    @cache  # noqa: B019 - lives as long as the campaign
    def undisturbed(self, state: str, command: str) -> Said:
        """What a command says of the undamaged run."""
        return read_with(command, self.bench, self.lay_out(state))


def damage_cases(pristine: Pristine, state: str, rng: Random) -> list[DamageCase]:
    """Every file, every damage, every command."""
    folder = pristine.lay_out(state)
    cases = []
    for file in files_of(folder):
        lines = file.endswith((".jsonl", ".json"))
        for damage in (*DAMAGES, SWAPPED):
            if lines or damage not in _FOR_LINES:
                commands = ["run", *(READERS if state == "complete" and file.startswith("run/") else ())]
                number = rng.randrange(1 << 20)
                cases += [DamageCase(pristine.preset, state, file, damage, name, number) for name in commands]
    return cases


def run_damage_case(pristine: Pristine, case: DamageCase) -> dict[str, Any]:
    """Damage the file, let the command read it, judge what it said."""
    folder = pristine.lay_out(case.state)
    path = folder / case.file
    before = path.read_bytes()
    data = _damaged(pristine, case, before)
    if data == before:
        return {"problem": "", "same": True}
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    problem = _run(pristine, case, folder) if case.command == "run" else _read(pristine, case, folder)
    return {"problem": problem, "bytes": len(before)}


def _damaged(pristine: Pristine, case: DamageCase, before: bytes) -> bytes | None:
    if case.damage != SWAPPED:
        return DAMAGES[case.damage](before, case.number)
    other = pristine.other / case.file
    return other.read_bytes() if other.is_file() else before


def _run(pristine: Pristine, case: DamageCase, folder: Path) -> str:
    """The run repairs or resumes to the same answers, or one message names the file."""
    ended = run_again(pristine.bench, case.preset, folder)
    if ended.problem():
        return ended.problem()
    if ended.code == 0:
        return unlike(folder / "run", pristine.complete / "run")
    return _names(case, ended.err)


def _read(pristine: Pristine, case: DamageCase, folder: Path) -> str:
    """The command says what it says of the undamaged run, or names the file."""
    wanted, said = pristine.undisturbed(case.state, case.command), read_with(case.command, pristine.bench, folder)
    if said.ended.problem():
        return said.ended.problem()
    if said.ended.code == wanted.ended.code and said.digest == wanted.digest:
        return ""
    problem = _names(case, said.ended.err + said.ended.out)
    return problem and (f"silently other results: {problem}" if said.ended.code == 0 else problem)


def _names(case: DamageCase, message: str) -> str:
    name = Path(case.file).name
    if case.damage == "deleted" and str(Path(case.file).parent) in message.replace("\n", ""):
        return ""  # where there is no file, its folder says where to look
    return "" if name in message.replace("\n", "") else f"the message does not name {name}: {message.strip()[-300:]}"
