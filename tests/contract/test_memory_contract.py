"""What every memory system must keep, checked for every preset of ``conf/memory``.

Packages, which run in environments of their own, have ``test_package_workers.py``.
"""

import asyncio
import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.running.question_result import retrieval_record
from eval.runs.snapshot import load_snapshot, save_snapshot
from eval.scoring.shown import shown_hits
from memsys.embedding.hashing import HashingEmbedder
from memsys.protocol import MemorySystem, Parts
from memsys.vocabulary import Conversation, Question, Retrieval, Turn
from tests.support.composing import IN_PROCESS, check_settings, composed
from tests.support.schema_model import SchemaModel
from tests.support.small import STAND_INS, small_config

TOPICS = ("sea boat sail harbour", "cake oven sugar flour", "guitar song drum band", "garden rose soil seed")
QUESTIONS = ("Who sailed the boat?", "When was the cake in the oven?", "Which song was it?", "")

#: The gate goes before any system; beside its preset's host, one whose preparation and writes ask the backbone.
GATES = ("gated+amem", "gated+clag", "gated+sage")

#: Presets that return no hit; those of MemoryOS ask for a likeness that the stand-in's hashed texts do not reach.
FIND_NOTHING = frozenset({"no_memory", "memoryos_code", "memoryos_budget"})

#: MemFly's notes quote what contradicts them, word for word where nothing is denoised; that note keeps its turns.
QUOTE_OTHERS = frozenset({"memfly_no_denoise"})

pytestmark = pytest.mark.parametrize("preset", [*IN_PROCESS, *GATES])


@pytest.fixture(autouse=True)
def stand_ins_for_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, replacement in STAND_INS.items():
        monkeypatch.setattr(name, replacement)


def talk(turns: int = 36) -> Conversation:
    made = []
    for number in range(turns):
        session, words = number // 9 + 1, TOPICS[number % 4].split()
        text = f"{words[number % 3]} and {words[(number + 1) % 4]} number{number}"
        made.append(
            Turn(
                turn_id=f"D{session}:{number % 9 + 1}",
                session_id=f"session_{session}",
                speaker=("Ann", "Ben")[number % 2],
                text=text,
                date_time=f"{session} May 2023",
                caption="a photo" if number % 7 == 0 else "",
            )
        )
    return Conversation("conv", tuple(made), ("Ann", "Ben"))


def build(preset: str, *, garbage: bool = False) -> MemorySystem:
    config = small_config(preset)
    gold = {question: ("D1:2", "D2:1") for question in QUESTIONS} if config.uses_gold else None
    return config.build(Parts("conv", SchemaModel(garbage=garbage), HashingEmbedder(48), 7, gold_evidence=gold))


async def write_all(memory: MemorySystem, conversation: Conversation, first: int = 0, last: int | None = None) -> None:
    for unit in list(memory.units(conversation))[first:last]:
        await memory.write(unit, await memory.prepare(unit))


def ingested(preset: str, *, garbage: bool = False) -> MemorySystem:
    memory = build(preset, garbage=garbage)

    async def run() -> None:
        await write_all(memory, talk())
        await memory.consolidate()

    asyncio.run(run())
    return memory


def plain(tree: Any) -> Any:
    """Turn a state into comparable values, arrays bit by bit."""
    if isinstance(tree, np.ndarray):
        return ("array", tree.shape, str(tree.dtype), tree.tobytes())
    if isinstance(tree, Mapping):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list | tuple) else tree


def timeless(retrieval: Retrieval) -> Retrieval:
    """Leave the measured seconds out."""
    trace = {key: value for key, value in retrieval.trace.items() if key != "spans"}
    return dataclasses.replace(retrieval, trace=trace)


def answers(memory: MemorySystem) -> list[Retrieval]:
    return [timeless(asyncio.run(memory.retrieve(question))) for question in QUESTIONS]


def test_the_preset_spells_out_every_setting(preset: str) -> None:
    check_settings(preset)


def test_it_is_a_memory_system(preset: str) -> None:
    memory = build(preset)
    assert isinstance(memory, MemorySystem)
    units = memory.units(talk())
    assert [turn for unit in units for turn in unit.turns] == list(talk().turns)
    assert len({unit.unit_id for unit in units}) == len(units)
    assert memory.units(talk()) == units


def test_cutting_into_units_changes_nothing(preset: str) -> None:
    memory, fresh = build(preset), plain(build(preset).state())
    memory.units(talk())
    memory.units(Conversation("other", talk().turns[:9], ("Ben",)))
    assert plain(memory.state()) == fresh
    written = ingested(preset)
    before = plain(written.state())
    written.units(talk())
    written.units(talk())
    assert plain(written.state()) == before


def test_a_resumed_memory_needs_no_units_of_its_own(preset: str) -> None:
    straight, cutter, first, second = ingested(preset), build(preset), build(preset), build(preset)
    units = list(cutter.units(talk()))
    middle = len(units) // 2

    async def resumed() -> None:
        for unit in units[:middle]:
            await first.write(unit, await first.prepare(unit))
        second.load_state(first.state())
        for unit in units[middle:]:
            await second.write(unit, await second.prepare(unit))
        await second.consolidate()

    asyncio.run(resumed())
    assert plain(second.state()) == plain(straight.state())
    assert answers(second) == answers(straight)
    assert second.statistics() == straight.statistics()


