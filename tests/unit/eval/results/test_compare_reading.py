"""How a comparison reads: its baseline, its order, its conclusion, and its tables in any window."""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from eval.commands.rendering.table import Column, table_of
from eval.commands.rendering.terminal import show as show_table
from eval.commands.safe_console import SafeConsole
from eval.commands.terminal import console
from eval.results.compare import terminal as compare_terminal
from eval.results.compare.conclusion import conclusion
from eval.results.compare.formats import comparison_files
from eval.results.compare.model import Report, cell, make_report
from eval.results.compare.report import compare
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.runs.folders import SUMMARIES, find_run_folders
from eval.scoring.paired import holm
from eval.scoring.protocols import load_protocol
from memsys.errors import ConfigError, RunDirectoryError
from tests.support.fake_run import EVIDENCE, FakeRun, rewrite
from tests.support.fake_run import stored as read

CLAG = load_protocol("clag")


def stored(root: Path, memory: str, value: float = 0.5, **changes: object) -> StoredRun:
    run = read_run(FakeRun(memory=memory, values=lambda number, metric: value, **changes).write(root))  # type: ignore[arg-type]
    assert not isinstance(run, Skipped)
    return run


def test_rag_is_the_baseline_wherever_it_stands(tmp_path: Path) -> None:
    runs = [stored(tmp_path, name) for name in ("amem", "rag_prune", "clag", "rag")]
    assert make_report(runs, CLAG).baseline == "rag"
    assert make_report(runs[:1] + runs[2:3], CLAG).baseline in ("amem", "clag")
    assert make_report([runs[0], stored(tmp_path, "no_memory")], CLAG).baseline == "no_memory"


