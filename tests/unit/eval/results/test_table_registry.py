"""Sweeps, tables and presets name the same systems: nothing that is run is lost on the way to a table."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eval.config.presets import CONF, MEMORY, find_preset, preset_names, read_settings
from eval.results.papers.printed import load_printed
from eval.results.tables.build import TableBuilder
from eval.results.tables.model import PaperTable
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import load_spec, spec_names
from eval.scoring.protocols import load_protocol
from memsys.errors import ConfigError

TINY = """
paper: tiny
label: Tiny
own: rag
protocol: clag
readers: [clag]
embedder: minilm
datasets: {locomo: {label: LoCoMo, runs: [locomo], conversations: 10, questions: 1986}}
systems: {rag: {label: RAG, memory: [rag]}}
tables: {1: {title: Answers, block: backbone}}
"""

SWEEPS = preset_names(CONF / "sweep")


def parameters(sweep: str) -> dict[str, str]:
    """Values that a sweep declares, separated by commas, by what they are values of."""
    return dict(read_settings(CONF / "sweep" / f"{sweep}.yaml")["hydra"]["sweeper"]["params"])


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_memory_of_a_sweep_has_a_row_in_its_papers_tables(sweep: str) -> None:
    paper = sweep.partition("_")[0]
    spec = load_spec(paper)
    rows = spec.systems.keys() | spec.further.keys()
    assert [memory for memory in parameters(sweep)["memory"].split(",") if spec.system_of(memory) not in rows] == []


@pytest.mark.parametrize("paper", spec_names())
def test_every_memory_of_a_table_is_a_preset_or_marked_as_not_built(paper: str) -> None:
    built = set(preset_names(MEMORY))
    for name, system in load_spec(paper).systems.items():
        there = [memory for memory in system.memory if memory in built]
        assert there == (list(system.memory) if system.built else []), f"{paper}: {name}"


@pytest.mark.parametrize("paper", spec_names())
def test_every_printed_system_of_a_measured_table_is_declared(paper: str) -> None:
    spec = load_spec(paper)
    measured = {number for number, table in spec.tables.items() if table.measured}
    printed = {number.system for number in load_printed(paper) if number.table in measured}
    assert printed <= spec.systems.keys() | spec.further.keys()


def composed(experiment: str) -> dict[str, str]:
    """Choices of an experiment with those that it builds on, by group."""
    chosen: dict[str, str] = {}
    for entry in read_settings(find_preset(experiment, CONF / "experiment", "experiment"))["defaults"]:
        if isinstance(entry, dict):
            chosen |= {group.removeprefix("override").strip(" /"): choice for group, choice in entry.items()}
        elif entry != "_self_":
            chosen |= composed(entry)
    return chosen


def planned_runs(paper: str) -> Iterator[dict[str, str]]:
    """Data set and backbone of every cell of a paper's sweeps, and of its experiments as they stand."""
    for name in preset_names(CONF / "experiment"):
        if name.startswith(f"{paper}_"):
            yield composed(name)
    for sweep in SWEEPS:
        if sweep.startswith(f"{paper}_"):
            params = parameters(sweep)
            for experiment in params["+experiment"].split(","):
                parts = composed(experiment)
                for backbone in params.get("backbone", parts["backbone"]).split(","):
                    yield parts | {"backbone": backbone}


@pytest.mark.parametrize("paper", spec_names())
def test_every_printed_cell_has_a_run_to_be_made_or_a_reason_why_none_fills_it(paper: str) -> None:
    """A cell needs an experiment of its paper on its data set and backbone, and a memory for its row."""
    spec = load_spec(paper)
    planned = {(spec.dataset_of(parts["dataset"]), parts.get("backbone")) for parts in planned_runs(paper)}
    lost = [
        number
        for number in load_printed(paper)
        if number.table in spec.tables
        and spec.tables[number.table].measured
        and spec.is_built(number.system)
        and not all((number.dataset, part) in planned for part in spec.means.get(number.backbone, (number.backbone,)))
    ]
    assert lost == []


@pytest.mark.parametrize("paper", spec_names())
def test_every_printed_cell_without_a_run_says_what_it_waits_for(paper: str) -> None:
    tables, _ = build_tables(paper, [])
    cells = [cell for table in tables for _, _, _, cell in table.cells if cell.printed is not None]
    known = load_spec(paper).tables
    assert len(cells) == sum(number.table in known for number in load_printed(paper))
    assert {cell.verdict for cell in cells} <= {"not run", "cannot be filled", "setting"}
    assert all(cell.missing or cell.setting for cell in cells)


@pytest.mark.parametrize(("paper", "number"), [("clag", 8), ("memfly", 5)])
def test_presets_have_the_printed_hyperparameters(paper: str, number: int) -> None:
    (table,), _ = build_tables(paper, [], [number])
    assert len(table.cells) == 8
    for _, _, _, cell in table.cells:
        assert cell.verdict == "setting" and cell.setting.startswith("as printed: "), cell.setting


def test_a_preset_with_another_value_than_printed_says_which() -> None:
    built = settings_table("memory=clag k_retrieve")
    assert [cell.setting for _, row, _, cell in built.cells if row.label == "n_init"] == [
        "differs, 10: memory=clag k_retrieve"
    ]


def test_a_setting_that_no_preset_has_is_refused() -> None:
    with pytest.raises(ConfigError, match="table 8, settings, n_init: memory=clag has no number in 'rounds'"):
        settings_table("memory=clag rounds")


def settings_table(place: str) -> PaperTable:
    """CLAG's Table 8 where ``n_init`` is looked up in another place."""
    spec = load_spec("clag")
    changed = replace(spec.tables[8], settings={**spec.tables[8].settings, "n_init": place})
    spec = replace(spec, tables={8: changed})
    return TableBuilder(spec, load_protocol(spec.protocol), load_printed("clag"), {}).build(8)


def repeated() -> Iterator[tuple[str, str]]:
    for paper in spec_names():
        memories = [memory for system in load_spec(paper).systems.values() for memory in system.memory]
        yield from ((paper, memory) for memory in set(memories) if memories.count(memory) > 1)


def test_a_memory_stands_in_one_row() -> None:
    assert list(repeated()) == []


def test_a_paper_of_ones_own_is_read(tmp_path: Path) -> None:
    (tmp_path / "tiny.yaml").write_text(TINY)
    assert load_spec("tiny", tmp_path).readers_of("locomo") == ("clag",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("readers: [clag]", "readers: clag", "tiny.yaml: readers='clag' must be a list"),
        ("runs: [locomo]", "runs: locomo", "tiny.yaml: locomo: runs='locomo' must be a list"),
        ("conversations: 10", "conversations: ten", "locomo: conversations='ten' must be a whole number"),
        ("{rag: {label: RAG, memory: [rag]}}", "[rag]", r"tiny.yaml: systems=\['rag'\] must be settings by name"),
        ("{label: RAG, memory: [rag]}", "rag", "tiny.yaml: rag: must be a mapping of settings, not 'rag'"),
        ("{1: {title: Answers, block: backbone}}", "", "tiny.yaml: tables=None must be settings by name"),
        ("{1: {", "{one: {", "tiny.yaml: tables has 'one', which is not a number of a table"),
    ],
)
def test_a_setting_of_the_wrong_type_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    """A text where a list belongs was a list of letters; the others were tracebacks."""
    assert old in TINY
    (tmp_path / "tiny.yaml").write_text(TINY.replace(old, new))
    with pytest.raises(ConfigError, match=said):
        load_spec("tiny", tmp_path)
