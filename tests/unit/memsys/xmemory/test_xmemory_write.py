"""xMemory's write path on a scripted backbone: boundaries, episodes, facts, summaries, lineage, snapshots."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.runs.snapshot import load_snapshot, save_snapshot
from memsys.dates import normalised, parse_date
from memsys.episodes.narrating import resolve_timestamp, template_content
from memsys.episodes.nodes import Message, MessageBlock
from memsys.xmemory.memory import XMemory
from tests.support.fakes import FakeModel, TableEmbedder
from tests.support.xmemory import ingest, memory, preset, replying, sensible, talk, unit_rows

TALK = ("sea boat", "sea sail", "cake oven", "cake sugar", "cake flour", "song band", "sea wind", "sea fish")


def model_of(system: XMemory) -> FakeModel:
    model = system._parts.llm
    assert isinstance(model, FakeModel)
    return model


def blocks_of(system: XMemory) -> list[list[str]]:
    return [list(episode.turn_ids) for episode in system._store.episodes.values()]


def facts_of(system: XMemory) -> dict[str, list[str]]:
    facts: dict[str, list[str]] = {episode_id: [] for episode_id in system._store.episodes}
    for fact in system._store.facts.values():
        facts[fact.episode_id].append(fact.text)
    return facts


def counts_of(system: XMemory) -> Mapping[str, int]:
    counts: Mapping[str, int] = system.statistics()["counts"]
    return counts


def test_messages_become_episodes_facts_and_themes() -> None:
    system = ingest(memory(preset()), talk(*TALK))
    assert blocks_of(system) == [["D1:1", "D1:2"], ["D1:3", "D1:4", "D1:5"], ["D1:6"], ["D1:7", "D1:8"]]
    assert list(facts_of(system)) == ["e0", "e1", "e2", "e3"]
    assert facts_of(system)["e1"] == ["Ann: cake oven", "Ben: cake sugar", "Ann: cake flour"]
    themes = system._store.themes
    assert sorted(fact for group in themes.members.values() for fact in group) == sorted(system._store.facts)
    assert list(system._store.summaries) == list(themes.members)
    assert counts_of(system)["cut.model"] == 3 and counts_of(system)["cut.end"] == 1


def test_call_counts_are_those_of_the_cost_plan() -> None:
    direct = ingest(memory(preset()), talk(*TALK))
    calls = {role: model_of(direct).count(role) for role in ("boundary", "episode", "extract", "predict", "calibrate")}
    assert calls == {"boundary": 7, "episode": 4, "extract": 4, "predict": 0, "calibrate": 0}
    assert model_of(direct).count("theme") == len(direct._store.themes)
    code = ingest(memory(preset("xmemory_code")), talk(*TALK))
    calls = {role: model_of(code).count(role) for role in ("boundary", "episode", "extract", "calibrate")}
    assert calls == {"boundary": 7, "episode": 4, "extract": 1, "calibrate": 3}
    made = code._store.themes
    merges = made.counts["merges.pair"] + made.counts["merges.tiny"]
    assert not made.counts["splits.online"] and not made.counts["splits.batch"]
    attached = len(made) + merges  # each theme is named when it is made and when all are revised, then per merge
    assert model_of(code).count("theme") == 2 * attached + merges
    once = ingest(memory(preset("xmemory_code", theme={"naming": "once"})), talk(*TALK))
    assert once._store.summaries == code._store.summaries and model_of(once).count("theme") == len(made)


def test_the_newest_buffered_message_is_hidden_once_more_than_ten_wait() -> None:
    shown: dict[str, list[str]] = {}

    def never(values: Mapping[str, str], key: str) -> Mapping[str, Any]:
        shown[key] = values["history"].splitlines()
        return {"should_end": False, "reason": ""}

    ingest(memory(preset("xmemory_code"), replying(boundary=never)), talk(*[f"word{n}" for n in range(13)]))
    assert len(shown["D1:11"]) == 10
    assert len(shown["D1:12"]) == 10 and shown["D1:12"][-1].endswith("word9"), "eleven wait, the last is hidden"
    assert len(shown["D1:13"]) == 11
    assert shown["D1:2"] == ["Ann: word0"], "the code shows no times"


def test_times_are_shown_where_the_preset_says_so() -> None:
    system = memory(preset())
    ingest(system, talk("sea", "sea", per_session=1))
    prompt = model_of(system).prompts[0]
    assert "[2023-05-01T13:00:00] Ann: sea" in prompt and "[2023-05-02T13:00:00] Ben: sea" in prompt


def test_an_episode_is_cut_at_the_limit_and_no_message_is_lost_without_one() -> None:
    never = replying(boundary={"should_end": False, "reason": ""})
    limited = ingest(memory(preset(boundary={"max_messages": 3}), never), talk(*["sea"] * 8))
    assert [len(block) for block in blocks_of(limited)] == [3, 3, 2]
    assert counts_of(limited)["cut.limit"] == 2
    assert model_of(limited).count("boundary") == 5, "a cut at the limit costs no call"
    free = ingest(
        memory(preset("xmemory_code"), replying(boundary={"should_end": False, "reason": ""})), talk(*["sea"] * 40)
    )
    assert [len(block) for block in blocks_of(free)] == [40]


def test_sessions_cut_where_the_preset_says_so_and_are_then_prepared_alone() -> None:
    conversation = talk(*["sea"] * 9, per_session=3)
    glued = ingest(memory(preset()), conversation)
    assert [len(block) for block in blocks_of(glued)] == [9]
    cut = memory(preset(boundary={"session_cut": True}))
    assert [len(unit.turns) for unit in cut.units(conversation)] == [3, 3, 3]

    async def prepare() -> Any:
        return await cut.prepare(cut.units(conversation)[1])

    prepared = asyncio.run(prepare())
    assert [draft.story.block.messages[0].turn_id for draft in prepared.drafts] == ["D2:1"]
    assert blocks_of(ingest(cut, conversation)) == [[f"D{s}:{n}" for n in (1, 2, 3)] for s in (1, 2, 3)]


@pytest.mark.parametrize("name", ["xmemory", "xmemory_code"])
@pytest.mark.parametrize("size", [1, 3, 100])
def test_the_pace_of_ingestion_changes_nothing(name: str, size: int) -> None:
    conversation = talk(*TALK * 3)
    one, other = (memory(preset(name, unit_turns=turns)) for turns in (5, size))
    ingest(one, conversation)
    ingest(other, conversation)
    assert blocks_of(one) == blocks_of(other) and facts_of(one) == facts_of(other)
    assert one._store.themes.state() == other._store.themes.state()
    assert one.statistics() == other.statistics()
    assert sorted(model_of(one).calls) == sorted(model_of(other).calls)


@pytest.mark.parametrize(
    ("reply", "cuts", "event"),
    [
        ("no idea", 0, "boundary.no_cut"),
        ('{"should_end": "false", "reason": ""}', 0, "boundary.recovered"),
        ('{"should_end": "true"', 3, "boundary.recovered"),
        ("", 0, "boundary.no_cut"),
    ],
)
def test_a_malformed_boundary_is_read_loosely_else_means_no_cut(reply: str, cuts: int, event: str) -> None:
    system = ingest(memory(preset(), replying(boundary=reply)), talk(*["sea"] * 4))
    assert len(blocks_of(system)) == cuts + 1
    assert counts_of(system)["fallback.boundary"] == counts_of(system)[event] == 3


def test_a_malformed_episode_keeps_what_can_be_read_else_becomes_a_template() -> None:
    cut = ingest(
        memory(preset(), replying(episode='{"title": "At sea", "content": "Ann sails a lo')), talk("sea", "sea")
    )
    episode = cut._store.episodes["e0"]
    assert (episode.title, episode.content, episode.time) == ("At sea", "Ann sails a lo", "2023-05-01T13:00:00")
    assert counts_of(cut)["episode.recovered"] == counts_of(cut)["fallback.episode"] == 1
    for bad in ("I cannot", {"title": "x", "content": " ", "timestamp": ""}):
        system = ingest(memory(preset(), replying(episode=bad)), talk("sea boat", "sea sail", "sea wind"))
        episode = system._store.episodes["e0"]
        assert episode.content == "On 2023-05-01T13:00:00: 3 messages, from 'Ann: sea boat' to 'Ann: sea wind'"
        assert episode.time == "2023-05-01T13:00:00"
        assert counts_of(system)["episode.template"] == 1
    long = MessageBlock((Message("D1:1", "s", "A: " + "x" * 500, ""),), "end", "")
    assert template_content(long, 100) == f"1 messages, from {'A: ' + 'x' * 97!r}"


def test_statements_that_are_no_strings_or_blank_are_dropped_one_by_one() -> None:
    mixed = '{"statements": ["Ann sails", {"fact": "Ben"}, " ", 7, "Ben bakes"]}'
    system = ingest(memory(preset(), replying(extract=mixed)), talk("sea", "sea"))
    assert facts_of(system) == {"e0": ["Ann sails", "Ben bakes"]}
    assert counts_of(system)["fallback.extract"] == 1
    for nothing in ("none", {"statements": []}, '{"statements": "Ann sails"}'):
        system = ingest(memory(preset(), replying(extract=nothing)), talk("sea", "sea"))
        assert facts_of(system) == {"e0": []} and counts_of(system)["extract.no_facts"] == 1
        assert counts_of(system)["fallback.extract"] == (0 if isinstance(nothing, dict) else 1)


def test_a_blank_theme_is_named_by_the_fact_nearest_its_centroid() -> None:
    table = {"east": [1.0, 0, 0], "north": [0.7, 0.714, 0], "between": [0.95, 0.31, 0]}
    rows = dict(zip(table, unit_rows(*table.values()), strict=True))
    extract = {"statements": list(table)}
    texts = {"Ann: sea and Ben: sea": [0, 0, 1.0], **{text: row.tolist() for text, row in rows.items()}}
    system = memory(preset(theme={"attach": 0.5}), replying(extract=extract, theme="  \n"), TableEmbedder(texts))
    ingest(system, talk("sea", "sea"))
    assert system._store.summaries == {"t0": "between"}
    assert counts_of(system)["fallback.theme"] == 1


def test_the_code_names_a_theme_as_the_model_wrote_it() -> None:
    for reply, summary, blank in (("  \n", "", 1), (" Two\nlines \n", "Two\nlines", 0)):
        rules = {"attach": 0.5, "summaries": "as_written"}
        system = ingest(memory(preset(theme=rules), replying(theme=reply)), talk("sea", "sea"))
        assert set(system._store.summaries.values()) == {summary}
        assert counts_of(system)["fallback.theme"] == blank * len(system._store.themes)


def test_a_prediction_uses_known_facts_near_the_episode_and_no_others() -> None:
    near = memory(preset("xmemory_code", semantic={"min_cos": -1.0, "max_known": 2}))
    ingest(near, talk(*TALK))
    assert model_of(near).count("predict") == 3
    prompts = [prompt for prompt in model_of(near).prompts if prompt.startswith("You know some facts")]
    assert all(len(re.findall(r"^- ", prompt, flags=re.MULTILINE)) == 2 for prompt in prompts)
    assert any("They talk about it." in prompt for prompt in model_of(near).prompts)
    far = memory(preset("xmemory_code", semantic={"min_cos": 1.0}))
    ingest(far, talk(*TALK))
    assert model_of(far).count("predict") == 0
    assert counts_of(far)["predict.nothing_known"] == 3
    assert any("Nothing is known yet about: About cake" in prompt for prompt in model_of(far).prompts)


def test_a_blank_prediction_counts_and_the_extraction_goes_on() -> None:
    config = preset("xmemory_code", semantic={"min_cos": -1.0})
    system = ingest(memory(config, replying(predict=" \n")), talk(*TALK))
    assert counts_of(system)["fallback.predict"] == 3
    assert all(facts_of(system).values())
    broken = ingest(memory(config, replying(calibrate="what?")), talk(*TALK))
    assert counts_of(broken)["fallback.calibrate"] == 3 and len(facts_of(broken)["e1"]) == 0


def test_duplicates_are_kept_unless_the_threshold_says_otherwise() -> None:
    twice = ("sea boat", "cake oven", "sea boat")
    assert len(ingest(memory(preset(semantic={"dedup_cos": 1.0})), talk(*twice))._store.facts) == 3
    system = ingest(memory(preset(semantic={"dedup_cos": 0.6})), talk(*twice))
    assert len(system._store.facts) == 2 and counts_of(system)["facts.duplicates"] == 1


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00"),
        ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00"),
        ("12:30 p.m. on 1 Jan 2024", "2024-01-01T12:30:00"),
        ("8 May 2023", "2023-05-08T00:00:00"),
        ("May 8, 2023", "2023-05-08T00:00:00"),
        ("2023-05-08T13:56:07", "2023-05-08T13:56:07"),
        ("2023-05-08 13:56", "2023-05-08T13:56:00"),
        ("31 June 2023", "31 June 2023"),
        ("25:70 on 3 June 2023", "25:70 on 3 June 2023"),
        (" last summer ", "last summer"),
        ("8 Foo 2023", "8 Foo 2023"),
        ("", ""),
    ],
)
def test_dates_are_read_in_the_ways_data_sets_write_them(text: str, iso: str) -> None:
    assert normalised(text) == iso
    assert (parse_date(text) is None) == (normalised(text) == text.strip() and not text.startswith("2023-05-08T"))


@pytest.mark.real_data
def test_every_session_date_of_locomo_is_read(locomo_file: Path) -> None:
    from eval.loaders.locomo import read_locomo

    samples, _, _ = read_locomo(locomo_file)
    dates = {turn.date_time for sample in samples for turn in sample.conversation.turns}
    assert dates and all(parse_date(date) is not None for date in dates)


def block(*times: str) -> MessageBlock:
    return MessageBlock(tuple(Message(f"D1:{n}", "s", "x", time) for n, time in enumerate(times)), "end", "")


@pytest.mark.parametrize(
    ("claimed", "slack", "time"),
    [
        ("2023-05-09T12:00:00", 1, "2023-05-09T12:00:00"),
        ("2023-06-09T12:00:00", 1, "2023-05-08T13:56:00"),
        ("2023-06-09T12:00:00", None, "2023-06-09T12:00:00"),
        ("soon", 1, "2023-05-08T13:56:00"),
        ("", None, "2023-05-08T13:56:00"),
    ],
)
def test_a_claimed_time_is_believed_only_near_the_blocks_own(claimed: str, slack: int | None, time: str) -> None:
    assert resolve_timestamp(block("2023-05-09T10:00:00", "2023-05-08T13:56:00"), claimed, slack) == time


def test_without_dates_a_claim_has_nothing_to_lean_on() -> None:
    assert resolve_timestamp(block("", ""), "2023-05-09T12:00:00", 1) == ""
    assert resolve_timestamp(block("once upon a time"), "", 1) == "once upon a time"
    assert resolve_timestamp(block(""), "2023-05-09T12:00:00", None) == "2023-05-09T12:00:00"


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(["sea a", "sea b", "cake c", "cake d", "song e", "song f"]), min_size=1, max_size=30),
       st.sampled_from(["xmemory", "xmemory_code"]))  # fmt: skip
def test_every_turn_is_in_one_episode_and_every_fact_and_theme_leads_back_to_turns(texts: list[str], name: str) -> None:
    conversation = talk(*texts, per_session=4)
    config = preset(name, theme={"cap": 3, "whole_below": 1, "tiny_min": -1.0}, unit_turns=3)
    store = ingest(memory(config), conversation)._store
    told = [turn_id for episode in store.episodes.values() for turn_id in episode.turn_ids]
    assert told == [turn.turn_id for turn in conversation.turns]
    said = {turn.turn_id: f"{turn.speaker}: {turn.text}" for turn in conversation.turns}
    for fact_id, fact in store.facts.items():
        turns = store.fact_hit(fact_id, 1.0).turn_ids
        assert turns == store.episodes[fact.episode_id].turn_ids
        assert fact.text in [said[turn_id] for turn_id in turns]
        assert fact_id in store.themes.members[store.themes.home[fact_id]]
    grouped = [fact_id for members in store.themes.members.values() for fact_id in members]
    assert sorted(grouped) == sorted(store.facts)


def plain(tree: Any) -> Any:
    if isinstance(tree, np.ndarray):
        return tree.tobytes()
    if isinstance(tree, Mapping):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list | tuple) else tree


@pytest.mark.parametrize("name", ["xmemory", "xmemory_code", "by_session"])
def test_a_snapshot_after_any_write_goes_on_alike(name: str, tmp_path: Path) -> None:
    changes = {"boundary": {"session_cut": True}} if name == "by_session" else {}
    config = preset("xmemory" if name == "by_session" else name, unit_turns=3, **changes)
    conversation = talk(*TALK * 2, per_session=4)
    straight = ingest(memory(config), conversation)
    units = straight.units(conversation)
    for taken in range(len(units) + 1):
        first, second = memory(config), memory(config)

        async def run(first: XMemory = first, second: XMemory = second, taken: int = taken) -> None:
            for unit in units[:taken]:
                await first.write(unit, await first.prepare(unit))
            save_snapshot(tmp_path / "m.snapshot", first.state())
            second.load_state(load_snapshot(tmp_path / "m.snapshot") or {})
            for unit in units[taken:]:
                await second.write(unit, await second.prepare(unit))
            await second.consolidate()

        asyncio.run(run())
        assert plain(second.state()) == plain(straight.state())
        assert second.statistics() == straight.statistics()


def test_while_messages_are_cut_earlier_blocks_are_told_and_their_facts_won() -> None:
    """The two chains run side by side: no write waits for more than its own cuts."""
    system = memory(preset("xmemory_code", unit_turns=2))
    conversation = talk(*[f"{topic} x" for topic in ("sea", "cake", "song", "rose", "snow", "lamp")])
    order: list[str] = []

    def note(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        order.append(f"{role} {key}")
        return sensible(role, values, key)

    model_of(system).function = note
    ingest(system, conversation)
    told, learnt = order.index("episode D1:1..D1:1"), order.index("extract D1:1..D1:1")
    assert order.index("boundary D1:2") < told < order.index("boundary D1:5"), "told while messages 3 and 4 are cut"
    assert order.index("boundary D1:4") < learnt < order.index("theme theme:t0")


def test_statistics_name_what_the_paper_reports() -> None:
    facts = ingest(memory(preset("xmemory_code")), talk(*TALK)).statistics()
    assert (facts["episodes"], facts["facts"]) == (4, 8)
    assert facts["themes"] == len(facts["theme_sizes"]) and sum(facts["theme_sizes"]) == 8
    assert facts["episode_messages"] == [2, 3, 1, 2]
    moved = sum(path[0] != path[-1] for path in facts["theme_paths"])
    assert facts["reassigned_share"] == moved / 8 and facts["facts_per_theme"] == 8 / facts["themes"]
    assert len(facts["theme_paths"]) == len(facts["theme_causes"]) == 8
    assert set(facts["objective"]) == {"attached", "split", "merged_pairs", "merged_tiny", "final"}
    assert facts["objective"]["final"] == facts["objective"]["merged_tiny"] >= facts["objective"]["split"]
