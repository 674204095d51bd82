"""The lens: values are the tables' own, ranks and reversals by hand, nothing compared that is not comparable."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from eval.audit.sensitivity.config import LensConfig, load_config
from eval.audit.sensitivity.markdown import lens_page
from eval.audit.sensitivity.ranking import Standing, StandingsRow, rank
from eval.audit.sensitivity.readings import MetricReading
from eval.audit.sensitivity.standings import Lens, compare_readings, reversals, system_names
from eval.audit.sensitivity.text import heading, order_text, standing_text, summary, tally_rows
from eval.export import export_run
from eval.lens import main
from eval.loaders.registry import DATASETS
from eval.results.compare.rows import estimate
from eval.results.frame import Skipped, read_run, read_runs
from eval.results.stored_run import StoredRun
from eval.scoring.aggregate import aggregate
from eval.scoring.protocols import load_protocol, protocol_names
from memsys.errors import ConfigError, RunDirectoryError
from tests.support.fake_run import FakeRun, rewrite

PROTOCOLS = [load_protocol(name) for name in protocol_names()]
CONFIG = LensConfig({"F1": ["f1_set"], "other": ["bleu1"]}, ["f1_set", "bleu1"], {"locomo_clag": {1: 6, 2: 1, 5: 1}})


def stored(root: Path, **changes: object) -> StoredRun:
    run = read_run(FakeRun(**changes).write(root))  # type: ignore[arg-type]
    assert not isinstance(run, Skipped)
    return run


def lens(*runs: StoredRun, config: LensConfig = CONFIG) -> Lens:
    return compare_readings(runs, config, PROTOCOLS)[0]


def lines(found: Lens) -> Mapping[str, StandingsRow]:
    return {line.reading.label: line for section in found.sections.values() for line in section}


def values(line: StandingsRow) -> Sequence[float | None]:
    return [None if one.value is None else round(one.value, 4) for one in line.standings]


def test_runs_that_cannot_be_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = FakeRun(status="incomplete").write(tmp_path / "runs")
    assert main([str(path), "--out", str(tmp_path / "lens.md")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"nothing to read: {path}: not complete (incomplete)" in said
    assert not (tmp_path / "lens.md").exists()


def test_shipped_configuration_names_metrics() -> None:
    config = load_config()
    assert config.lead == "f1_set"
    assert sum(DATASETS["locomo"].question_counts.values()) == 1986
    assert config.grid == ["f1_set", "f1_word", "f1_memos", "f1_gam", "f1_squad", "f1_locomo"]
    assert list(config.definitions) == ["token F1", "exact match", "n-grams", "model"]


def test_unknown_metric_and_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="metric 'f1_sets' is unknown"):
        LensConfig({"F1": ["f1_sets"]}, [], {})
    path = tmp_path / "lens.yaml"
    path.write_text("lead: token F1\nmore: 1\n")
    with pytest.raises(ConfigError, match="settings are lead"):
        load_config(path)
    path.write_text("lead: F2\n")
    with pytest.raises(ConfigError, match="lead='F2'; choose a group of definitions: token F1"):
        load_config(path)


def test_means_are_those_of_the_tables(tmp_path: Path) -> None:
    run = stored(tmp_path)
    found = lines(lens(run))
    clag, sage = load_protocol("clag"), load_protocol("sage")
    for reading, protocol in (
        ("clag: F1 (f1_set, no answer: trap)", clag),
        ("sage: F1 (f1_set, no answer: left out)", sage),
        ("all, no answer: abstention", replace(clag, adversarial="abstain")),
        ("all, no answer: left out", replace(clag, adversarial="exclude")),
        ("mean of category means (macro), no answer: trap", replace(clag, weighting="category_mean")),
    ):
        expected = aggregate(run.rows, protocol).overall["F1"].value
        assert expected is not None
        assert values(found[reading]) == [round(100 * expected, 4)]
    assert values(found["they alone, f1_set against the false answer"])[0] == pytest.approx(
        estimate(run, "f1_set", clag, 5).value,
        abs=1e-3,  # type: ignore[union-attr]
    )


def test_weights_by_hand(tmp_path: Path) -> None:
    """Categories 1, 2 and 5 score 0.1, 0.2 and 1.0; they have 8, 8 and 8 questions, the data set 6, 1 and 1."""
    share = {0: 0.1, 1: 0.2, 2: 1.0}
    run = stored(tmp_path, categories=(1, 2, 5), questions_each=12, values=lambda n, metric: share[n % 3])
    found = lines(lens(run))
    assert values(found["mean over questions (micro), no answer: trap"]) == [pytest.approx(100 * 1.3 / 3, abs=1e-3)]
    assert values(found["category means by the data set's counts, no answer: trap"]) == [22.5]  # (0.6 + 0.2 + 1) / 8
    assert values(found["category means by the data set's counts, no answer: left out"]) == [
        pytest.approx(80 / 7, abs=1e-3)
    ]


def test_conversation_means_differ_from_question_means(tmp_path: Path) -> None:
    run = stored(tmp_path, values=lambda number, metric: 0.2 if number < 10 else 0.6)
    assert values(lines(lens(run))["mean of conversation means, no answer: trap"]) == [40.0]


def test_one_conversation_has_no_mean_over_conversations(tmp_path: Path) -> None:
    found = lines(lens(stored(tmp_path, conversations=("conv-26",))))
    assert not any("conversation means" in label for label in found)


def test_the_reading_decides_who_leads(tmp_path: Path) -> None:
    """One is fooled in category 5 and weaker elsewhere: it leads as long as being fooled counts as right."""
    fooled = stored(tmp_path, memory="rag", values=lambda n, metric: float(n % 5 == 4 and metric != "abstained"))
    honest = stored(
        tmp_path,
        memory="amem",
        values=lambda n, metric: 0.1 if n % 5 < 4 and metric != "abstained" else float(metric == "abstained"),
    )
    found = lens(fooled, honest)
    by_label = lines(found)
    trap, left_out = by_label["all, no answer: trap"], by_label["all, no answer: left out"]
    assert values(trap) == [20.0, 8.0]
    assert values(left_out) == [0.0, 10.0]
    assert [one.rank for one in left_out.standings] == [2, 1]
    assert order_text(left_out, trap) == "1 of 1 reversed"
    assert order_text(trap, trap) == "reference"
    assert "2 systems lead" in summary(found)
    assert found.tallies[0].first + found.tallies[1].first == found.readings
    assert found.tallies[0].first == found.readings / 3


def test_chance_is_marked(tmp_path: Path) -> None:
    """Better by one of ten questions in one conversation and equal in the other: no more than chance."""
    one = stored(tmp_path, memory="rag", values=lambda n, metric: 0.5 + 0.4 * (n == 0))
    two = stored(tmp_path, memory="amem", values=lambda n, metric: 0.5)
    far = stored(tmp_path, memory="clag", values=lambda n, metric: 0.1)
    first, second, third = lines(lens(one, two, far))["all, no answer: left out"].standings
    assert (first.rank, second.rank, third.rank) == (1, 2, 3)
    assert (first.unsure, second.unsure, third.unsure) == (False, True, False)
    assert standing_text(second) == "50.0 /2~"


def test_only_common_questions_count(tmp_path: Path) -> None:
    one = stored(tmp_path, memory="rag", questions_each=10)
    two = stored(tmp_path, memory="amem", questions_each=5)
    found = lens(one, two)
    assert (found.questions, found.covered) == (10, (20, 10))


def test_a_metric_that_one_system_lacks_is_ranked_among_the_others(tmp_path: Path) -> None:
    config = LensConfig({"F1": ["f1_set"], "model": ["sbert"]}, ["f1_set", "sbert"], {})
    one = stored(tmp_path, memory="rag", extra_metrics=("sbert",), values=lambda n, metric: 0.3)
    two = stored(tmp_path, memory="amem", values=lambda n, metric: 0.9)
    three = stored(tmp_path, memory="clag", extra_metrics=("sbert",), values=lambda n, metric: 0.2)
    found = lens(one, two, three, config=config)
    line = lines(found)["model: sbert"]
    assert [standing.rank for standing in line.standings] == [1, None, 2]
    assert standing_text(line.standings[1]) == ""
    assert order_text(line, lines(found)["F1: f1_set"]) == "same"
    assert found.readings == 3 * 4  # three treatments, three means, and no reading by a metric that one lacks


def test_names_tell_runs_apart_and_no_more(tmp_path: Path) -> None:
    rag = stored(tmp_path)
    other = stored(tmp_path, backbone="qwen3_06b")
    again = stored(tmp_path, backbone="qwen3_06b", seed=1)
    amem = stored(tmp_path, memory="amem")
    variant = stored(tmp_path, settings={"k": 3})
    assert system_names([rag, amem, variant]) == ["rag", "amem", "rag [k=3]"]
    assert system_names([rag, other, amem]) == ["rag, smollm2_135m", "rag, qwen3_06b", "amem"]
    names = system_names([other, again])
    assert len(set(names)) == 2
    assert all(name.startswith("rag, qwen3_06b, ") for name in names)


def other_prompts(run: StoredRun) -> StoredRun:
    """The run as if its answer prompts had been reworded since."""
    return replace(run, record={**run.record, "prompts": {"reader.default": "0" * 64}})


def test_runs_that_cannot_be_compared_are_not_ranked_together(tmp_path: Path) -> None:
    """All of a data set's runs were ranked in one table, on the few questions that the smallest of them had asked."""
    rag, amem = stored(tmp_path), stored(tmp_path, memory="amem")
    reworded = other_prompts(stored(tmp_path, memory="clag", parts={"reader": {"prompt_set": "clag"}}))
    backbone = stored(tmp_path, memory="clag", backbone="qwen3_06b")
    part = stored(tmp_path, memory="clag", questions_each=2)
    part = replace(part, record={**part.record, "data": {**part.record["data"], "turns": 9}})
    found = compare_readings([part, reworded, rag, backbone, amem], CONFIG, PROTOCOLS)
    assert [one.runs for one in found] == [
        (rag.run_id, amem.run_id), (reworded.run_id,), (backbone.run_id,), (part.run_id,)
    ]  # fmt: skip
    assert [one.questions for one in found] == [20, 20, 20, 4]
    assert heading(found[1]) == "locomo_clag, smollm2_135m, other answer prompts: 20 questions"
    one_memory = compare_readings([rag, stored(tmp_path, backbone="qwen3_06b")], CONFIG, PROTOCOLS)
    assert [one.systems for one in one_memory] == [("rag, smollm2_135m", "rag, qwen3_06b")]


