"""Runs side by side: rows, labels, paired tests, files."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from eval.commands.terminal import console
from eval.compare import main
from eval.export import export_run
from eval.metrics.sessions import SESSION_METRICS
from eval.results.compare import ComparisonChoices, compare
from eval.results.compare.answers import NamedRun, show_answers
from eval.results.compare.baseline import choose_baseline
from eval.results.compare.columns import (
    COST_COLUMNS,
    UNANSWERED_COLUMNS,
    ComparisonColumn,
    answer_columns,
    evidence_columns,
)
from eval.results.compare.formats import comparison_files
from eval.results.compare.model import make_report
from eval.results.compare.pairs import compare_with
from eval.results.compare.rows import cost_estimates, graded_columns, labels, system_rows
from eval.results.compare.seeds import Repeats, group_repeats
from eval.results.compare.terminal import short_names, show
from eval.results.frame import Skipped, read_run
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import differing_parts
from eval.results.tables.judges import JudgeGroup
from eval.results.tables.pairs import paired_differences
from eval.results.tables.text import p_text
from eval.runs.records import AnswerRecord, ReferenceRecord, ScoreRow
from eval.scoring.paired import holm
from eval.scoring.protocols import load_protocol
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError, RunDirectoryError
from tests.support.fake_run import EVIDENCE, FakeRun, rewrite

CLAG = load_protocol("clag")


def stored(root: Path, **changes: object) -> StoredRun:
    run = read_run(FakeRun(**changes).write(root))  # type: ignore[arg-type]
    assert not isinstance(run, Skipped)
    return run


def test_a_row_by_hand(tmp_path: Path) -> None:
    """Category 5 scores 1 (fooled), the others 0.25: the trap is worth fifteen points."""
    run = stored(tmp_path, values=lambda number, metric: 1.0 if number % 5 == 4 else 0.25)
    row = system_rows([run], CLAG)[0]
    means = {name: round(estimate.value, 6) for name, estimate in row.estimates.items()}
    assert row.questions == 20
    assert means["F1"] == 40.0
    assert means["F1 answerable"] == 25.0
    assert means["abstain"] == 100.0
    assert means["E-F1"] == 40.0
    assert means["calls"] == 1.0
    assert means["tokens"] == 120.0  # one answer call of 115 and 5 tokens
    assert means["write"] == 30.0  # 20 questions' worth of calls of 60 tokens over 40 turns
    assert means["malformed"] == 10.0  # every fifth of the write calls, which are half of all
    assert means["context"] == 309.5
    assert {category: round(point.value, 6) for category, point in row.by_category.items()} == {
        1: 25.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 100.0,
    }  # fmt: skip


def test_runs_that_differ_in_their_context_budget_alone_differ_in_what_is_in_context(tmp_path: Path) -> None:
    """A budget changes no ranking: all other columns of evidence are equal."""

    def asked(share: float, mode: str = "answers", **parts: Mapping[str, object]) -> StoredRun:
        def value(number: int, metric: str) -> float:
            return share if metric == "shown_recall" else 0.5

        return stored(tmp_path, mode=mode, extra_metrics=("shown_recall",), values=value, parts=parts)

    runs = [asked(0.75), asked(0.25, context={"budget": 96})]
    report = make_report(runs, CLAG)
    shown = {row.label: (row.estimates["in context"].value, row.estimates["R@10"].value) for row in report.rows}
    assert shown == {"rag": (75.0, 50.0), "rag, at most 96 tokens of context": (25.0, 50.0)}
    assert "in context" in comparison_files(report)["compare.md"]
    assert "in context" not in system_rows([asked(0.75, "retrieval_only")], CLAG)[0].estimates  # nobody was shown it
    limited = system_rows([asked(0.25, "retrieval_only", context={"budget": 96})], CLAG)[0]
    assert limited.estimates["in context"].value == 25.0


def test_protocols_read_category_5_in_their_own_way(tmp_path: Path) -> None:
    run = stored(tmp_path, values=lambda number, metric: {"f1_set": 0.5, "abstained": 1.0}.get(metric))
    assert system_rows([run], load_protocol("xmemory"))[0].estimates["F1"].value == pytest.approx(50.0)
    assert 5 not in system_rows([run], load_protocol("xmemory"))[0].by_category


def test_labels_tell_runs_apart(tmp_path: Path) -> None:
    rag = stored(tmp_path)
    amem = stored(tmp_path, memory="amem")
    assert labels([rag, amem]) == ["rag", "amem"]
    again = stored(tmp_path, seed=1)
    assert labels([rag, again]) == ["rag, seed 0", "rag, seed 1"]
    other = stored(tmp_path, backbone="qwen3_06b", dataset="locomo")
    assert labels([rag, other]) == ["rag, smollm2_135m, locomo_clag", "rag, qwen3_06b, locomo"]
    swept = stored(tmp_path, memory="clag", settings={"n_init": 7})
    assert labels([swept]) == ["clag [n_init=7]"]
    twin = stored(tmp_path, gpus=("gpu",))
    assert len(set(labels([rag, twin]))) == 2
    part = stored(tmp_path, questions_each=3)
    assert labels([rag, part, amem]) == ["rag, 20 questions", "rag, 6 questions", "amem"]
    later = replace(rag, record={**rag.record, "started": "2026-02-02T00:00:00+00:00"})  # of a folder of the same name
    assert labels([rag, later]) == ["rag, started 2026-01-01T00:00:00+00:00", "rag, started 2026-02-02T00:00:00+00:00"]


def test_a_system_of_several_seeds_is_called_by_all_of_them(tmp_path: Path) -> None:
    """It was called by the first of them, as if it were that run."""
    runs = [stored(tmp_path, seed=seed) for seed in (0, 1, 2)] + [stored(tmp_path, memory="amem", seed=1)]
    assert [row.label for row in system_rows(runs, CLAG)] == ["rag, seeds 0-2", "amem, seed 1"]
    assert [row.label for row in system_rows([runs[0], *runs[2:]], CLAG)] == ["rag, seeds 0,2", "amem, seed 1"]
    assert [row.label for row in system_rows(runs[:3], CLAG)] == ["rag"]


def test_a_summary_that_counted_no_malformed_replies_has_the_other_costs() -> None:
    summary = {"calls": {"total": {"calls": 4, "cached_share": 0.5}}}
    assert {name: one.value for name, one in cost_estimates(summary).items()} == {"cached": 50.0}


def test_a_test_over_fewer_seeds_than_the_means_says_so(tmp_path: Path) -> None:
    """RAG's label and means are of three seeds, the test against a system of one seed is of that seed alone."""
    rag = [stored(tmp_path, seed=seed, values=lambda number, metric: 0.5) for seed in (0, 1, 2)]
    amem = stored(tmp_path, memory="amem", seed=1, values=lambda number, metric: 0.25)
    report = make_report([*rag, amem], CLAG)
    assert "amem, seed 1: tested on seed 1, which rag, seeds 0-2 has too" in report.pair_notes
    assert "That is of seed 1, which both ran." in report.conclusion
    none = [stored(tmp_path, memory="no_memory", seed=seed, values=lambda number, metric: 0.1) for seed in (0, 1)]
    assert "That is of seeds 0-1, which both ran." in make_report([*rag, *none], CLAG).conclusion  # a reference
    same = make_report([rag[1], amem], CLAG)
    assert not any("tested on seed" in note for note in same.pair_notes) and "both ran" not in same.conclusion


