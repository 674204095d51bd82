"""The tables of docs/parity.md: the released codes as they are, the runs as they were."""

import json
from pathlib import Path

import pytest

from eval.parity.config import counterparts
from eval.parity.page import PAGE, released_table, runs_table
from eval.rendering.markdown import replace_tables
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
    }
    (tmp_path / "clag" / "run").mkdir(parents=True)
    (tmp_path / "clag" / "run" / "parity.json").write_text(json.dumps(result), encoding="utf-8")
    row = runs_table(tmp_path).splitlines()[2]
    assert row == "| clag | c | ours | none | 4, 5 | 2 | 2 of 3 | 2 of 3 | 2 of 3 | 2 of 3 | 0 | 1 |"