def test_the_heading_says_in_what_ranked_systems_differ_besides_the_memory(tmp_path: Path) -> None:
    """RAG on plain turns stood above A-Mem on the drivers' without a word."""
    rag = stored(tmp_path, parts={"dataset": {"turn_style": "plain"}})
    amem, clag = (stored(tmp_path, memory=name, parts={"dataset": {"turn_style": "clag"}}) for name in ("amem", "clag"))
    (mixed,) = compare_readings([rag, amem], CONFIG, PROTOCOLS)
    assert "that all 2 systems answered; some of them also differ in dataset" in heading(mixed)
    (same,) = compare_readings([clag, amem], CONFIG, PROTOCOLS)
    assert "differ" not in heading(same)


def test_references_have_values_and_no_rank(tmp_path: Path) -> None:
    """The gold evidence led every reading, and constants took ranks of systems."""
    oracle = stored(tmp_path, memory="oracle", values=lambda n, metric: 0.9)
    rag = stored(tmp_path, memory="rag", values=lambda n, metric: 0.5)
    amem = stored(tmp_path, memory="amem", values=lambda n, metric: 0.2)
    found = lens(oracle, rag, amem)
    line = lines(found)["all, no answer: left out"]
    assert values(line) == [90.0, 50.0, 20.0]
    assert [one.rank for one in line.standings] == [None, 1, 2]
    assert standing_text(line.standings[0]) == "90.0"
    assert summary(found) == f"rag leads under each of the {found.readings} readings."
    assert tally_rows(found)[0][1:3] == ["", "reference"]
    assert summary(lens(oracle, rag)) == ""
    assert "| oracle |  | reference |" in lens_page([found])


