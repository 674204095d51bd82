"""Tables rebuilt from synthetic runs: which run stands where, what is compared, what stays empty and why."""

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from scipy import stats

from eval import tables as tables_main
from eval.commands import places
from eval.commands.escaping import latex as escape
from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.separated import render_csv
from eval.config.answer_prompts import PROMPTS
from eval.config.preset_settings import default_settings, overrides
from eval.config.presets import CONF, MEMORY, read_settings
from eval.results.explain.show import _measured
from eval.results.frame import read_runs, say_left_out
from eval.results.papers.printed import TEXT, load_printed, papers
from eval.results.tables.candidates import choose, mean_over_runs
from eval.results.tables.flat import COLUMNS, cell_records
from eval.results.tables.layout import lay_out
from eval.results.tables.model import PaperTable, Row, TableCell
from eval.results.tables.paper_page import paper_page, short_table
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import load_spec, spec_names
from eval.results.tables.text import coverage, dataset_labels, measured_text
from eval.results.tables.variants import run_variant, variant_label
from eval.runs.load import load_scores
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import aggregate
from eval.scoring.estimates import mean_value, scores_and_mean
from eval.scoring.inference import point
from eval.scoring.protocols import load_protocol, protocol_names
from eval.tables import main
from memsys.errors import ConfigError
from memsys.llm.prompt import Prompt
from tests.support.composing import composed
from tests.support.fake_run import FakeRun

TEN = tuple(f"conv-{number}" for number in range(10))


@pytest.fixture(autouse=True)
def small_locomo(monkeypatch: pytest.MonkeyPatch) -> None:
    """LoCoMo of these tests has ten conversations of ten questions."""
    from eval.results.tables import paper_tables as command

    spec = load_spec("clag")
    locomo = replace(spec.datasets["locomo"], questions=100)
    small = replace(spec, datasets={**spec.datasets, "locomo": locomo})
    monkeypatch.setattr(command, "load_spec", lambda paper: small if paper == "clag" else load_spec(paper))


def full(**changes: object) -> FakeRun:
    return FakeRun(**{"conversations": TEN, "questions_each": 10, "backbone": "qwen3_06b", "summary": False, **changes})  # type: ignore[arg-type]


def table(root: Path, number: int = 1, paper: str = "clag") -> PaperTable:
    runs, _ = read_runs([root])
    return build_tables(paper, runs, [number])[0][0]


def row(built: PaperTable, block: str, label: str) -> Row:
    return next(
        entry for part in built.blocks if part.label.startswith(block) for entry in part.rows if entry.label == label
    )


def cell(built: PaperTable, block: str, label: str, column: str) -> TableCell:
    titles = [entry.label for entry in built.columns]
    return row(built, block, label).cells[titles.index(column)]


def constant(share: float) -> Callable[[int, str], float | None]:
    return lambda number, metric: share


def test_without_runs_every_printed_number_stands_and_nothing_is_measured(tmp_path: Path) -> None:
    for number, count in ((1, 90), (2, 10), (3, 150), (4, 54), (15, 90), (16, 75)):
        cells = [entry for _, _, _, entry in table(tmp_path, number).cells]
        assert len([entry for entry in cells if entry.printed is not None]) == count
        assert all(entry.measured is None for entry in cells)
        assert {entry.missing for entry in cells} <= {"no run", "this system is not built here"}
        assert all(entry.verdict == ("not run" if entry.missing == "no run" else "cannot be filled") for entry in cells)


def test_a_whole_run_is_compared(tmp_path: Path) -> None:
    full(memory="rag", values=constant(0.2)).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.printed is not None
    assert found.printed.text == "12.9"
    assert found.measured is not None
    assert found.measured.value == pytest.approx(20.0)
    assert found.difference == pytest.approx(7.1)
    assert found.verdict == "cannot say"
    assert found.measured.interval is not None
    assert (found.measured.interval.by, found.measured.interval.units) == ("conversation", 10)
    assert (found.measured.questions, found.measured.caveats) == (100, ())


GREEDY: Mapping[str, Mapping[str, object]] = {
    "backbone": {"engine": {"batch_invariant": True}},
    "memory": {"roles": {"keywords": {"temperature": 0.0}}},
}


def test_categories_go_to_their_columns(tmp_path: Path) -> None:
    full(memory="clag", values=lambda number, metric: (number % 5 + 1) / 10).write(tmp_path)
    built = table(tmp_path, 3)
    columns = ("Multi Hop F1", "Temporal F1", "Open Domain F1", "Single-Hop F1", "Adversarial F1")
    values = [cell(built, "Qwen3-0.6B", "CLAG", column).measured for column in columns]
    assert [round(value.value, 6) for value in values if value] == [10.0, 20.0, 30.0, 40.0, 50.0]


def test_a_column_says_by_what_definition_it_counts(tmp_path: Path) -> None:
    """R@10 by substring, as CLAG has it, is another number than R@10 by turn ids."""
    built = table(tmp_path, 4)
    markdown, latex = paper_page(built), render_latex(short_table(built))
    assert "| E-Prec (substring) | E-Recall (substring) |" in markdown
    assert "- R@10 (substring): recall@10_substring (CLAG equations 14-18; an upper bound" in markdown
    assert r"& \shortstack[r]{R@10 \\ (substring)} " in latex
    assert r"R@10 (substring): recall@10\_\allowbreak substring" in latex
    assert "Recall (turn ids)" in paper_page(table(tmp_path, 3, "memfly"))
    rows = list(csv.DictReader(io.StringIO(render_csv(cell_records(built)))))
    assert {entry["column"]: entry["metric"] for entry in rows}["R@10"] == "recall@10_substring"
    assert "LoCoMo F1, HotpotQA F1, BioASQ F1: f1_set (A-Mem and CLAG" in paper_page(table(tmp_path))


def test_a_system_that_is_not_built_is_told_from_one_that_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval.results.tables import paper_tables as command

    spec = load_spec("memfly")
    systems = {**spec.systems, "memgpt": replace(spec.systems["memgpt"], built=False)}
    monkeypatch.setattr(command, "load_spec", lambda paper: replace(spec, systems=systems))
    rows = [one for block in table(tmp_path, paper="memfly").blocks for one in block.rows]
    found = {one.label: one.cells[0].missing for one in rows}
    assert (found["MEMGPT"], found["READAGENT"]) == ("this system is not built here", "no run")


def test_runs_of_presets_named_otherwise_than_their_row_stand_in_it(tmp_path: Path) -> None:
    for memory in ("xmemory_no_merge_split", "xmemory_cap_08"):
        full(memory=memory, backbone="qwen3_8b", dataset="locomo", reader="xmemory").write(tmp_path)
    for number, label in ((6, "w/o merge&split"), (8, "8")):
        built = table(tmp_path, number, "xmemory")
        assert row(built, "Qwen3-8B", label).measured


