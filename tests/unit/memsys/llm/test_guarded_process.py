"""A guarded command against real process groups: processes that ignore SIGTERM, orphans, and zombies."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memsys.llm.engines import process
from memsys.llm.engines.process import GuardedProcess, running_members

#: Each member of the group writes its id, so that the test knows whom to look for.
IGNORES_SIGTERM = "trap '' TERM; echo $$ >> pids; while :; do sleep 0.05; done"
ORPHAN = f'(sh -c "{IGNORES_SIGTERM}" &) ; echo $$ >> pids; while :; do sleep 0.05; done'
OBEDIENT = "trap 'exit 0' TERM; echo $$ >> pids; while :; do sleep 0.05; done"
#: Ends at once and leaves a child in the group.
LEAVES_CHILD = f'(sh -c "{IGNORES_SIGTERM}" &) ; sleep 0.2; echo $$ >> pids; exit 3'
#: A parent that never collects its child, which has ended; and ignores SIGTERM itself.
KEEPS_ZOMBIE = f"""exec {sys.executable} -c "
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if not child:
    os._exit(0)
open('pids', 'a').write(f'{{os.getpid()}}\\n{{child}}\\n')
time.sleep(60)
"
"""


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[str, int], GuardedProcess]]:
    """Start a shell script under a guard and wait until so many of its processes have said who they are."""
    made: list[GuardedProcess] = []

    def start(script: str, members: int) -> GuardedProcess:
        line = ["sh", "-c", f"cd {tmp_path}; {script}"]
        made.append(GuardedProcess(line, dict(os.environ), tmp_path / "log", grace_seconds=0.3))
        assert eventually(lambda: len(pids(tmp_path)) >= members), (tmp_path / "log").read_text()
        return made[-1]

    yield start
    for each in made:
        each.stop()


def pids(folder: Path) -> list[int]:
    path = folder / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def group_of(guarded: GuardedProcess) -> int:
    return guarded._process.pid


@pytest.mark.parametrize(
    ("script", "members"), [(IGNORES_SIGTERM, 1), (ORPHAN, 2), (OBEDIENT, 1), (LEAVES_CHILD, 2), (KEEPS_ZOMBIE, 2)]
)
def test_when_stop_returns_no_process_of_the_group_runs(
    started: Callable[[str, int], GuardedProcess], tmp_path: Path, script: str, members: int
) -> None:
    guarded = started(script, members)
    guarded.stop()
    assert running_members(group_of(guarded)) == set()
    assert guarded.exit_status is not None
    guarded.stop()


def test_members_without_a_living_guard_are_ended(
    started: Callable[[str, int], GuardedProcess], tmp_path: Path
) -> None:
    guarded = started(ORPHAN, 2)
    os.kill(group_of(guarded), signal.SIGKILL)
    assert eventually(lambda: guarded.exit_status is not None)
    assert running_members(group_of(guarded)), "the orphan ends with the guard: nothing is tested"
    guarded.stop()
    assert running_members(group_of(guarded)) == set()


def test_stop_waits_for_members_that_take_their_time_to_end(
    started: Callable[[str, int], GuardedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded = started(OBEDIENT, 1)
    looks = iter([{17, 18}, {18}, set()])
    monkeypatch.setattr(process, "running_members", lambda group: next(looks))
    guarded.stop()
    assert next(looks, None) is None


def test_a_member_that_does_not_end_is_named(
    started: Callable[[str, int], GuardedProcess], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    guarded = started(OBEDIENT, 1)
    monkeypatch.setattr(process, "running_members", lambda group: {18, 17})
    monkeypatch.setattr(process, "_KILL_SECONDS", 0.05)
    with caplog.at_level(logging.WARNING):
        guarded.stop()
    assert "[17, 18]" in caplog.text


def test_what_has_ended_and_waits_for_its_parent_does_not_run() -> None:
    with subprocess.Popen(["sh", "-c", "exit 0"], start_new_session=True) as child:
        stat = Path(f"/proc/{child.pid}/stat")
        assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        assert os.getpgid(child.pid) == child.pid, "the system still knows it"
        assert running_members(child.pid) == set()


def test_a_name_with_blanks_and_parentheses_is_read(tmp_path: Path) -> None:
    program = tmp_path / ") 0 Z ("
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "60"], start_new_session=True) as child:
        assert running_members(child.pid) == {child.pid}
        child.kill()


def test_a_process_whose_first_thread_has_ended_still_runs(tmp_path: Path) -> None:
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "ctypes.CDLL(None).syscall(ctypes.c_long(60), 0)\n"  # exit of this thread alone
    )
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as child:
        stat = Path(f"/proc/{child.pid}/stat")
        assert eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        assert running_members(child.pid) == {child.pid}
        child.kill()
