"""A backbone for judges of tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.stub_server import StubServer, prompt_of, stub


@contextmanager
def judge_server(root: Path, monkeypatch: pytest.MonkeyPatch, reply: Callable[[str], str]) -> Iterator[StubServer]:
    """Serve a backbone that replies to prompts; what judges were measured at stands in a file of its own."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("eval.scoring.verdicts.figures.FILE", root / "figures.csv")
    with stub() as running:
        running.state.replies = lambda body: reply(prompt_of(body))
        yield running