def test_being_fooled_more_often_is_no_better_place(tmp_path: Path) -> None:
    often = stored(tmp_path, memory="rag", values=lambda n, metric: 0.9)
    rarely = stored(tmp_path, memory="amem", values=lambda n, metric: 0.1)
    line = lines(lens(often, rarely))["they alone, share that gives the false answer"]
    assert [one.rank for one in line.standings] == [2, 1]


def test_data_sets_have_a_lens_each_and_retrieval_runs_none(tmp_path: Path) -> None:
    runs = [stored(tmp_path), stored(tmp_path, memory="amem")]
    other = replace(runs[1], record={**runs[1].record, "data": {**runs[1].record["data"], "sha256": "1" * 64}})
    retrieval = stored(tmp_path, memory="oracle", mode="retrieval_only")
    assert [one.runs for one in compare_readings([runs[0], other, retrieval], CONFIG, PROTOCOLS)] == [
        (runs[0].run_id,),
        (other.run_id,),
    ]
    with pytest.raises(RunDirectoryError, match="no run here holds answers"):
        compare_readings([retrieval], CONFIG, PROTOCOLS)


def test_runs_without_a_common_question_are_refused(tmp_path: Path) -> None:
    one, two = stored(tmp_path, conversations=("a",)), stored(tmp_path, memory="amem", conversations=("b",))
    with pytest.raises(RunDirectoryError, match="no question in common"):
        lens(one, two)


