"""Nemori's write path on a scripted backbone: episodes, merges, facts, lineage, snapshots."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from baselines.nemori.memory import NemoriMemory
from eval.runs.snapshot import load_snapshot, save_snapshot
from tests.support import xmemory
from tests.support.nemori import (
    TALK,
    blocks_of,
    counts_of,
    dutiful,
    facts_of,
    ingest,
    memory,
    model_of,
    preset,
    replying,
)
from tests.support.xmemory import talk

#: Merging among the eight messages of a talk that is told in two batches of four.
MERGING: dict[str, Any] = {"batch": {"size": 4, "least": 2}, "merge": {"scope": "every", "query_chars": None}}
ROLES = ("boundary", "segment", "episode", "decide_merge", "merge", "extract", "predict", "calibrate")


def calls_of(system: NemoriMemory) -> dict[str, int]:
    return {role: number for role in ROLES if (number := model_of(system).count(role))}


def test_online_messages_become_episodes_and_facts() -> None:
    system = ingest(memory(preset()), talk(*TALK))
    assert blocks_of(system) == [["D1:1", "D1:2"], ["D1:3", "D1:4", "D1:5"], ["D1:6"], ["D1:7", "D1:8"]]
    assert facts_of(system)["e1"] == ["Ann: cake oven", "Ben: cake sugar", "Ann: cake flour"]
    assert calls_of(system) == {"boundary": 7, "episode": 4, "extract": 1, "calibrate": 3}
    assert counts_of(system)["predict.nothing_known"] == 3, "no fact is as near as 0.85"
    statistics = system.statistics()
    assert statistics["episodes"] == 4 and statistics["episode_messages"] == [2, 3, 1, 2]
    assert statistics["facts"] == 8 and statistics["merged_episodes"] == 0


@pytest.mark.parametrize("name", ["nemori", "nemori_code"])
def test_the_write_path_makes_the_calls_of_the_fork(name: str) -> None:
    """Same prompts, same keys: with one cache, xMemory's boundaries, stories and facts are Nemori's."""
    fork = name.replace("nemori", "xmemory")
    ours = ingest(memory(preset(name)), talk(*TALK * 3))
    theirs = xmemory.memory(xmemory.preset(fork, semantic={"mode": "predict_calibrate"}))
    xmemory.ingest(theirs, talk(*TALK * 3))
    model = theirs._parts.llm
    assert isinstance(model, xmemory.ProbedModel)
    asked = [(call, prompt) for call, prompt in zip(model.calls, model.prompts, strict=True) if call[0] != "theme"]
    assert sorted(zip(model_of(ours).calls, model_of(ours).prompts, strict=True)) == sorted(asked)


def test_batches_are_prepared_alone_and_groups_may_interleave() -> None:
    system = memory(preset("nemori_current", merge={"scope": "never"}, batch={"least": 2}))
    (unit,) = system.units(talk(*TALK))

    async def prepare() -> Any:
        return await system.prepare(unit)

    prepared = asyncio.run(prepare())
    assert [len(draft.story.block.messages) for draft in prepared.drafts] == [4, 3, 1]
    ingest(system, talk(*TALK))
    assert blocks_of(system) == [["D1:1", "D1:2", "D1:7", "D1:8"], ["D1:3", "D1:4", "D1:5"], ["D1:6"]]
    assert calls_of(system) == {"segment": 2, "episode": 6, "extract": 1, "predict": 2, "calibrate": 2}
    assert counts_of(system)["cut.batch"] == 1 and counts_of(system)["cut.model"] == 2


def test_the_end_of_the_stream_is_one_episode_where_it_is_short() -> None:
    system = ingest(memory(preset("nemori_batch", merge={"scope": "never"})), talk(*["sea", "cake"] * 13))
    assert [len(block) for block in blocks_of(system)] == [10, 10, 6]
    assert calls_of(system)["segment"] == 1
    assert counts_of(system)["batch.unsegmented"] == 1


def test_the_rest_of_messages_that_waited_together_is_segmented() -> None:
    """It became one episode without a call: the last 19 of conv-26, of two sessions."""
    rest = preset("nemori_current", merge={"scope": "never"}, batch={"size": 8, "least": 7})
    system = ingest(memory(rest), talk(*TALK, "sea", "cake"))
    assert calls_of(system)["segment"] == 2 and "batch.unsegmented" not in counts_of(system)
    few = ingest(memory(rest), talk(*TALK[:6]))
    assert "segment" not in calls_of(few) and counts_of(few)["batch.unsegmented"] == 1


def test_sessions_cut_where_the_preset_says_so() -> None:
    system = memory(preset(boundary={"session_cut": True}))
    conversation = talk(*["sea"] * 9, per_session=3)
    assert [len(unit.turns) for unit in system.units(conversation)] == [3, 3, 3]
    assert blocks_of(ingest(system, conversation)) == [[f"D{s}:{n}" for n in (1, 2, 3)] for s in (1, 2, 3)]
    assert counts_of(system)["cut.session"] == 3


def merged(**changes: Any) -> NemoriMemory:
    model = changes.pop("model", None)
    return ingest(memory(preset("nemori_current", **{**MERGING, **changes}), model), talk(*TALK))


def test_an_episode_that_goes_on_replaces_the_one_it_continues_and_facts_keep_their_turns() -> None:
    """First four messages: sea, cake; last four: cake, song, sea. Cake and sea go on."""
    system = merged()
    store = system._store
    assert store.merged_into == {"e1": "e2", "e0": "e4"}
    assert blocks_of(system) == [["D1:3", "D1:4", "D1:5"], ["D1:6"], ["D1:1", "D1:2", "D1:7", "D1:8"]]
    assert list(store.episode_index.ids) == ["e2", "e3", "e4"]
    assert store.episodes["e2"].content == "Ann: cake oven and Ben: cake sugar then Ann: cake flour"
    # facts of a merged episode stay, with the turns they came from; the merged one is learnt from again
    assert facts_of(system)["e1"] == ["Ann: cake oven", "Ben: cake sugar"]
    assert facts_of(system)["e2"] == ["Ann: cake oven", "Ben: cake sugar", "Ann: cake flour"]
    turns = {fact_id: store.fact_hit(fact_id, 0.0).turn_ids for fact_id in store.facts}
    assert turns["s2"] == ("D1:3", "D1:4") and turns["s4"] == ("D1:3", "D1:4", "D1:5")
    assert counts_of(system)["merges"] == 2 and system.statistics()["merged_episodes"] == 2
    # the first episode has nothing to be compared with
    assert calls_of(system)["decide_merge"] == 4 and calls_of(system)["merge"] == 2


def test_duplicates_after_a_merge_can_be_dropped() -> None:
    system = merged(facts={"dedup_cos": 0.999})
    assert facts_of(system)["e2"] == ["Ann: cake flour"] and counts_of(system)["facts.duplicates"] == 4


def test_only_the_first_episode_of_a_batch_is_merged_where_the_preset_says_so() -> None:
    system = merged(merge={"scope": "first", "query_chars": 500})
    assert system._store.merged_into == {"e1": "e2"}, "the sea comes last in its batch"
    assert calls_of(system)["decide_merge"] == 1
    online = ingest(memory(preset(merge={"scope": "first"})), talk(*TALK))
    assert calls_of(online)["decide_merge"] == 3, "online, each episode is a batch of its own"
    assert online._store.merged_into == {"e0": "e3"}


def test_candidates_are_the_nearest_in_part_and_far_ones_are_not_asked_for() -> None:
    system = merged(merge={"candidates": 1, "shown_chars": 4})
    shown = [prompt.partition("Stored episodes:\n")[2] for prompt in model_of(system).prompts]
    candidates = [text for text in shown if text]
    assert all(len(re.findall(r"^e\d: ", text, flags=re.MULTILINE)) == 1 for text in candidates)
    assert all(text.endswith("\nAnn:") or text.endswith("\nBen:") for text in candidates)
    assert "decide_merge" not in calls_of(merged(merge={"min_cos": 1.0}))


@pytest.mark.parametrize(
    ("role", "reply", "event"),
    [
        ("decide_merge", "merge them", "fallback.decide_merge"),
        ("decide_merge", {"decision": "perhaps", "target": "e0", "reason": ""}, "fallback.decide_merge"),
        ("decide_merge", {"decision": "merge", "target": "e99", "reason": ""}, "merge.unknown_target"),
        ("merge", "once upon a time", "fallback.merge"),
        ("merge", {"title": "t", "content": " ", "timestamp": ""}, "fallback.merge"),
    ],
)
def test_where_a_merge_cannot_be_read_episodes_stay_apart(role: str, reply: Any, event: str) -> None:
    system = merged(model=replying(**{role: reply}))
    assert system._store.merged_into == {} and counts_of(system)["merges"] == 0
    assert counts_of(system)[event] == calls_of(system)[role] > 0
    assert len(blocks_of(system)) == 5


def test_a_merge_without_a_reason_is_a_merge() -> None:
    """The authors' prompt asks for the id only if episodes are merged, and nothing reads the reason."""
    for reply in ({"decision": "merge", "target": "e0"}, {"decision": "merge", "merge_target_id": "e0"}):
        system = merged(model=replying(decide_merge=reply))
        assert counts_of(system)["merges"] > 0 and counts_of(system)["fallback.decide_merge"] == 0
    alone = merged(model=replying(decide_merge={"decision": "new"}))
    assert counts_of(alone)["merges"] == counts_of(alone)["fallback.decide_merge"] == 0


