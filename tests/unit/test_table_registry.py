"""Sweeps, tables and presets name the same systems: nothing that is run is lost on the way to a table."""

from collections.abc import Iterator

import pytest

from eval.configs.choices import presets
from eval.configs.presets import CONF, preset_names, read_settings
from eval.papers.printed import load_printed
from eval.tables.spec import load_spec, spec_names

SWEEPS = preset_names(CONF / "sweep")


def swept(sweep: str) -> list[str]:
    """Memories that a sweep declares."""
    return str(read_settings(CONF / "sweep" / f"{sweep}.yaml")["hydra"]["sweeper"]["params"]["memory"]).split(",")


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_memory_of_a_sweep_has_a_row_in_its_papers_tables(sweep: str) -> None:
    paper = sweep.partition("_")[0]
    spec = load_spec(paper)
    rows = spec.systems.keys() | spec.further.keys()
    assert [memory for memory in swept(sweep) if spec.system_of(memory) not in rows] == []


@pytest.mark.parametrize("paper", spec_names())
def test_every_memory_of_a_table_is_a_preset_or_marked_as_not_built(paper: str) -> None:
    built = set(presets())
    for name, system in load_spec(paper).systems.items():
        there = [memory for memory in system.memory if memory in built]
        assert there == (list(system.memory) if system.built else []), f"{paper}: {name}"


@pytest.mark.parametrize("paper", spec_names())
def test_every_printed_system_of_a_measured_table_is_declared(paper: str) -> None:
    spec = load_spec(paper)
    measured = {number for number, table in spec.tables.items() if table.measured}
    printed = {number.system for number in load_printed(paper) if number.table in measured}
    assert printed <= spec.systems.keys() | spec.further.keys()


def repeated() -> Iterator[tuple[str, str]]:
    for paper in spec_names():
        memories = [memory for system in load_spec(paper).systems.values() for memory in system.memory]
        yield from ((paper, memory) for memory in set(memories) if memories.count(memory) > 1)


def test_a_memory_stands_in_one_row() -> None:
    assert list(repeated()) == []
