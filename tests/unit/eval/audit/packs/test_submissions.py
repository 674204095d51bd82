"""Every file of results/submissions is a pack in which nothing is forged."""

from pathlib import Path

import pytest

from eval.audit.packs.checking import check_pack

FOLDER = Path(__file__).resolve().parents[5] / "results" / "submissions"
SUBMISSIONS = sorted(path for path in FOLDER.iterdir() if path.name != "README.md")
#: Bytes of a submission.
MOST = 2 << 20


def test_there_is_one_at_least() -> None:
    assert SUBMISSIONS


@pytest.mark.parametrize("path", SUBMISSIONS, ids=lambda path: path.name)
def test_a_submission_fits(path: Path) -> None:
    assert path.suffix == ".zip" and path.stat().st_size <= MOST
    wrong = [f"{one.what}: {one.text}" for one in check_pack(path) if one.state == "does not fit"]
    assert not wrong, wrong
