"""The page while a run goes on: a real model answers, ``report --watch`` writes, a real browser shows the answers."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from memsys.assets.paths import ROOT, models_dir
from tests.support.browser import Page, chromium

#: Questions of the sample, and how many of the newest answers the page shows.
QUESTIONS, SHOWN = 34, 8
#: Seconds that all may take on a busy machine.
PATIENCE = 400
#: How many questions the page says are answered, and its newest answers; ``null`` while it is being loaded.
SEEN = """document.querySelector('.live progress') && {
    answered: document.querySelector('.live progress').value,
    newest: [...document.querySelectorAll('.newest li')].map((node) => node.innerText)}"""


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of memsys that runs while the block does."""
    environment = {**os.environ, "MEMSYS_MODELS": str(models_dir())}
    command = [sys.executable, "-m", "eval", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.real_model
@pytest.mark.timeout(PATIENCE + 100)
def test_answers_appear_as_they_come(tmp_path: Path) -> None:
    """The page is opened once: it loads itself again. What is shown twice ends the test; the run is not waited for."""
    runs, page_file = tmp_path / "runs", tmp_path / "report.html"
    run = (
        "run", "backbone=smollm2_135m", "reader=clag_small", "memory=bm25_turn", "memory.k=1",
        "embedder=hashing", "dataset=locomo_sample", "schedule.questions_in_flight=1",
        f"run_dir={runs / 'live'}", f"cache_dir={tmp_path / 'cache'}",
    )  # fmt: skip
    counts: list[int] = []
    with (
        chromium(tmp_path / "profile") as page,
        started("report", "--watch", "--every", "1", "--runs", str(runs), "--out", str(page_file)) as watching,
        started(*run) as running,
    ):
        until = time.monotonic() + PATIENCE
        while not page_file.is_file():
            assert watching.poll() is running.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        page.open(page_file.as_uri())
        while len({count for count in counts if 0 < count < QUESTIONS}) < 2:
            assert watching.poll() is None and running.poll() in (None, 0) and time.monotonic() < until, counts
            if seen := look(page):
                counts.append(seen["answered"])
                assert len(seen["newest"]) == min(seen["answered"], SHOWN)
                assert all("should be" in one for one in seen["newest"])
            time.sleep(0.1)
        assert page.problems == []
    assert counts == sorted(counts)


def look(page: Page) -> Any:
    """Return what the page shows; nothing while it loads itself again."""
    with suppress(AssertionError):
        return page.run(SEEN)
    return None
