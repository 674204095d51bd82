"""The pages on extending memsys, done as they say: files written, commands run, nothing else touched."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]+))?\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("memsys", "baselines", "eval", "conf", "datasets", "results/printed"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "local"))
    return tmp_path


#: Folders that commands write into.
WRITTEN = ("results/runs", "results/cache", "results/tables", "results/comparison", "results/servers")


def contents(folder: Path) -> dict[str, str]:
    """Checksum of every file but what commands write."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
        if not (name := path.relative_to(folder).as_posix()).startswith(WRITTEN)
    }


def write_files(page: str, checkout: Path) -> dict[str, str]:
    """Write the files of a page."""
    files = dict(_FILE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8")))
    for name, content in files.items():
        assert not (checkout / name).exists(), f"{page} changes {name}"
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(content, encoding="utf-8")
    return files


def run_commands(page: str, checkout: Path) -> str:
    """Run the commands of a page; returns what the last one printed."""
    blocks = _COMMANDS.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    commands = [line for block in blocks for line in block.splitlines()]
    assert commands
    places = {"PYTHONPATH": str(checkout), "MEMSYS_MODELS": str(ROOT / "models"), "COLUMNS": "200"}
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "memsys"
        done = subprocess.run(
            [sys.executable, "-m", "eval", *arguments], cwd=checkout, capture_output=True, text=True, check=False,
            env={**os.environ, **places}, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    return done.stdout


def check_retrieval(checkout: Path, printed: str) -> None:
    (record,) = (checkout / "results" / "runs" / "adhoc").glob("*/run.json")
    assert json.loads(record.read_text())["status"] == "complete"
    summary = json.loads((record.parent / "summary.json").read_text())
    assert summary["counts"]["questions"] > 0 and summary["evidence"]


def check_systems(checkout: Path, printed: str) -> None:
    """Both examples ran, and keep what every memory system must; following the page, three contract tests failed."""
    runs = {
        record.parent.name.split("-")[0]: record.parent for record in checkout.glob("results/runs/adhoc/*/run.json")
    }
    assert set(runs) == {"shared_words", "plain_notes"}
    for folder in runs.values():
        assert json.loads((folder / "run.json").read_text())["status"] == "complete"
    assert json.loads((runs["shared_words"] / "summary.json").read_text())["evidence"]
    for name in ("tests", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, checkout / name)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/contract", "-k", " or ".join(runs)],
        cwd=checkout, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout


def check_metric(checkout: Path, printed: str) -> None:
    rows = (checkout / "results" / "runs" / "recorded" / "mine" / "scores.jsonl").read_text().splitlines()
    assert [json.loads(row)["metrics"]["length_ratio"] for row in rows] == [1.0, 0.5]
    lines = printed.splitlines()
    place = next(line.index("Length") + len("Length") for line in lines if "Length" in line)
    assert any(line.startswith(" mine") and line[:place].endswith(" 75.0") for line in lines), printed


def check_table(checkout: Path, printed: str) -> None:
    table = (checkout / "results" / "tables" / "tiny_table01.md").read_text()
    printed_rag, after = table.split("RAG | ")[1].split("Nothing | ")
    assert printed_rag.startswith("printed | 100.0 |") and "measured | 100.00 |" in printed_rag, table
    assert "verdict | reproduced (by question, dates in the index) |" in printed_rag, table
    assert "measured" not in after.splitlines()[0], table
    assert "verdict | not run |" in after, table


#: Page -> pages whose files it needs, and what must be there afterwards.
PAGES: dict[str, tuple[tuple[str, ...], Callable[[Path, str], None]]] = {
    "add_a_memory_system": ((), check_systems),
    "add_a_data_set": ((), check_retrieval),
    "add_a_metric": ((), check_metric),
    "add_a_paper_table": (("add_a_data_set",), check_table),
}

#: Those whose commands ask a language model.
MODEL_PAGES = {"add_a_memory_system": pytest.mark.real_model}


def test_every_page_on_extending_memsys_is_tried() -> None:
    assert {path.stem for path in DOCS.glob("add_*.md")} == set(PAGES)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [pytest.param(page, marks=MODEL_PAGES.get(page, ())) for page in PAGES])
def test_what_a_page_says_works_and_is_all_it_takes(checkout: Path, page: str) -> None:
    needed, check = PAGES[page]
    for other in needed:
        write_files(other, checkout)
    before = contents(checkout)
    files = write_files(page, checkout)
    assert len(files) >= 2
    printed = run_commands(page, checkout)
    after = contents(checkout)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == set(files)
    check(checkout, printed)


def test_the_python_of_readme_prints_what_it_shows(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    ((code, shown),) = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    ending = 'baselines=["bm25_turn"])'
    assert ending in code
    (tmp_path / "ten.py").write_text(code.replace(ending, f"{ending[:-1]}, settings=['runs_dir={tmp_path}'])"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "60"}
    done = subprocess.run(
        [sys.executable, tmp_path / "ten.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(shown.splitlines()) <= set(map(str.rstrip, done.stdout.splitlines())), done.stdout


def places(text: str) -> set[str]:
    """Places of a page that a link may name behind #, as GitHub makes them of its headings."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(text)}


#: Pages that people read; those in results/tables are written by commands.
READ = tuple(
    path
    for pattern in ("*.md", "docs/*.md", "datasets/*/README.md", "results/*/README.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT).as_posix() for path in READ))
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target, place in _LINK.findall(path.read_text(encoding="utf-8")):
        found = path.parent / target if target else path
        assert found.exists(), target
        assert not place or place in places(found.read_text(encoding="utf-8")), f"{target}#{place}"


def test_a_place_of_a_page_is_named_as_github_does() -> None:
    assert places("# Facts, that\n## SAGE's 3 `b_c` of BEAM-100K\ntext") == {"facts-that", "sages-3-b_c-of-beam-100k"}
