"""Fixtures shared by all tests."""

import gc
import os
from pathlib import Path

import hypothesis
import pytest

from eval.commands.terminal import console
from eval.runs import manifest

# A busy machine takes its time over an example; what a test asserts does not depend on it.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_finish() -> None:
    """Leave ten thousand collected tests out of every later garbage collection: a tenth of the suite's time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data sets: ``MEMSYS_DATA``, else ``data/`` of the checkout, else a sibling ``shared/data``."""
    for candidate in (os.environ.get("MEMSYS_DATA"), ROOT / "data", ROOT.parent / "shared" / "data"):
        if candidate and Path(candidate).is_dir():
            return Path(candidate)
    pytest.skip("no real data here: set MEMSYS_DATA or run `memsys data`")


@pytest.fixture(scope="session")
def locomo_file(data_dir: Path) -> Path:
    """The real ``locomo10.json``."""
    path = data_dir / "locomo10.json"
    if not path.is_file():
        pytest.skip("locomo10.json is not in the data folder: run `memsys data locomo`")
    return path


@pytest.fixture(autouse=True)
def console_of_its_own() -> None:
    """Make each test's console again: it takes its width from the environment, which tests change."""
    console.cache_clear()


@pytest.fixture
def unsigned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be read that do not fit their manifest: for tests of what is checked behind it."""
    monkeypatch.setattr(manifest, "_check", lambda folder, chosen: None)