def test_part_of_the_data_is_shown_but_not_compared(tmp_path: Path) -> None:
    full(memory="rag", conversations=("conv-26",), questions_each=19).write(tmp_path)
    built = table(tmp_path)
    found = cell(built, "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.measured is not None
    assert found.measured.caveats == ("1 of 10 conversations (conv-26)",)
    assert found.difference is None
    assert found.measured.interval is not None
    assert found.measured.interval.by == "question"
    line = next(text for text in paper_page(built).splitlines() if "conv-26" in text)
    assert "†‡" in line
    assert "LoCoMo: n=19, 1 of 10 conversations (conv-26); HotpotQA: no run; BioASQ: no run" in line


def test_missing_questions_are_a_part_too(tmp_path: Path) -> None:
    full(memory="rag", questions_each=4, categories=(1, 2, 3, 4)).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").measured
    assert found is not None
    assert found.caveats == ("40 of 100 questions",)


def test_a_backbone_that_no_paper_used_gets_its_own_block(tmp_path: Path) -> None:
    FakeRun(memory="clag", conversations=("conv-26",)).write(tmp_path)
    FakeRun(memory="oracle", conversations=("conv-26",)).write(tmp_path)
    built = table(tmp_path)
    block = built.blocks[-1]
    assert block.label == "SmolLM2-135M (not in the paper's table)"
    assert [entry.label for entry in block.rows] == ["Oracle (sees the gold evidence)", "CLAG"]
    assert all(entry.printed is None for part in block.rows for entry in part.cells)
    line = lay_out(built).blocks[-1][1][1]
    assert coverage(line, dataset_labels(built)) == "LoCoMo: n=10, 1 of 10 conversations (conv-26)"


def test_retrieval_only_runs_have_no_backbone(tmp_path: Path) -> None:
    full(memory="bm25_turn", mode="retrieval_only").write(tmp_path)
    built = table(tmp_path, 4)
    assert row(built, "LoCoMo, no backbone", "BM25").measured
    assert not any(block.label.startswith("no backbone") for block in table(tmp_path, 1).blocks)


def test_an_overridden_memory_is_another_row(tmp_path: Path) -> None:
    full(memory="clag", settings={"n_init": 7}).write(tmp_path)
    built = table(tmp_path)
    assert cell(built, "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo F1").measured is None
    assert row(built, "Qwen3-0.6B", "CLAG (Ours) [n_init=7]").measured


def test_the_authors_prompts_stand_in_the_printed_row(tmp_path: Path) -> None:
    full(memory="clag", values=constant(0.2)).write(tmp_path)
    assert measured(table(tmp_path), "CLAG (Ours)") == pytest.approx(20)
    authors = {"prompts": {"source": "authors"}}
    full(memory="clag", parts=authors, values=constant(0.3)).write(tmp_path)
    full(memory="rag", values=constant(0.1)).write(tmp_path)
    built = table(tmp_path)
    assert measured(built, "CLAG (Ours)") == pytest.approx(30)
    assert measured(built, "CLAG (Ours) [our prompts]") == pytest.approx(20)
    assert measured(built, "RAG") == pytest.approx(10)
    said = {line.label: coverage(line, dataset_labels(built)) for line in lay_out(built).blocks[0][1]}
    assert said["CLAG (Ours)"].startswith("LoCoMo: n=100, authors' prompts;")
    assert "prompts" not in said["RAG"] + said["CLAG (Ours) [our prompts]"]
    ours = cell(built, "Qwen3-0.6B", "CLAG (Ours) [our prompts]", "LoCoMo F1")
    assert (ours.printed, ours.verdict) == (None, None)
    assert cell(built, "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo F1").printed is not None
    pairs = [(pair.system, pair.baseline) for pair in built.pairs if pair.column == "LoCoMo F1"]
    assert pairs == [("CLAG (Ours)", "RAG"), ("CLAG (Ours)", "CLAG (Ours) [our prompts]")]


def test_the_authors_prompts_of_the_reader_are_no_other_terms(tmp_path: Path) -> None:
    """Their references stand among the reader's settings: no run with them could have a verdict."""
    reader = read_settings(CONF / "reader" / "clag.yaml")
    prompts = {role: f"authors:reader/clag_{role}@{'1' * 12}" for role in reader["roles"]}
    roles = {role: {**reader["roles"][role], "prompt": name, "system": name} for role, name in prompts.items()}
    parts = {"prompts": {"source": "authors"}, "reader": {**reader, "roles": roles}}
    full(memory="clag", parts=parts, values=constant(0.21)).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo F1")
    assert found.measured is not None and found.measured.caveats == ()
    assert found.verdict == "cannot say"  # one run
    short = {**parts, "reader": {**reader, "roles": {**roles, "list": {**roles["list"], "max_tokens": 9}}}}
    full(memory="clag", parts=short, finished="2026-02-02").write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo F1")
    assert found.measured is not None and found.measured.caveats == ("reader settings roles.list.max_tokens=9",)
    ours = {**parts, "prompts": {"source": "ours"}}
    full(memory="rag", parts=ours).write(tmp_path)
    assert cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").verdict == "not comparable"


def test_the_authors_prompts_on_another_data_set_leave_a_printed_row_to_our_runs(tmp_path: Path) -> None:
    """They left it empty: it said that nothing was run."""
    full(memory="clag").write(tmp_path)
    full(memory="clag", dataset="hotpotqa20_clag", parts={"prompts": {"source": "authors"}}).write(tmp_path)
    assert cell(table(tmp_path, 3), "Qwen3-0.6B", "CLAG", "Temporal F1").measured is not None
    built = table(tmp_path, 16)
    assert cell(built, "LoCoMo, Qwen3-0.6B", "CLAG", "Chars").measured is not None
    assert cell(built, "HotpotQA, Qwen3-0.6B", "CLAG", "Chars").measured is not None
    assert not any("[" in entry.label for block in built.blocks for entry in block.rows)


def test_a_small_part_with_the_authors_prompts_displaces_no_larger_run(tmp_path: Path) -> None:
    full(memory="clag", values=constant(0.2)).write(tmp_path)
    full(memory="clag", parts={"prompts": {"source": "authors"}}, conversations=TEN[:1]).write(tmp_path)
    built = table(tmp_path)
    assert measured(built, "CLAG (Ours)") == pytest.approx(20)
    assert row(built, "Qwen3-0.6B", "CLAG (Ours) [authors' prompts]").measured


@pytest.mark.usefixtures("unsigned")
def test_authors_answer_prompts_behind_a_memory_with_ours_stand_in_no_printed_row(tmp_path: Path) -> None:
    """No pack of MemGPT's authors fits its preset: the run with `prompts=authors` stood for the paper's."""
    path = full(memory="clag", parts={"prompts": {"source": "authors"}}, values=constant(0.3)).write(tmp_path)
    record = json.loads((path / "run.json").read_text())
    prompts = {"clag.router": "a" * 64}
    for source, label in (
        ("authors", "CLAG (Ours)"),
        ("ours", "CLAG (Ours) [authors' prompts, the memory's prompts are ours]"),
    ):
        said = {"prompts": prompts, "prompt_sources": [{"role": "clag.router", "source": source}]}
        (path / "run.json").write_text(json.dumps({**record, **said}))
        built = table(tmp_path)
        assert measured(built, label) == pytest.approx(30)
    assert cell(built, "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo F1").measured is None
    said["prompts"] = {**prompts, "clag.link": "b" * 64, "reader.list": "c" * 64}
    said["prompt_sources"] += [{"role": role, "source": "authors"} for role in ("clag.link", "reader.list")]
    (path / "run.json").write_text(json.dumps({**record, **said}))
    found = cell(table(tmp_path), "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo F1").measured
    assert found is not None and found.caveats[-1] == "our prompts of router", "some are theirs"


def measured(built: PaperTable, label: str) -> float:
    found = cell(built, "Qwen3-0.6B", label, "LoCoMo F1").measured
    assert found is not None
    return found.value


def test_an_ablation_config_fills_its_own_printed_row(tmp_path: Path) -> None:
    full(memory="clag_n_init_5", settings={"n_init": 5}).write(tmp_path)
    built = table(tmp_path, 9)
    assert cell(built, "Qwen3-0.6B", "5", "F1").measured is not None
    assert cell(built, "Qwen3-0.6B", "3 (Default)", "F1").measured is None


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(0.129, "reproduced"), (0.1385, "reproduced"), (0.1395, "not reproduced"), (0.118, "not reproduced")],
)
def test_a_deterministic_run_is_held_against_the_margin(tmp_path: Path, share: float, verdict: str) -> None:
    """12.9 is printed; the margin is one point, whatever the conversations scatter."""
    full(memory="rag", values=constant(share), parts=GREEDY).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.printed is not None
    assert found.printed.text == "12.9"
    assert found.verdict == verdict
    assert f"| {verdict} |" in paper_page(table(tmp_path))
    assert "greedy, batch-invariant" in paper_page(table(tmp_path))