def test_a_merge_without_a_story_holds_both() -> None:
    system = merged(model=replying(merge={"timestamp": "unknown"}))
    told = merged(merge={"scope": "never"})._store.episodes
    found = system._store.episodes["e2"]
    assert found.content == f"{told['e1'].content}\n\n{told['e2'].content}"
    assert found.title == f"Merged: {told['e1'].title}"
    assert counts_of(system)["fallback.merge"] == 0


@pytest.mark.parametrize("days", [range(1, 20), range(20, 1, -1)])
def test_a_merge_without_a_time_takes_the_earlier_of_the_episodes(days: range) -> None:
    """It took that of the earliest message, which the episodes need not have."""

    def model() -> Any:
        times = (f"2023-04-{day:02}T08:00:00" for day in days)
        dated = lambda values, key: {"title": "t", "content": "c", "timestamp": next(times)}  # noqa: E731
        return replying(episode=dated, merge={"title": "m", "content": "both", "timestamp": "unknown"})

    told = {name: each.time for name, each in merged(model=model(), merge={"scope": "never"})._store.episodes.items()}
    assert list(told.values()) == sorted(told.values(), reverse=days.step < 0)
    store = merged(model=model())._store
    replaced = store.merged_into
    assert replaced
    for stored, new in replaced.items():  # a merged episode may be merged again
        told[new] = min(told[stored], told[new])
    assert {name: each.time for name, each in store.episodes.items()} == {name: told[name] for name in store.episodes}


