"""The tables of docs/results.md are those of the committed runs."""

from pathlib import Path

from eval.commands.rendering.markdown import replace_tables
from eval.results.own.results_page import PAGE, page_tables


def test_every_table_of_the_page_is_made_of_the_committed_runs(tmp_path: Path) -> None:
    text, tables = PAGE.read_text(encoding="utf-8"), page_tables()
    assert replace_tables(PAGE, tables) == text, "make tables writes it"
    assert len(text.split()) < 3000
    edited = tmp_path / "results.md"
    edited.write_text(text.replace("| BM25 | 60.9 |", "| BM25 | 95.0 |"), encoding="utf-8")
    assert "95.0" in edited.read_text(encoding="utf-8") and replace_tables(edited, tables) == text