def test_an_interval_of_a_share_is_shown_as_far_as_a_share_goes(tmp_path: Path) -> None:
    """Two conversations gave F1 an interval of [-93.74, 173.74] percent."""
    values = lambda number, metric: 0.3 + 0.2 * (number // 10 % 2)  # noqa: E731
    full(memory="rag", values=values, conversations=TEN[:2]).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.measured is not None and found.measured.interval is not None
    assert found.measured.interval.low < 0 and found.measured.interval.high > 100  # what is stored stays
    assert "40.00 [0.00, 100.00]" in measured_text(found)
    assert "40.00 [0.00, 100.00], 95 % over 2 conversations" in _measured(found.measured)


def test_the_scatter_of_conversations_does_not_make_a_number_reproduce(tmp_path: Path) -> None:
    """Half of the conversations score 0, half 34: the interval holds 12.9, the same questions do not give it."""
    full(memory="rag", values=lambda number, metric: 0.34 * (number // 10 % 2), parts=GREEDY).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.measured is not None
    assert found.measured.interval is not None
    assert found.measured.interval.low < 12.9 < found.measured.interval.high
    assert found.verdict == "not reproduced"


def test_seeds_of_a_sampled_setting_are_tested_for_equivalence(tmp_path: Path) -> None:
    for seed, share in enumerate((0.128, 0.129, 0.131)):
        full(memory="rag", values=constant(share), seed=seed).write(tmp_path)
        found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
        assert found.verdict == ("reproduced" if seed == 2 else "cannot say")
    assert found.measured is not None
    assert found.measured.by_run == pytest.approx((12.8, 12.9, 13.1))


def test_one_sampled_run_names_the_seeds_that_are_wanted(tmp_path: Path) -> None:
    full(memory="rag", values=constant(0.129)).write(tmp_path)
    assert "| cannot say (at least 3 seeds) |" in paper_page(table(tmp_path))


def test_retrieval_by_the_question_fills_the_rows_of_every_backbone(tmp_path: Path) -> None:
    """CLAG's Table 4: RAG searches with the question, so a run without a backbone measures its printed row."""
    full(memory="rag_turn", mode="retrieval_only", settings={"query": "question"}).write(tmp_path)
    found = cell(table(tmp_path, 16), "LoCoMo, Qwen3-0.6B", "RAG", "Chars")
    assert found.measured is not None
    assert found.measured.repeats_exactly == "retrieval by the question, no model"
    assert cell(table(tmp_path, 16), "LoCoMo, Qwen3-0.6B", "A-mem", "Chars").measured is None
    assert cell(table(tmp_path, 1), "Qwen3-0.6B", "RAG", "LoCoMo F1").verdict == "not run"


def test_retrieval_by_the_question_stands_beside_answers_to_the_authors_prompts(tmp_path: Path) -> None:
    asking = {"memory": "rag_turn", "settings": {"query": "question"}}
    full(**asking, mode="retrieval_only").write(tmp_path)
    full(**asking, dataset="hotpotqa20_clag", parts={"prompts": {"source": "authors"}}).write(tmp_path)
    assert cell(table(tmp_path, 16), "LoCoMo, Qwen3-0.6B", "RAG", "Chars").measured is not None


def test_keywords_of_a_model_keep_a_retrieval_to_its_backbone(tmp_path: Path) -> None:
    full(memory="rag_turn", mode="retrieval_only", settings={"query": "keywords"}).write(tmp_path)
    assert cell(table(tmp_path, 16), "LoCoMo, Qwen3-0.6B", "RAG", "Chars").measured is None


@pytest.mark.usefixtures("unsigned")
def test_recorded_answers_are_named_as_the_authors(tmp_path: Path) -> None:
    path = full(memory="rag", values=constant(0.129)).write(tmp_path)
    record = json.loads((path / "run.json").read_text())
    where = {"repository": "their/code", "row": {"paper": "clag", "memory": "rag", "backbone": "qwen3_06b"}}
    (path / "run.json").write_text(json.dumps({**record, "recorded": where}))
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.verdict == "reproduced"
    assert "measured from the authors' answers: their/code" in paper_page(table(tmp_path))


def test_what_was_measured_on_other_terms_is_not_comparable(tmp_path: Path) -> None:
    full(memory="rag", conversations=TEN[:3]).write(tmp_path)
    assert cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").verdict == "not comparable"


def test_settings_and_counts_of_the_papers_own_run_are_not_comparable(tmp_path: Path) -> None:
    full(memory="clag").write(tmp_path)
    for number in (8, 12, 13, 14):
        built = table(tmp_path, number)
        assert {entry.verdict for _, _, _, entry in built.cells} == {"setting" if number == 8 else "cannot be filled"}
        assert "| printed |" in paper_page(built)


@pytest.mark.usefixtures("unsigned")
def test_questions_are_counted_in_the_data_set(tmp_path: Path) -> None:
    path = full(memory="rag", mode="retrieval_only").write(tmp_path)
    record = json.loads((path / "run.json").read_text())
    counts = {"1": 282, "2": 321, "3": 96, "4": 841, "5": 446}
    data = {**record["data"], "questions": 1986, "questions_by_category": counts}
    (path / "run.json").write_text(json.dumps({**record, "data": data}))
    built = table(tmp_path, 4, "memfly")
    cells = [entry for _, _, _, entry in built.cells]
    assert {entry.verdict for entry in cells} == {"reproduced"} and len(cells) == 12
    assert [round(entry.measured.value, 1) for entry in cells[:4] if entry.measured] == [282, 14.2, 321, 16.2]
    assert "n=1986, counted in the data set" in paper_page(built)
    (path / "run.json").write_text(json.dumps({**record, "data": {**data, "questions": 1985}}))
    cells = [entry for _, _, _, entry in table(tmp_path, 4, "memfly").cells]
    assert {entry.verdict for entry in cells} == {"cannot be filled"}


def test_every_format_states_the_rule_of_the_verdict(tmp_path: Path) -> None:
    built = table(tmp_path)
    assert "verdict: does the printed number reproduce" in paper_page(built)
    assert "same questions" in render_latex(short_table(built))


def test_detectable_difference_stands_with_what_is_compared(tmp_path: Path) -> None:
    """Ten conversations whose means alternate between 0 and 1: the textbook t formula on their standard error."""
    full(memory="rag", values=lambda number, metric: float(number // 10 % 2)).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").measured
    assert found is not None
    error = stats.sem([0.0, 1.0] * 5)
    expected = 100 * (stats.t.ppf(0.975, 9) + stats.t.ppf(0.8, 9)) * error
    assert found.detectable == pytest.approx(expected)


def test_the_papers_own_system_is_tested_against_the_others(tmp_path: Path) -> None:
    full(memory="rag", values=constant(0.2)).write(tmp_path)
    full(memory="amem", values=constant(0.1)).write(tmp_path)
    full(memory="clag", values=constant(0.3)).write(tmp_path)
    built = table(tmp_path)
    pairs = [pair for pair in built.pairs if pair.column == "LoCoMo F1"]
    assert [(pair.system, pair.baseline) for pair in pairs] == [("CLAG (Ours)", "RAG"), ("CLAG (Ours)", "A-mem")]
    assert [round(pair.result.difference, 6) for pair in pairs] == [10.0, 20.0]
    assert (pairs[0].result.wins, pairs[0].result.ties, pairs[0].result.losses) == (100, 0, 0)
    assert pairs[0].result.p_value == 2 / 1024
    assert pairs[0].adjusted == 2 * 2 / 1024
    assert "## Paired tests" in paper_page(built)
    assert not table(tmp_path, 3).pairs


@pytest.mark.usefixtures("unsigned")
def test_one_figure_per_run_is_shown_without_an_interval(tmp_path: Path) -> None:
    path = full(memory="clag").write(tmp_path)
    (path / "summary.json").write_text('{"memory": {"statistics": {"clusters": {"mean": 4.5}}}}')
    found = cell(table(tmp_path, 10), "Qwen3-0.6B", "0.10 (Default)", "Avg. # Clusters")
    assert found.measured is not None
    assert (found.measured.value, found.measured.interval) == (4.5, None)
    assert found.difference == pytest.approx(-0.2)
    assert found.verdict == "cannot say"
    assert cell(table(tmp_path, 10), "Qwen3-0.6B", "0.15", "Avg. # Clusters").missing == "no run"


def test_a_reader_that_is_listed_but_not_the_papers_is_shown_not_compared(tmp_path: Path) -> None:
    full(memory="xmemory", backbone="qwen3_8b", dataset="locomo").write(tmp_path)
    found = cell(table(tmp_path, 1, "xmemory"), "Qwen3-8B", "xMemory (Ours)", "Average F1").measured
    assert found is not None
    assert "reader clag, the paper's is xmemory" in found.caveats


@pytest.mark.parametrize(("captions", "caveats"), [("none", ()), ("all", ("data set settings turn_captions=all",))])
def test_settings_of_the_paper_are_no_deviation(tmp_path: Path, captions: str, caveats: tuple[str, ...]) -> None:
    """SAGE's turns have no captions, whatever the preset says; its embedder depends on the backbone."""
    parts = {"dataset": {"turn_captions": captions}, "embedder": {"name": "text-embedding-3-small"}}
    full(
        memory="sage_code", backbone="gpt4o_mini", dataset="locomo", reader="sage", parts=parts, questions_each=154,
        categories=(1, 2, 3, 4),
    ).write(tmp_path)  # fmt: skip
    found = cell(table(tmp_path, 1, "sage"), "GPT-4o-mini", "SAGE", "Average F1").measured
    assert found is not None
    assert found.caveats == caveats


@pytest.mark.parametrize(
    ("backbone", "block", "judge"),
    [
        ("gpt4o_mini", "GPT-4o-mini", "judge_lenient_gpt4o_mini"),
        ("qwen25_3b", "Qwen2.5-3B", "judge_lenient_llama31_8b"),
    ],
)
def test_a_judges_verdicts_are_averaged_by_category_as_scores_are(
    tmp_path: Path, backbone: str, block: str, judge: str
) -> None:
    """Questions of categories 1 and 2, six and four of every ten: SAGE's mean is that of the two categories."""
    full(
        memory="sage_code", backbone=backbone, dataset="locomo", reader="sage",
        categories=(1, 2, 1, 2, 1, 2, 1, 2, 1, 1),
        extra_metrics=(judge,), values=lambda number, metric: float(number % 10 in (0, 1)),
    ).write(tmp_path)  # fmt: skip
    found = cell(table(tmp_path, 1, "sage"), block, "SAGE", "Average J").measured
    assert found is not None
    assert found.value == pytest.approx(100 * (1 / 6 + 1 / 4) / 2)
    assert found.interval is not None
    first = cell(table(tmp_path, 1, "sage"), block, "SAGE", "Single-hop J").measured
    assert first is not None
    assert first.value == pytest.approx(100 / 6)


def test_a_mean_over_backbones_waits_for_all_of_them(tmp_path: Path) -> None:
    """SAGE's Table 2: the plain mean over the seven open models of Table 1."""
    parts = load_spec("sage").means["seven_open_models"]
    scores = {name: place / 10 for place, name in enumerate(parts)}

    def written(names: tuple[str, ...]) -> TableCell:
        for name in names:
            score = scores[name]
            full(
                memory="sage_code", backbone=name, dataset="locomo", reader="sage", questions_each=10,
                categories=(1,), values=lambda number, metric, score=score: score,
            ).write(tmp_path / name)  # fmt: skip
        built = table(tmp_path, 2, "sage")
        label = next(column.label for column in built.columns if column.metric == "f1_set" and column.category == 1)
        return cell(built, "mean over the seven", "SAGE", label)

    some = written(parts[:6])
    assert (some.verdict, some.missing) == ("not run", "6 of its 7 backbones were run")
    whole = written(parts[6:])
    assert whole.measured is not None
    assert whole.measured.value == pytest.approx(30.0)  # of 0, 10, ... 60
    assert len(whole.measured.runs) == 7


@pytest.mark.usefixtures("unsigned")
def test_a_judge_with_other_settings_than_its_presets_is_not_compared(tmp_path: Path) -> None:
    """The column has the preset's name, whatever was overridden in it."""
    judge = "judge_lenient_gpt4o_mini"
    path = full(
        memory="sage_code", backbone="gpt4o_mini", dataset="locomo", reader="sage", categories=(1, 2),
        extra_metrics=(judge,), summary=True,
    ).write(tmp_path)  # fmt: skip
    summary = json.loads((path / "summary.json").read_text())
    identity = {
        "judge": {"name": "lenient", "prompt": "strict"},
        "backbone": {"name": "gpt4o_mini", "max_in_flight": 1},
    }
    summary["judges"] = {judge: {"judge": "lenient", "backbone": "gpt4o_mini", "identity": identity}}
    (path / "summary.json").write_text(json.dumps(summary))
    built = table(tmp_path, 1, "sage")
    verdicts, scores = (cell(built, "GPT-4o-mini", "SAGE", f"Average {name}").measured for name in ("J", "F1"))
    assert verdicts is not None and scores is not None
    assert set(verdicts.caveats) - set(scores.caveats) == {"judge's judge settings prompt=strict"}


def test_a_data_set_may_have_readers_of_its_own(tmp_path: Path) -> None:
    full(memory="xmemory", backbone="qwen3_8b", dataset="perltqa", reader="perltqa", categories=(7, 8, 9, 10)).write(
        tmp_path
    )
    found = cell(table(tmp_path, 2, "xmemory"), "Qwen3-8B", "xMemory", "F1").measured
    assert found is not None
    assert not [caveat for caveat in found.caveats if caveat.startswith("reader")]
    _, unused = build_tables("clag", read_runs([tmp_path])[0], [1])
    assert list(unused.values()) == ["data set perltqa is in no table of CLAG"]


def test_questions_that_a_protocol_leaves_out_are_not_missed(tmp_path: Path) -> None:
    """Without category 5 xMemory's LoCoMo is whole, whether or not the run asked for it."""
    full(memory="xmemory", backbone="qwen3_8b", dataset="locomo", questions_each=154, categories=(1, 2, 3, 4)).write(
        tmp_path
    )
    found = cell(table(tmp_path, 1, "xmemory"), "Qwen3-8B", "xMemory (Ours)", "Average F1").measured
    assert found is not None
    assert not [caveat for caveat in found.caveats if "questions" in caveat]


def test_metrics_stand_down_where_the_paper_has_them_so(tmp_path: Path) -> None:
    text = paper_page(table(tmp_path, 4, "sage"))
    assert "| Mem0 | SAGE | Measured on |" in text
    assert "| Add total tokens | printed | 5551631 | 2155207 |" in text


def test_a_fault_of_many_cells_names_their_columns(tmp_path: Path) -> None:
    text = paper_page(table(tmp_path, 1, "sage"))
    assert "69 cells of Single-hop F1, Single-hop B1, Single-hop J: wrong label: the column holds category 1" in text


def test_seeds_are_averaged_question_by_question(tmp_path: Path) -> None:
    for seed, share in ((0, 0.1), (1, 0.3)):
        full(memory="rag", seed=seed, values=constant(share)).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").measured
    assert found is not None
    assert found.value == pytest.approx(20.0)
    assert found.seeds == (0, 1)
    assert "mean of 2 seeds" in paper_page(table(tmp_path))


def test_seeds_of_two_former_wordings_are_not_averaged(tmp_path: Path) -> None:
    """Both stand in the row "other answer prompts", and the text of a prompt is in no setting."""
    for seed, share in enumerate((0.1, 0.3, 0.5)):
        asked = {"reader": {"prompt_set": "clag"}}
        full(memory="rag", seed=seed, values=constant(share), finished=f"2026-01-0{seed + 1}", parts=asked).write(
            tmp_path
        )
    runs, _ = read_runs([tmp_path])
    wordings = {0: "a" * 64, 1: "b" * 64, 2: "b" * 64}
    runs = [
        replace(run, record={**run.record, "prompts": {"reader.default": wordings[run.record["seed"]]}}) for run in runs
    ]
    assert {run_variant(run.record) for run in runs} == {"other answer prompts"}
    found = choose(runs, "locomo", "f1_set", load_spec("clag"))
    assert not isinstance(found, str)
    assert found.seeds == (1, 2)
    assert [entry.metrics["f1_set"] for entry in found.rows] == [pytest.approx(0.4)] * 100


def test_seeds_keep_the_abstention_that_stands_for_a_metric() -> None:
    """Under LoCoMo's own protocol category 5 has its abstentions, over several seeds as over one."""
    runs = [
        SimpleNamespace(rows=(ScoreRow("q", "c", 5, {"f1_set": 1.0, "abstained": share, "trapped": 0.0}),))
        for share in (0.0, 1.0)
    ]
    rows = mean_over_runs(runs, "f1_set")  # type: ignore[arg-type]
    assert rows[0].metrics == {"f1_set": 1.0, "abstained": 0.5}
    assert mean_value(rows, "f1_set", 5, load_protocol("locomo")) == 0.5


def test_the_choice_among_runs_never_looks_at_the_score(tmp_path: Path) -> None:
    """The latest whole run stands, not the better old one nor the better part."""
    full(memory="rag", finished="2026-01-01", gpus=("a",), values=constant(0.9)).write(tmp_path)
    full(memory="rag", finished="2026-01-03", gpus=("b",), values=constant(0.1)).write(tmp_path)
    full(memory="rag", conversations=TEN[:3], finished="2026-01-04", values=constant(0.8)).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").measured
    assert found is not None
    assert found.value == pytest.approx(10.0)


def test_another_turn_format_is_shown_but_not_compared(tmp_path: Path) -> None:
    full(memory="rag", dataset="locomo").write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1")
    assert found.measured is not None
    assert found.measured.caveats == ("data set config locomo, the paper's is locomo_clag",)
    assert found.difference is None


def test_other_settings_are_shown_but_not_compared(tmp_path: Path) -> None:
    parts = {
        "dataset": {"turn_style": "bare", "conversations": ["conv-26"]},
        "reader": {"abstention": "No"},
        "embedder": {"name": "hashing"},
        "backbone": {
            "prompt_mode": "chat", "max_in_flight": 1, "engine": {"extra_args": ["--quantization", "fp8"], "port": 80},
        },
    }  # fmt: skip
    full(memory="rag", parts=parts, notes={"pinned": False}).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").measured
    assert found is not None
    assert found.caveats == (
        "the data file is not the published one",
        "data set settings turn_style=bare",
        "embedder hashing, the paper's is all-MiniLM-L6-v2",
        "reader settings abstention=No",
        "backbone settings engine.extra_args=['--quantization', 'fp8'], prompt_mode=chat",
    )


@pytest.mark.parametrize(
    ("model", "caveats"),
    [
        ("Qwen/Qwen3-0.6B", ()),
        ("/disk/Qwen3-0.6B", ()),
        ("models/Qwen3-0.6B", ()),
        ("Qwen/Qwen3-4B", ("weights Qwen3-4B, the preset's are Qwen3-0.6B",)),
    ],
)
def test_other_weights_under_a_backbones_name_are_not_compared(
    model: str, caveats: tuple[str, ...], tmp_path: Path
) -> None:
    full(memory="rag", parts={"backbone": {"engine": {"model": model}}}).write(tmp_path)
    found = cell(table(tmp_path), "Qwen3-0.6B", "RAG", "LoCoMo F1").measured
    assert found is not None
    assert found.caveats == caveats


@pytest.mark.parametrize("paper", spec_names())
def test_presets_that_may_stand_in_one_row_are_one_method(paper: str) -> None:
    for system in load_spec(paper).systems.values():
        known = [found for name in system.memory if (found := default_settings(name, MEMORY)) is not None]
        read = {"name": "", "date_in_index": ""}  # a verdict names what was indexed
        assert all({**found, **read} == {**known[0], **read} for found in known), system.label


def test_the_projects_own_sample_is_no_locomo(tmp_path: Path) -> None:
    full(memory="rag", parts={"dataset": {"sample": True}}).write(tmp_path)
    _, unused = build_tables("clag", read_runs([tmp_path])[0], [1])
    assert list(unused.values()) == ["the project's own sample is not the published data set"]


def test_runs_on_the_projects_own_sample_are_in_no_table_of_our_own(tmp_path: Path) -> None:
    """The demo's runs lie in the checkout; `make tables` behind it writes what is committed."""
    full(memory="rag").write(tmp_path / "runs")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "before")]) == 0
    full(memory="amem", parts={"dataset": {"sample": True}}).write(tmp_path / "runs")
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "after")]) == 0
    for name in ("all_systems.md", "memory_quality.md", "method_counts.md", "calls_by_role.md", "knowledge_updates.md"):
        assert (tmp_path / "after" / name).read_bytes() == (tmp_path / "before" / name).read_bytes(), name


