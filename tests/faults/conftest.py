"""The process that forks the runs, one for each process of tests."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Asks for cases and returns their results; see :mod:`tests.support.faults.worker`.
Try = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def attempt() -> Iterator[Try]:
    """Run the cases a request asks for."""
    command = [sys.executable, "-m", "tests.support.faults.worker", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None

        def ask(section: str, preset: str, **request: Any) -> list[dict[str, Any]]:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps({"section": section, "preset": preset, **request}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, "the process that forks runs has ended; its message is above"
            results: list[dict[str, Any]] = json.loads(line)
            return results

        yield ask
        process.stdin.close()