def test_a_time_that_the_merge_invents_is_not_believed_where_the_preset_doubts_it() -> None:
    invented = {"title": "t", "content": "c", "timestamp": "1999-01-01T00:00:00"}
    doubted = merged(model=replying(merge=invented), episode={"slack_days": 1})
    assert doubted._store.episodes["e2"].time == "2023-05-01T13:00:00"
    assert merged(model=replying(merge=invented))._store.episodes["e2"].time == "1999-01-01T00:00:00"


def test_facts_are_read_directly_or_not_at_all_where_the_preset_says_so() -> None:
    assert calls_of(ingest(memory(preset("nemori", facts={"mode": "direct"})), talk(*TALK))) == {
        "boundary": 7, "episode": 4, "extract": 4,
    }  # fmt: skip
    none = ingest(memory(preset("nemori", facts={"mode": "none"})), talk(*TALK))
    assert calls_of(none) == {"boundary": 7, "episode": 4} and none.statistics()["facts"] == 0
    both = merged(facts={"mode": "direct"})
    assert facts_of(both)["e2"] == ["Ann: cake oven", "Ben: cake sugar then Ann: cake flour"], "of the merged story"


def test_a_prediction_uses_the_nearest_known_facts_and_messages_stand_without_times() -> None:
    system = ingest(memory(preset("nemori_current", batch={"least": 2}, facts={"max_known": 2})), talk(*TALK))
    prompts = [prompt for prompt in model_of(system).prompts if prompt.startswith("You know some facts")]
    assert prompts and all(len(re.findall(r"^- ", prompt, flags=re.MULTILINE)) == 2 for prompt in prompts)
    calibrated = [prompt for prompt in model_of(system).prompts if "Prediction:\nThey talk about it." in prompt]
    lines = [line for prompt in calibrated for line in prompt.partition("Conversation:\n")[2].splitlines()]
    assert len(calibrated) == len(prompts) and all(line.startswith(("Ann: ", "Ben: ")) for line in lines)


