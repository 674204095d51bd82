"""The audit of published answers, on scores made here and on the real files where they are."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from eval.audit.config import AuditConfig, load_config
from eval.audit.labels import F1_NAMES, SECTIONS
from eval.audit.leaderboard import Row, headlines, leaderboard, renamed, rerun_only, stored_leaderboard
from eval.audit.measured import with_measured_judges
from eval.audit.page import board, page
from eval.audit.pairs import paired_tests
from eval.audit.people import Labelled, agreement, best_threshold, length_bias
from eval.audit.readings import RunReading, estimate
from eval.audit.recorded.catalogue import CatalogueEntry, PrintedScore, find_entry
from eval.audit.scores import AnsweredQuestion, ScoredRun, score_all, score_entry
from eval.audit.stored import stored_tables
from eval.audit.write import _records, short_leaderboard, write_all, write_page
from eval.commands.rendering.separated import render_csv
from eval.loaders.published_files import recorded_folder
from eval.runs.records import ScoreRow
from eval.scoring.labels import under
from memsys.errors import ConfigError, DataError, ScoringError

ENTRY = CatalogueEntry("made", "a/b", "0" * 40, "MIT", {"a.json": "0" * 64}, "mem0_eval")


def _answer(number: int, category: int = 4, value: float = 1.0, right: bool = True, **more: object) -> AnsweredQuestion:
    made = AnsweredQuestion(
        f"q{number}", f"c{number % 2}", category, {"f1_set": value}, {}, {"judge": float(right)},
        False, False, 2, False, f"d{number}", False,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def _run(
    *answers: AnsweredQuestion, entry: CatalogueEntry = ENTRY, categories: dict[str, dict[str, int]] | None = None
) -> ScoredRun:
    return ScoredRun(entry, {}, categories or {}, answers)


def test_views_and_countings_of_the_same_answers() -> None:
    run = _run(
        _answer(0, 1, 0.2),
        _answer(1, 4, 0.6),
        _answer(2, 4, 0.0, doubtful=True, corrected={"f1_set": 1.0}),
    )

    def mean(labels: str, counting: str) -> float:
        found = estimate(run, RunReading("f1_set", labels, counting))  # type: ignore[arg-type]
        assert found is not None
        return found.value

    assert mean("printed", "question") == pytest.approx(100 * 0.8 / 3)
    assert mean("masked", "question") == pytest.approx(40)
    assert mean("corrected", "question") == pytest.approx(60)
    assert mean("printed", "category") == pytest.approx(25)


def test_a_printed_number_is_held_against_both_means() -> None:
    entry = replace(ENTRY, printed=(PrintedScore(25.0, "f1_set", "here"),))
    row = headlines([_run(_answer(0, 1, 0.2), _answer(1, 4, 0.6), _answer(2, 4, 0.0), entry=entry)])[0]
    assert (row["nearest"], row["holds"]) == ("category mean", True)


def test_a_mean_over_all_verdicts_is_the_printed_one() -> None:
    """memU's headline is of all rows of its file, with the two questions of category 5 that have an answer."""
    entry = replace(ENTRY, printed=(PrintedScore(80.0, "judge", "here"),))
    run = _run(*(_answer(number, 4, right=number > 0) for number in range(4)), _answer(4, 5), entry=entry)
    assert run.entry.dataset == "locomo"
    row = headlines([run])[0]
    assert (row["nearest"], row["holds"], row["question_mean"]) == ("mean of all verdicts", True, 75.0)


def test_the_median_of_words_is_of_the_answers_that_count() -> None:
    run = _run(*(_answer(number, 4, words=3) for number in range(9)), *(_answer(20 + n, 5, words=9) for n in range(11)))
    rows = {
        str(row["counting"]): row["median_words"]
        for row in leaderboard(run, AuditConfig(("f1_set",), "people", "wrong", 30))
        if (row["metric"], row["labels"]) == ("f1_set", "printed")
    }
    assert rows["1-4, question mean"] == 3 and rows["1-5, category 5 against its false answer"] == 9


def test_verdicts_of_two_publishers_judges_are_no_pair() -> None:
    answers = [_answer(number) for number in range(120)]
    entries = [replace(ENTRY, name=name, repository=name[0] + "/x") for name in ("a1", "a2", "b1")]
    runs = [_run(*answers, entry=entry) for entry in entries]
    assert [(row["first"], row["second"]) for row in paired_tests(runs, "judge")] == [("a1", "a2")]
    assert len(paired_tests(runs, "f1_set")) == 3


