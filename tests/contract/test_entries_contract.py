"""Every system says where its snapshots keep its entries, and names only statistics that it has."""

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from eval.results.papers.deviations import systems
from eval.results.papers.expectations import FILE, method_counts
from eval.scoring.entry_places import entry_places
from eval.scoring.memory_statistics import numbers_by_path
from eval.scoring.storage import read_entries
from memsys.deviations import system_of
from memsys.protocol import MemorySystem
from tests.contract.test_memory_contract import QUESTIONS, ingested
from tests.support.composing import IN_PROCESS, composed
from tests.support.small import STAND_INS

#: One preset of each system that needs no process of its own, the one with the shortest name.
ONE_EACH = {
    system: min(here, key=len) for system, (_, presets) in systems().items() if (here := set(presets) & set(IN_PROCESS))
}
SAY_ENTRIES = [system for system, preset in ONE_EACH.items() if entry_places(composed(preset)) is not None]


@pytest.fixture(autouse=True)
def stand_ins_for_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, replacement in STAND_INS.items():
        monkeypatch.setattr(name, replacement)


@cache
def written(preset: str) -> MemorySystem:
    return ingested(preset)


def without_arrays(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {key: without_arrays(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [without_arrays(value) for value in node]
    return None if isinstance(node, np.ndarray) else node


def test_every_system_behind_a_paper_says_where_its_entries_are() -> None:
    behind_papers = {system for system, (deviations, _) in systems().items() if deviations.is_file()}
    assert behind_papers & set(ONE_EACH) <= set(SAY_ENTRIES)


@pytest.mark.parametrize("system", SAY_ENTRIES)
def test_entries_have_a_text_and_name_every_turn_that_is_retrieved(system: str) -> None:
    preset = ONE_EACH[system]
    memory, places = written(preset), entry_places(composed(preset)) or ()
    entries = read_entries(json.loads(json.dumps(without_arrays(memory.state()))), places)
    hits = [hit for question in QUESTIONS for hit in asyncio.run(memory.retrieve(question)).hits]
    assert all(entry.characters for entry in entries)
    assert {turn for hit in hits for turn in hit.turn_ids} <= {turn for entry in entries for turn in entry.turns}
    assert bool(entries) == (preset != "no_memory")


@pytest.mark.parametrize("system", ONE_EACH)
def test_named_statistics_are_statistics_of_the_system(system: str) -> None:
    preset = ONE_EACH[system]
    file = system_of(str(composed(preset)["_target_"]), FILE)[1]
    counts = method_counts({"_target_": composed(preset)["_target_"]})
    assert bool(counts) == file.is_file()
    found = set(numbers_by_path([written(preset).statistics()])) | {"turns"}
    named = {name for count in counts if count.where == "memory" for name in (count.statistic, *count.of)}
    assert named <= found, f"{file}: {', '.join(sorted(named - found))} is not a statistic of {preset}"


@pytest.mark.parametrize("system", ONE_EACH)
def test_statistics_name_nobody(system: str) -> None:
    """They are exported, and an export holds no word of the data."""
    memory = written(ONE_EACH[system])
    speakers = {"ann", "ben"}
    paths = [path.lower() for path in numbers_by_path([memory.statistics()])]
    assert not [path for path in paths if any(speaker in path.split(".") for speaker in speakers)]