def test_latency_comes_from_measured_answers_alone(tmp_path: Path) -> None:
    full(memory="rag").write(tmp_path)
    reason = cell(table(tmp_path, 2), "Qwen3-0.6B", "RAG", "Retrieval (ms)").missing
    assert reason == "latency not measured (timing=latency)"
    full(memory="rag", conversations=TEN[:1], timing="latency", gpus=("NVIDIA H100",)).write(tmp_path)
    found = cell(table(tmp_path, 2), "Qwen3-0.6B", "RAG", "Retrieval (ms)").measured
    assert found is not None
    assert found.value == pytest.approx(254.5)  # 500 ms + mean of 0..9 ms, less 250 ms of keywords
    assert found.caveats == ("1 of 10 conversations (conv-0)", "other hardware than A100")
    whole = cell(table(tmp_path, 2), "Qwen3-0.6B", "RAG", "End-to-End (ms)").measured
    assert whole is not None
    assert whole.value == pytest.approx(629.5)


def test_latency_on_the_papers_hardware_is_compared(tmp_path: Path) -> None:
    full(memory="rag", timing="latency", gpus=("NVIDIA A100-SXM4-80GB",)).write(tmp_path)
    assert cell(table(tmp_path, 2), "Qwen3-0.6B", "RAG", "Retrieval (ms)").difference is not None


