"""The stub server as a process of its own, so that it does not share a core's time slice with what is measured."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def attached(url: str) -> tuple[str, ...]:
    """Overrides of ``eval.run`` that make it use the server at ``url``."""
    return (
        "backbone=smollm2_135m_vllm",
        "backbone.engine.mode=attached",
        "backbone.engine.model=null",
        f"backbone.engine.urls=[{url}]",
        "backbone.token_counter=characters",
    )


@contextmanager
def stub_server(*, delay: float, extra: tuple[str, ...] = ()) -> Iterator[str]:
    """Start ``tests/support/stub_server.py`` and yield its base URL (with ``/v1``)."""
    command = [sys.executable, "-m", "tests.support.stub_server", "--delay", str(delay), "--port", "0", *extra]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http"), "the stub server did not say where it listens"
        yield url
    finally:
        process.terminate()
        process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()