@pytest.mark.parametrize(
    ("role", "reply", "event"),
    [
        ("boundary", "no idea", "fallback.boundary"),
        ("episode", "I cannot", "fallback.episode"),
        ("extract", "none", "fallback.extract"),
        ("predict", " \n", "fallback.predict"),
        ("calibrate", "what?", "fallback.calibrate"),
    ],
)
def test_malformed_replies_of_the_shared_roles_are_counted_and_lose_no_message(
    role: str, reply: Any, event: str
) -> None:
    system = ingest(memory(preset(facts={"min_cos": -1.0}), replying(**{role: reply})), talk(*TALK))
    assert counts_of(system)[event] == calls_of(system)[role] > 0
    assert sorted(turn for block in blocks_of(system) for turn in block) == [f"D1:{n}" for n in range(1, 9)]
    assert len(system._store.episode_index) == len(blocks_of(system)), "told or not, an episode has a vector"


@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_pace_of_ingestion_changes_nothing(size: int) -> None:
    one, other = (ingest(memory(preset(unit_turns=turns)), talk(*TALK * 3)) for turns in (5, size))
    assert blocks_of(one) == blocks_of(other) and facts_of(one) == facts_of(other)
    assert one.statistics() == other.statistics()
    assert sorted(model_of(one).calls) == sorted(model_of(other).calls)


@pytest.mark.parametrize(("name", "changes"), [("nemori", {"unit_turns": 2}), ("nemori_current", MERGING)])
def test_a_snapshot_after_any_write_goes_on_as_if_never_taken(
    name: str, changes: Mapping[str, Any], tmp_path: Path
) -> None:
    straight = ingest(memory(preset(name, **changes)), talk(*TALK * 2))

    async def resumed(stop: int) -> NemoriMemory:
        first, second = memory(preset(name, **changes)), memory(preset(name, **changes))
        units = first.units(talk(*TALK * 2))
        for unit in units[:stop]:
            await first.write(unit, await first.prepare(unit))
        save_snapshot(tmp_path / "s", first.state())
        second.load_state(load_snapshot(tmp_path / "s") or {})
        for unit in units[stop:]:
            await second.write(unit, await second.prepare(unit))
        await second.consolidate()
        return second

    for stop in range(len(straight.units(talk(*TALK * 2))) + 1):
        other = asyncio.run(resumed(stop))
        assert blocks_of(other) == blocks_of(straight) and facts_of(other) == facts_of(straight)
        assert other._store.merged_into == straight._store.merged_into
        assert other.statistics() == straight.statistics()


def test_slow_replies_and_eager_preparation_change_nothing() -> None:
    straight = merged()

    class Slow(type(model_of(straight))):  # type: ignore[misc]
        async def ask(self, role: Any, values: Any, *, key: str) -> Any:
            for _ in range(7 * sum(map(ord, role.name + key)) % 11):
                await asyncio.sleep(0)
            return await super().ask(role, values, key=key)

    ahead = memory(preset("nemori_current", **MERGING), Slow(dutiful))

    async def run() -> None:
        units = list(ahead.units(talk(*TALK)))
        prepared = await asyncio.gather(*(ahead.prepare(unit) for unit in reversed(units)))
        for unit, each in zip(units, reversed(prepared), strict=True):
            await ahead.write(unit, each)
        await ahead.consolidate()

    asyncio.run(run())
    assert blocks_of(ahead) == blocks_of(straight) and facts_of(ahead) == facts_of(straight)
    assert ahead.statistics() == straight.statistics()
