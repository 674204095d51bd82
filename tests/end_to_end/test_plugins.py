"""Packages outside of the tree add a memory system, a data set, a reader and a metric, and memsys stays as it is."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eval.commands.plugins import plugin_folders, plugin_packages
from memsys.errors import ConfigError
from tests.support.stub_process import attached, stub_server

ROOT = Path(__file__).resolve().parents[2]

#: The package of the page on plug-ins, by file.
FILES = dict(re.findall(r"^```\w+ file=(\S+)\n(.*?)^```$", (ROOT / "docs" / "plugins.md").read_text(), re.M | re.S))


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "site"


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
    assert "newest            " in listed.stdout and "from a third-party package" in listed.stdout, listed.stderr
    out = tmp_path / "run"
    settings = ("mode=retrieval_only", "embedder=hashing", "dataset.limit_questions=4", f"run_dir={out}")
    done = memsys(package, "run", "memory=newest", "memory.turns=2", *settings, **environment)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "retrievals.jsonl").read_text().splitlines()]
    assert [len(row["hits"]) for row in rows] == [2, 2, 2, 2]
    assert json.loads((out / "summary.json").read_text())["counts"]["questions"] == 4
    assert json.loads((out / "run.json").read_text())["packages"]["newest_turns"] == (
        "1.0" if named == "entry point" else ""
    )
    command = ("run", "memory=newest", "memory.turns=2", *settings)
    again = memsys(package, *command, **environment)
    assert "complete, nothing to run" in again.stdout and "has changed" not in again.stdout
    module = package / "newest_turns" / "__init__.py"
    module.write_text(module.read_text().replace("1 / rank", "2 / rank"))
    edited = memsys(package, *command, **environment)
    assert "the source of memory=newest has changed since" in " ".join(edited.stdout.split()), edited.stdout
    typo = memsys(package, "run", "memory=newst", **environment)
    assert typo.returncode == 2 and "did you mean newest" in typo.stderr


def test_the_metric_of_the_page_scores_recorded_answers(package: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("question,gold,prediction\nWhat cat?,Pixel,Pixel\nWhat dog?,Rex,none\n")
    named, out = {"MEMSYS_PLUGINS": "newest_turns"}, tmp_path / "mine"
    imported = ("recorded", "import", str(tmp_path / "answers.csv"), "--as", str(out), "--dataset", "own")
    assert memsys(package, *imported, **named).returncode == 0
    scored = memsys(package, "score", str(out), "--metrics", "same_length", **named)
    assert scored.returncode == 0, scored.stderr
    rows = (out / "scores.jsonl").read_text().splitlines()
    assert [json.loads(row)["metrics"]["same_length"] for row in rows] == [1.0, 0.0]


def test_a_package_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_PLUGINS", " no_such_package ,")
    assert "no_such_package" in plugin_packages()
    with pytest.raises(ConfigError, match="no_such_package: there is no such package"):
        plugin_folders()


LINES = '''
"""A data set, a reader and a metric: files of lines, each a name, a saying and what is asked of it."""
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.contract import DatasetInfo, LoadedData
from eval.loaders.selection import Selection, count
from eval.metrics.metric import Metric
from eval.metrics.registry import register
from eval.running.reader import ReaderConfig
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn

INFO = DatasetInfo("lines", "Lines", "-", "-", "-", (), {1: "riddle"}, kinds={1: "riddle"})


@dataclass(frozen=True, kw_only=True)
class LinesConfig(Selection):
    name: str

    @property
    def info(self):
        return INFO

    def load(self):
        rows = [line.split("|") for line in Path(self.path).read_text().splitlines()]
        turns = tuple(Turn(f"t{i}", "s", name, said) for i, (name, said, _, _) in enumerate(rows))
        asked = tuple(Question(f"q{i}", "c", row[2], 1, kind="riddle") for i, row in enumerate(rows))
        gold = {f"q{i}": Reference(f"q{i}", (row[3],), (f"t{i}",)) for i, row in enumerate(rows)}
        samples = self.apply([Sample(Conversation("c", turns), asked, gold)], INFO.category_names)
        return LoadedData(samples, "0" * 64, "lines", INFO.category_names, count(samples))


@dataclass(frozen=True)
class LoudReaderConfig(ReaderConfig):
    def role_of(self, kind, *, options):
        return "loud" if kind == "riddle" else self.default


register(Metric("same_length", "here", lambda said, gold: float(len(said) == len(gold)), label="Same length"))
'''
READER = """# Asks in capitals, from a third-party package.
_target_: riddles.LoudReaderConfig
name: loud
prompt_set: riddles:wording
roles: {plain: {temperature: 0.0, max_tokens: 8}, loud: {temperature: 0.0, max_tokens: 8}}
default: plain
by_kind: {}
answer_format: whole
adversarial_options: false
option_style: named
abstention: no idea
"""


@pytest.fixture
def riddles(tmp_path: Path) -> Path:
    folder = tmp_path / "site" / "riddles"
    files = {
        "__init__.py": LINES,
        "conf/dataset/lines.yaml": "# Lines.\n_target_: riddles.LinesConfig\nname: lines\npath: null\n",
        "conf/reader/loud.yaml": READER,
        "wording/plain.txt": "{context} {question}",
        "wording/loud.txt": "READ: {context} RIDDLE: {question}",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    rows = ("Ann|I own a cat.|What does Ann own?|a cat", "Ben|I bake.|What does Ben do?|bake")
    (tmp_path / "lines.txt").write_text("\n".join(rows))
    return folder.parent


def test_a_package_adds_a_data_set_a_reader_and_a_metric(riddles: Path, tmp_path: Path) -> None:
    out, named = tmp_path / "run", {"MEMSYS_PLUGINS": "riddles"}
    with stub_server(delay=0.0) as url:
        settings = ("memory=full_context", "dataset=lines", f"dataset.path={tmp_path / 'lines.txt'}", "reader=loud")
        places = (f"run_dir={out}", f"cache_dir={tmp_path / 'cache'}", "embedder=hashing")
        done = memsys(riddles, "run", *settings, *places, *attached(url), **named)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["riddle"] * 2
    assert all(row["metrics"]["same_length"] in (0.0, 1.0) for row in rows)
    record = json.loads((out / "run.json").read_text())
    assert record["config"]["reader"]["name"] == "loud" and record["config"]["dataset"]["name"] == "lines"
    prompts = json.dumps(record["prompts"])
    assert "loud" in prompts
    shown = memsys(riddles, "compare", str(out), "--out", str(tmp_path / "comparison"), **named)
    assert shown.returncode == 0 and "Same length" in shown.stdout, shown.stderr
    looked = memsys(riddles, "inspect_data", "dataset=lines", f"path={tmp_path / 'lines.txt'}", **named)
    assert looked.returncode == 0 and "riddle" in looked.stdout, looked.stderr
