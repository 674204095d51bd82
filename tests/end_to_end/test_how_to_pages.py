"""The pages on extending memsys, done as they say: files written, commands run, nothing else touched."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_FILE = re.compile(r"^```\w+ file=(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#:]+)\)")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("memsys", "baselines", "eval", "conf", "hydra_plugins", "datasets", "results/printed"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "local"))
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    """Checksum of every file but what runs write."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.is_relative_to(folder / "results")
    }


@pytest.mark.parametrize("page", ["add_a_memory_system", "add_a_data_set"])
def test_what_a_page_says_works_and_is_all_it_takes(checkout: Path, page: str) -> None:
    text, before = (DOCS / f"{page}.md").read_text(encoding="utf-8"), contents(checkout)
    files = dict(_FILE.findall(text))
    assert len(files) >= 2 and not set(files) & set(before)
    for name, content in files.items():
        (checkout / name).write_text(content, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    commands = [line for block in _COMMANDS.findall(text) for line in block.splitlines()]
    assert commands
    for line in commands:
        program, *arguments = shlex.split(line)
        assert program == "memsys"
        done = subprocess.run(
            [sys.executable, "-m", "eval", *arguments], cwd=checkout, env=environment, capture_output=True, text=True,
            timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    after = contents(checkout)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == set(files)
    (record,) = (checkout / "results" / "runs" / "adhoc").glob("*/run.json")
    assert json.loads(record.read_text())["status"] == "complete"
    summary = json.loads((record.parent / "summary.json").read_text())
    assert summary["counts"]["questions"] > 0 and summary["evidence"]


@pytest.mark.parametrize("page", sorted(path.name for path in (*DOCS.glob("*.md"), ROOT / "README.md")))
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page if page == "README.md" else DOCS / page
    for target in _LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
