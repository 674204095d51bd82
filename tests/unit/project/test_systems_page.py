"""docs/systems.md has every memory system and every commit that is read, and CITATION.cff this version."""

import re
import tomllib
from pathlib import Path

import pytest

from eval.results.papers.deviations import systems

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "systems.md"
_COMMIT = re.compile(r"repository: ([\w./-]+), commit: ([0-9a-f]{7})")


@pytest.mark.parametrize("name", sorted(systems()))
def test_every_system_has_a_row(name: str) -> None:
    place = systems()[name][0]
    folder = place.parent if place.name == "deviations.yaml" else place.with_name(f"{name}.py")
    assert f"`{folder.relative_to(ROOT).as_posix()}`" in PAGE.read_text("utf-8")


def test_every_commit_that_is_read_is_named() -> None:
    read = [*ROOT.glob("memsys/*/prompt_pack.yaml"), *ROOT.glob("baselines/*/prompt_pack.yaml")]
    read += [*ROOT.glob("eval/parity/released/*.yaml")]
    rows = [row for row in PAGE.read_text("utf-8").splitlines() if row.startswith("|")]
    found = {match for path in read for match in _COMMIT.findall(path.read_text("utf-8"))}
    assert len(found) > 15
    for repository, commit in found:
        assert any(repository in row and commit in row for row in rows), (repository, commit)


def test_the_citation_has_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
