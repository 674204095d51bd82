"""From a cell back to its run: settings, provenance, and the questions it lost."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from eval import explain as explain_main
from eval.explain import main
from eval.export import export_run
from eval.results.explain.find import find_cells
from eval.results.explain.questions import evidence_ranks, worst
from eval.results.explain.settings import differences
from eval.results.explain.show import cell_lines, run_lines
from eval.results.frame import read_run, read_runs
from eval.results.stored_run import StoredRun
from eval.results.tables.model import PaperTable
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import load_spec
from eval.runs.records import HitRecord, ReferenceRecord, RetrievalRecord
from eval.scoring.equivalence import Equivalence
from eval.scoring.protocols import load_protocol
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun

SMALL = FakeRun(memory="rag", backbone="smollm2_135m", questions_each=5, values=lambda n, metric: (n % 5) / 10)


def table(root: Path, number: int = 3) -> PaperTable:
    return build_tables("clag", read_runs([root])[0], [number])[0][0]


def explained(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    status = main([str(argument) for argument in arguments])
    found = capsys.readouterr()
    return status, (found.out + found.err)


def test_a_measured_cell_leads_to_its_run_and_its_worst_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = SMALL.write(tmp_path)
    status, shown = explained(capsys, 3, "RAG", "Multi Hop F1", "--runs", tmp_path, "--worst", 1)
    assert status == 0
    for text in (
        "CLAG Table 3, SmolLM2-135M",
        "printed    none",
        "measured   0.00",
        "metric     f1_set",
        f"run        fake/{path.name}",
        "commit     abcdef0123456789",
        f"sha256 {'0' * 64}",
        f"sha256 = {'1' * 64}",
        "worst questions:",
        "conv-26:0, category 1, score 0",
        "question  secret question",
        "gold      secret gold",
        "answer    secret answer",
        "evidence  D1:1 at rank 1",
    ):
        assert text in shown
    assert shown.count("score 0") == 1
    assert "/somewhere" not in shown


def test_blocks_that_the_paper_has_are_shown_whole_and_others_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    SMALL.write(tmp_path)
    FakeRun(memory="rag", backbone="qwen3_06b").write(tmp_path)
    _, shown = explained(capsys, "clag:3", "rag", "temporal f1", "--runs", tmp_path)
    assert "Qwen3-0.6B, RAG" in shown and shown.count("printed    ") == 1
    assert "(--block LABEL shows one whole):\n" in shown
    assert re.search(r"^ +[0-9.]+  SmolLM2-135M \(not in the paper's table\), RAG$", shown, re.MULTILINE)
    _, shown = explained(
        capsys, 3, "rag", "temporal f1", "--runs", tmp_path, "--block", "SmolLM2-135M (not in the paper's table)"
    )
    assert "SmolLM2-135M (not in the paper's table), RAG, Temporal F1" in shown and "--block" not in shown
    _, shown = explained(capsys, 3, "rag", "temporal f1", "--runs", tmp_path, "--block", "qwen3_06b")
    assert "SmolLM2" not in shown
    assert "printed    8.34" in shown
    assert "not compared with the printed number: 2 of 10 conversations" in shown


def test_the_verdict_and_what_it_rests_on_stand_below_the_numbers(
    tmp_path: Path,
) -> None:
    place = find_cells(table(SMALL.write(tmp_path).parent), "RAG", "Temporal F1")[0]
    tests = {
        "not reproduced: measured minus printed 1.50, margin 0.50; the test's interval of the difference 1.20 "
        "to 1.80": Equivalence("not reproduced", 1.5, 0.5, 1.2, 1.8, 0.9, 3),
        "reproduced: measured minus printed 0.10, margin 0.50 (repeats exactly)": Equivalence(
            "reproduced", 0.1, 0.5, 0.1, 0.1, None, 1, reason="repeats exactly"
        ),
        "cannot say: measured minus printed 0.10, margin 0.50; 4 seeds would decide (one run)": (
            Equivalence("cannot say", 0.1, 0.5, None, None, None, 1, 4, "one run")
        ),
    }
    for text, found in tests.items():
        lines = list(cell_lines(replace(place, cell=replace(place.cell, equivalence=found)), "clag"))
        assert lines[2] == f"verdict    {text}"


def test_a_judges_cell_names_its_column_and_the_answers_called_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (0, 1):
        FakeRun(
            memory="sage_code", backbone="gpt4o_mini", dataset="locomo", reader="sage", categories=(1, 2), seed=seed,
            extra_metrics=("judge_lenient_gpt4o_mini",), values=lambda number, metric: float(number != 2),
        ).write(tmp_path)  # fmt: skip
    _, shown = explained(capsys, "sage:1", "SAGE", "Average J", "--runs", tmp_path, "--worst", 1)
    assert "metric     judge_lenient_gpt4o_mini, all counted categories, protocol sage" in shown
    assert "worst questions, scores over 2 seeds, texts of the first:" in shown
    assert "conv-26:2, category 1, score 0" in shown


def test_a_cell_that_nothing_measured_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown = explained(capsys, 3, "RAG", "Temporal F1", "--runs", tmp_path, "--block", "qwen3_06b")
    assert status == 0
    assert "printed    8.34" in shown
    assert "measured   none: no run" in shown


def test_a_printed_setting_says_which_preset_has_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, shown = explained(capsys, "clag:8", "n_init", "Value", "--runs", tmp_path)
    assert status == 0
    assert "printed    3\nsetting    as printed: memory=clag n_init" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nine", "RAG", "x"), "table 'nine': write a number, or PAPER:NUMBER"),
        ((77, "RAG", "x"), "no table 77 to rebuild; choose one of 1, 2, 3"),
        (("nopaper:3", "RAG", "x"), "paper='nopaper' is unknown; choose one of clag"),
        ((3, "RAG", "F1"), "no column 'F1'; choose one of: Multi Hop F1 | "),
        ((3, "RAGS", "Temporal F1"), "no row 'RAGS'; choose one of: RAG | A-mem"),
        ((3, "RAG", "Temporal F1", "--block", "z"), "no block 'z'; choose one of: Qwen3-0.6B | "),
        ((3, "", "Temporal F1"), "no row ''"),
    ],
)
def test_unknown_names_list_the_choices(
    arguments: tuple[object, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown = explained(capsys, *arguments, "--runs", tmp_path)
    assert status == 2
    assert message in shown.replace("\n", " ")


def test_a_summary_explains_without_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_run(SMALL.write(tmp_path / "runs"), tmp_path / "summaries")
    _, shown = explained(capsys, 3, "RAG", "Multi Hop F1", "--runs", tmp_path / "summaries")
    assert "only scores are at hand" in shown
    assert "conv-26:0, category 1, score 0" in shown
    assert "secret" not in shown


def test_the_run_is_read_where_both_run_and_summary_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export_run(SMALL.write(tmp_path / "runs"), tmp_path / "a_summaries")
    _, shown = explained(capsys, 3, "RAG", "Multi Hop F1", "--runs", tmp_path / "a_summaries", tmp_path / "runs")
    assert "secret gold" in shown


def test_all_differing_settings_are_named(tmp_path: Path) -> None:
    changed = {"k": 3, "unit": "chunk", "scorer": "bm25", "order": "time", "chunk_tokens": 7}
    path = FakeRun(
        memory="rag",
        settings=changed,
        parts={"reader": {"roles": {"default": {"max_tokens": 9, "max_chars": 5}}}, "embedder": {"name": "hashing"}},
        dataset="locomo",
    ).write(tmp_path)
    run = read_run(path)
    assert isinstance(run, StoredRun)
    found = {one.setting: (one.paper, one.run) for one in differences(run, "locomo", "rag", load_spec("clag"))}
    assert {f"memory.{key}": found[f"memory.{key}"][1] for key in changed} == {
        f"memory.{key}": value for key, value in changed.items()
    }
    assert found["dataset.name"] == ("locomo_clag", "locomo")
    assert found["reader.roles.default.max_tokens"] == (1000, 9)
    assert found["reader.roles.default.max_chars"] == (None, 5)
    assert found["embedder.name"] == ("all-MiniLM-L6-v2", "hashing")


def test_worst_questions_by_hand(tmp_path: Path) -> None:
    run = read_run(SMALL.write(tmp_path))
    assert isinstance(run, StoredRun)
    clag, xmemory = load_protocol("clag"), load_protocol("xmemory")
    assert [row.question_id for row, _ in worst(run.rows, "f1_set", None, clag, 3)] == [
        "conv-26:0",
        "conv-30:0",
        "conv-26:1",
    ]
    assert [value for _, value in worst(run.rows, "f1_set", 5, clag, 2)] == [0.4, 0.4]
    assert all(row.category != 5 for row, _ in worst(run.rows, "f1_set", None, xmemory, 99))
    assert worst(run.rows, "hit_chars", None, clag, 3) == []


def test_the_slowest_questions_are_the_worst_of_a_latency(tmp_path: Path) -> None:
    run = read_run(FakeRun(timing="latency", questions_each=5).write(tmp_path))
    assert isinstance(run, StoredRun)
    found = worst(run.rows, "end_to_end_ms", None, load_protocol("clag"), 2)
    assert [row.question_id for row, _ in found] == ["conv-30:4", "conv-30:3"]


def test_evidence_ranks_by_hand() -> None:
    where = ("q", "c", 1)
    hits = [HitRecord("m1", "t", 1.0, ["D1:9"]), HitRecord("m2", "t", 0.9, ["D1:1", "D1:2"]),
            HitRecord("m3", "t", 0.8, ["D1:1"])]  # fmt: skip
    reference = ReferenceRecord(*where, ["a"], None, ["D1:1", "D2:2"], [], ["x", "y"])
    retrieval = RetrievalRecord(*where, hits, "", 0, None)
    assert evidence_ranks(reference, retrieval) == {"D1:1": 2, "D2:2": None}
    assert evidence_ranks(reference, None) == {"D1:1": None, "D2:2": None}


def test_a_variant_is_found_by_its_label_alone(tmp_path: Path) -> None:
    FakeRun(memory="rag", backbone="qwen3_06b").write(tmp_path)
    FakeRun(memory="rag", backbone="qwen3_06b", settings={"k": 3}).write(tmp_path)
    built = table(tmp_path)
    assert len(find_cells(built, "rag", "Temporal F1", "qwen3_06b")) == 1
    assert find_cells(built, "RAG [k=3]", "Temporal F1")[0].row.key.variant == "k=3"
    with pytest.raises(ConfigError, match="no row"):
        find_cells(built, "RAG [k=4]", "Temporal F1")


def test_a_run_that_other_code_began_names_it_with_its_changes(tmp_path: Path) -> None:
    """Of code that began it, whether it had changes was left out."""
    run = read_run(FakeRun().write(tmp_path))
    assert isinstance(run, StoredRun)
    earlier = [{"commit": "1234", "dirty": True}, {"commit": None, "dirty": None}]
    begun = replace(run, record={**run.record, "earlier_code": earlier})
    (line,) = [text for text in run_lines(begun, "here") if text.startswith("commit")]
    assert line.partition(" ")[2].strip() == (
        "abcdef0123456789; begun by 1234, with uncommitted changes; begun by unknown, state unknown"
    )


def test_runs_that_follow_a_printed_row_are_found_by_their_label_alone(tmp_path: Path) -> None:
    """The name of the system gave two rows of a block: the printed one with the authors' prompts, and ours."""
    FakeRun(memory="rag", backbone="qwen3_06b").write(tmp_path)
    FakeRun(memory="rag", backbone="qwen3_06b", parts={"prompts": {"source": "authors"}}).write(tmp_path)
    built = table(tmp_path)
    (found,) = find_cells(built, "rag", "Temporal F1", "qwen3_06b")
    assert found.row.printed and found.row.key.variant == "authors' prompts"
    (ours,) = find_cells(built, "RAG [our prompts]", "Temporal F1")
    assert (ours.row.printed, ours.row.key.variant) == (False, "")


def test_the_example_of_the_help_names_a_row_that_the_table_has() -> None:
    """It named the demo's row, which a checkout without the demo's runs does not have."""
    shown = " ".join(explain_main._parser().format_help().split())
    found = re.search(r"explain (\d+) (\S+) '(.+?)'$", shown)
    assert found and found[2] in {system.label for system in load_spec("clag").systems.values()}