def test_bertscore_of_another_encoder_does_not_enter(tmp_path: Path) -> None:
    full(memory="rag", extra_metrics=("bert_f1",), bertscore_model="all-MiniLM-L6-v2").write(tmp_path)
    built = table(tmp_path, 15)
    assert cell(built, "Qwen3-0.6B", "RAG", "LoCoMo BERT-F1").missing == "BERTScore of all-MiniLM-L6-v2"
    assert cell(built, "Qwen3-0.6B", "RAG", "LoCoMo METEOR").measured is not None
    full(memory="clag", extra_metrics=("bert_f1",)).write(tmp_path)
    assert cell(table(tmp_path, 15), "Qwen3-0.6B", "CLAG (Ours)", "LoCoMo BERT-F1").measured is not None


def test_characters_are_not_percent(tmp_path: Path) -> None:
    full(memory="rag").write(tmp_path)
    found = cell(table(tmp_path, 16), "LoCoMo", "RAG", "Chars").measured
    assert found is not None
    assert found.value == pytest.approx(1350 + 99 / 2)


def test_runs_that_stand_nowhere_are_named(tmp_path: Path) -> None:
    FakeRun(dataset="locomo_sample").write(tmp_path)
    FakeRun(reader="locomo").write(tmp_path)
    FakeRun(memory="amem", status="incomplete").write(tmp_path)
    runs, skipped = read_runs([tmp_path])
    _, unused = build_tables("clag", runs, [1])
    assert sorted(unused.values()) == [
        "data set locomo_sample is in no table of CLAG",
        "reader locomo is not CLAG's (clag)",
    ]
    ways = "the same command resumes it, `memsys settle --close` closes what is open"
    assert [run.reason for run in skipped] == [f"not complete (incomplete); {ways}"]