def test_runs_without_a_common_question_take_no_lens_from_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ended with an error, and nothing was shown of any data set."""
    FakeRun(conversations=("a",)).write(tmp_path)
    FakeRun(memory="amem", conversations=("b",)).write(tmp_path)
    FakeRun(data_sha256="2" * 64).write(tmp_path)
    assert main([str(tmp_path), "--out", str(tmp_path / "lens.md")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "left out: the runs on locomo_clag have no question in common" in said
    assert (tmp_path / "lens.md").read_text().count("### Runs") == 1


def test_ranks_and_reversals_by_hand() -> None:
    assert rank([3.0, 1.0, 3.0000000001, 2.0]) == [1, 4, 1, 3]
    reading = MetricReading("r", "f1_set")

    def line(*ranks: int) -> StandingsRow:
        return StandingsRow(reading, 1, tuple(Standing(1.0, place) for place in ranks))

    assert reversals(line(3, 2, 1), line(1, 2, 3)) == (3, 0)
    assert reversals(line(1, 1, 3), line(1, 2, 3)) == (0, 1)
    assert reversals(line(2, 1, 3), line(1, 2, 3)) == (1, 0)


def test_a_summary_shows_what_its_run_shows(tmp_path: Path) -> None:
    path = FakeRun().write(tmp_path / "runs")
    exported = read_run(export_run(path, tmp_path / "summaries"))
    run = read_run(path)
    assert isinstance(run, StoredRun)
    assert isinstance(exported, StoredRun)
    assert lens(run) == lens(exported)


def test_a_run_counts_before_its_older_export_wherever_that_stands(tmp_path: Path) -> None:
    path = FakeRun(values=lambda number, metric: 0.25).write(tmp_path / "b_runs")
    old = export_run(path, tmp_path / "a_summaries")
    rewrite(path, "scores.jsonl", lambda number, row: row["metrics"].update(f1_set=0.75))
    for roots in ([tmp_path], [old.parent, path.parent]):
        (run,), skipped = read_runs(roots)
        assert {row.metrics["f1_set"] for row in run.rows} == {0.75} and skipped == []


def test_command_writes_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    FakeRun().write(tmp_path / "runs")
    FakeRun(memory="amem").write(tmp_path / "runs")
    out = tmp_path / "lens.md"
    assert main([str(tmp_path / "runs"), "--out", str(out)]) == 0
    text = out.read_text()
    assert "## locomo_clag, smollm2_135m: 20 questions that all 2 systems answered" in text
    assert "### Questions without an answer" in text
    shown = capsys.readouterr().out
    assert "no answer: abstention" in shown
    assert "…" not in shown
    assert main([str(tmp_path / "nothing"), "--out", str(out)]) == 2


def test_markdown_tables_have_even_rows(tmp_path: Path) -> None:
    text = lens_page([lens(stored(tmp_path), stored(tmp_path, memory="amem"))])
    for block in text.split("\n\n"):
        widths = {line.count("|") for line in block.splitlines() if line.startswith("|")}
        assert len(widths) <= 1


def test_questions_of_one_conversation_are_marked(tmp_path: Path) -> None:
    one = [stored(tmp_path / "one", memory=name, conversations=("conv-26",)) for name in ("rag", "amem")]
    several = [stored(tmp_path / "two", memory=name) for name in ("rag", "amem")]
    assert lens(*one).by_question and not lens(*several).by_question
    assert "‡" in heading(lens(*one)) and "‡" not in heading(lens(*several))


def test_chance_is_told_of_means_of_conversations_too(tmp_path: Path) -> None:
    """Far apart in both conversations, one of twice the weight: the difference is certain under every mean."""
    first = stored(tmp_path, memory="rag", values=lambda n, metric: 0.9 + 0.01 * (n % 3))
    other = stored(tmp_path, memory="amem", values=lambda n, metric: 0.1)
    found = lines(lens(first, other))
    for label in ("mean over questions (micro)", "mean of conversation means"):
        assert not found[f"{label}, no answer: left out"].standings[1].unsure, label


def test_runs_that_time_questions_take_none_from_the_others(tmp_path: Path) -> None:
    whole = [stored(tmp_path, memory=name) for name in ("rag", "amem")]
    timed = stored(tmp_path, memory="rag", questions_each=2, timing="latency")
    both, alone = sorted(compare_readings([*whole, timed], CONFIG, PROTOCOLS), key=lambda one: -one.questions)
    assert (both.systems, both.questions, alone.questions) == (("rag", "amem"), 20, 4)


def test_seeds_of_one_system_are_no_rivals(tmp_path: Path) -> None:
    seeds = [stored(tmp_path, seed=seed, values=lambda n, metric, s=seed: 0.2 + 0.2 * s) for seed in (0, 1, 2)]
    found = lens(*seeds, stored(tmp_path, memory="amem", values=lambda n, metric: 0.1))
    assert found.systems == ("rag, seeds 0-2", "amem")
    assert values(lines(found)["all, no answer: left out"]) == [40.0, 10.0]


def test_a_refusal_as_gold_is_no_trap(tmp_path: Path) -> None:
    run = stored(tmp_path)
    untrapped = replace(run, rows=tuple(replace(row, metrics={**row.metrics, "trapped": None}) for row in run.rows))
    found = lines(lens(untrapped))
    assert "all, no answer: the data set's refusal as gold" in found
    assert "they alone, f1_set against the data set's refusal" in found
    assert not any("trap" in label or "false answer" in label for label in found)