def test_a_question_that_was_run_again_without_a_verdict_counts_as_run_again() -> None:
    answers = [_answer(number, right=number >= 5, rerun=number < 6) for number in range(40)]
    found = rerun_only(_run(*answers, _answer(40, rerun=True, verdicts={})))
    assert (found["run_again"], found["errors_among_run_again"]) == (7, 5)
    assert float(str(found["rerun_p"])) == pytest.approx(6 / 658_008)


def test_running_failures_again_is_found() -> None:
    answers = [_answer(number, right=number >= 5, rerun=number < 6) for number in range(40)]
    found = rerun_only(_run(*answers))
    assert (found["run_again"], found["errors"], found["errors_among_run_again"]) == (6, 5, 5)
    assert float(str(found["rerun_p"])) == pytest.approx(6 / 658_008)  # C(6,5) C(34,0) / C(40,5)


def test_renamed_categories_are_found_by_name_and_by_printed_score() -> None:
    by_name = _run(_answer(0, 1), categories={"single-hop": {"1": 1}})
    assert renamed(by_name) == ["single-hop=multi-hop"]
    entry = replace(ENTRY, categories={"multi-hop": 50.0})
    by_score = _run(_answer(0, 2), _answer(1, 2, right=False), _answer(2, 1), entry=entry)
    assert renamed(by_score) == ["multi-hop=temporal"]


def test_agreement_with_labels_by_hand() -> None:
    values, right = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
    assert best_threshold(values, right) == pytest.approx(0.35)
    found = agreement(Labelled(values, right, np.array([0, 1, 0, 1])))
    assert found["accuracy_in_sample"] == pytest.approx(75)
    assert found["auc"] == pytest.approx(0.75)  # three of four pairs in order
    assert found["tau"] == pytest.approx(2 / np.sqrt(4 * 6))
    # The first conversation (0.1 wrong, 0.35 right) is called by 0.8, the second by 0.35: one right answer is missed in
    # the first, one wrong answer accepted in the second.
    assert (found["accuracy_held_out"], found["kappa_held_out"]) == (pytest.approx(50), pytest.approx(0))


def test_intervals_of_agreement_are_those_of_a_jackknife_over_conversations() -> None:
    """Three conversations of two answers; held out, 2, 2 and 1 of them agree."""
    values = np.array([0.1, 0.9, 0.15, 0.9, 0.1, 0.2])
    right = np.array([False, True, False, True, False, True])
    found = agreement(Labelled(values, right, np.array([0, 0, 1, 1, 2, 2])))
    left_out = [75.0, 75.0, 100.0]  # of the other two conversations
    error = np.sqrt(2 / 3 * sum((one - np.mean(left_out)) ** 2 for one in left_out))
    half = stats.t.ppf(0.975, 2) * error
    assert found["accuracy_held_out"] == pytest.approx(500 / 6)
    assert found["accuracy_held_out_low"] == pytest.approx(500 / 6 - half)
    assert found["accuracy_held_out_high"] == pytest.approx(500 / 6 + half)


def test_one_conversation_has_no_held_out_agreement_and_no_interval() -> None:
    found = agreement(Labelled(np.array([0.1, 0.9]), np.array([False, True]), np.array([0, 0])))
    assert (found["accuracy_in_sample"], found["auc"]) == (100, 1)
    assert all(np.isnan(float(str(found[name]))) for name in ("accuracy_held_out", "kappa_held_out", "auc_low"))


def test_one_run_has_no_other_to_correlate_its_lengths_with() -> None:
    run = _run(_answer(0, 1, 0.2, words=1), _answer(1, 4, 0.6, words=3), _answer(2, 4, 0.9, words=9))
    rows = length_bias([run], AuditConfig(("f1_set",), "", "", 1))
    assert [row["metric"] for row in rows] == ["f1_set", "judge"]  # no answer has a METEOR score
    assert rows[0]["within_run"] == pytest.approx(0.987, abs=1e-3)
    assert np.isnan(rows[0]["within_question"]) and np.isnan(rows[0]["between_runs"])