def test_seeds_that_were_asked_with_other_answer_prompts_are_systems_of_their_own(tmp_path: Path) -> None:
    """The text of a prompt is in no setting, so a run before it was reworded and two after it were averaged as one."""

    def asked(seed: int, share: float, wording: str, of: str = "reader.default") -> StoredRun:
        run = stored(tmp_path / f"{seed} {wording} {of}", seed=seed, values=lambda number, metric: share)
        return replace(run, record={**run.record, "prompts": {of: wording * 64}})

    runs = [asked(0, 0.1, "a"), asked(1, 0.3, "b"), asked(2, 0.5, "b")]
    rows = system_rows(runs, CLAG)
    assert [row.label for row in rows] == ["rag, seed 0", "rag, seeds 1-2"]
    assert [round(row.estimates["F1"].value, 6) for row in rows] == [10.0, 40.0]
    config = {**runs[0].record["config"], "prompts": {"source": "authors"}}
    settings = {"settings": runs[0].settings_hash()}  # as a summary of an older version may have it
    theirs = replace(
        runs[0], record={**runs[0].record, **settings, "config": config, "prompts": runs[1].record["prompts"]}
    )
    assert [system.seeds for system in group_repeats([theirs, *runs[1:]])] == [(0,), (1, 2)]


def test_long_labels_are_numbered_on_the_terminal(tmp_path: Path) -> None:
    runs = [stored(tmp_path), stored(tmp_path, backbone="qwen3_06b", dataset="locomo")]
    report = make_report(runs, CLAG)
    assert short_names(report) == ["1 rag", "2 rag"]
    assert short_names(make_report(runs[:1], CLAG)) == ["rag"]


def test_paired_differences_take_shared_questions_alone(tmp_path: Path) -> None:
    ours = stored(tmp_path, values=lambda number, metric: 0.75)
    fewer = stored(tmp_path, memory="amem", questions_each=5, values=lambda number, metric: 0.25)
    differences = paired_differences(ours.rows, fewer.rows, "f1_set", CLAG)
    assert differences.values.tolist() == [50.0] * 10
    without = paired_differences(ours.rows, fewer.rows, "f1_set", load_protocol("xmemory"))
    assert len(without.values) == 8


def test_questions_of_two_folders_are_not_paired_by_their_ids(tmp_path: Path) -> None:
    """Both folders of `dataset=custom` numbered their questions from 1, and were compared question by question."""
    ours, theirs = stored(tmp_path), stored(tmp_path, memory="amem")
    assert make_report([ours, theirs], CLAG).pairs
    other = replace(theirs, record={**theirs.record, "data": {**theirs.record["data"], "sha256": "other"}})
    assert not make_report([ours, other], CLAG).pairs
    again = replace(other, record={**ours.record, "data": other.record["data"], "seed": 1})
    assert len(make_report([ours, again], CLAG).rows) == 2, "no seeds of one system"


