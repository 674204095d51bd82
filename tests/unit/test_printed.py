"""The transcription of the papers' numbers: complete, and its known faults found by arithmetic."""

from collections import Counter
from pathlib import Path

import pytest

from eval.printed import load_printed, recompute_overall
from memsys.errors import DataError

LOCOMO_QUESTIONS = {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}


def cell(table: int, **wanted: object) -> list[str]:
    return [
        number.text
        for number in load_printed("clag")
        if number.table == table and all(getattr(number, name) == value for name, value in wanted.items())
    ]


def test_numbers_per_table() -> None:
    counts = Counter(number.table for number in load_printed("clag"))
    expected = {1: 90, 2: 10, 3: 150, 4: 54, 5: 6, 6: 30, 7: 6, 8: 8, 9: 6, 10: 15, 12: 3, 14: 16, 15: 90, 16: 75}
    assert counts == expected


@pytest.mark.parametrize(
    ("table", "where", "text"),
    [
        (1, {"backbone": "qwen3_06b", "system": "rag", "dataset": "locomo", "metric": "f1_set"}, "12.9"),
        (1, {"backbone": "deepseek_r1_15b", "system": "clag", "dataset": "bioasq", "metric": "bleu1"}, "4.42"),
        (2, {"system": "gam", "metric": "end_to_end_ms"}, "17934.32"),
        (3, {"backbone": "llama32_1b", "system": "gam", "category": 3, "metric": "f1_set"}, "16.06"),
        (4, {"system": "clag", "dataset": "bioasq", "metric": "recall@5_substring"}, "25.90"),
        (15, {"backbone": "llama32_1b", "system": "gam", "dataset": "locomo", "metric": "bert_f1"}, "87.85"),
        (16, {"system": "gam", "dataset": "locomo", "metric": "hit_chars"}, "17198.04"),
    ],
)
def test_spot_values(table: int, where: dict[str, object], text: str) -> None:
    assert cell(table, **where) == [text]


def test_overall_values_that_do_not_follow_from_the_categories() -> None:
    """Table 1's LoCoMo columns are Table 3's, weighted by question counts, but for three cells of GAM."""
    mismatches = recompute_overall(load_printed("clag"), LOCOMO_QUESTIONS, (1, 3), tolerance=0.03)
    found = {(m.overall.backbone, m.overall.system, m.overall.metric): round(m.recomputed, 2) for m in mismatches}
    assert found == {
        ("llama32_1b", "gam", "f1_set"): 22.34,
        ("llama32_1b", "gam", "bleu1"): 19.56,
        ("deepseek_r1_15b", "gam", "f1_set"): 12.44,
    }
    assert all("does not follow" in mismatch.overall.note for mismatch in mismatches)


def test_every_recomputable_overall_value_was_recomputed() -> None:
    """With no tolerance all thirty cells differ or agree to the last digit: the check is not vacuous."""
    mismatches = recompute_overall(load_printed("clag"), LOCOMO_QUESTIONS, (1, 3), tolerance=-1.0)
    assert len(mismatches) == 30


def test_table_16_repeats_table_4_but_for_the_noted_cells() -> None:
    numbers = load_printed("clag")
    table4 = {(n.dataset, n.system, n.metric): n.value for n in numbers if n.table == 4}
    differing = {
        (n.dataset, n.system, n.metric): n.note
        for n in numbers
        if n.table == 16 and table4.get((n.dataset, n.system, n.metric), n.value) != n.value
    }
    assert set(differing) == {
        ("locomo", "clag", "ndcg@10_retrieved_substring"),
        ("bioasq", "clag", "e_precision_substring"),
        ("bioasq", "clag", "e_f1_substring"),
        ("bioasq", "clag", "recall@5_substring"),
        ("bioasq", "amem", "ndcg@10_retrieved_substring"),
    }
    assert all("Table 4 prints" in note for note in differing.values())
    assert table4[("locomo", "clag", "recall@10_substring")] == 9.74  # what Table 16 prints as nDCG


def test_identical_characters_are_noted() -> None:
    notes = [n.note for n in load_printed("clag") if n.metric == "hit_chars" and n.text == "1465.65"]
    assert len(notes) == 2
    assert all("identical" in note for note in notes)


def test_bold_is_the_best_of_its_block_and_underline_the_second() -> None:
    """Captions' rule; the one exception is underlined in the paper although it ranks fourth."""
    blocks: dict[tuple[object, ...], list[tuple[float, str]]] = {}
    for n in load_printed("clag"):
        if n.table in (1, 3, 4, 6, 15, 16) and n.metric != "hit_chars":
            blocks.setdefault((n.table, n.backbone, n.dataset, n.column), []).append((n.value, n.marks))
    odd = []
    for key, cells in blocks.items():
        ranked = sorted({value for value, _ in cells}, reverse=True)
        for value, marks in cells:
            assert (marks == "bold") == (value == ranked[0]), key
            if marks == "underline" and value != ranked[1]:
                odd.append((key[0], key[2], value))
    assert odd == [(16, "hotpotqa", 9.75)]


def test_failure_counts_add_up() -> None:
    counts = cell(14, metric="failures")
    assert sum(map(int, counts[:-1])) == int(counts[-1]) == 238


HEADER = "paper,table,row,column,dataset,backbone,system,protocol,metric,category,value,marks,note\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paper,table\n", r"x\.csv:1 must have the columns"),
        (HEADER + "x,1,A,F1,d,b,s,p,m,,12,5,,\n", r"x\.csv:2 has another number of fields"),
        (HEADER + "x,1,A,F1,d,b,s,p,m,,much,,\n", r"x\.csv:2.*much"),
        (HEADER + "x,1,A,F1,d,b,s,p,m,,1,italic,\n", r"x\.csv:2.*italic"),
        (HEADER + "x,1,A,F1,d,b,s,p,m,,1,,\n" * 2, "occurs twice"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        load_printed("x", tmp_path)


def test_an_unknown_paper_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "clag.csv").write_text(HEADER)
    with pytest.raises(DataError, match="papers with printed numbers: clag"):
        load_printed("nope", tmp_path)