@pytest.mark.usefixtures("unsigned")
def test_stale_scores_are_left_out_with_the_command_to_run(tmp_path: Path) -> None:
    path = full(memory="rag").write(tmp_path)
    with (path / "answers.jsonl").open("a") as handle:
        handle.write("{}\n")
    _, skipped = read_runs([tmp_path])
    assert "memsys score" in skipped[0].reason


@pytest.mark.usefixtures("unsigned")
def test_a_copy_counts_once_and_a_namesake_is_told(tmp_path: Path) -> None:
    run = full(memory="rag")
    run.write(tmp_path / "a")
    copy = run.write(tmp_path / "b")
    assert [len(part) for part in read_runs([tmp_path])] == [1, 0]
    text = (copy / "run.json").read_text().replace("2026-01-01T", "2025-01-01T")
    (copy / "run.json").write_text(text)
    runs, skipped = read_runs([tmp_path])
    assert len(runs) == 1
    assert "another run has the id" in skipped[0].reason


@pytest.mark.parametrize("name", protocol_names())
@pytest.mark.parametrize("metric", ["f1_set", "e_f1"])
def test_interval_and_value_are_of_the_same_mean(tmp_path: Path, name: str, metric: str) -> None:
    """The form that is resampled gives what eval.scoring.aggregate gives, under every protocol."""
    path = full(memory="rag").write(tmp_path)
    rows, protocol = load_scores(path), load_protocol(name)
    value = mean_value(rows, metric, None, protocol)
    assert value == pytest.approx(point(*scores_and_mean(rows, metric, None, protocol)), abs=1e-12)
    if metric == "f1_set":
        expected = aggregate(rows, replace(protocol, columns={"F1": metric})).overall["F1"].value
        assert value == pytest.approx(expected, abs=1e-12)