def test_stored_scores_under_a_view() -> None:
    plain = ScoreRow("q0", "c0", 4, {"f1_set": 0.5})
    disputed = ScoreRow("q1", "c0", 4, {"f1_set": 0.0, "doubtful_answer": 1.0, "f1_set@corrected": 1.0})
    assert under([plain, disputed], "masked") == [plain]
    assert [row.metrics["f1_set"] for row in under([plain, disputed], "corrected")] == [0.5, 1.0]
    bare = replace(disputed, metrics={"f1_set": 0.0, "doubtful_answer": 1.0})
    with pytest.raises(ScoringError, match="scored without the corrected labels"):
        under([plain, bare], "corrected")
    with pytest.raises(ConfigError, match="choose one of printed, masked, corrected, adversarial_masked"):
        under([plain], "other")  # type: ignore[arg-type]


def test_the_audit_takes_texts_alone() -> None:
    with pytest.raises(ConfigError, match="bert_f1 needs a model"):
        AuditConfig(["bert_f1"], "", "", 1)


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["sage_sage", "memu", "human_labels", "mem0_platform_top50"])
def test_own_scores_agree_with_the_check_values(name: str) -> None:
    entry = find_entry(name)
    if not os.environ.get("MEMSYS_DATA") or not Path(recorded_folder() / entry.pinned[0].name).is_file():
        pytest.skip("needs MEMSYS_DATA and MEMSYS_RECORDED")
    run = score_entry(entry, ["f1_squad"])
    for metric, check in (("f1_squad", "f1_multiset"), ("judge", "judge")):
        mean = estimate(run, RunReading(metric, "printed", "question"))
        assert mean is not None and mean.value == pytest.approx(entry.check[check], abs=0.2)


def _tables() -> dict[str, list[Row]]:
    """One run, its leaderboard and one row of the tables that the findings need."""
    run = _run(*(_answer(number, value=0.5) for number in range(4)))
    config = AuditConfig(("f1_set",), "people", "wrong", 30)
    orders = [
        {
            "higher": "a", "lower": "b", "printed_higher": 92.0, "printed_lower": 91.0, "same_source": source,
            "readings": 4, "kept": 1, "flips_by_verdicts": False, "flips_under": " ".join((*F1_NAMES, "bleu1")),
        }
        for source in (True, False)
    ]  # fmt: skip
    rows = {"run": "made", "aligned": 4, "run_again": 3, "errors": 2, "errors_among_run_again": 2, "rerun_p": 1e-9}
    return {"leaderboard": leaderboard(run, config), "orderings": orders, "detectors": [rows]}


def test_the_page_says_what_was_found_before_its_tables() -> None:
    config = AuditConfig(("f1_set",), "people", "wrong", 30)
    found = page(_tables(), config, runs=1, repositories=1)
    assert found.index("## What was found") < found.index("## Terms") < found.index("## Leaderboard, LoCoMo")
    assert "of 1 pairs of runs that one source ranks by a judge, 0 keep their order" in found
    assert "3 questions were run again, and 2 of the 2 remaining errors are among them (by chance: p < 0.0001)" in found
    assert "| a | 92.00 | b | 91.00 | 4 | 1 | every F1, BLEU-1 |" in found
    assert "| made | 3 | 2 | 2 | < 0.0001 |" in found  # of detectors.csv, in a table of its own
    assert "Which category names" not in found  # no file of these has one
    assert "f1_set" not in found  # a reader knows no names of our code
    assert all(section.columns and section.text for section in SECTIONS.values())


