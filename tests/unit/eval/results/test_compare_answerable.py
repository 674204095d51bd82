"""Comparisons where category 5 rewards the false answer: F1 answerable has tests of its own beside those of F1."""

import csv
from io import StringIO
from pathlib import Path

import pytest

from eval.results.compare.formats import comparison_files
from eval.results.compare.model import Report, make_report
from eval.results.compare.terminal import show
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.results.tables.pairs import Pair
from eval.scoring.paired import holm
from eval.scoring.protocols import load_protocol
from tests.support.fake_run import FakeRun

CLAG = load_protocol("clag")
TEN = tuple(f"conv-{number}" for number in range(10))


def stored(root: Path, memory: str, answerable: float, fooled: float, **changes: object) -> StoredRun:
    """A run with one score for the questions of categories 1 to 4, and another for those of category 5."""

    def values(number: int, metric: str) -> float:
        return fooled if number % 5 == 4 else answerable

    fake = FakeRun(memory=memory, values=values, **{"conversations": TEN, **changes})  # type: ignore[arg-type]
    run = read_run(fake.write(root))
    assert not isinstance(run, Skipped)
    return run


def uneven(root: Path, memory: str) -> StoredRun:
    """A run that is as often above 0.5 as below it, and is always fooled."""

    def values(number: int, metric: str) -> float:
        return 1.0 if number % 5 == 4 else 0.5 + (0.2 if number // 10 % 2 else -0.2)

    run = read_run(FakeRun(memory=memory, values=values, conversations=TEN).write(root))
    assert not isinstance(run, Skipped)
    return run


def pairs_of(report: Report, column: str) -> list[Pair]:
    return [pair for pair in report.pairs if pair.column == column]


def test_f1_answerable_is_tested_beside_f1_as_a_family_of_its_own(tmp_path: Path) -> None:
    """Only F1 was tested, in which being fooled counts as right."""
    runs = [stored(tmp_path, "rag", 0.5, 0.0), stored(tmp_path, "amem", 0.3, 1.0), stored(tmp_path, "clag", 0.6, 0.0)]
    report = make_report(runs, CLAG)
    assert list(dict.fromkeys(pair.column for pair in report.pairs)) == ["F1", "F1 answerable", "R@10 (turn ids)"]
    overall, answerable = ({pair.system: pair for pair in pairs_of(report, name)} for name in ("F1", "F1 answerable"))
    assert overall["amem"].result.difference == pytest.approx(4.0)
    assert answerable["amem"].result.difference == pytest.approx(-20.0)
    assert (overall["amem"].result.questions, answerable["amem"].result.questions) == (100, 80)
    assert not any(pair.exploratory for pair in answerable.values())
    raw = [pair.result.p_value or 0.0 for pair in answerable.values()]
    assert [pair.adjusted for pair in answerable.values()] == list(holm(raw))  # over two tests, not over four


def test_questions_that_the_protocol_leaves_out_are_not_tested_twice(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag", 0.5, 0.0), stored(tmp_path, "amem", 0.3, 1.0)]
    assert not pairs_of(make_report(runs, load_protocol("xmemory")), "F1 answerable")
    answered = [
        stored(tmp_path / "without", name, value, value, categories=(1, 2, 3, 4))
        for name, value in (("rag", 0.5), ("amem", 0.3))
    ]
    assert not pairs_of(make_report(answered, CLAG), "F1 answerable")
    assert "Without the questions" not in make_report(answered, CLAG).conclusion


def test_the_tests_stand_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report([stored(tmp_path, "rag", 0.5, 0.0), stored(tmp_path, "amem", 0.3, 1.0)], CLAG)
    note = "F1 answerable: the tests of F1 on the answerable questions"
    show(report)
    shown = capsys.readouterr().out
    assert "amem    F1 answerable     80  -20.0" in shown
    assert note in " ".join(shown.split())
    text = comparison_files(report)["compare.md"]
    assert "| amem | F1 answerable | 80 | -20.0 | [-20.0, -20.0] | 0.002 |" in text
    assert note in text
    rows = {row["system"]: row for row in csv.DictReader(StringIO(comparison_files(report)["compare.csv"]))}
    assert rows["amem"]["against"] == "rag"
    assert rows["amem"]["F1 difference"] == "4.0000"
    assert rows["amem"]["F1 answerable difference"] == "-20.0000"
    assert float(rows["amem"]["F1 answerable p (Holm)"]) == pytest.approx(2 / 1024, abs=1e-4)
    assert rows["amem"]["F1 answerable n tested"] == "80"
    assert rows["rag"]["against"] == rows["rag"]["F1 difference"] == ""
    latex = comparison_files(report)["compare.tex"]
    assert r"\caption{Paired tests against rag.}" in latex
    assert "amem & F1 answerable & 80 & $-$20.0 & {[}$-$20.0, $-$20.0] & 0.002" in latex
    assert note in latex


def test_the_conclusion_says_what_holds_under_one_alone(tmp_path: Path) -> None:
    rag = stored(tmp_path, "rag", 0.5, 0.0)

    def said(run: StoredRun) -> str:
        return make_report([rag, run], CLAG).conclusion

    fooled = said(uneven(tmp_path, "amem"))
    assert fooled.startswith("On 100 questions of 10 conversations amem leads rag by 20.0 points F1;")
    assert "so the lead holds. On the questions that have an answer " in fooled
    assert fooled.endswith("after Holm's correction): the lead holds for F1 alone.")
    assert said(stored(tmp_path, "clag", 0.6, 1.0)).endswith(
        "so the lead holds. On the questions that have an answer clag leads rag by 10.0 points F1 answerable "
        "([10.0, 10.0], p = 0.002 after Holm's correction): the lead holds there too."
    )
    assert said(stored(tmp_path, "sage", 0.3, 1.0)).endswith(
        "On the questions that have an answer rag leads sage by 20.0 points F1 answerable ([20.0, 20.0], "
        "p = 0.002 after Holm's correction): there the opposite lead holds."
    )


def test_the_conclusion_finds_a_lead_that_f1_hides(tmp_path: Path) -> None:
    """A system that is better on all that can be answered, and is fooled in some conversations less."""
    rag = stored(tmp_path, "rag", 0.5, 0.5)

    def values(number: int, metric: str) -> float:
        return (0.0 if number // 10 % 2 else 0.7) if number % 5 == 4 else 0.55

    run = read_run(FakeRun(memory="amem", values=values, conversations=TEN).write(tmp_path))
    assert isinstance(run, StoredRun)
    report = make_report([rag, run], CLAG)
    assert "includes 0, so no difference can be claimed. On the questions" in report.conclusion
    assert report.conclusion.endswith("a lead holds for F1 answerable alone.")
    level = make_report([rag, uneven(tmp_path, "clag")], load_protocol("clag"))
    assert level.conclusion.endswith("no difference can be claimed there either.")


def test_other_systems_are_named_where_one_test_alone_claims_a_difference(tmp_path: Path) -> None:
    runs = [
        stored(tmp_path, "rag", 0.5, 0.0),
        stored(tmp_path, "clag", 0.9, 0.9),
        uneven(tmp_path, "amem"),
        stored(tmp_path, "mem0", 0.4, 0.4),
    ]
    report = make_report(runs, CLAG)
    assert report.conclusion.startswith("On 100 questions of 10 conversations clag leads rag")
    assert report.conclusion.endswith(
        "Of the other differences to rag these hold for F1 alone: amem (above); for F1 answerable alone: mem0 (below)."
    )