def test_csv_has_every_cell_and_empty_means_empty(tmp_path: Path) -> None:
    full(memory="rag").write(tmp_path)
    rows = list(csv.DictReader(io.StringIO(render_csv(cell_records(table(tmp_path))))))
    assert len(rows) == 90
    assert tuple(rows[0]) == COLUMNS
    measured = [entry for entry in rows if entry["measured"]]
    assert [entry["column"] for entry in measured] == ["LoCoMo F1", "LoCoMo BLEU-1"]
    missing = {(entry["missing"], entry["low"]) for entry in rows if not entry["measured"]}
    assert missing == {("no run", "")}
    first = measured[0]
    assert float(first["difference"]) == pytest.approx(float(first["measured"]) - float(first["printed"]), abs=1e-4)


def test_markdown_keeps_the_papers_marks_and_is_rectangular(tmp_path: Path) -> None:
    text = paper_page(table(tmp_path))
    assert "| **20.99** |" in text
    assert "<u>16.05</u>" in text
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert "does not follow from Table 3" in text


def width(line: str) -> int:
    """Columns that a line of a LaTeX table fills."""
    spans = [int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans)


def test_latex_is_balanced_and_rectangular(tmp_path: Path) -> None:
    full(memory="rag").write(tmp_path)
    for number in load_spec("clag").tables:
        text = render_latex(short_table(table(tmp_path, number)))
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
        assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") >= 1
        parts = [part.partition(r"\end")[0].splitlines() for part in text.split(r"\endfoot")[1:]]
        columns = [{width(line) for line in part if line.endswith(r"\\")} for part in parts]
        assert {len(counts) for counts in columns} == {1}
        assert sum(counts.pop() - 2 for counts in columns) == len(table(tmp_path, number).columns)
        assert not re.search(r"(?<!\\)[%_](?!$)", text.replace("{!}{%", ""))


def test_latex_escapes() -> None:
    assert escape("a_b & 5% †") == r"a\_b \& 5\% $^\dagger$"
    assert escape("[57.3, 64.9]") == "{[}57.3, 64.9]"  # behind \\\\ a bracket would be read as a length


def test_the_command_writes_the_same_bytes_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full(memory="rag").write(tmp_path / "runs")
    for out in ("first", "second"):
        assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / out)]) == 0
    names = sorted(path.name for path in (tmp_path / "first").iterdir())
    # Index, claims, faults, costs, CLAG's printed answers, a page for each paper; all systems, memory quality, equal
    # budgets, methods' counts, calls by role, costs over a life, overruled facts.
    lists, own = 5 + len(spec_names()), 7
    others = [name for name in names if name.endswith("_others.md")]
    assert {name.replace("_others", "") for name in others} < set(names)
    assert len(names) - len(others) == 3 * (sum(len(load_spec(paper).tables) for paper in spec_names()) + own) + lists
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert "Overall results" in capsys.readouterr().out


def test_a_table_is_written_of_the_papers_that_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs"
    full(memory="rag").write(runs)
    assert main(["--table", "3", "--runs", str(runs), "--out", str(tmp_path / "out")]) == 0
    written = {path.name for path in (tmp_path / "out").glob("*.csv")}
    assert written == {"clag_table03.csv", "memfly_table03.csv", "xmemory_table03.csv"}