def test_tests_against_the_first_are_corrected_together(tmp_path: Path) -> None:
    ten = tuple(f"conv-{number}" for number in range(10))
    base = stored(tmp_path, conversations=ten, values=lambda number, metric: 0.2)
    better = stored(tmp_path, memory="amem", conversations=ten, values=lambda n, metric: 0.3 + 0.1 * (n % 2))
    same = stored(tmp_path, memory="clag", conversations=ten, values=lambda n, metric: 0.15 + 0.1 * (n % 2))
    rows = system_rows([base, better, same], CLAG)
    pairs = [pair for pair in compare_with(rows[0], rows, CLAG) if pair.column == "F1"]
    assert [pair.system for pair in pairs] == ["amem", "clag"]
    assert pairs[0].result.difference == pytest.approx(15.0)
    assert pairs[0].result.p_value == 2 / 1024
    raw = [pair.result.p_value for pair in pairs]
    assert [pair.adjusted for pair in pairs] == list(holm([value for value in raw if value is not None]))
    assert (pairs[1].result.wins, pairs[1].result.losses) == (50, 50)


def test_a_run_and_its_summary_are_one_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They were two of one name, tested against each other."""
    path = FakeRun().write(tmp_path / "runs")
    summary = export_run(path, tmp_path / "summaries")
    other = FakeRun(memory="amem").write(tmp_path / "runs")
    again = path.parent / ".." / path.parent.name / path.name
    compare([summary, again, path, other], tmp_path / "out", ComparisonChoices(answers=1))
    said = capsys.readouterr().out
    assert f"left out: 2 runs ({path} and 1 more); each is the same run as another" in said
    compare([summary, path], tmp_path / "one")
    assert f"left out: {summary}: the same run as {path}" in capsys.readouterr().out
    with (tmp_path / "out" / "compare.csv").open() as file:
        assert sorted(row["system"] for row in csv.DictReader(file)) == ["amem", "rag"]


def test_each_data_set_is_a_comparison_with_a_baseline_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One table mixed the questions of several data sets, and all but the baseline's had no test."""
    ten = tuple(f"conv-{number}" for number in range(10))
    data = {"locomo_clag": "0" * 64, "custom": "7" * 64}
    runs = [
        FakeRun(memory=memory, dataset=name, data_sha256=data[name], conversations=ten).write(tmp_path)
        for memory, name in (
            ("rag", "locomo_clag"),
            ("clag", "custom"),
            ("amem", "locomo_clag"),
            ("bm25_turn", "custom"),
        )
    ]
    compare(runs, tmp_path / "out")
    shown = capsys.readouterr().out
    first, second = shown.split("On custom")
    assert "On locomo_clag" in first and "Against rag, on" in first and "Against bm25_turn, on" in second
    assert "amem" not in second and "On 100 questions of 10 conversations" in second
    written = csv.DictReader((tmp_path / "out" / "compare.csv").read_text().splitlines())
    assert {row["system"]: (row["dataset"], row["against"]) for row in written} == {
        "amem": ("locomo_clag", "rag"),
        "rag": ("locomo_clag", ""),
        "clag": ("custom", "bm25_turn"),
        "bm25_turn": ("custom", ""),
    }
    assert {path.name for path in (tmp_path / "out").glob("*.svg")} == {
        "compare_locomo_clag.svg",
        "compare_custom.svg",
    }
    page = (tmp_path / "out" / "compare.md").read_text()
    assert "# Comparison: custom\n" in page and "(compare_custom.svg)" in page
    compare(runs, tmp_path / "out", ComparisonChoices(against="clag"))
    shown = capsys.readouterr().out
    assert "Against rag, on" in shown and "Against clag, on" in shown
    with pytest.raises(ConfigError, match=r"names no system here; .*amem \(.*clag \("):
        compare(runs, tmp_path / "out", ComparisonChoices(against="mem0"))


def test_own_data_of_one_name_are_told_apart_by_their_checksums(tmp_path: Path) -> None:
    runs = [FakeRun(dataset="custom", data_sha256=digit * 64).write(tmp_path) for digit in "12"]
    runs += [FakeRun(memory="amem", dataset="custom", data_sha256="1" * 64).write(tmp_path)]
    compare(runs, tmp_path / "out")
    page = (tmp_path / "out" / "compare.md").read_text()
    assert "# Comparison: custom_11111111\n" in page and "# Comparison: custom_22222222\n" in page


def test_a_baseline_that_fits_several_systems_is_answered_with_these_alone(tmp_path: Path) -> None:
    runs = [stored(tmp_path, memory="rag", settings={"k": k}) for k in (3, 4)] + [stored(tmp_path, memory="amem")]
    with pytest.raises(ConfigError, match=r"fits 2 systems; .*rag \[k=3\].*rag \[k=4\]") as caught:
        make_report(runs, CLAG, "rag")
    assert "amem" not in str(caught.value)


def test_the_page_on_tables_explains_the_columns_of_a_terminal() -> None:
    """It lacked abstain, context, cached, detect and others that a newcomer met at once."""
    page = (ROOT / "docs" / "reading_a_table.md").read_text(encoding="utf-8")
    shown = (*answer_columns(), *UNANSWERED_COLUMNS, *evidence_columns(), *COST_COLUMNS)
    names = {column.name for column in shown} | {"diff", "win/tie/loss", "detect", "differ in"}
    assert not {name for name in names if f"`{name}`" not in page}


