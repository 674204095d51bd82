"""What the papers print, checked against itself."""

import csv
import sys
from collections import Counter
from pathlib import Path

import pytest

from eval.loaders.locomo import LOCOMO
from eval.results import papers
from eval.results.figures import papers as figure_papers
from eval.results.figures.source import figure_modules
from eval.results.papers.arithmetic import Recomputed, repetitions
from eval.results.papers.discover import checks_of
from eval.results.papers.faults import HEADINGS, check, check_all, fault_lines, faults_page
from eval.results.papers.printed import PRINTED, PrintedNumber, load_printed

GOLDEN = Path(__file__).parents[3] / "golden" / "averages_that_do_not_follow.csv"
TABLE = PRINTED.parent / "tables" / "averages_that_do_not_follow.md"


def number(text: str, category: int | None = None, **changes: object) -> PrintedNumber:
    base: dict[str, object] = {
        "paper": "sage", "table": 1, "row": "A", "column": "F1", "dataset": "locomo", "backbone": "b", "system": "s",
        "protocol": "sage", "metric": "f1_set", "marks": "", "note": "",
    }  # fmt: skip
    return PrintedNumber(**{**base, "text": text, "category": category, **changes})  # type: ignore[arg-type]


def test_the_faults_are_the_known_ones() -> None:
    """The golden file; a new line in it is a new fault of a paper or of the transcription."""
    found = [line for entries in check_all().values() for line in fault_lines(entries)]
    with GOLDEN.open(encoding="utf-8", newline="") as handle:
        assert [HEADINGS, *found] == [tuple(row) for row in csv.reader(handle)]


def test_the_readable_table_is_the_one_that_is_committed() -> None:
    assert TABLE.read_text(encoding="utf-8") == faults_page(check_all())


def test_every_average_was_recomputed() -> None:
    """All averages of CLAG's LoCoMo columns, xMemory's Tables 1, 4-6 and 8, MemFly's 1 and 2, SAGE's 1 and 2."""
    counts = Counter((entry.number.paper, entry.number.table) for entry in check_all()["averages"])
    assert dict(counts) | {
        ("clag", 1): 30,
        ("xmemory", 1): 36,
        ("xmemory", 4): 10,
        ("xmemory", 5): 6,
        ("xmemory", 6): 8,
        ("xmemory", 8): 8,
        ("memfly", 1): 28,
        ("memfly", 2): 27,
        ("sage", 1): 69,
        ("sage", 2): 36,
    } == dict(counts)


def test_averages_that_do_not_follow_say_so_in_their_note() -> None:
    wrong = [entry for entry in check_all()["averages"] if not entry.follows]
    assert len(wrong) == 19
    for entry in wrong:
        assert "does not follow" in entry.number.note
        assert f"{entry.value:.2f}" in entry.number.note


def test_no_other_number_is_called_wrong() -> None:
    right = [entry.number for entry in check_all()["averages"] if entry.follows]
    assert not [number for number in right if "does not follow" in number.note]


def test_memfly_prints_the_counts_that_weigh_the_averages() -> None:
    printed = {
        n.category: int(n.text) for n in load_printed("memfly") if n.metric == "questions" and n.category is not None
    }
    assert printed == LOCOMO.question_counts


@pytest.mark.parametrize(("overall", "follows"), [("2.50", True), ("2.51", True), ("2.52", False), ("2.48", False)])
def test_rounding_of_the_parts_and_of_the_average_is_allowed(overall: str, follows: bool) -> None:
    """Plain mean of 1.00, 2.00, 3.00, 4.00: half a unit for the average and half a unit for its parts."""
    numbers = [number(f"{category}.00", category) for category in (1, 2, 3, 4)]
    (found,) = check("sage", [*numbers, number(overall)])["averages"]
    assert found.value == pytest.approx(2.5)
    assert found.tolerance == pytest.approx(0.01)
    assert found.follows is follows


def test_an_average_without_all_its_parts_is_left_out() -> None:
    assert check("sage", [number("1.00", 1), number("2.50")])["averages"] == []


def test_a_repetition_is_found_in_the_later_table_alone() -> None:
    first, same, other = number("1.00"), number("1.0", table=2), number("1.10", table=3)
    assert repetitions([first, same]) == []
    assert [(entry.number, entry.value) for entry in repetitions([first, same, other])] == [(other, 1.0)]


def test_difference_is_printed_minus_recomputed() -> None:
    assert Recomputed(number("2.00"), 1.5, 0.1, "x").difference == 0.5


def test_a_paper_without_a_folder_has_no_checks_and_no_figures() -> None:
    for name in ("unheard_of", "claims"):
        assert checks_of(name) == checks_of("none") and name not in figure_modules()


def test_a_folder_adds_a_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "code" / "mine"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "printed_numbers.py").write_text(
        "from eval.results.papers.arithmetic import weighted_mean\n"
        "AVERAGES = (weighted_mean(1, {1: 3, 2: 1}, 'three to one'),)\n"
    )
    (figures := tmp_path / "figures").mkdir()
    (figures / "mine.py").write_text("NEEDED = (1,)\ndef sheets(source):\n    return ['a sheet']\n")
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path / "code")])
    monkeypatch.setattr(figure_papers, "__path__", [*figure_papers.__path__, str(figures)])
    numbers = [number("1.0", 1, paper="mine"), number("3.0", 2, paper="mine"), number("1.5", paper="mine")]
    (found,) = check("mine", numbers)["averages"]
    assert found.value == pytest.approx(1.5) and found.follows and found.rule == "three to one"
    assert figure_modules()["mine"].sheets(None) == ["a sheet"]
    for name in (
        "eval.results.papers.mine.printed_numbers",
        "eval.results.figures.papers.mine",
        "eval.results.papers.mine",
    ):
        monkeypatch.delitem(sys.modules, name)
