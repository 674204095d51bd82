"""A package outside of the tree adds a memory system and is run end to end, without a line changed in memsys."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval.configs.plugins import plugin_folders, plugin_packages
from memsys.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

MODULE = '''
"""The newest turns."""
from dataclasses import dataclass
from memsys.protocol import BaseMemory
from memsys.vocabulary import Hit, Retrieval


@dataclass(frozen=True)
class NewestConfig:
    name: str
    uses_gold: bool
    turns: int

    def build(self, parts):
        return Newest(self, parts)


class Newest(BaseMemory):
    def __init__(self, config, parts):
        self._config, self._parts, self._turns = config, parts, []

    async def write(self, unit, prepared):
        self._turns += [[turn.turn_id, self._parts.turn_format.render(turn)] for turn in unit.turns]

    async def retrieve(self, query):
        kept = self._turns[-self._config.turns:][::-1]
        hits = tuple(Hit(text, 1 / rank, (key,), key) for rank, (key, text) in enumerate(kept, start=1))
        return Retrieval(hits, "\\n".join(hit.text for hit in hits))

    def state(self):
        return {"turns": self._turns}

    def load_state(self, state):
        self._turns = state["turns"]
'''
PRESET = "# The newest turns, from a package of somebody else.\n_target_: newest_turns.NewestConfig\n"
PRESET += "name: newest\nuses_gold: false\nturns: 3\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "site" / "newest_turns"
    (folder / "conf" / "memory").mkdir(parents=True)
    (folder / "__init__.py").write_text(MODULE)
    (folder / "conf" / "memory" / "newest.yaml").write_text(PRESET)
    return folder.parent


def memsys(package: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eval", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False,
        env={**os.environ, "PYTHONPATH": str(package), **environment},
    )  # fmt: skip


@pytest.mark.parametrize("named", ["entry point", "variable"])
def test_a_package_adds_a_memory_system(package: Path, tmp_path: Path, named: str) -> None:
    environment = {"MEMSYS_PLUGINS": "newest_turns"} if named == "variable" else {}
    if named == "entry point":  # what pip writes when such a package is installed
        metadata = package / "newest_turns-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: newest-turns\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text("[memsys.plugins]\nnewest = newest_turns\n")
    listed = memsys(package, "run", "--help", "memory", **environment)
    assert "newest            " in listed.stdout and "from a package of somebody else" in listed.stdout, listed.stderr
    out = tmp_path / "run"
    settings = ("mode=retrieval_only", "embedder=hashing", "dataset.limit_questions=4", f"run_dir={out}")
    done = memsys(package, "run", "memory=newest", "memory.turns=2", *settings, **environment)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "retrievals.jsonl").read_text().splitlines()]
    assert [len(row["hits"]) for row in rows] == [2, 2, 2, 2]
    assert json.loads((out / "summary.json").read_text())["counts"]["questions"] == 4
    typo = memsys(package, "run", "memory=newst", **environment)
    assert typo.returncode == 2 and "did you mean newest" in typo.stderr


def test_a_package_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_PLUGINS", " no_such_package ,")
    assert "no_such_package" in plugin_packages()
    with pytest.raises(ConfigError, match="no_such_package: there is no such package"):
        plugin_folders()