def test_where_a_row_is_numbered_all_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The legend went 1, 2, 3, 5, and the baseline's row had no number."""
    report = make_report(
        [stored(tmp_path, memory="rag"), stored(tmp_path, memory="amem", settings={"retrieve_k": 40})], CLAG
    )
    show(report)
    lines = capsys.readouterr().out.splitlines()
    assert [line.rstrip() for line in lines[:2]] == [
        f"{number} {row.run.memory}: {row.label}" for number, row in enumerate(report.rows, start=1)
    ]
    assert short_names(report) == ["1 amem", "2 rag"]
    assert short_names(make_report([stored(tmp_path, memory="clag")], CLAG)) == ["clag"]


def test_a_server_is_named_by_its_address(tmp_path: Path) -> None:
    """Two servers were both `http [url=<place>]`."""
    urls = ("http://localhost:8000", "https://me:secret@memory.example:9000/v1")
    runs = [stored(tmp_path, memory="http", settings={"url": url}) for url in urls]
    names = sorted(row.label for row in make_report(runs, CLAG).rows)
    assert names == ["http [localhost:8000]", "http [memory.example:9000]"]


AUTHORS_PROMPTS = {"prompts": {"source": "authors"}}


def test_the_baseline_has_the_prompts_of_most_systems(tmp_path: Path) -> None:
    """RAG with the authors' prompts came first by its name's length alone, and had the others tested against it."""
    theirs = [stored(tmp_path, parts=AUTHORS_PROMPTS)]
    ours = [stored(tmp_path, memory=name) for name in ("rag", "amem", "clag")]
    assert choose_baseline(system_rows(theirs + ours, CLAG), "F1").run.prompts == ""
    most_theirs = [*theirs, *(stored(tmp_path, memory=name, parts=AUTHORS_PROMPTS) for name in ("amem", "clag"))]
    assert choose_baseline(system_rows([ours[0], *most_theirs], CLAG), "F1").run.prompts == "authors' prompts"


def test_the_baseline_has_a_score_in_the_lead_column(tmp_path: Path) -> None:
    """RAG that only retrieved has no tokens, which counted as none at all, and came before RAG that answered."""
    searched = stored(tmp_path, memory="rag", mode="retrieval_only")
    rag, bm25, amem = (stored(tmp_path, memory=name) for name in ("rag", "bm25_turn", "amem"))
    rows = system_rows([searched, rag, amem], CLAG)
    assert choose_baseline(rows, "F1").run == rag
    assert choose_baseline(system_rows([searched, amem, bm25], CLAG), "F1").run == bm25
    assert choose_baseline(rows[:1], "F1").run == searched


def test_one_constant_does_not_take_the_tests_of_retrieval_away(tmp_path: Path) -> None:
    """It alone has F1, so no F1 can be tested, and against it nothing else either."""
    runs = [stored(tmp_path, memory=name, mode="retrieval_only") for name in ("rag", "bm25_turn")]
    floor = stored(tmp_path, memory="always_trap", values=lambda number, metric: 0.2)
    record = {**floor.record, "mode": "floor"}
    only_answers = [replace(row, metrics={"f1_set": row.metrics["f1_set"]}) for row in floor.rows]
    report = make_report([*runs, replace(floor, record=record, rows=tuple(only_answers))], CLAG)
    assert report.lead == "F1" and report.baseline.startswith("rag")
    assert {pair.column for pair in report.pairs} == {"R@10 (turn ids)"}
    assert report.conclusion.endswith("always_trap has F1 20.0; no other system here has F1.")


def test_tokens_that_are_not_known_are_not_the_fewest(tmp_path: Path) -> None:
    """Of two RAG the one whose answers were recorded elsewhere, without a ledger, came first."""
    unknown, counted = stored(tmp_path, settings={"k": 3}, summary=False), stored(tmp_path)
    rows = system_rows([unknown, counted], CLAG)
    assert "tokens" not in rows[0].estimates and rows[1].estimates["tokens"].value == 120.0
    assert choose_baseline(rows, "F1").run == counted


def test_runs_of_one_wording_are_compared_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Holm's correction counts every system of a comparison, so the others have to be left out before it."""
    ours = [FakeRun(memory=name).write(tmp_path) for name in ("rag", "amem")]
    theirs = [FakeRun(memory=name, parts=AUTHORS_PROMPTS).write(tmp_path) for name in ("rag", "clag")]
    searched = FakeRun(memory="bm25", mode="retrieval_only").write(tmp_path)

    def systems(prompts: str) -> set[str]:
        compare([*ours, *theirs, searched], tmp_path / prompts, ComparisonChoices(prompts=prompts))
        with (tmp_path / prompts / "compare.csv").open() as file:
            return {row["system"].split(",")[0].split(" [")[0] for row in csv.DictReader(file)}

    assert systems("ours") == {"rag", "amem", "bm25"}
    assert systems("authors") == {"rag", "clag", "bm25"}
    capsys.readouterr()
    assert main([*map(str, ours), "--prompts", "authors", "--out", str(tmp_path / "none")]) == 2
    assert "no run here was asked with --prompts authors" in capsys.readouterr().err


def test_runs_on_other_data_are_not_tested_against_each_other(tmp_path: Path) -> None:
    rows = system_rows([stored(tmp_path), stored(tmp_path, memory="amem", dataset="locomo")], CLAG)
    assert compare_with(rows[0], rows, CLAG) == []