def test_an_empty_memory_answers(preset: str) -> None:
    memory = build(preset)
    asyncio.run(memory.consolidate())
    for retrieval in answers(memory):
        assert retrieval.hits == () and isinstance(retrieval.context, str)


def check_shown_hits(preset: str, retrieval: Retrieval) -> None:
    """Check that the hits it calls shown are in the context, unless that is written from them (GAM's)."""
    written = (composed(preset).get("context") or {}).get("shown") == "integrated"
    record = retrieval_record(Question("q", "conv", "", 0), retrieval, None)
    named = record.hits if retrieval.shown is None else [record.hits[place] for place in retrieval.shown]
    assert shown_hits(record) == (None if written and named else named)


def test_every_hit_names_turns_of_the_conversation(preset: str) -> None:
    known = {turn.turn_id for turn in talk().turns}
    memory = ingested(preset)
    found = answers(memory)
    assert any(retrieval.hits for retrieval in found) is (preset not in FIND_NOTHING)
    for retrieval in found:
        for hit in retrieval.hits:
            assert set(hit.turn_ids) <= known
            unnamed = "#summary" in hit.memory_id and composed(preset)["summaries"]["named_turns"] == "none"
            assert bool(hit.turn_ids) is not unnamed, hit
        assert len({hit.memory_id for hit in retrieval.hits}) == len(retrieval.hits)
        assert len(json.loads(json.dumps(retrieval.trace, allow_nan=False))) == len(retrieval.trace)
        check_shown_hits(preset, retrieval)
    json.dumps(memory.statistics(), allow_nan=False)


def test_a_turn_whose_words_are_in_the_context_is_named_by_what_is_shown(preset: str) -> None:
    said = {turn.turn_id: f"{turn.speaker}: {turn.text}" for turn in talk().turns}
    for retrieval in answers(ingested(preset)):
        places = range(len(retrieval.hits)) if retrieval.shown is None else retrieval.shown
        shown = [*(retrieval.hits[place] for place in places), *retrieval.also_shown]
        named = {turn for memory in shown for turn in memory.turn_ids}
        there = {turn for turn, text in said.items() if re.search(rf"{text}\b", retrieval.context)}
        assert there <= named or not retrieval.traced or preset in QUOTE_OTHERS, sorted(there - named)


def test_retrieval_changes_nothing(preset: str) -> None:
    memory = ingested(preset)
    before = plain(memory.state())
    first = answers(memory)

    async def at_once() -> list[Retrieval]:
        return await asyncio.gather(*(memory.retrieve(question) for question in reversed(QUESTIONS)))

    together = [timeless(retrieval) for retrieval in reversed(asyncio.run(at_once()))]
    assert first == together == answers(memory)
    assert plain(memory.state()) == before


def test_two_memories_share_nothing(preset: str) -> None:
    fresh = plain(build(preset).state())
    one, other = build(preset), build(preset)
    asyncio.run(write_all(one, talk()))
    assert plain(other.state()) == fresh
    asyncio.run(write_all(other, talk()))
    asyncio.run(other.consolidate())
    assert plain(other.state()) == plain(ingested(preset).state())


def test_it_survives_garbage_from_the_backbone(preset: str) -> None:
    memory = ingested(preset, garbage=True)
    for retrieval in answers(memory):
        assert isinstance(retrieval.context, str)
    json.dumps(memory.statistics(), allow_nan=False)


def test_a_snapshot_taken_midway_goes_on_as_if_never_taken(preset: str, tmp_path: Path) -> None:
    straight = ingested(preset)
    first, second = build(preset), build(preset)
    middle = len(first.units(talk())) // 2

    async def resumed() -> None:
        await write_all(first, talk(), last=middle)
        save_snapshot(tmp_path / "memory.snapshot", first.state())
        second.load_state(load_snapshot(tmp_path / "memory.snapshot") or {})
        await write_all(second, talk(), first=middle)
        await second.consolidate()

    asyncio.run(resumed())
    assert plain(second.state()) == plain(straight.state())
    assert answers(second) == answers(straight)
    assert second.statistics() == straight.statistics()


def test_a_snapshot_is_no_window_into_the_memory(preset: str) -> None:
    memory = build(preset)
    middle = len(memory.units(talk())) // 2
    asyncio.run(write_all(memory, talk(), last=middle))
    state = memory.state()
    taken = plain(state)
    asyncio.run(write_all(memory, talk(), first=middle))
    asyncio.run(memory.consolidate())
    assert plain(state) == taken


def test_how_far_prepare_runs_ahead_does_not_matter(preset: str) -> None:
    straight, ahead = ingested(preset), build(preset)

    async def run() -> None:
        units = list(ahead.units(talk()))
        prepared = await asyncio.gather(*(ahead.prepare(unit) for unit in reversed(units)))
        for unit, each in zip(units, reversed(prepared), strict=True):
            await ahead.write(unit, each)
        await ahead.consolidate()

    asyncio.run(run())
    assert plain(ahead.state()) == plain(straight.state())
    assert answers(ahead) == answers(straight)
