"""The tables of docs/parity.md: the released codes as they are, the runs as they were."""

import json
from pathlib import Path

import pytest

from eval.commands.rendering.markdown import replace_tables
from eval.parity.config import counterparts
from eval.parity.page import PAGE, _states, released_table, runs_table
from memsys.errors import DataError


def test_the_page_names_every_released_code() -> None:
    shown = released_table()
    assert len(shown.splitlines()) == 2 + len(counterparts())
    page = PAGE.read_text(encoding="utf-8")
    assert replace_tables(PAGE, {"released": shown}) == page, "python -m eval.parity.page writes it"


def test_a_run_is_one_row(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"eval\.parity\.stages"):
        runs_table(tmp_path)
    count = {"compared": 3, "equal": 2, "wording": 1, "order": 0, "tie": 0, "content": 0}
    result = {
        "conversation": "c",
        "settings": {"prompts": "ours", "spoiled replies": "none"},
        "calls": {"reply": {"ours": 4, "theirs": 5, **count}},
        "parts": {"notes": count, "contexts": count, "answers": count, "settings": count},
        "unexplained": 1,
        "code": "0a1b",
    }
    (tmp_path / "clag" / "run").mkdir(parents=True)
    (tmp_path / "clag" / "run" / "parity.json").write_text(json.dumps(result), encoding="utf-8")
    before = f"| amem | d |{' 1 |' * 10}"
    row, other, kept, *_, states = runs_table(tmp_path, before).splitlines()[2:]
    assert states == "Versions of the code, by digest: `0a1b` for clag; `earlier` for the other rows."
    assert other.startswith("| clag_prompts | –") and other.endswith("| not run |"), "no stage is left out unseen"
    assert kept == before
    assert row == "| clag | c | ours | none | 4, 5 | 2 | 2 of 3 | 2 of 3 | 2 of 3 | 2 of 3 | 0 | 1 |"


def test_rows_of_other_code_are_named() -> None:
    assert _states({"a": "1", "b": "1"}) == "All rows are of one version of the code (digest `1`)."
    assert (
        _states({"a": "1", "b": "1", "c": "2"}) == "Versions of the code, by digest: `2` for c; `1` for the other rows."
    )