def test_the_page_can_be_made_of_the_csv_files(tmp_path: Path) -> None:
    tables = _tables()
    for name, rows in tables.items():
        (tmp_path / f"{name}.csv").write_text(render_csv(_records(rows)), encoding="utf-8")
    config = AuditConfig(("f1_set",), "people", "wrong", 30)
    read = {name: rows for name, rows in stored_tables(tmp_path).items() if rows}
    assert page(read, config, 1, 1) == page(tables, config, 1, 1)
    (tmp_path / "detectors.csv").write_text("run,rows\nmade,many\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"detectors.csv: line 2: .*many.*`memsys audit`"):
        stored_tables(tmp_path)


def _judged(tables: dict[str, list[Row]], run: str, accepted: float) -> dict[str, list[Row]]:
    """The tables of one run of the catalogue, whose judge accepts this share of the wrong answers that people know."""
    board = [{**row, "run": run} for row in tables["leaderboard"]]
    known: Row = {
        "judge": f"{find_entry(run).repository}: recorded", "answers": 100, "right_by_people": 80.0,
        "right_by_judge": 90.0, "accuracy": 90.0, "kappa": 0.5, "wrong_accepted": accepted, "right_rejected": 0.0,
    }  # fmt: skip
    return {**tables, "leaderboard": board, "judges": [known]}


@pytest.mark.parametrize(
    ("accepted", "other", "shown"),
    [(50.0, False, True), (100.0, False, False), (50.0, True, False)],
    ids=["measured", "no better than one verdict for all", "judge of another repository"],
)
def test_a_recorded_judge_is_shown_where_people_show_that_it_beats_a_constant(
    accepted: float, other: bool, shown: bool
) -> None:
    config = AuditConfig(("f1_set",), "people", "wrong", 30)
    tables = _judged(_tables(), "sage_sage", accepted)
    if other:
        tables["leaderboard"] = [{**row, "run": "zep"} for row in tables["leaderboard"]]
    text = page(with_measured_judges(tables, config), config, 1, 1)
    assert ("| judge | words |" in text) is shown
    assert ("although their file has verdicts: 1." in text) is not shown
    whole = page(with_measured_judges(tables, config, unmeasured=True), config, 1, 1)
    assert "| judge | words |" in whole and "has verdicts" not in whole
    people = replace(config, people=str(tables["leaderboard"][0]["run"]))
    assert "| judge | words |" in page(with_measured_judges(tables, people), people, 1, 1)


def test_an_audit_writes_the_page_that_its_csv_files_give(tmp_path: Path) -> None:
    """0.75496 stands as 0.755 in the CSV file: the page rounds what is there, whenever it is made."""
    tables, config = _tables(), AuditConfig(("f1_set",), "people", "wrong", 30)
    tables["wrong"] = [{"category": "1-4", "answers": 4, "accepted": 0.75496, "f1_set": 0.75496}]
    run = _run(*(_answer(number, value=0.5) for number in range(4)))
    write_all(tables, [run], config, tmp_path)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert b"| 1-4 | 4 | 0.76 | 0.76 |" in first["audit.md"]
    assert b"](audit.svg)" in first["audit.md"] and first["audit.svg"]
    write_page(with_measured_judges(stored_tables(tmp_path), config), config, tmp_path, runs=1, repositories=1)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


def test_pairs_are_compared_on_the_questions_that_both_runs_answered() -> None:
    """Of 120 questions one run lacks the last 20 and leads by 1 on the first 30; the wins count those shared."""
    whole = _run(*(_answer(number, value=0.0) for number in range(120)), entry=replace(ENTRY, name="whole"))
    part = _run(
        *(_answer(number, value=float(number < 30)) for number in reversed(range(100))),
        entry=replace(ENTRY, name="part"),
    )
    few = _run(*(_answer(number) for number in range(99)), entry=replace(ENTRY, name="few"))
    (row,) = paired_tests([whole, part, few], "f1_set")
    assert (row["first"], row["second"], row["questions"]) == ("part", "whole", 100)
    assert (row["wins"], row["ties"], row["losses"], row["difference"]) == (30, 70, 0, pytest.approx(30))
    assert (row["p_uncorrected"], row["interval_by"]) == (
        0.5,
        "conversation",
    )  # two conversations, one pattern of four as extreme on either side


def test_the_latex_leaderboard_has_every_run() -> None:
    committed = stored_tables(Path(__file__).resolve().parents[4] / "results" / "audit")["leaderboard"]
    rows = short_leaderboard(committed, load_config()).rows
    assert len(rows) == len(board(committed, load_config(), "locomo")) > 40


def test_after_a_run_was_added_only_that_one_is_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [replace(find_entry("sage_sage"), name=name) for name in ("one", "two", "three")]
    config = AuditConfig(("f1_set",), "people", "wrong", 30)
    scored: list[str] = []

    def score(entry: CatalogueEntry, metrics: object) -> ScoredRun:
        scored.append(entry.name)
        return replace(_run(_answer(0), entry=entry), counts={"rows": 1})

    monkeypatch.setattr("eval.audit.scores.score_entry", score)
    monkeypatch.setattr("eval.audit.scores.paths_of", lambda entry: [])
    first = list(score_all(entries[:2], config, tmp_path, 1, stored_leaderboard))
    again = list(score_all(entries, config, tmp_path, 1, stored_leaderboard))
    assert (sorted(scored[:2]), scored[2:]) == (["one", "two"], ["three"])
    assert again[:2] == sorted(first, key=lambda run: run.entry.name)
    assert len(list(tmp_path.glob("*-leaderboard-*.json"))) == 3
