"""Judges of several runs: a column each in a comparison, no ranking across settings, and how far two agree."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.audit.sensitivity.config import load_config
from eval.audit.sensitivity.markdown import lens_page
from eval.audit.sensitivity.standings import compare_readings
from eval.lens import main as lens_command
from eval.report.config import load_config as load_page_config
from eval.report.data import Collected, page_data
from eval.report.runs import run_cards
from eval.results.compare.formats import comparison_files
from eval.results.compare.model import make_report
from eval.results.compare.terminal import show
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.results.tables.judges import judge_faults, judge_groups, unlike_judges, without_unmeasured
from eval.scoring.protocols import load_protocol
from eval.scoring.verdicts.figures import BY_PEOPLE, ON_PURPOSE, JudgeFigures, figures_for, keep, stored_figures
from eval.scoring.verdicts.judge_quality import RECORDED
from tests.support.fake_run import FakeRun

CLAG = load_protocol("clag")
EXCLUDING = load_protocol("xmemory")


def judged(root: Path, memory: str, **judges: tuple[Mapping[str, Any], float]) -> StoredRun:
    """A run of ten questions; each judge has an identity, and calls right the first part of the answers."""
    run = read_run(FakeRun(memory=memory, conversations=("conv-26",), questions_each=10).write(root))
    assert not isinstance(run, Skipped)
    probe = {"items": 80, "accuracy": 0.5, "always": 0.5}
    rows, entries = list(run.rows), {}
    for name, (identity, share) in judges.items():
        column = f"judge_{name}_m"
        entries[column] = {"judge": name, "backbone": "m", "probe": probe, "identity": identity}
        rows = [
            replace(row, metrics={**row.metrics, column: float(number < share * len(rows))})
            for number, row in enumerate(rows)
        ]
    return replace(run, rows=tuple(rows), summary={**run.summary, "judges": entries})


def test_a_judge_is_a_column_with_what_is_known_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [judged(tmp_path, "rag", strict=({"a": 1}, 0.6)), judged(tmp_path, "amem")]
    report = make_report(runs, CLAG, unmeasured_judges=True)
    assert [(column.name, column.meaning) for column in report.judges] == [
        (
            "judge",
            "answers called right, percent, by strict on m; probe 50.0 % right (always one verdict: 50.0); not "
            "measured against people; no ranking: strict on m is not better than a constant on its probe "
            "(50.0 % right, "
            "always one verdict 50.0 %)",
        )
    ]
    judged_rows = [row for row in report.rows if "judge" in row.estimates]
    assert [row.estimates["judge"].value for row in judged_rows] == [pytest.approx(60.0)] and len(report.rows) == 2
    assert "| judge |" in comparison_files(report)["compare.md"].splitlines()[2]
    assert "probe 50.0" in comparison_files(report)["compare.md"]
    assert "judge" in comparison_files(report)["compare.tex"]
    assert "judge low" in comparison_files(report)["compare.csv"].splitlines()[0]
    show(report)
    printed = capsys.readouterr().out
    assert "Judges" in printed
    assert "strict on m" in printed


def _people(name: str, right: int, wrong: int, rejected: int, accepted: int) -> list[JudgeFigures]:
    """Figures of a judge on answers labelled by people, and on ten that are wrong on purpose."""
    total = right + wrong
    share = 100 * right / total
    kept = (100 - 100 * (rejected + accepted) / total, max(share, 100 - share), 0.1)
    ends = (100 * accepted / wrong, 0.0, 100.0, 100 * rejected / right)
    people = JudgeFigures(name, "m", BY_PEOPLE, total, 0, share, 50.0, *kept, *ends, "p")
    return [
        people,
        JudgeFigures(name, "m", ON_PURPOSE, 10, 0, 0.0, 50.0, 50.0, 100.0, None, 50.0, 0.0, 100.0, None, "p"),
    ]


def test_a_judge_that_was_not_measured_is_left_out_and_the_reader_is_told_how_to_measure_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("eval.scoring.verdicts.figures.FILE", tmp_path / "figures.csv")
    identity = {"prompt_sha256": "p"}
    runs = [judged(tmp_path, "rag", strict=(identity, 0.6), lenient=(identity, 0.8))]
    keep(_people("strict", 60, 40, 2, 5), tmp_path / "figures.csv")
    report = make_report(runs, CLAG)
    assert [column.name for column in report.judges] == ["judge"] and "strict on m" in report.judges[0].meaning
    assert report.rows[0].estimates["judge"].value == pytest.approx(60)
    (line,) = report.left_out
    assert "memsys judge --people 200 judge=lenient backbone.name=m ..." in line and "--unmeasured-judges" in line
    show(report)
    assert "left out: lenient on m" in capsys.readouterr().out
    assert "left out: lenient on m" in comparison_files(report)["compare.md"]
    for view in ("paper_tables", "own_tables", "definition_tables"):  # these take seconds
        monkeypatch.setattr(f"eval.report.data.{view}", lambda found: [])
    collected = Collected(tuple(replace(run, path=tmp_path) for run in runs))
    page = page_data(collected, load_page_config(), with_questions=False)
    assert [one["name"] for one in page.first["metrics"] if one["group"] == "judges"] == ["judge_strict_m"]
    assert "judge_lenient_m" not in json.dumps(page.parts["group-0"]) and len(page.first["judgesLeftOut"]) == 1
    keep(_people("lenient", 60, 40, 2, 5)[:1], tmp_path / "figures.csv")  # wrong ones on purpose are still to come
    assert len(make_report(runs, CLAG).judges) == 1
    assert len(make_report(runs, CLAG, unmeasured_judges=True).judges) == 2


@pytest.mark.parametrize(
    ("right", "wrong", "rejected", "accepted", "fault"),
    [
        (60, 40, 2, 5, False),
        (15, 5, 0, 4, True),  # one answer better than always CORRECT: chance does that every second time
        (15, 5, 0, 0, False),  # 5 of 5: 1 in 32
        (15, 5, 0, 5, True),  # always CORRECT
        (40, 60, 40, 0, True),  # always WRONG
        (40, 60, 20, 20, True),  # as many better as worse
    ],
)
def test_a_judge_that_people_do_not_show_to_beat_a_constant_ranks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: int, wrong: int, rejected: int, accepted: int, fault: bool
) -> None:
    monkeypatch.setattr("eval.scoring.verdicts.figures.FILE", tmp_path / "figures.csv")
    keep(_people("strict", right, wrong, rejected, accepted), tmp_path / "figures.csv")
    run = judged(tmp_path, "rag", strict=({"prompt_sha256": "p"}, 0.6))
    entry = run.summary["judges"]["judge_strict_m"]
    good = replace(run, summary={"judges": {"judge_strict_m": {**entry, "probe": {**entry["probe"], "accuracy": 0.9}}}})
    assert bool(judge_faults([good])) is fault
    assert list(judge_faults([run]))  # its probe alone, 50.0 against 50.0, says so too
    assert without_unmeasured([good])[1] == []  # measured, and shown with what is known


def test_the_lens_shows_such_a_judge_without_ranks(tmp_path: Path) -> None:
    """Its probe is not better than a constant; of the eight questions with an answer it calls 5 and 7 right."""
    runs = [judged(tmp_path, name, strict=({"a": 1}, share)) for name, share in (("rag", 0.6), ("amem", 0.8))]
    (lens,) = compare_readings(runs, load_config(), [CLAG])
    (line,) = [row for rows in lens.sections.values() for row in rows if row.reading.metric == "judge_strict_m"]
    assert [(one.value, one.rank) for one in line.standings] == [
        (pytest.approx(62.5), None), (pytest.approx(87.5), None),
    ]  # fmt: skip
    page = lens_page([lens])
    assert "no ranking: strict on m is not better than a constant on its probe" in page and " 87.5 |" in page


def test_the_lens_leaves_out_judges_that_nobody_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [judged(tmp_path, "rag", strict=({"a": 1}, 0.6))]
    monkeypatch.setattr("eval.lens.read_runs", lambda _: (runs, []))
    for options, shown in (([], False), (["--unmeasured-judges"], True)):
        assert lens_command([str(tmp_path), "--out", str(tmp_path / "lens.md"), *options]) == 0
        assert ("judge: strict on m" in (tmp_path / "lens.md").read_text()) is shown
        assert (
            "left out: strict on m; this judge was not measured" in " ".join(capsys.readouterr().out.split())
        ) is not shown


def test_an_abstention_is_no_verdict(tmp_path: Path) -> None:
    """Under a protocol that scores category 5 by abstention, a judge that left it out is shown on the others alone."""
    run = judged(tmp_path, "rag", strict=({"a": 1}, 1.0))
    rows = []
    for row in run.rows:
        unseen = {"judge_strict_m": None, "abstained": 0.0} if row.kind == "adversarial" else {}
        rows.append(replace(row, metrics={**row.metrics, **unseen}))
    assert any(row.kind == "adversarial" for row in rows)
    report = make_report([replace(run, rows=tuple(rows))], load_protocol("locomo"), unmeasured_judges=True)
    assert report.rows[0].estimates["judge"].value == 100.0


def test_judges_of_one_name_and_two_settings_are_two_columns(tmp_path: Path) -> None:
    runs = [judged(tmp_path, "rag", strict=({"a": 1}, 0.6)), judged(tmp_path, "amem", strict=({"a": 2}, 0.8))]
    report = make_report(runs, CLAG, unmeasured_judges=True)
    assert [column.name for column in report.judges] == ["judge 1", "judge 2"]
    assert all("not with the settings" in column.meaning for column in report.judges)
    found = [{name: round(e.value) for name, e in row.estimates.items() if "judge" in name} for row in report.rows]
    assert sorted(found, key=str) == [{"judge 1": 60}, {"judge 2": 80}]


def _recorded(run: StoredRun, repository: str, judge: str = RECORDED) -> StoredRun:
    """A run whose verdicts came with the answers that a repository published."""
    (column, entry), *_ = run.summary["judges"].items()
    changed = {**entry, "judge": RECORDED, "backbone": judge}
    return replace(
        run,
        record={**run.record, "recorded": {"repository": repository}},
        summary={**run.summary, "judges": {column: changed}},
    )


def test_recorded_verdicts_of_two_publishers_are_two_judges(tmp_path: Path) -> None:
    """Their files call the judge alike: verdicts of two different judges were ranked in one column."""
    same: Mapping[str, Any] = {"judge": {"name": RECORDED, "by": RECORDED}, "model": {}}
    rag, amem = (judged(tmp_path, name, strict=(same, 0.6)) for name in ("rag", "amem"))
    assert len(judge_groups([_recorded(rag, "one/x"), _recorded(amem, "one/x")])) == 1
    assert unlike_judges([_recorded(rag, "one/x"), _recorded(amem, "two/y")]) == ["judge_strict_m"]


def test_labels_by_people_are_shown_and_recorded_judges_of_other_data_are_not(tmp_path: Path) -> None:
    run = judged(tmp_path, "rag", strict=({}, 0.6))
    assert without_unmeasured([_recorded(run, "one/x", "people")])[1] == []
    other = replace(
        run, record={**run.record, "config": {**run.record["config"], "dataset": {"name": "longmemeval_s"}}}
    )
    (note,) = without_unmeasured([_recorded(other, "one/x")])[1]
    assert "people labelled answers to LoCoMo (locomo10) alone" in note


def test_figures_are_of_the_model_that_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever model stood behind `backbone=endpoint` had the figures of the one that was measured."""
    path = tmp_path / "figures.csv"
    monkeypatch.setattr("eval.scoring.verdicts.figures.FILE", path)
    keep([replace(one, model="large") for one in _people("strict", 60, 40, 2, 5)], path)
    for model, known in (("large", 2), ("tiny", 0)):
        asked = {"judge": "strict", "backbone": "m", "identity": {"prompt_sha256": "p", "backbone": {"model": model}}}
        assert len(figures_for(asked)) == known
    keep([replace(one, model="tiny") for one in _people("strict", 60, 40, 9, 9)], path)
    assert len(stored_figures(path)) == 4
    path.write_text("\n".join(line.rpartition(",")[0] for line in path.read_text().splitlines()[:3]) + "\n")
    assert [one.model for one in stored_figures(path)] == ["", ""]  # a file of before
    keep([replace(one, model="tiny") for one in _people("strict", 60, 40, 9, 9)], path)
    assert [one.model for one in stored_figures(path)] == ["tiny", "tiny"]


