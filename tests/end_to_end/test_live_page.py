"""The page while a run goes on: a real model answers, ``report --watch`` writes, a real browser shows the answers."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memsys.assets.paths import ROOT, models_dir
from tests.support.browser import Page, chromium

#: Of the sample, asked one after the other, so that the page is seen between two answers.
QUESTIONS = 34
#: Newest answers that the page shows.
SHOWN = 8
#: Seconds that all may take on a busy machine.
PATIENCE = 800


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command of memsys that runs while the block does."""
    environment = {**os.environ, "MEMSYS_MODELS": str(models_dir())}
    command = [sys.executable, "-m", "eval", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(60)


@pytest.mark.real_model
@pytest.mark.timeout(PATIENCE + 100)
def test_answers_appear_as_they_come(tmp_path: Path) -> None:
    runs, page_file = tmp_path / "runs", tmp_path / "report.html"
    run = (
        "run", "backbone=smollm2_135m", "reader=clag_small", "memory=bm25_turn", "dataset=locomo_sample",
        "schedule.questions_in_flight=1", f"run_dir={runs / 'live'}", f"cache_dir={tmp_path / 'cache'}",
    )  # fmt: skip
    seen: list[tuple[int, str]] = []
    with (
        chromium(tmp_path / "profile") as page,
        started("report", "--watch", "--every", "1", "--runs", str(runs), "--out", str(page_file)) as watching,
        started(*run) as running,
    ):
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not (seen and "results" in seen[-1][1]):
            assert watching.poll() is None and running.poll() in (None, 0)
            if page_file.is_file():
                seen.append(shown(page, page_file))
            time.sleep(0.5)
        assert page.problems == []
    counts = [count for count, view in seen if view == "live"]
    assert counts == sorted(counts) and any(0 < count < QUESTIONS for count in counts), seen
    assert seen[-1][1] == "results"


def shown(page: Page, file: Path) -> tuple[int, str]:
    """Open the page; returns how many questions it says are answered, and which view it has."""
    page.open(file.as_uri())
    page.wait("document.querySelector('main h2') !== null")
    if not page.run("document.querySelector('.live') !== null"):
        return QUESTIONS, "results"
    answered = int(page.run("document.querySelector('.live progress').value"))
    newest = page.run("[...document.querySelectorAll('.newest li')].map((node) => node.innerText)")
    assert len(newest) == min(answered, SHOWN) and all("should be" in one for one in newest)
    return answered, "live"