@pytest.fixture
def narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Eighty columns; the console is made once per process."""
    monkeypatch.setenv("COLUMNS", "80")
    console.cache_clear()
    yield
    console.cache_clear()


@pytest.mark.usefixtures("narrow_terminal")
def test_compare_writes_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [FakeRun(memory=name).write(tmp_path) for name in ("rag", "amem", "clag")]
    paths = compare(runs, tmp_path / "out")
    assert sorted(path.name for path in paths) == [f"compare.{suffix}" for suffix in ("csv", "md", "svg", "tex")]
    assert all(path.stat().st_size > 500 for path in paths)
    rows = list(csv.DictReader((tmp_path / "out" / "compare.csv").read_text().splitlines()))
    assert {row["system"] for row in rows} == {"rag", "amem", "clag"}
    assert [float(row["F1"]) for row in rows] == sorted((float(row["F1"]) for row in rows), reverse=True)
    assert float(rows[0]["F1 low"]) <= float(rows[0]["F1"]) <= float(rows[0]["F1 high"])
    shown = capsys.readouterr().out
    assert "Against rag" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if not line.startswith("written"))
    assert "being fooled" in shown


def test_answers_are_shown_beside_the_gold_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    console.cache_clear()
    run, systems = stored(tmp_path), []
    for name, reply in (("rag", "In 1998"), ("full_context", "x " * 100)):
        folder = tmp_path / name
        folder.mkdir()
        answered = AnswerRecord("q1", "c", 2, "In which year?", reply, reply, False, (), 0.1, 0.1, False, 9, 2)
        gold = ReferenceRecord("q1", "c", 2, ("1998", "98"), None, (), (), ())
        trap = replace(answered, question_id="q2", question="Which dog?", category=5)
        no_gold = replace(gold, question_id="q2", answers=(), adversarial_answer="Miga")
        for file, rows in (("answers", (trap, answered)), ("references", (gold, no_gold))):
            (folder / f"{file}.jsonl").write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
        systems.append(NamedRun(name, replace(run, path=folder)))
    systems.append(NamedRun("a summary without answers", replace(run, path=tmp_path)))
    searched = tmp_path / "searched"
    searched.mkdir()
    for file in ("answers", "references"):
        (searched / f"{file}.jsonl").write_text("")
    retrieved = stored(tmp_path, mode="retrieval_only")
    systems.append(NamedRun("a run that only retrieved", replace(retrieved, path=searched)))
    show_answers(systems, 1)
    assert capsys.readouterr().out.splitlines() == [
        "", "Some of the answers", "",
        " In which year?",
        "   gold          1998 / 98",
        "   rag           In 1998",
        f"   full_context  {'x ' * 58}x...",
        "",
    ]  # fmt: skip
    show_answers(systems, 2)
    console.cache_clear()
    assert "   gold          nothing; the false answer is: Miga" in capsys.readouterr().out


def _answering(root: Path, memory: str, data: str, answers: Mapping[str, tuple[str, str]]) -> NamedRun:
    """A run on some data of one's own that gave the gold answer to each question: by id, question and gold answer."""
    run = stored(root, memory=memory, dataset="custom", data_sha256=data * 64, settings={"k": ord(data)})
    folder = root / f"{memory} on {data}"
    folder.mkdir()
    given = [
        AnswerRecord(number, "c", 2, asked, gold, gold, False, (), 0.1, 0.1, False, 9, 2)
        for number, (asked, gold) in answers.items()
    ]
    golds = [ReferenceRecord(one.question_id, "c", 2, (one.prediction,), None, (), (), ()) for one in given]
    for file, rows in (("answers", given), ("references", golds)):
        (folder / f"{file}.jsonl").write_text("".join(json.dumps(asdict(row)) + "\n" for row in rows))
    return NamedRun(f"{memory} {data}", replace(run, path=folder))


def test_answers_to_other_data_with_the_same_ids_are_a_list_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside the gold answer "Paris" stood "Shakespeare", as what the other system said of the capital of France."""
    france, hamlet = {"q1": ("Capital of France?", "Paris")}, {"q1": ("Who wrote Hamlet?", "Shakespeare")}
    asked = (("rag", "a", france), ("rag", "b", hamlet), ("amem", "a", france))
    show_answers([_answering(tmp_path, *one) for one in asked], 1)
    assert capsys.readouterr().out.splitlines() == [
        "", "Some of the answers on custom", "",
        " Capital of France?",
        "   gold    Paris",
        "   rag a   Paris",
        "   amem a  Paris",
        "",
        "Some of the answers on custom", "",
        " Who wrote Hamlet?",
        "   gold   Shakespeare",
        "   rag b  Shakespeare",
        "",
    ]  # fmt: skip


def test_without_a_question_that_all_answered_it_is_said_that_no_answers_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The heading stood there with nothing below it."""
    apart = [_answering(tmp_path, name, "a", {name: ("Capital of France?", "Paris")}) for name in ("rag", "amem")]
    show_answers(apart, 3)
    assert capsys.readouterr().out == "no answers to show: no question was answered by all the runs that hold answers\n"
    other = _answering(tmp_path, "clag", "b", {"q1": ("Who wrote Hamlet?", "Shakespeare")})
    show_answers([*apart, other], 3)
    assert capsys.readouterr().out.splitlines()[:4] == ["", "Some of the answers", "", " Who wrote Hamlet?"]