def test_equal_settings_are_one_judge(tmp_path: Path) -> None:
    runs = [
        judged(tmp_path, "rag", strict=({"a": 1, "b": 2}, 0.6)),
        judged(tmp_path, "amem", strict=({"b": 2, "a": 1}, 0.8)),
    ]
    assert [group.runs for group in judge_groups(runs)] == [frozenset(run.run_id for run in runs)]
    assert unlike_judges(runs) == []


def test_the_lens_ranks_no_judges_that_asked_otherwise(tmp_path: Path) -> None:
    same = [judged(tmp_path / "same", name, strict=({"a": 1}, share)) for name, share in (("rag", 0.6), ("amem", 0.8))]
    other = [same[0], judged(tmp_path / "other", "amem", strict=({"a": 2}, 0.8))]
    assert "judge: strict on m" in lens_page(compare_readings(same, load_config(), [EXCLUDING]))
    text = lens_page(compare_readings(other, load_config(), [EXCLUDING]))
    assert "judge: strict on m" not in text
    assert "differ between the runs: judge_strict_m" in text


def test_two_judges_of_a_run_and_their_agreement(tmp_path: Path) -> None:
    """Of ten answers one judge calls six right, the other the first eight: alike on eight, by chance on 0.56.

    kappa = (0.8 - 0.56) / (1 - 0.56).
    """
    run = judged(tmp_path, "rag", strict=({}, 0.6), lenient=({}, 0.8))
    (found,) = run_cards([run], [False])[0]["agreements"]
    assert found[:3] == ["judge_lenient_m", "judge_strict_m", 10]
    assert found[3:] == pytest.approx([0.8, 0.24 / 0.44])
    assert run_cards([judged(tmp_path / "one", "rag", strict=({}, 0.6))], [False])[0]["agreements"] == []