def test_runs_on_data_of_ones_own_are_in_no_folder_that_git_tracks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a user asked of a private data set was in results/tables/all_systems.md, ready to be committed."""
    monkeypatch.setattr(places, "RESULTS", tmp_path / "results")
    full(memory="rag").write(tmp_path / "runs")
    full(memory="amem", dataset="custom").write(tmp_path / "runs")
    full(memory="clag", dataset="mychats").write(tmp_path / "runs")  # a preset of --config-dir
    said = {}
    for out in (tmp_path / "results" / "tables", tmp_path / "elsewhere"):
        assert main(["--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
        said[out.name] = capsys.readouterr().out
    pages = {out: (tmp_path / out / "all_systems.md").read_text() for out in ("results/tables", "elsewhere")}
    assert not any(name in pages["results/tables"] for name in ("custom", "mychats"))
    assert all(name in pages["elsewhere"] for name in ("custom", "mychats"))
    assert "left out: 2 runs on data of your own, since git tracks" in said["tables"]
    assert "`memsys tables --out FOLDER` shows them" in said["tables"]
    assert "of your own" not in said["elsewhere"]


def test_of_several_runs_that_are_left_out_one_line_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Six failed runs gave some fifteen lines before each table."""
    say_left_out([f"runs/{name}: not complete (incomplete: the server is gone)" for name in "ab"])
    say_left_out(["runs/a: not complete (incomplete)"])
    say_left_out([])
    assert capsys.readouterr().out.splitlines() == [
        "left out: 2 runs (runs/a and 1 more); name one alone to see why",
        "left out: runs/a: not complete (incomplete)",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--runs", "nowhere"], "nowhere does not exist"),
        (["--paper", "nope"], "paper='nope' is unknown; choose one of clag, memfly"),
        (["--table", "11"], "has no table 11 to rebuild"),
    ],
)
def test_one_clear_error(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if "--paper" in arguments:
        monkeypatch.undo()
    assert main([*arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err.replace("\n", " ")
    assert message in error
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.json", "{", "is not JSON"),
        ("run.json", "[]", "not a JSON object"),
        ("run.json", '{"schema_version": 1}', "field run_id: is missing"),
        ("scores.jsonl", "nonsense\n", "is not JSON"),
        ("summary.json", "nonsense", "is not JSON"),
    ],
)
def test_a_broken_file_is_named(
    name: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = full(memory="rag").write(tmp_path / "runs")
    (path / name).write_text(text)
    assert main(["--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err.replace("\n", "")
    assert name in error
    assert message in error


@pytest.mark.parametrize("paper", spec_names())
def test_spec_and_printed_numbers_know_each_other(paper: str) -> None:
    """Every printed number of a table that is rebuilt belongs to a declared data set, backbone and system."""
    spec = load_spec(paper)
    for number in load_printed(paper):
        if number.table in spec.tables and spec.tables[number.table].measured:
            assert number.dataset in spec.datasets
            assert number.backbone in spec.backbones
            assert number.system in spec.systems
            assert number.protocol in ("", spec.protocol)


@pytest.mark.parametrize("paper", papers())
def test_every_table_with_a_printed_number_is_rebuilt(paper: str, tmp_path: Path) -> None:
    """But for what stands in running text; every number of the table stands in one cell."""
    numbers = [number for number in load_printed(paper) if number.table != TEXT]
    assert {number.table for number in numbers} == set(load_spec(paper).tables)
    for count in load_spec(paper).tables:
        cells = [entry.printed for _, _, _, entry in table(tmp_path, count, paper).cells if entry.printed is not None]
        assert sorted(map(id, cells)) == sorted(set(map(id, cells)))
        expected = [number for number in numbers if number.table == count]
        assert sorted(cells, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("block: dataset", "block: colour", "block='colour'"),
        ("protocol: clag ", "protokoll: clag ", "protocol"),
        ("conversations: 10, questions: 200}", "questions: 200}", "conversations"),
    ],
)
def test_a_wrong_setting_of_a_table_is_named(old: str, new: str, message: str, tmp_path: Path) -> None:
    from eval.results.tables.spec import FOLDER

    text = (FOLDER / "clag.yaml").read_text()
    assert old in text
    (tmp_path / "clag.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError, match=message):
        load_spec("clag", tmp_path)


def test_overrides_follow_defaults_lists(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("name: base\nk: 10\nroles: {a: {t: 0.7, n: 5}}\npath: ${x}\n")
    (tmp_path / "child.yaml").write_text("defaults:\n  - base\n  - _self_\nname: child\nroles: {a: {t: 0.1}}\n")
    plain = {"name": "child", "k": 10, "roles": {"a": {"t": 0.1, "n": 5}}, "path": "p", "old_key": 1}
    assert overrides(plain, tmp_path) == {}
    assert overrides({**plain, "k": 3, "roles": {"a": {"t": 0.7, "n": 5}}}, tmp_path) == {"k": 3, "roles.a.t": 0.7}
    assert overrides({"name": "unknown", "k": 1}, tmp_path) == {}
    assert overrides({**plain, "roles": {"a": {"t": 0.1, "n": 5, "top_p": 0.5, "m": None}}}, tmp_path) == {
        "roles.a.top_p": 0.5
    }
    assert overrides({**plain, "k": "/data/prompts/x.txt"}, tmp_path) == {"k": "<place>"}
    assert variant_label({"a": 1, "b": 2, "c": 3, "d": 4}) == "a=1, b=2, c=3 and 1 more"


def test_a_setting_that_a_run_did_not_have_is_no_difference() -> None:
    settings = composed("memorybank_small")
    assert overrides(settings) == {}
    summaries = {key: value for key, value in settings["summaries"].items() if key != "portrait"}
    assert overrides({**settings, "summaries": summaries}) == {}


def test_a_run_with_the_authors_prompts_is_a_row_of_its_own() -> None:
    memory = {"name": "clag", "roles": {"router": {"prompt": "authors:clag/router@2d6f38b60583", "temperature": 0.9}}}
    assert (
        run_variant({"config": {"memory": memory, "prompts": {"source": "authors"}}})
        == "authors' prompts, roles.router.temperature=0.9"
    )
    rag = {"name": "rag"}
    assert run_variant({"config": {"memory": rag, "prompts": {"source": "authors"}}}) == "authors' prompts"
    # No pack of its authors fits this preset of MemGPT: its answer prompts alone are others'.
    asked = {
        "config": {"memory": rag, "prompts": {"source": "authors"}},
        "prompts": {"rag.keywords": "a", "reader.default": "b"},
    }
    said = [{"role": "rag.keywords", "source": "ours"}, {"role": "reader.default", "source": "authors"}]
    assert run_variant({**asked, "prompt_sources": said}) == "authors' prompts, the memory's prompts are ours"
    both = {"prompts": {**asked["prompts"], "rag.rewrite": "c"}}
    some = [*said, {"role": "rag.rewrite", "source": "authors"}]
    assert run_variant({**asked, **both, "prompt_sources": some}) == "authors' prompts", "MemFly prints no draft"
    unused = {**asked, "prompts": {"reader.default": "b"}, "prompt_sources": said}
    assert run_variant(unused) == "authors' prompts", "a role that was not asked"
    assert run_variant({"config": {"memory": rag, "prompts": {"source": "ours"}}}) == ""
    assert run_variant({"config": {"memory": {**rag, "k": 3}}}) == "k=3"


def test_a_run_with_answer_prompts_of_another_wording_is_a_row_of_its_own() -> None:
    config = {"memory": {"name": "rag", "k": 3}, "reader": {"name": "clag", "prompt_set": "clag"}}
    now = {f"reader.{role}": Prompt.load(PROMPTS / "clag" / f"{role}.txt").sha256 for role in ("default", "temporal")}
    assert run_variant({"config": config, "prompts": now}) == "k=3"
    reworded = {**now, "reader.temporal": "0" * 64}
    assert run_variant({"config": config, "prompts": reworded}) == "other answer prompts, k=3"
    assert run_variant({"config": {**config, "reader": {"prompt_set": "gone:texts"}}, "prompts": reworded}) == "k=3"


def test_runs_that_no_table_has_are_told_in_one_line_for_each_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """A checkout's summaries gave more than a hundred lines below a paper's tables."""
    unused = {"b/3": "of no table", "a/1": "of no table", "a/2": "of no table", "c": "recorded"}
    tables_main._report_unused([unused])
    assert capsys.readouterr().out.splitlines() == ["left out: a/1 and 2 more: of no table", "left out: c: recorded"]
    tables_main._report_unused([unused, {"c": "of no table here", "d": "recorded"}])
    line = "in no paper's table: 1 run; `memsys tables --paper NAME` says why"
    assert capsys.readouterr().out.splitlines() == [line]