def test_shown_answers_have_the_names_of_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two runs of one memory with other settings were both called by the memory alone."""
    runs = [FakeRun(memory="rag", settings=settings).write(tmp_path) for settings in ({}, {"k": 3})]
    compare(runs, tmp_path / "out", ComparisonChoices(answers=1))
    shown = capsys.readouterr().out.partition("Some of the answers")[2].splitlines()[3:6]
    assert [line.split("  ")[1].strip() for line in shown] == ["gold", "rag", "rag [k=3]"]


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    runs = [FakeRun(memory=name).write(tmp_path) for name in ("rag", "clag")]
    first, second = (compare(runs, tmp_path / name) for name in ("one", "two"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_retrieval_only_runs_are_compared_by_recall(tmp_path: Path) -> None:
    runs = [FakeRun(memory=name, mode="retrieval_only").write(tmp_path) for name in ("rag", "bm25_turn")]
    compare(runs, tmp_path / "out")
    text = (tmp_path / "out" / "compare.md").read_text()
    assert "| F1 |" not in text
    assert "R@10 by category" in text
    assert "BLEU" not in text
    assert "fooled" not in text


def _by_session_alone(root: Path, memory: str, value: float, mode: str = "retrieval_only") -> Path:
    """A run on data whose questions name the sessions that hold the evidence, and no turn."""
    by_session = [name for name in SESSION_METRICS if name.startswith("session")]
    path = FakeRun(memory=memory, mode=mode, extra_metrics=by_session, values=lambda number, metric: value).write(root)
    gone = (*EVIDENCE, *(f"{name}_substring" for name in EVIDENCE))
    rewrite(path, "scores.jsonl", lambda number, row: row["metrics"].update(dict.fromkeys(gone)))
    return path


def test_evidence_by_session_is_shown_and_leads_where_no_turn_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither `compare` nor a run ended with a table where only `evidence_sessions` were given."""
    runs = [_by_session_alone(tmp_path, "rag", 0.25), _by_session_alone(tmp_path, "bm25_turn", 0.75)]
    compare(runs, tmp_path / "out")
    shown = capsys.readouterr().out
    assert "Evidence by session" in shown
    assert "session all@10" in shown and "session nDCG@5" in shown and "R@10" not in shown
    assert "75.0  [75.0, 75.0]" in shown and "session any, all: share of the questions" in shown
    assert "bm25_turn leads rag by 50.0 points session all@10" in " ".join(shown.split())
    text = (tmp_path / "out" / "compare.md").read_text()
    assert "session all@10 by category" in text
    assert "session all@10: session_recall_all@10 (LongMemEval" in text
    written = next(csv.DictReader((tmp_path / "out" / "compare.csv").read_text().splitlines()))
    assert (written["system"], written["session all@10"], written["R@10 (turn ids)"]) == ("bm25_turn", "75.0000", "")


def test_answers_are_tested_on_evidence_by_session_where_no_turn_is_named(tmp_path: Path) -> None:
    runs = [read_run(_by_session_alone(tmp_path, name, 0.25, "answers")) for name in ("rag", "clag")]
    report = make_report([run for run in runs if isinstance(run, StoredRun)], CLAG)
    assert report.lead == "F1"
    assert {pair.column for pair in report.pairs} == {"F1", "F1 answerable", "session all@10"}


def test_evidence_says_how_it_is_matched_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report([stored(tmp_path), stored(tmp_path, memory="clag")], CLAG)
    assert "| R@10 (turn ids) |" in comparison_files(report)["compare.md"]
    assert "R@10 (turn ids): recall@10 (CLAG equations 14-18; an upper bound" in comparison_files(report)["compare.md"]
    assert r"& \shortstack[r]{R@10 \\ (turn \\ ids)} \\" in comparison_files(report)["compare.tex"]
    assert "F1: token F1, percent" in comparison_files(report)["compare.tex"]
    assert ",R@10 (turn ids)," in comparison_files(report)["compare.csv"]
    assert {pair.column for pair in report.pairs} == {"F1", "F1 answerable", "R@10 (turn ids)"}
    show(report)
    assert "Evidence by turn ids" in capsys.readouterr().out


def test_one_conversation_is_marked_in_the_figure(tmp_path: Path) -> None:
    for folder, conversations in (("first", ("conv-26",)), ("second", FakeRun().conversations)):
        runs = [FakeRun(memory=name, conversations=conversations).write(tmp_path / "runs" / folder / name)
                for name in ("rag", "clag")]  # fmt: skip
        compare(runs, tmp_path / folder)
    assert "rag ‡" in (tmp_path / "first" / "compare.svg").read_text()
    assert "‡" not in (tmp_path / "second" / "compare.svg").read_text()


def test_one_conversation_is_marked(tmp_path: Path) -> None:
    report = make_report([stored(tmp_path, conversations=("conv-26",))], CLAG)
    assert "]‡" in comparison_files(report)["compare.md"]
    assert any("one conversation" in line for line in report.legend)
    plain = make_report([stored(tmp_path)], CLAG)
    assert "‡" not in comparison_files(plain)["compare.md"]


def test_a_p_value_is_never_nought() -> None:
    assert (p_text(0.0004), p_text(0.0123)) == ("<0.001", "0.012")