def test_a_named_baseline_is_taken(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag"), stored(tmp_path, "amem"), stored(tmp_path, "clag")]
    assert make_report(runs, CLAG, "clag").baseline == "clag"
    assert make_report(runs, CLAG, runs[1].run_id).baseline == "amem"
    assert make_report(runs, CLAG, runs[1].run_id.rpartition("-")[2]).baseline == "amem"
    report = make_report(runs, CLAG, "clag")
    assert {pair.baseline for pair in report.pairs} == {"clag"}
    assert "## Paired tests against clag" in comparison_files(report)["compare.md"]


def test_an_unknown_baseline_is_answered_with_the_names(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag"), stored(tmp_path, "amem")]
    with pytest.raises(ConfigError, match=r"names no system here.*rag.*amem"):
        make_report(runs, CLAG, "ram")


def test_rows_are_sorted_by_the_primary_metric(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag", 0.2), stored(tmp_path, "amem", 0.9), stored(tmp_path, "clag", 0.5)]
    assert [row.label for row in make_report(runs, CLAG).rows] == ["amem", "clag", "rag"]


def test_the_conclusion_counts_the_conversations_that_were_compared(tmp_path: Path) -> None:
    ten = tuple(f"conv-{number}" for number in range(10))
    runs = [stored(tmp_path, "rag", 0.9, conversations=ten), stored(tmp_path, "amem", 0.1, conversations=ten[:3])]
    assert "On 30 questions of 3 conversations rag leads" in make_report(runs, CLAG).conclusion


def _without_evidence(root: Path, memory: str, dataset: str) -> StoredRun:
    path = FakeRun(memory=memory, dataset=dataset, mode="retrieval_only").write(root)
    gone = (*EVIDENCE, *(f"{name}_substring" for name in EVIDENCE))
    rewrite(path, "scores.jsonl", lambda number, row: row["metrics"].update(dict.fromkeys(gone)))
    record = json.loads((path / "run.json").read_text())
    record["data"]["questions_without_evidence"] = record["data"]["questions"]
    (path / "run.json").write_text(json.dumps(record))
    return read(path)


@pytest.mark.usefixtures("unsigned")
def test_retrieval_without_any_evidence_says_that_nothing_can_be_scored(tmp_path: Path) -> None:
    """A run that only retrieves, on questions of one's own without `evidence`, ended without a word."""
    mine = _without_evidence(tmp_path, "rag", "custom")
    said = (
        "No question that was asked on custom has evidence, so what rag retrieved cannot be scored: name the turns "
        "that hold the answer (evidence in questions.jsonl, docs/your_own_data.md), or let a backbone answer "
        "(mode=answers)."
    )
    report = make_report([mine], CLAG)
    assert report.conclusion == said
    assert "No question that was asked on custom has evidence" in comparison_files(report)["compare.md"]
    blind = [_without_evidence(tmp_path, name, "locomo") for name in ("bm25_turn", "dense_turn")]
    other = make_report([*blind, stored(tmp_path, "amem")], CLAG).conclusion
    assert other.startswith("On 20 questions") and "memsys inspect_data dataset=locomo counts them" in other
    assert re.search("so what bm25_turn, [^.]* and dense_turn, [^.]* retrieved cannot be scored", other)
    answered = replace(mine, record={**mine.record, "mode": "answers"})
    assert "No question" not in make_report([answered], CLAG).conclusion


def test_two_kinds_of_intervals_are_told_apart_in_csv(tmp_path: Path) -> None:
    report = make_report([stored(tmp_path, "rag", 0.9)], CLAG)
    f1 = report.rows[0].estimates["F1"]
    assert f1.interval is not None and f1.interval.by == "conversation"
    other = replace(f1, interval=replace(f1.interval, by="question"))
    row = replace(report.rows[0], estimates={**report.rows[0].estimates, "F1 answerable": other})
    (line,) = csv.DictReader(StringIO(comparison_files(replace(report, rows=(row,)))["compare.csv"]))
    assert line["interval_by"] == "conversation and question"


def test_the_conclusion_says_what_can_be_claimed(tmp_path: Path) -> None:
    ten = tuple(f"conv-{number}" for number in range(10))
    rag = stored(tmp_path, "rag", 0.2, conversations=ten)
    amem = stored(tmp_path, "amem", 0.5, conversations=ten)
    assert make_report([rag, amem], CLAG).conclusion == (
        "On 100 questions of 10 conversations amem leads rag by 30.0 points F1; the paired 95 % interval [30.0, 30.0] "
        "leaves out 0 (p = 0.002 after Holm's correction), so the lead holds. On the questions that have an "
        "answer amem leads rag by 30.0 points F1 answerable ([30.0, 30.0], p = 0.002 after Holm's correction): the "
        "lead holds there too."
    )
    values = FakeRun(memory="clag", conversations=ten, values=lambda n, metric: 0.2 + 0.3 * (n // 10 % 2) - 0.14)
    clag = read_run(values.write(tmp_path))
    assert isinstance(clag, StoredRun)
    assert "includes 0, so no difference can be claimed" in make_report([rag, clag], CLAG).conclusion
    assert "no other system to compare it with" in make_report([rag], CLAG).conclusion
    same = stored(tmp_path, "memfly", 0.2, conversations=ten)
    assert "[0.0, 0.0]" in make_report([rag, same], CLAG).conclusion


def test_the_conclusion_says_that_a_named_baseline_has_no_such_score(tmp_path: Path) -> None:
    """It said that there is no other system to compare it with, below a table of two with F1."""
    searched = stored(tmp_path, "rag", mode="retrieval_only")
    runs = [searched, stored(tmp_path, "rag", 0.2), stored(tmp_path, "amem", 0.5)]
    report = make_report(runs, CLAG)
    assert report.baseline == "rag, smollm2_135m"
    assert "amem, smollm2_135m leads rag, smollm2_135m by 30.0 points F1" in report.conclusion
    assert make_report(runs, CLAG, searched.run_id).conclusion == (
        "On 20 questions of 2 conversations amem, smollm2_135m has F1 50.0; the baseline, rag, none, has no F1, so "
        "nothing was tested."
    )
    alone = make_report(runs[::2], CLAG).conclusion
    assert alone == "On 20 questions of 2 conversations amem, smollm2_135m has F1 50.0; no other system here has F1."


def test_the_conclusion_says_why_no_system_was_tested(tmp_path: Path) -> None:
    """Of two that share no question, too, it said that there is no other system."""
    rag, amem = (
        stored(tmp_path, "rag", 0.2, conversations=("c1",)),
        stored(tmp_path, "amem", 0.5, conversations=("c2",)),
    )
    begin = "On 10 questions of one conversation amem has F1 50.0; "
    assert make_report([rag, amem], CLAG).conclusion == f"{begin}it shares no question with rag, the baseline."
    assert make_report([rag, amem], CLAG, "amem").conclusion == f"{begin}the others share no question with it."


def test_the_conclusion_does_not_say_that_a_test_fails_which_was_not_declared(tmp_path: Path) -> None:
    """Of retrieval alone, whose p was 0.002, it said that the test does not confirm the difference."""
    ten = tuple(f"conv-{number}" for number in range(10))
    report = make_report([stored(tmp_path, *each, conversations=ten) for each in (("rag", 0.2), ("amem", 0.5))], CLAG)
    pairs = [replace(pair, adjusted=None) for pair in report.pairs if pair.column == "F1"]
    assert conclusion(report.rows, report.rows[1], pairs, "F1") == (
        "On 100 questions of 10 conversations amem leads rag by 30.0 points F1; the paired 95 % interval [30.0, 30.0] "
        "leaves out 0; its test is exploratory (p = 0.002, not corrected), so no difference can be claimed."
    )


def test_recall_is_the_primary_metric_where_no_run_has_answers(tmp_path: Path) -> None:
    """No difference could ever be claimed, and an uncorrected p stood below p (Holm)."""
    ten = tuple(f"conv-{number}" for number in range(10))
    values = (("rag", 0.2), ("bm25_turn", 0.5), ("hybrid_turn", 0.4))
    runs = [stored(tmp_path, *each, mode="retrieval_only", conversations=ten) for each in values]
    report = make_report(runs, CLAG)
    assert {pair.column for pair in report.pairs} == {"R@10 (turn ids)"}
    assert not any(pair.exploratory for pair in report.pairs)
    assert [pair.adjusted for pair in report.pairs] == list(holm([pair.result.p_value or 0.0 for pair in report.pairs]))
    assert report.conclusion == (
        "On 100 questions of 10 conversations bm25_turn leads rag by 30.0 points R@10; the paired 95 % interval "
        "[30.0, 30.0] leaves out 0 (p = 0.004 after Holm's correction), so the lead holds."
    )
    assert "no run here has answers: the primary metric is R@10" in comparison_files(report)["compare.md"]
    answered = make_report([stored(tmp_path, "amem", 0.3, conversations=ten), *runs], CLAG)
    assert {pair.column: pair.exploratory for pair in answered.pairs}["R@10 (turn ids)"]
    assert "no run here has answers" not in comparison_files(answered)["compare.md"]


def test_larger_memories_lead_no_comparison_without_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A memory of whole sessions found all evidence in ten of them, and was said to have more than RAG."""
    ten = tuple(f"conv-{number}" for number in range(10))

    def run(memory: str, memories: float, turns: float, extra: tuple[str, ...] = ("recall_turns@10",)) -> StoredRun:
        values = {"recall@10": memories, "recall_turns@10": turns}
        fake = FakeRun(memory=memory, mode="retrieval_only", conversations=ten, extra_metrics=extra,
                       values=lambda number, metric: values.get(metric, 0.1))  # fmt: skip
        return read(fake.write(tmp_path))

    sessions, rag = run("object", 1.0, 0.5), run("rag", 0.8, 0.8)
    report = make_report([sessions, rag], CLAG)
    assert [row.label for row in report.rows] == ["rag", "object"]
    (pair,) = report.pairs
    assert (pair.column, pair.verdict) == ("R@10 turns (turn ids)", "below")
    assert pair.result.difference == pytest.approx(-30.0)
    assert "rag leads object by 30.0 points R@10 turns;" in report.conclusion
    assert report.rows[0].by_category[1].value == pytest.approx(80.0)  # as it is drawn
    compare_terminal.show(report)
    heading = next(line for line in capsys.readouterr().out.splitlines() if "R@10" in line)
    assert heading.split()[2:5] == ["R@10", "turns", "95"] and "R@10 " in heading[30:]
    former = run("amem", 0.9, 0.0, extra=())  # scored by a version without this measure
    assert make_report([sessions, rag, former], CLAG).lead == "R@10"


def test_an_interval_of_a_share_is_shown_as_far_as_a_share_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demo's five questions gave F1 of [-16.2, 85.5] and R@10 of [24.5, 135.5] percent."""
    five = {"conversations": ("conv-26",), "questions_each": 5}
    right = read_run(FakeRun(values=lambda number, metric: float(number > 0), **five).write(tmp_path))  # type: ignore[arg-type]
    wrong = read_run(FakeRun(memory="amem", values=lambda n, metric: float(n == 0), **five).write(tmp_path))  # type: ignore[arg-type]
    assert isinstance(right, StoredRun) and isinstance(wrong, StoredRun)
    report = make_report([right, wrong], CLAG)
    text = comparison_files(report)["compare.md"]
    assert "80.0 [24.5, 100.0]‡" in text and "20.0 [0.0, 75.5]‡" in text
    compare_terminal.show(report)
    shown = capsys.readouterr().out
    assert "[24.5, 100.0]‡" in shown and "135.5" not in shown and "[-35.5" not in shown
    assert "[-171.1, +51.1]" in shown  # a difference is not a share
    assert report.rows[0].estimates["F1"].point.high == 100.0  # as figures show it
    rows = list(csv.DictReader(StringIO(comparison_files(report)["compare.csv"])))
    assert [row["F1 high"] for row in rows] == ["135.5289", "75.5289"]  # computed ends stay


def test_one_conversation_says_nothing_about_others(tmp_path: Path) -> None:
    runs = [stored(tmp_path, name, value, conversations=("conv-26",)) for name, value in (("rag", 0.2), ("amem", 0.5))]
    report = make_report(runs, CLAG)
    assert report.conclusion.startswith(
        "On 10 questions of one conversation amem has 30.0 points more F1 here than rag; no verdict follows from one "
        "conversation, and each was built once: the spread over builds is unknown."
    )
    written = comparison_files(report)
    assert "| amem | F1 | 10 | +30.0 | [+30.0, +30.0]‡ | 0.002‡ |  |" in written["compare.md"]
    assert written["compare.md"].count("blank: one conversation") == 1
    assert next(csv.DictReader(StringIO(written["compare.csv"])))["F1 verdict"] == ""


def test_two_with_the_same_mean_on_one_conversation_are_equal(tmp_path: Path) -> None:
    """A difference that rounds to 0 was one "by 0.0 points"."""
    one = {"conversations": ("conv-26",)}
    runs = [stored(tmp_path, name, 0.5, **one) for name in ("rag", "amem")]
    report = make_report(runs, CLAG)
    assert "are equal here in F1; no verdict follows from one conversation" in report.conclusion
    assert "differs" not in report.conclusion
    assert "| amem | F1 | 10 | +0.0 | [+0.0, +0.0]‡ | 1.000‡ |  |" in comparison_files(report)["compare.md"]
    near = make_report([runs[0], stored(tmp_path, "clag", 0.5003, **one)], CLAG)
    assert "clag has less than 0.1 points more F1 here than rag;" in near.conclusion


def test_a_reference_leads_nothing(tmp_path: Path) -> None:
    """The sentence said that the gold evidence leads RAG, which every comparison with it shows."""
    runs = [stored(tmp_path, name, value) for name, value in (("oracle", 0.9), ("rag", 0.2), ("amem", 0.5))]
    report = make_report(runs, CLAG)
    assert report.rows[0].label == "oracle"
    assert "amem leads rag by 30.0 points F1" in report.conclusion
    assert "rag leads clag by 10.0" in make_report([*runs[:2], stored(tmp_path, "clag", 0.1)], CLAG).conclusion
    only = [runs[0], stored(tmp_path, "no_memory", 0.1)]
    assert "oracle leads no_memory by 80.0" in make_report(only, CLAG).conclusion


def test_a_system_among_references_is_held_against_one_that_it_may_beat(tmp_path: Path) -> None:
    """It said "rag leads oracle by -40.0 points F1 ... so the lead holds"."""
    ten = tuple(f"conv-{number}" for number in range(10))
    values = {"oracle": 0.9, "rag": 0.5, "no_memory": 0.1, "full_context": 0.3}
    oracle, rag, no_memory, full_context = (stored(tmp_path, *pair, conversations=ten) for pair in values.items())
    assert "rag leads full_context by 20.0" in make_report([oracle, rag, no_memory, full_context], CLAG).conclusion
    for against in (None, "oracle"):
        assert "oracle leads rag by 40.0" in make_report([oracle, rag], CLAG, against).conclusion


def test_who_leads_on_the_questions_of_both_is_named_first(tmp_path: Path) -> None:
    """The order of the rows is that of all questions of each: the sentence gave a negative lead."""
    two = ("conv-1", "conv-2")
    rag = stored(tmp_path, "rag", 0.5, conversations=two[:1])
    uneven = FakeRun(memory="amem", conversations=two, values=lambda n, metric: 0.4 if n < 10 else 1.0)
    amem = read_run(uneven.write(tmp_path))
    assert isinstance(amem, StoredRun)
    report = make_report([rag, amem], CLAG)
    assert [row.label for row in report.rows] == ["amem", "rag"]
    assert report.conclusion.startswith(
        "On 10 questions of one conversation rag has 10.0 points more F1 here than amem;"
    )


def test_two_that_no_shown_digit_tells_apart_are_level(tmp_path: Path) -> None:
    """One of two equal systems "leads by 0.0 points"."""
    said = make_report([stored(tmp_path, "rag", 0.5), stored(tmp_path, "amem", 0.5)], CLAG).conclusion
    assert re.search(r"(rag and amem|amem and rag) are level \(0\.0 points F1 apart\);", said) and "leads" not in said


@pytest.mark.usefixtures("unsigned")
def test_constants_stand_beside_the_runs_on_their_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Comparing a run with a constant ended with "protocol='None' is unknown"."""
    rag = FakeRun(values=lambda number, metric: 0.5, data_sha256="7" * 64, questions_each=5).write(tmp_path / "runs")
    floor = FakeRun(memory="always_trap", values=lambda number, metric: 0.2, data_sha256="7" * 64).write(tmp_path)
    record = json.loads((floor / "run.json").read_text())
    record["config"] = {"memory": {"name": "always_trap"}, "dataset": {"name": "locomo"}}
    (floor / "run.json").write_text(json.dumps({**record, "mode": "floor"}))
    compare([rag, floor], tmp_path / "out")
    shown = capsys.readouterr().out
    assert re.search(r"always_trap +10 +20\.0 ", shown)  # of its 20 questions those that RAG was asked
    assert re.search(r"always_trap +F1 +10 +-30\.0 ", shown)
    with pytest.raises(RunDirectoryError, match="constant answers name no protocol"):
        compare([floor], tmp_path / "out")


def test_a_lead_with_other_settings_is_not_the_memorys_alone(tmp_path: Path) -> None:
    ten = tuple(f"conv-{number}" for number in range(10))
    rag = stored(tmp_path, "rag", 0.2, conversations=ten)
    amem = stored(tmp_path, "amem", 0.5, conversations=ten, parts={"reader": {"k": 3}})
    rag = replace(rag, record={**rag.record, "config": {**rag.record["config"], "reader": {"name": "clag", "k": 5}}})
    said = make_report([rag, amem], CLAG).conclusion
    assert "so the lead holds; the two differ in reader too, so it is not the memory's alone." in said


def test_means_over_fewer_questions_than_asked_say_so(tmp_path: Path) -> None:
    """The table had one n, of the questions asked, beside means without category 5 and of category 5 alone."""
    half = FakeRun(memory="amem", values=lambda n, metric: 0.5).write(tmp_path)
    rewrite(half, "scores.jsonl", lambda n, row: row["metrics"].update({"recall@10": None} if n % 2 else {}))
    amem = read_run(half)
    assert isinstance(amem, StoredRun)
    report = make_report([stored(tmp_path, "rag"), amem], CLAG)
    line = "n: questions asked; means over fewer: F1 answerable: 16; abstain: 4; R@10: 10 to 20"
    assert line in report.legend
    assert f"- {line}" in comparison_files(report)["compare.md"]


def test_runs_of_two_budgets_are_named_by_them(tmp_path: Path) -> None:
    runs = [stored(tmp_path, "rag", parts={"context": {"budget": budget}}) for budget in (256, 1024)]
    report = make_report(runs, CLAG)
    expected = {f"rag, at most {budget} tokens of context" for budget in ("256", "1,024")}
    assert {row.label for row in report.rows} == expected


@pytest.fixture(scope="module")
def measured() -> Report:
    """The committed runs of every system on one conversation of LoCoMo."""
    runs = [read_run(path) for path in find_run_folders([SUMMARIES / "locomo_qwen05b_plain"])]
    return make_report([run for run in runs if isinstance(run, StoredRun)], CLAG)


@pytest.fixture(params=[60, 80, 120])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setenv("COLUMNS", str(request.param))
    console.cache_clear()
    yield request.param
    console.cache_clear()


def test_every_number_of_the_file_is_on_the_terminal(
    measured: Report, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    compare_terminal.show(measured)
    shown = capsys.readouterr().out
    tables = shown[: shown.index("diff: system minus")]
    assert "…" not in shown
    assert all(len(line) <= width for line in shown.splitlines())
    shown_numbers = set(re.findall(r"[\d.]+", tables))
    written = list(csv.DictReader(StringIO(comparison_files(measured)["compare.csv"])))
    for row, line in zip(measured.rows, written, strict=True):
        for column in measured.columns:
            assert bool(line[column.heading]) == (column.name in row.estimates)
            if column.name in row.estimates:
                assert cell(row.estimates[column.name], column) in shown_numbers, (row.label, column.name)


def test_an_output_without_unicode_gets_plain_boxes(measured: Report) -> None:
    class Ascii(StringIO):
        encoding = "ascii"

    text = Ascii()
    out = SafeConsole(file=text, width=60)
    names = [row.label[:18] for row in measured.rows]
    shown = [
        (Column("system", "left", key=True), names),
        *((Column("F1"), ["13.9"] * len(names)), (Column("95 %", together=True), ["[10.0, 16.6]‡"] * len(names))) * 4,
    ]
    show_table(table_of("Answers", shown), out)
    assert text.getvalue().isascii()
    assert all(len(line) <= 60 for line in text.getvalue().splitlines())
    assert text.getvalue().count("13.9") == 4 * len(names)
