"""CLAG's Table 11: answers that are printed to one question, next to those of runs."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eval.results.tables.printed_answers import DECLINES, FALSE, OTHER, answers_page, printed_answers
from eval.results.tables.spec import load_spec
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun, rewrite, stored


def lines(*folders: Path) -> list[list[str]]:
    """Cells of the page's table, row by row."""
    printed = printed_answers("clag")
    assert printed is not None
    page = answers_page(replace(printed, question="conv-26:4"), load_spec("clag"), [*map(stored, folders)])
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][2:]


def with_scores(run: FakeRun, folder: Path, **scores: float) -> Path:
    """Write a run whose question of category 5 has these scores."""
    path = run.write(folder)

    def change(number: int, row: dict[str, dict[str, float]]) -> None:
        row["metrics"].update(scores if number == 4 else {})

    rewrite(path, "scores.jsonl", change)
    return path


def test_what_a_printed_answer_is_follows_from_its_text() -> None:
    found = {line[0]: line[3:6] for line in lines()}
    assert found == {
        "CLAG": [FALSE, "right", "wrong"],
        "RAG": [DECLINES, "wrong", "right"],
        "A-Mem": [DECLINES, "wrong", "right"],
        "GAM": [DECLINES, "wrong", "right"],
        "MemoryOS": [OTHER, "wrong", "wrong"],
    }


def test_a_run_has_its_words_its_evidence_and_its_clusters(tmp_path: Path) -> None:
    scores = {"trapped": 1.0, "abstained": 0.0, "recall@10": 1.0, "shown_recall": 0.5}
    path = with_scores(FakeRun(memory="clag", backbone="qwen3_06b"), tmp_path, **scores)

    def trace(number: int, row: dict[str, object]) -> None:
        if number == 4:
            row["trace"] = {
                "searched": ["c0"],
                "searched_notes": 119,
                "stored_notes": 680,
                "hit_clusters": ["c0", "c0"],
            }

    rewrite(path, "retrievals.jsonl", trace)
    measured = lines(path)[-1]
    assert measured[:3] == ["CLAG", "Qwen3-0.6B", "secret answer"]
    assert measured[3:8] == [FALSE, "right", "wrong", "100", "50"]
    assert measured[8] == "c0: 119 of 680 notes; results in c0"


def test_a_run_without_clusters_or_answers_is_no_row_of_its_own(tmp_path: Path) -> None:
    declined = with_scores(FakeRun(), tmp_path, abstained=1.0)
    silent = FakeRun(memory="bm25_turn", mode="retrieval_only").write(tmp_path)
    timed = FakeRun(memory="amem", timing="latency").write(tmp_path)
    rows: Sequence[list[str]] = lines(declined, silent, timed)[5:]
    assert [row[0] for row in rows] == ["RAG"]
    assert rows[0][3:6] == [DECLINES, "wrong", "right"] and rows[0][8] == "–"


def test_a_paper_without_printed_answers_has_none(tmp_path: Path) -> None:
    assert printed_answers("sage") is None
    (tmp_path / "tiny_answers.yaml").write_text("paper: tiny\n")
    with pytest.raises(ConfigError, match=r"tiny_answers.yaml"):
        printed_answers("tiny", tmp_path)
