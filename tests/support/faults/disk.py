"""Cases: the disk is full, or may not be written."""

import errno
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.faults.bench import Bench
from tests.support.faults.forked import forked
from tests.support.faults.inside import start
from tests.support.faults.runs import small_plan, unlike

_NOBODY = 65534


@dataclass(frozen=True)
class DiskCase:
    """What cannot be written.

    Attributes:
        preset: of the run.
        kind: ``size`` (no file may grow beyond ``amount`` bytes, the messages of the run included), ``full`` (the
            device is full after ``amount`` writes to ``file``), ``read-only`` (the folder belongs to somebody else).
        amount: see ``kind``.
        file: see ``kind``.
    """

    preset: str
    kind: str
    amount: int = 0
    file: str = ""

    def label(self) -> str:
        """Say what is done."""
        return f"{self.preset}: disk {self.kind} {self.file} {self.amount}"


def disk_cases(preset: str) -> list[DiskCase]:
    """A file size limit at several places, a device that fills up under each file, a folder that is read-only."""
    sizes = [DiskCase(preset, "size", amount) for amount in (600, 3_000, 20_000)]
    names = ("calls.jsonl", "answers.jsonl", "retrievals.jsonl", "conversations.jsonl", "cache")
    full = [DiskCase(preset, "full", amount, file) for file in names for amount in (0, 1)]
    return [*sizes, *full, DiskCase(preset, "read-only")]


def run_disk_case(bench: Bench, case: DiskCase) -> dict[str, Any]:
    """Run under the limit, then without it."""
    folder = bench.folder()
    plan = small_plan(case.preset, folder, bench.url)
    limits: dict[str, Callable[[], None]] = {
        "size": lambda: _limit_size(case.amount),
        "full": lambda: _fill_up(case.file, case.amount),
        "read-only": _become_nobody,
    }

    def act() -> int:
        limits[case.kind]()
        return start(plan)

    # The output is kept outside, else the limit would be on it too.
    outside = bench.folder()
    if case.kind == "read-only":
        folder.chmod(0o555)
    ended = forked(act, outside, bench.patience_s)
    folder.chmod(0o755)
    problem = ended.problem()
    if not problem and ended.code == 0 and case.kind != "size":
        problem = "complete, although nothing could be written"
    if not problem and ended.code and str(bench.root) not in ended.err.replace("\n", ""):
        problem = f"the message names no path: {ended.err[-300:]}"
    again = bench.run(case.preset, folder)
    problem = problem or again.problem() or unlike(folder / "run", bench.whole(case.preset))
    bench.forget(folder)
    return {"problem": problem, "stopped": bool(ended.code)}


def _limit_size(amount: int) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (amount, amount))


def _fill_up(file: str, amount: int) -> None:
    write, count = os.write, 0

    def limited(descriptor: int, data: bytes) -> int:
        nonlocal count
        if file in Path(f"/proc/self/fd/{descriptor}").readlink().parts[-2:]:
            count += 1
            if count > amount:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, data)

    os.write = limited  # type: ignore[assignment]


def _become_nobody() -> None:
    if os.geteuid() == 0:  # who may write everywhere
        os.setuid(_NOBODY)
