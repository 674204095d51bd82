"""The tables of docs/results.md are those of the committed runs."""

import pytest

from eval.results.evidence.results_page import BEGIN, PAGE, with_tables
from memsys.errors import ConfigError


def test_every_table_of_the_page_is_made_of_the_committed_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text) == text
    assert len(text.split()) < 3000


def test_a_number_that_was_edited_is_noticed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "| BM25 | 35.0 |" in text
    assert with_tables(text.replace("| BM25 | 35.0 |", "| BM25 | 95.0 |")) == text


def test_a_missing_mark_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="results: conv26_ours"):
        with_tables(text.replace(BEGIN.format("conv26_ours"), ""))