def test_a_run_without_summary_has_no_cost(tmp_path: Path) -> None:
    report = make_report([stored(tmp_path, summary=False)], CLAG)
    assert "tokens" not in report.rows[0].estimates
    show(report)
    assert comparison_files(report)["compare.tex"].count(r"\begin{longtable}") == 3  # too wide for one page
    assert "& tokens" not in comparison_files(report)["compare.tex"]


def test_unfinished_runs_are_named_and_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, part = FakeRun().write(tmp_path), FakeRun(memory="amem", status="incomplete").write(tmp_path)
    compare([whole, part], tmp_path / "out")
    assert "not complete" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(RunDirectoryError, match="nothing to compare"):
        compare([part], tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FakeRun().write(tmp_path / "runs")
    asked = [str(tmp_path / "runs"), "--out", str(tmp_path / "out"), "--protocol", "sage"]
    assert main(asked) == 0 and not (tmp_path / "out" / "compare.svg").exists()  # one system is a row
    assert "compare.svg" not in (tmp_path / "out" / "compare.md").read_text()
    FakeRun(memory="clag").write(tmp_path / "runs")
    assert main(asked) == 0 and (tmp_path / "out" / "compare.svg").is_file()
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "does not exist" in capsys.readouterr().err.replace("\n", " ")
    assert main([str(tmp_path / "runs"), "--protocol", "nope", "--out", str(tmp_path / "x")]) == 2


def test_a_pair_names_what_differs_besides_the_memory(tmp_path: Path) -> None:
    embedder = {"embedder": {"name": "all-MiniLM-L6-v2"}}
    first, same = stored(tmp_path, parts=embedder), stored(tmp_path, memory="clag", parts=embedder)
    other = stored(tmp_path, memory="amem", reader="locomo", seed=1, parts={"embedder": {"name": "hashing"}})
    pairs = {pair.system: pair for pair in make_report([first, same, other], CLAG).pairs}
    assert pairs["clag, seed 0"].differing == ()
    assert pairs["amem, seed 1"].differing == ("embedder", "reader", "seed")
    assert "| embedder, reader, seed |" in comparison_files(make_report([first, same, other], CLAG))["compare.md"]


def test_a_constant_answer_differs_in_nothing_but_data(tmp_path: Path) -> None:
    run = stored(tmp_path)
    floor = replace(run, record={**run.record, "config": {}, "mode": "floor"})
    assert floor.floor
    assert differing_parts(run, floor) == ()
    assert differing_parts(run, replace(floor, record={**floor.record, "data": {"sha256": "other"}})) == ("data",)


def test_answer_prompts_of_another_wording_are_a_difference_besides_the_memory(tmp_path: Path) -> None:
    run = stored(tmp_path)
    asked = {"reader.default": "a" * 64, "clag.router": "b" * 64}
    one = replace(run, record={**run.record, "prompts": asked})
    reworded = replace(run, record={**run.record, "prompts": {**asked, "reader.default": "c" * 64}})
    other_memory = replace(run, record={**run.record, "prompts": {**asked, "clag.router": "c" * 64}})
    assert differing_parts(one, reworded) == ("answer prompts",)
    assert differing_parts(one, other_memory) == differing_parts(one, run) == ()


def test_another_processor_or_engine_is_a_difference_besides_the_memory(tmp_path: Path) -> None:
    run = stored(tmp_path)

    def made(cpu: str, version: str, *gpus: str) -> StoredRun:
        engine = {"engine": "vllm", "version": version, "mode": "managed"}
        return replace(
            run, record={**run.record, "model": {"engine": engine}, "hardware": {"cpu": cpu, "gpus": list(gpus)}}
        )

    one = made("AMD EPYC", "0.32.0")
    assert differing_parts(one, made("Xeon", "0.32.0")) == ("processor",)
    assert differing_parts(one, made("AMD EPYC", "0.26.0")) == ("engine",)
    assert differing_parts(made("AMD EPYC", "1", "H100, 81559 MiB"), made("Xeon", "1", "H100, 81559 MiB")) == ()
    assert differing_parts(one, made("AMD EPYC", "0.32.0", "H100, 81559 MiB")) == ("processor",)
    # A server that is reached at an address elsewhere, or a provider, computes on a machine that the run does not know.
    elsewhere = made("Xeon", "0.32.0")
    config = {**run.record["config"], "backbone": {"name": "qwen3_06b", "engine": {"urls": ["http://node7:8000/v1"]}}}
    assert replace(elsewhere, record={**elsewhere.record, "config": config}).processor == ""
    for here, url in (("Xeon", "http://localhost:8000/v1"), ("", "http://10.127.0.0.1.example.com/v1")):
        attached = {**run.record["config"], "backbone": {"engine": {"base_urls": [url]}}}
        assert replace(elsewhere, record={**elsewhere.record, "config": attached}).processor == here
    hosted = replace(run, record={**elsewhere.record, "model": {"engine": {"engine": "openai"}}})
    assert hosted.processor == "" and elsewhere.processor == "Xeon"
    embedded = {**made("Xeon", "1", "H100, 81559 MiB").record, "model": {"engine": {"engine": "llamacpp"}}}
    assert replace(run, record=embedded).processor == "Xeon", "llama.cpp in the process uses no GPU"


def test_seeds_on_two_processors_are_named_beside_the_memory(tmp_path: Path) -> None:
    """The record of a mean over seeds is the first run's: another processor of the second was not seen."""
    model = {"engine": {"engine": "vllm", "version": "1", "mode": "managed"}}
    cpus = [("AMD EPYC", 0, "rag"), ("Xeon", 1, "rag"), ("AMD EPYC", 0, "amem"), ("AMD EPYC", 1, "amem")]
    runs = []
    for cpu, seed, memory in cpus:
        run = stored(tmp_path, seed=seed, memory=memory)
        runs.append(replace(run, record={**run.record, "model": model, "hardware": {"cpu": cpu}}))
    assert {pair.differing for pair in make_report(runs, CLAG).pairs} == {("processor",)}


def test_the_kinds_of_ones_own_data_are_no_gap_of_a_protocol(tmp_path: Path) -> None:
    """A word of one's own is allowed, and was warned of as if it should have a label."""
    run = stored(tmp_path)
    rows = tuple(replace(row, kind="opinion") for row in run.rows)
    for name, warned in (("locomo", True), ("custom", False), ("custom_sample", False), ("own", False)):
        record = {**run.record, "config": {**run.record["config"], "dataset": {"name": name}}}
        report = make_report([replace(run, rows=rows, record=record)], CLAG)
        assert report.unlabelled == ["opinion"]
        assert any("no label for questions of the kind opinion" in line for line in report.warnings) is warned


def test_a_protocol_without_f1_leads_with_its_own_metric(tmp_path: Path) -> None:
    """FactConsolidation declares substring exact match: it is shown, sorts the rows, and its test is declared."""
    good = stored(tmp_path, extra_metrics=("substring_em",), values=lambda n, metric: float(metric == "substring_em"))
    poor = stored(tmp_path, memory="amem", extra_metrics=("substring_em",), values=lambda n, m: 0.2 * (m == "f1_set"))
    report = make_report([poor, good], load_protocol("factconsolidation"))
    assert [row.label for row in report.rows] == ["rag", "amem"] and report.lead == "SubEM"
    assert report.columns[0].name == "SubEM" and report.columns[0].meaning.startswith("substring_em")
    (declared,) = [pair for pair in report.pairs if not pair.exploratory]
    assert (declared.column, abs(declared.result.difference)) == ("SubEM", 100.0)
    assert "SubEM" in comparison_files(report)["compare.csv"].splitlines()[0]


def test_a_judges_column_is_of_one_judge_over_all_seeds() -> None:
    run = StoredRun({"run_id": "r0", "config": {}}, {}, {}, (ScoreRow("q", "c", 1, {"judge_a_m": 0.0}),))
    system = Repeats((run, replace(run, record={"run_id": "r1", "config": {}})), run)
    column = ComparisonColumn("judge 1", 1, "")
    graded = (["r0"], ["r0", "r1"])
    seen = [graded_columns(system, {column: JudgeGroup("judge_a_m", "a", frozenset(runs))}) for runs in graded]
    assert seen == [{}, {"judge 1": "judge_a_m"}]


def test_seeds_that_different_judges_graded_have_no_mean_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def graded(run_id: str, seed: int) -> StoredRun:
        record = {"run_id": run_id, "seed": seed, "config": {}, "data": {}, "mode": "answers"}
        return StoredRun(record, {}, {}, (ScoreRow("q", "c", 1, {"judge_a_m": float(seed), "f1": 1.0}),))

    def metrics(*groups: Sequence[str]) -> Mapping[str, float | None]:
        judges = [JudgeGroup("judge_a_m", "a", frozenset(runs)) for runs in groups]
        monkeypatch.setattr("eval.results.compare.seeds.judge_groups", lambda runs: judges)
        (system,) = group_repeats([graded("r0", 0), graded("r1", 1)])
        return system.averaged.rows[0].metrics

    assert metrics(["r0", "r1"]) == {"judge_a_m": 0.5, "f1": 1.0}
    assert metrics(["r0"], ["r1"]) == metrics(["r0"]) == {"f1": 1.0}


def test_means_over_other_questions_and_a_test_embedder_are_told(tmp_path: Path) -> None:
    whole, part = stored(tmp_path, memory="rag"), stored(tmp_path, memory="amem", questions_each=5)
    assert make_report([whole, stored(tmp_path, memory="clag")], CLAG).warnings == []
    (told,) = make_report([whole, part], CLAG).warnings
    assert told.startswith("warning: means are over different questions: ") and "rag: 20" in told and "amem: 10" in told

    def hashed(run: StoredRun, scorer: str) -> StoredRun:
        memory = {**run.record["config"]["memory"], "scorer": scorer}
        config = {**run.record["config"], "embedder": {"name": "hashing"}, "memory": memory}
        return replace(run, record={**run.record, "config": config})

    (told,) = make_report([hashed(whole, "dense"), stored(tmp_path, memory="mem0")], CLAG).warnings
    assert "embedder=hashing compares words" in told
    assert make_report([hashed(whole, "bm25"), stored(tmp_path, memory="sage")], CLAG).warnings == []
    silent = hashed(whole, "dense")  # a memory of one's own whose `embeds` is False
    silent = replace(silent, record={**silent.record, "embeds": False})
    assert make_report([silent, stored(tmp_path, memory="nemori")], CLAG).warnings == []


def test_a_run_that_only_retrieves_says_nothing_of_false_answers(tmp_path: Path) -> None:
    assert stored(tmp_path).has_false_answers
    assert not stored(tmp_path, mode="retrieval_only").has_false_answers
