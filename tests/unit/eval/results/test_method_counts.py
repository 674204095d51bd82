"""Counts of a method beside what its paper states: measured by hand, read strictly, a dash for what is not known."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.export import export_run
from eval.results.frame import read_run
from eval.results.own.method_values import dataset_key, measured
from eval.results.own.methods import method_groups, methods_page, number
from eval.results.papers.expectations import (
    ExpectedValue,
    MethodCount,
    method_counts,
    read_counts,
)
from eval.results.stored_run import StoredRun
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun

GOLDEN = Path(__file__).parents[3] / "golden" / "method_counts.md"
CLAG = {"memory": {"_target_": "memsys.clag.config.ClagConfig"}}
#: What the runs below record: two conversations with 3 and 15 clusters, 90 of 100 routed notes into a named cluster.
STATISTICS = {
    "clusters": {"mean": 9.0, "sum": 18.0, "max": 15.0, "min": 3.0},
    "cluster_size_max": {"mean": 300.0, "sum": 600.0, "max": 400.0, "min": 200.0},
    "counts.route.chosen": {"mean": 45.0, "sum": 90.0, "max": 50.0, "min": 40.0},
    "counts.route.invalid_nearest": {"mean": 4.0, "sum": 8.0, "max": 8.0, "min": 0.0},
    "counts.route.new_invalid": {"mean": 1.0, "sum": 2.0, "max": 2.0, "min": 0.0},
}
TRACE = {"numbers": {"reduction": {"mean": 0.125, "max": 1.0, "min": 0.0}}, "values": {"mode": {"cluster": 5}}}


def clag(root: Path, dataset: str = "bioasq20_clag", **changes: Any) -> StoredRun:
    """A run of CLAG with 20 questions and the statistics above."""
    path = FakeRun(memory="clag", dataset=dataset, parts=CLAG, **changes).write(root)
    run = read_run(path)
    assert isinstance(run, StoredRun)
    memory = {**run.summary["memory"], "statistics": STATISTICS}
    return replace(run, summary={**run.summary, "memory": memory, "trace": TRACE})


def test_a_count_is_a_mean_a_percentage_or_a_share_of_questions(tmp_path: Path) -> None:
    run = clag(tmp_path)
    routed = ("counts.route.chosen", "counts.route.invalid_nearest", "counts.route.new_invalid")
    assert measured(MethodCount("clusters", "x"), run) == 9.0
    assert measured(MethodCount("clusters", "x", take="max"), run) == 15.0
    assert measured(MethodCount("counts.route.chosen", "x", of=routed), run) == 90.0
    assert measured(MethodCount("clusters", "x", of=("turns",)), run) == 45.0  # 18 clusters of 40 turns
    assert measured(MethodCount("clusters", "x", of=("no.such",)), run) is None
    assert measured(MethodCount("reduction", "x", where="trace"), run) == 0.125
    assert measured(MethodCount("mode=cluster", "x", where="trace"), run) == 25.0  # 5 of 20 questions
    assert measured(MethodCount("mode=global", "x", where="trace"), run) == 0.0
    for unknown in (MethodCount("splits", "x"), MethodCount("a=b", "x", where="trace")):
        assert measured(unknown, run) is None


def test_a_count_says_what_is_stated_for_its_data_set() -> None:
    ours = ExpectedValue("3 to 13", "paper", "bioasq20", 3, 13)
    count = MethodCount("clusters", "x", expected=(ours, ExpectedValue("any", "code")))
    assert count.expected_on("bioasq20") is ours
    other = count.expected_on("locomo")
    assert other is not None and (other.value, other.bounded) == ("any", False)
    assert [ours.fits(value) for value in (2.9, 3, 13, 13.1)] == [False, True, True, False]
    assert MethodCount("clusters", "x").expected_on("locomo") is None


def test_the_page_is_the_golden_one(tmp_path: Path) -> None:
    page = methods_page([clag(tmp_path), clag(tmp_path, seed=1)]).files["method_counts.md"]
    assert page == GOLDEN.read_text("utf-8")


def test_it_is_told_how_much_the_reader_saw_and_whether_it_depended_on_the_question(tmp_path: Path) -> None:
    run = clag(tmp_path)
    # fifteen of twenty questions saw six characters
    lengths = [6.0] * 15 + [float(number) for number in range(100, 105)]
    rows = tuple(
        replace(row, metrics={**row.metrics, "context_chars": length})
        for row, length in zip(run.rows, lengths, strict=True)
    )
    context = {"hits": {"mean": 10.0}, "context_tokens": {"mean": 4.5}}
    seen = replace(run, rows=rows, summary={**run.summary, "context": context})
    lines = {line.statistic: line for line in method_groups([seen])[0].lines}
    assert lines["context.hits"].values == (10.0,)
    assert lines["context.tokens"].values == (4.5,)
    assert lines["context.same_length"].values == (75.0,)


@pytest.mark.parametrize(
    ("system", "statistic"),
    [
        ("baselines.amem.config.AmemConfig", "dropped_lines"),
        ("memsys.clag.config.ClagConfig", "dropped_lines"),
        ("memsys.memfly.config.MemflyConfig", "dropped_lines"),
        ("baselines.nemori.config.NemoriConfig", "dropped"),
        ("memsys.xmemory.config.XMemoryConfig", "dropped"),
        ("baselines.memoryos.config.MemoryOSConfig", "left_out"),
        ("baselines.lightmem.config.LightMemConfig", "left_out"),
        ("baselines.mem0.config.Mem0Config", "left_out"),
        ("memsys.sage.config.SageConfig", "left_out"),
        ("baselines.memgpt.config.MemGptConfig", "left_out"),
        ("baselines.memorybank.config.MemoryBankConfig", "left_out"),
        ("baselines.readagent.config.ReadAgentConfig", "gists_left_out"),
        ("baselines.gam.config.GamConfig", "integrated_words"),
    ],
)
def test_each_system_tells_what_its_context_had_no_room_for(system: str, statistic: str) -> None:
    counts = {count.statistic: count for count in method_counts({"_target_": system})}
    assert counts[statistic].where == "trace"


def test_a_run_that_times_questions_is_no_column(tmp_path: Path) -> None:
    run = clag(tmp_path)
    timed = replace(run, record={**run.record, "config": {**run.record["config"], "timing": "latency"}})
    assert [group.runs for group in method_groups([run, timed])] == [(run,)]


def test_every_format_says_what_lies_outside(tmp_path: Path) -> None:
    run = clag(tmp_path)
    [group] = method_groups([run])
    [line] = [line for line in group.lines if line.statistic == "cluster_size_max"]
    assert line.note(group.names) == "CLAG, appendix C.1; outside: clag"
    _, data, latex = methods_page([run]).files.values()
    assert "bioasq20,smollm2_135m" in data and ",300,139.5 (85 to 210)" in data
    assert data.count(",no\n") == 1 and data.count(",yes\n") == 2
    assert r"\label{tab:method_counts-clag-bioasq20}" in latex


def test_a_count_beyond_a_factor_of_two_of_a_stated_number_is_marked(tmp_path: Path) -> None:
    """Mem0 kept 0 memories where 437 are stated, and the table said nothing of it."""
    run = clag(tmp_path, "locomo_clag")

    def with_clusters(count: float) -> StoredRun:
        statistics = {**STATISTICS, "clusters": {"mean": count, "sum": 2 * count, "max": count, "min": count}}
        return replace(run, summary={**run.summary, "memory": {**run.summary["memory"], "statistics": statistics}})

    whole, near, config = with_clusters(10.0), with_clusters(3.0), run.record["config"]
    first_sessions = {**config, "dataset": {**config["dataset"], "limit_sessions": 5}}
    part = replace(whole, record={**whole.record, "config": first_sessions})
    [group] = method_groups([whole, part, near])
    [line] = [line for line in group.lines if line.statistic == "clusters"]
    assert line.fits == (False, None, True)
    assert line.note(["whole", "part", "near"]) == "CLAG, Table 10 (Qwen3-0.6B); outside: whole"
    assert ',10,4.7 (tau 0.10),"CLAG, Table 10 (Qwen3-0.6B)",no' in methods_page([whole]).files["method_counts.csv"]
    assert ',10,4.7 (tau 0.10),"CLAG, Table 10 (Qwen3-0.6B)",\n' in methods_page([part]).files["method_counts.csv"]
    exact = ExpectedValue("4", "paper", number=4)
    assert [exact.fits(value) for value in (0, 1.9, 2, 8, 8.1)] == [False, False, True, True, False]


@pytest.mark.parametrize(
    ("system", "statistic", "number"),
    [("amem", "notes", 588), ("readagent", "pages", 35.3), ("memoryos", "pages", 308), ("nemori", "episodes", 75),
     ("nemori", "facts", 288)],
)  # fmt: skip
def test_baselines_state_what_is_known_of_locomo(system: str, statistic: str, number: float) -> None:
    name = {"amem": "Amem", "readagent": "ReadAgent", "memoryos": "MemoryOS", "nemori": "Nemori"}[system]
    counts = method_counts({"_target_": f"baselines.{system}.config.{name}Config"})
    [found] = [count.expected_on("locomo") for count in counts if count.statistic == statistic]
    assert found is not None and found.number == number


def test_an_export_gives_the_same_counts(tmp_path: Path) -> None:
    path = FakeRun(memory="clag", parts=CLAG).write(tmp_path / "runs")
    exported = export_run(path, tmp_path / "summaries")
    from_run, from_export = (methods_page([one]).files for folder in (path, exported) if (one := _read(folder)))
    assert from_run == from_export and all("malformed" in text for text in from_run.values())


def _read(folder: Path) -> StoredRun:
    run = read_run(folder)
    assert isinstance(run, StoredRun)
    return run


def test_malformed_replies_by_role_and_runs_without_counts(tmp_path: Path) -> None:
    run = clag(tmp_path)
    [group] = method_groups([run])
    found = {line.statistic: line.texts for line in group.lines if line.statistic.startswith("malformed")}
    # Of 20 calls of each role every fifth note analysis is malformed.
    assert found == {"malformed.answer.default": ("0 (0 of 20)",), "malformed.write.analyse": ("20 (4 of 20)",)}
    assert method_groups([replace(run, summary={**run.summary, "memory": None})]) == []
    plain = FakeRun(memory="oracle", parts={"memory": {"_target_": "baselines.references.OracleConfig"}})
    assert method_groups([_read(plain.write(tmp_path))]) == []


def test_a_gate_shows_its_own_counts_and_its_hosts() -> None:
    host = {"_target_": "baselines.amem.config.AmemConfig"}
    names = [count.statistic for count in method_counts({"_target_": "memsys.gate.config.GatedConfig", "host": host})]
    assert names[0] == "gate.dropped" and "counts.evolution.yes" in names
    assert method_counts({"_target_": "no.such.System"}) == method_counts({}) == ()


def test_the_sample_is_not_the_paper_s_data_set(tmp_path: Path) -> None:
    assert dataset_key(clag(tmp_path)) == "bioasq20"
    assert dataset_key(clag(tmp_path, "locomo_clag", notes={"sample": True})) == "locomo_clag"
    assert dataset_key(clag(tmp_path, "my_own")) == "my_own"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "must hold a list of counts, not dict"),
        ("- 3", "entry 1"),
        ("- {statistic: a}", "entry 1: field what: is missing"),
        ("- {statistic: a, what: b, in: dreams}", "entry 1: field where"),
        ("- {statistic: a, what: b, expected: [{value: '1'}]}", "source: is missing"),
        ("- {statistic: a, what: b, expected: [{value: '1', source: c, dataset: d}]}", "dataset d is unknown"),
    ],
)
def test_a_broken_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "expectations.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"expectations\.yaml") as error:
        read_counts(file)
    assert message in str(error.value)


def test_figures_keep_the_digits_that_count() -> None:
    assert [number(value) for value in (None, 0.0, 4.0, 0.4751, 99.96, 1234.5, 86.87)] == [
        "–", "0", "4", "0.475", "100", "1,234", "86.9",
    ]  # fmt: skip
