"""The server of :mod:`tests.support.batch_server` as a process, and what it was sent."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.stub_process import ROOT


@dataclass(frozen=True)
class BatchProcess:
    """The server and its folder."""

    url: str
    state: Path

    def lines(self, name: str) -> list[Any]:
        """Return what it noted under a name."""
        path = self.state / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

    def finish(self) -> None:
        """Let batches end."""
        (self.state / "open").touch()


@contextmanager
def batch_process(state: Path) -> Iterator[BatchProcess]:
    """Start the server.

    Args:
        state: its folder, which is made.
    """
    state.mkdir()
    command = [sys.executable, "-m", "tests.support.batch_server", "--state", str(state)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield BatchProcess(process.stdout.readline().strip(), state)
        process.kill()
