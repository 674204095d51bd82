"""Mem0's write path and read path over text memories."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines.mem0.memory import Mem0Memory
from eval.loaders.hotpotqa import HotpotqaConfig
from eval.loaders.locomo import LocomoConfig
from memsys.errors import ConfigError
from memsys.facts.batches import owners_of_unit
from memsys.vocabulary import Conversation, Turn
from tests.support.composing import composed, conversation, ingest, without_reading
from tests.support.fakes import FakeModel, TableEmbedder, WordEmbedder
from tests.support.mem0 import (
    add_all,
    config,
    counts,
    events,
    mem0,
    memories,
    replying,
    stored,
    texts,
)
from tests.support.sage import monologue, sage
from tests.support.shown import check_shown

#: What each preset changes against ``mem0``.
PRESETS: dict[str, dict[str, Any]] = {
    "mem0_add_only": {"decisions": "none"},
    "mem0_code": {"prompt_date": "2026-05-01", "extract_prompt": "both", "batch_size": 2},
    "mem0_in_sage": {"prompt_date": "2026-05-01", "extract_prompt": "user_today"},
    "mem0_pairs": {"batch_size": 2},
}

#: Batches of eight messages in each conversation of LoCoMo: each is added to both speakers' memories.
LOCOMO_BATCHES = {
    "conv-26": 61, "conv-30": 53, "conv-41": 98, "conv-42": 90, "conv-43": 96, "conv-44": 95, "conv-47": 100,
    "conv-48": 95, "conv-49": 75, "conv-50": 85,
}  # fmt: skip


def two_sessions(second: Any, embedder: Any = None, **changes: Any) -> tuple[Mem0Memory, FakeModel]:
    """A memory of one person: ``boat`` is added in the first session; ``second`` is the reply on the second's fact."""

    def route(values: Mapping[str, str], key: str) -> Any:
        return add_all(values, key) if key.startswith("D1:") else second

    model = replying(route=route)
    memory = mem0(model, embedder=embedder, **changes)
    ingest(memory, monologue("boat", "harbour", sessions=[1, 2]))
    return memory, model


# presets and settings


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_changes_what_it_says(name: str) -> None:
    made = config(name)
    expected = replace(config(), name=name, **PRESETS[name])
    assert made == replace(expected, roles=made.roles)
    assert without_reading(made.roles) == without_reading(expected.roles)  # see test_released_replies.py


def test_the_default_is_the_codes_variant_as_sage_runs_it() -> None:
    made = config()
    assert (made.batch_size, made.similar, made.top_k, made.decisions) == (8, 5, 30, "batched")
    assert (made.extract_prompt, made.prompt_date, made.update_timestamp) == ("user", "session", "overwrite")
    assert made.needed == ("extract", "route")
    for role in made.needed:
        settings = made.roles[role]
        assert (settings["temperature"], settings["max_tokens"], settings["malformed_retries"]) == (0.1, 2000, 0)


def test_the_papers_variant() -> None:
    made = config("mem0_paper")
    assert (made.batch_size, made.history_messages, made.similar) == (2, 10, 10)
    assert made.needed == ("extract", "decide", "summary")
    assert {made.roles[role]["temperature"] for role in made.needed} == {0.0}


def test_the_small_preset_bounds_replies_alone() -> None:
    small, limits = config("mem0_small"), {"max_tokens", "min_items", "max_items", "max_chars", "malformed_retries"}
    kept = {name: {k: v for k, v in role.items() if k not in limits} for name, role in small.roles.items()}
    usual = {name: {k: v for k, v in role.items() if k not in limits} for name, role in config().roles.items()}
    assert kept == usual
    assert small.roles["route"]["min_items"] == 1  # else a small model decides nothing about any fact
    assert replace(small, name="mem0", roles=config().roles) == config()


def test_mem0_and_sage_extract_with_the_same_calls() -> None:
    """The same prompt, settings and keys: what differs between the two systems is what they do with the facts."""
    talk = conversation(["boat sea", "cake oven"] * 5)
    pairs = (("mem0", "sage"), ("mem0_in_sage", "sage_code"), ("mem0_small", "sage_small"))
    for mine, theirs in pairs:
        assert composed(mine)["roles"]["extract"] == composed(theirs)["roles"]["extract"]
        one, other = replying(), replying()
        ingest(mem0(one, mine), talk)
        asyncio.run(_prepare_all(sage(other, theirs), talk))
        both = [
            sorted(pair for pair in zip(model.calls, model.prompts, strict=True) if pair[0][0] == "extract")
            for model in (one, other)
        ]
        assert both[0] == both[1] and len(both[0]) == 4


async def _prepare_all(memory: Any, talk: Conversation) -> None:
    for unit in memory.units(talk):
        await memory.prepare(unit)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"decisions": "sometimes"}, "decisions"),
        ({"extract_prompt": "system"}, "extract_prompt"),
        ({"update_timestamp": "new"}, "update_timestamp"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_facts": 0}, "max_facts"),
        ({"context_max_tokens": 0}, "context_max_tokens"),
        ({"uses_gold": True}, "uses_gold"),
        ({"extract_context": "history"}, "extract_prompt=user"),
        ({"decisions": "per_fact"}, "missing are decide"),
        ({"roles": {}}, "missing are extract, route"),
        ({"graph": {"use": "read"}}, "graph"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        config(**changes)


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown are merge"):
        config(roles={**config().roles, "merge": {"temperature": 0.0, "max_tokens": 9}})


# messages and extraction


def locomo(path: Path) -> list[Conversation]:
    settings = {key: value for key, value in _dataset("locomo").items() if key != "_target_"}
    return [sample.conversation for sample in LocomoConfig(**{**settings, "path": str(path)}).load().samples]


def _dataset(name: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    from eval.config.presets import CONF

    with initialize_config_dir(str(CONF), version_base="1.3"):
        settings = OmegaConf.to_container(compose("config", overrides=[f"dataset={name}"]).dataset, resolve=True)
    assert isinstance(settings, dict)
    return {str(key): value for key, value in settings.items()}


@pytest.mark.real_data
def test_locomo_takes_1696_adds_in_batches_of_eight(locomo_file: Path) -> None:
    batches = {}
    for talk in locomo(locomo_file):
        units = mem0(replying()).units(talk)
        batches[talk.conversation_id] = len(units)
        assert all(len(owners_of_unit("speakers", unit)) == 2 for unit in units)
    assert batches == LOCOMO_BATCHES and 2 * sum(batches.values()) == 1696


@pytest.mark.real_data
@pytest.mark.parametrize(("size", "adds"), [(1, 11764), (2, 6022), (4, 3142), (10, 1398), (16, 1012)])
def test_locomos_adds_at_other_batch_sizes(locomo_file: Path, size: int, adds: int) -> None:
    talks = locomo(locomo_file)
    assert 2 * sum(len(mem0(replying(), batch_size=size).units(talk)) for talk in talks) == adds


@pytest.mark.real_data
def test_hotpotqa_takes_1064_adds_because_passages_have_one_speaker(data_dir: Path) -> None:
    file = data_dir / "hotpot_200.json"
    if not file.is_file():
        pytest.skip(f"{file} is not there")
    settings = {key: value for key, value in _dataset("hotpotqa20").items() if key != "_target_"}
    adds = 0
    for sample in HotpotqaConfig(**{**settings, "path": str(file)}).load().samples:
        units = mem0(replying()).units(sample.conversation)
        adds += sum(len(owners_of_unit("speakers", unit)) for unit in units)
    assert adds == 1064


def test_every_batch_is_extracted_for_either_speaker_with_swapped_roles() -> None:
    model = replying()
    ingest(mem0(model), conversation(["boat", "cake"]))
    prompts = dict(zip(model.calls, model.prompts, strict=True))
    ann, ben = prompts["extract", "D1:0..D1:1:Ann"], prompts["extract", "D1:0..D1:1:Ben"]
    assert "user: Ann: boat\nassistant: Ben: cake" in ann and "about Ann" in ann
    assert "assistant: Ann: boat\nuser: Ben: cake" in ben and "about Ben" in ben
    assert model.count("extract") == model.count("route") == 2


def test_passages_have_one_scope_and_are_all_the_users() -> None:
    turns = tuple(Turn(f"1:{n}", "s", "System", f"passage {n}") for n in range(17))
    memory, model = mem0(replying()), replying()
    ingest(memory, Conversation("c", turns, ("System", "User")))
    assert [scope["owner"] for scope in memory.state()["scopes"]] == ["System"]
    assert counts(memory)["writes"] == ceil(17 / 8)
    together = mem0(model, scopes="conversation")
    ingest(together, conversation(["boat", "cake"]))
    assert [scope["owner"] for scope in together.state()["scopes"]] == ["conversation"]
    assert "user: Ann: boat\nuser: Ben: cake" in model.prompts[0]
    assert "memory of the speakers" in model.prompts[1]


def test_preparing_without_a_conversation_is_refused() -> None:
    unit = replace(mem0(replying()).units(monologue("x"))[0], conversation=None)
    with pytest.raises(ValueError, match="units"):
        asyncio.run(mem0(replying()).prepare(unit))


def test_the_date_of_the_session_stands_in_the_prompt_or_a_given_one() -> None:
    for date, shown in (("session", "1 May 2023"), ("2026-05-01", "2026-05-01")):
        model = replying()
        ingest(mem0(model, prompt_date=date), monologue("x"))
        assert f"conversation on {shown}" in model.prompts[0]


def test_each_wording_of_the_extraction_is_a_prompt_of_its_own() -> None:
    prompts = set()
    for wording in ("user", "user_today", "both", "instructed"):
        model = replying()
        ingest(mem0(model, extract_prompt=wording), monologue("x"))
        prompts.add(model.prompts[0])
        assert "user: Ann: x" in model.prompts[0]
    assert len(prompts) == 4


@pytest.mark.parametrize("reply", [{"facts": []}, {"memories": []}, "I cannot.", {"facts": [" "]}])
def test_an_extraction_without_facts_makes_no_route_call(reply: Any) -> None:
    model = replying(extract=reply)
    memory = mem0(model)
    ingest(memory, monologue("x"))
    assert (model.count("extract"), model.count("route")) == (1, 0)
    found = counts(memory)
    assert (found["extract.empty"], found["writes.non_empty"]) == (1, 0)
    assert found["fallback.extract"] == (not (isinstance(reply, dict) and "facts" in reply))
    assert memory.statistics()["empty_adds"] == 1


# decisions


def test_the_first_add_asks_for_a_decision_on_an_empty_list() -> None:
    shown: list[dict[str, str]] = []

    def route(values: Mapping[str, str], key: str) -> Any:
        shown.append(stored(values))
        return add_all(values, key)

    ingest(mem0(replying(route=route)), monologue("boat"))
    assert shown == [{}]


def test_each_fact_brings_its_five_nearest_each_once_in_first_seen_order() -> None:
    names = [f"m{n}" for n in range(12)]
    angles = {name: 0.1 * n for n, name in enumerate(names)} | {"left": 0.0, "right": 1.1, "middle": 0.25}
    table = {name: [float(np.cos(angle)), float(np.sin(angle))] for name, angle in angles.items()}
    shown: list[list[str]] = []

    def route(values: Mapping[str, str], key: str) -> Any:
        shown.append(list(stored(values).values()))
        return add_all(values, key)

    talk = monologue(*names, "left", "middle", "right", sessions=[1] * 12 + [2] * 3)
    ingest(mem0(replying(route=route), embedder=TableEmbedder(table), batch_size=12), talk)
    left, middle, right = names[:5], ["m2", "m3", "m1", "m4", "m0"], ["m11", "m10", "m9", "m8", "m7"]
    assert shown[0] == [] and shown[1] == [*left, *(m for m in middle if m not in left), *right]


def test_an_update_keeps_place_and_creation_and_joins_the_turns() -> None:
    memory, model = two_sessions(events(("UPDATE", "0", "boat in the harbour")))
    (entry,) = memories(memory)
    assert entry == {
        "memory_id": "Ann#0",
        "text": "boat in the harbour",
        "created": "1 May 2023",
        "dates": ["2 May 2023"],
        "turn_ids": ["D1:0", "D2:1"],
        "merges": 1,
    }
    assert asyncio.run(memory.retrieve("boat")).context == "2 May 2023: boat in the harbour"
    assert json.loads(model.prompts[-1].partition("Stored memories:\n")[2].partition("\n\nNew")[0])[0]["id"] == "0"


@pytest.mark.parametrize(("rule", "dates"), [("keep_old", ["1 May 2023"]), ("keep_both", ["1 May 2023", "2 May 2023"])])
def test_an_update_may_keep_the_old_date(rule: str, dates: list[str]) -> None:
    memory, _ = two_sessions(events(("UPDATE", "0", "boat in the harbour")), update_timestamp=rule)
    assert memories(memory)[0]["dates"] == dates


def test_an_update_replaces_the_vector() -> None:
    table = {"boat": [1, 0, 0], "harbour": [0, 1, 0], "both": [0, 0, 1]}
    memory, _ = two_sessions(events(("UPDATE", "0", "both")), embedder=TableEmbedder(table))
    assert memory.state()["scopes"][0]["index"]["vectors"].tolist() == [[0, 0, 1]]


@pytest.mark.parametrize("event", ["UPDATE", "DELETE"])
@pytest.mark.parametrize("alias", ["7", "Ann#0", "", "1"])
def test_an_id_that_was_made_up_changes_nothing(event: str, alias: str) -> None:
    memory, _ = two_sessions(events((event, alias, "something else")))
    untouched, _ = two_sessions(events())
    assert memories(memory) == memories(untouched)
    assert (counts(memory)["skipped.unknown_id"], counts(memory)["writes.facts_without_event"]) == (1, 1)


def test_a_deletion_takes_the_memory_out_and_its_number_is_not_given_again() -> None:
    memory, _ = two_sessions(events(("DELETE", "0", "boat"), ("ADD", "1", "harbour")))
    assert [entry["memory_id"] for entry in memories(memory)] == ["Ann#1"]
    assert [entry["event"] for entry in memory.state()["scopes"][0]["history"]] == ["ADD", "DELETE", "ADD"]
    assert [hit.memory_id for hit in asyncio.run(memory.retrieve("boat")).hits] == ["Ann#1"]
    found = counts(memory)
    assert (found["event.add"], found["event.delete"]) == (2, 1)


def test_what_follows_a_deletion_of_the_same_id_is_skipped() -> None:
    memory, _ = two_sessions(events(("DELETE", "0", "boat"), ("UPDATE", "0", "ship"), ("DELETE", "0", "boat")))
    assert texts(memory) == [] and counts(memory)["skipped.deleted_id"] == 2


def test_of_two_updates_of_one_id_the_last_wins() -> None:
    memory, _ = two_sessions(events(("UPDATE", "0", "first"), ("UPDATE", "0", "second")))
    assert texts(memory) == ["second"]
    assert (memories(memory)[0]["merges"], counts(memory)["event.update"]) == (2, 2)


def test_an_update_to_the_same_text_is_none() -> None:
    memory, _ = two_sessions(events(("UPDATE", "0", " boat ")))
    untouched, _ = two_sessions(events(("NONE", "0", "boat")))
    assert memories(memory) == memories(untouched)
    assert (counts(memory)["event.none"], counts(memory)["event.update"]) == (1, 0)


def test_an_add_with_a_known_id_adds() -> None:
    memory, _ = two_sessions(events(("ADD", "0", "harbour")))
    assert texts(memory) == ["boat", "harbour"]


def test_an_add_that_repeats_a_stored_memory_comes_from_that_memorys_turns_and_is_counted() -> None:
    memory, _ = two_sessions(events(("ADD", "5", "boat")))
    assert [(entry["text"], entry["turn_ids"]) for entry in memories(memory)] == [("boat", ["D1:0"])] * 2
    assert (counts(memory)["event.add"], counts(memory)["event.add_of_stored"]) == (2, 1)


def test_a_fact_that_is_said_again_and_added_comes_from_both_batches() -> None:
    """It came from the first batch alone, though the second said it too, and no turn of the second from any memory."""
    model = replying(route=add_all)
    memory = mem0(model)
    ingest(memory, monologue("boat", "boat", sessions=[1, 2]))
    assert [(entry["text"], entry["turn_ids"]) for entry in memories(memory)] == [
        ("boat", ["D1:0"]), ("boat", ["D1:0", "D2:1"]),
    ]  # fmt: skip
    assert counts(memory)["event.add_of_stored"] == 1


def test_a_fact_in_its_own_words_is_not_embedded_again() -> None:
    model = replying(route=lambda values, key: events(("ADD", "x", "boat"), ("ADD", "y", "a new wording")))
    embedder = WordEmbedder()
    ingest(mem0(model, embedder=embedder), monologue("boat"))
    assert [text for given in embedder.calls for text in given] == ["boat", "a new wording"]


def test_a_malformed_decision_loses_the_facts_and_is_counted() -> None:
    memory, _ = two_sessions("no idea")
    found = counts(memory)
    assert texts(memory) == ["boat"]
    assert (found["fallback.route"], found["events.lost"], found["writes.facts_without_event"]) == (1, 1, 1)


CUT_ROUTE = '{"memory": [{"id": "0", "text": "boat in the harbour", "event": "UPDATE"}, {"id": "1", "te'


def test_of_a_decision_that_was_cut_the_items_before_the_cut_count() -> None:
    """The repaired reply's last item has no event, for which the schema refuses all of them: every one was lost."""
    memory, _ = two_sessions(CUT_ROUTE)
    found = counts(memory)
    assert texts(memory) == ["boat in the harbour"]
    assert (found["events.recovered"], found["events.lost"], found["skipped.unknown_event"]) == (1, 0, 1)


def test_a_cut_decision_is_lost_where_replies_are_not_repaired() -> None:
    roles = {**config().roles, "route": {**config().roles["route"], "reading": {"repair": False}}}
    memory, _ = two_sessions(CUT_ROUTE, roles=roles)
    assert (texts(memory), counts(memory)["events.lost"]) == (["boat"], 1)


def test_one_bad_item_does_not_spoil_the_others() -> None:
    items = [
        {"id": "0", "text": "boat", "event": "MERGE"},
        {"id": "0", "event": "DELETE"},
        {"id": 0, "text": "boat in the harbour", "event": "update", "old_memory": "boat"},
        "harbour",
    ]
    memory, _ = two_sessions({"memory": items})
    found = counts(memory)
    assert texts(memory) == ["boat in the harbour"]
    assert (found["fallback.route"], found["events.recovered"]) == (1, 1)
    assert (found["skipped.unknown_event"], found["skipped.empty_text"]) == (2, 1)


def test_adding_only_asks_for_no_decision() -> None:
    model = replying()
    memory = mem0(model, "mem0_add_only")
    ingest(memory, monologue("boat", "boat", "sea"))
    assert texts(memory) == ["boat", "boat", "sea"]
    assert model.count("route") == 0 and counts(memory)["event.add"] == 3


# the paper's variant


def test_each_fact_has_a_decision_that_sees_what_the_one_before_changed() -> None:
    shown: list[list[str]] = []

    def decide(values: Mapping[str, str], key: str) -> dict[str, str]:
        shown.append(sorted(stored(values).values()))
        return {"event": "ADD", "id": "", "text": ""}

    model = replying(decide=decide)
    memory = mem0(model, "mem0_paper")
    ingest(memory, monologue("boat", "sea"))
    assert shown == [[], ["boat"]] and texts(memory) == ["boat", "sea"]
    assert [key for role, key in model.calls if role == "decide"] == ["D1:0..D1:1:Ann:0", "D1:0..D1:1:Ann:1"]


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"event": "UPDATE", "id": "0", "text": "both"}, ["both"]),
        ({"event": "UPDATE", "id": "0", "text": ""}, ["harbour"]),
        ({"event": "DELETE", "id": "0", "text": ""}, []),
        ({"event": "NOOP", "id": "", "text": ""}, ["boat"]),
        ({"event": "DELETE", "id": "5", "text": ""}, ["boat"]),
        ('{"event": "ADD"} so be it', ["boat", "harbour"]),
        ({"event": "THINK", "id": "0", "text": "x"}, ["boat"]),
        ("nothing", ["boat"]),
    ],
)
def test_the_four_operations_on_one_fact(reply: Any, expected: list[str]) -> None:
    added = {"event": "ADD", "id": "", "text": "boat"}
    model = replying(decide=lambda values, key: added if values["fact"] == "boat" else reply)
    memory = mem0(model, "mem0_paper")
    ingest(memory, monologue("boat", "harbour"))
    assert texts(memory) == expected


def test_the_paper_shows_a_summary_and_the_ten_messages_before() -> None:
    model = replying()
    talk = conversation([f"w{n}" for n in range(14)], ["x0", "x1"])
    ingest(mem0(model, "mem0_paper"), talk)
    asked = {key: prompt for (role, key), prompt in zip(model.calls, model.prompts, strict=True) if role == "extract"}
    first, last = asked["D1:0..D1:1:Ann"], asked["D2:0..D2:1:Ann"]
    assert "Summary:\nnone yet\n" in first and "just before:\nnone\n" in first
    assert "Summary:\nsummary of 14 lines\n" in last
    before = last.partition("just before:\n")[2].partition("\n\n")[0].splitlines()
    assert before == [f"{('Ann', 'Ben')[n % 2]}: w{n}" for n in range(4, 14)]
    assert model.count("summary") == 1  # for both scopes, and not after the last session
    assert model.count("extract") == 2 * 8


def test_an_empty_summary_keeps_the_old_one() -> None:
    model = replying(summary=lambda values, key: "kept" if "D2" in key else "  ")
    memory = mem0(model, "mem0_paper")
    ingest(memory, monologue("a", "b", "c", sessions=[1, 2, 3]))
    assert memory.state()["dialogue"]["summary"] == "kept"
    assert memory.statistics()["summary.kept_old"] == 1
    assert memory.statistics()["add_phase"]["summary"]["calls"] == 2


# reading


def test_each_speakers_memories_stand_under_their_name_best_first() -> None:
    memory = mem0(replying(), top_k=1)
    ingest(memory, conversation(["boat sea", "cake oven", "boat", "cake"]))
    retrieval = asyncio.run(memory.retrieve("boat cake"))
    assert retrieval.context == "Memories of Ann:\n1 May 2023: boat\n\nMemories of Ben:\n1 May 2023: cake"
    assert {hit.memory_id for hit in retrieval.hits} == {"Ann#1", "Ben#1"}
    assert all(hit.turn_ids == ("D1:0", "D1:1", "D1:2", "D1:3") for hit in retrieval.hits)  # as fine as the batch
    assert retrieval.trace["stored_memories"] == 4


def test_the_context_keeps_to_its_limit() -> None:
    memory = mem0(replying(), context_max_tokens=9)
    ingest(memory, monologue("boat", "boat sea", "cake oven"))
    retrieval = asyncio.run(memory.retrieve("boat"))
    assert retrieval.context == "1 May 2023: boat\n1 May 2023: boat sea"
    assert (len(retrieval.hits), retrieval.trace["left_out"]) == (3, 1)
    check_shown(retrieval)


# the record


def test_statistics_add_up() -> None:
    memory, model = two_sessions(events(("UPDATE", "0", "boat in the harbour"), ("NONE", "0", "x"), ("ADD", "1", "b")))
    statistics = memory.statistics()
    assert (statistics["memories"], statistics["rewritten_memories"], statistics["memories_per_add"]) == (2, 1, 1.0)
    assert (statistics["non_empty_adds"], statistics["empty_adds"]) == (2, 0)
    assert {role: spent["calls"] for role, spent in statistics["add_phase"].items()} == {"extract": 2, "route": 2}
    assert model.count("route") == 2
    found = counts(memory)
    assert (found["event.add"], found["event.update"], found["event.none"]) == (2, 1, 1)


@pytest.mark.parametrize("preset", ["mem0", "mem0_paper", "mem0_graph"])
def test_neither_look_ahead_nor_a_snapshot_shows(preset: str) -> None:
    talk = conversation(*[[f"boat w{n % 5} s{s}" for n in range(12)] for s in range(4)])

    def route(values: Mapping[str, str], key: str) -> Any:
        known, new = stored(values), json.loads(values["facts"])
        return events(
            ("ADD", "new", new[0]), *(("UPDATE", number, f"{text} {new[-1]}") for number, text in known.items())
        )

    def relations(values: Mapping[str, str], key: str) -> Any:
        words = values["text"].split()
        return {"entities": [{"source": words[1], "relationship": "near", "destination": words[2]}]}

    def made() -> Mem0Memory:
        model = replying(
            route=route,
            relations=relations,
            entities=lambda values, key: {"entities": [{"entity": values["text"].split()[-1], "entity_type": "thing"}]},
        )
        return mem0(model, preset)

    straight, ahead, resumed = made(), made(), made()
    ingest(straight, talk)

    async def run() -> None:
        units = ahead.units(talk)
        prepared = list(reversed(await asyncio.gather(*(ahead.prepare(unit) for unit in reversed(units)))))
        for number, (unit, each) in enumerate(zip(units, prepared, strict=True)):
            if number == len(units) // 2:
                resumed.load_state(ahead.state())
            await ahead.write(unit, each)
        for unit in resumed.units(talk)[len(units) // 2 :]:
            await resumed.write(unit, await resumed.prepare(unit))

    asyncio.run(run())
    assert repr(ahead.state()) == repr(straight.state()) == repr(resumed.state())
    assert ahead.statistics() == straight.statistics() == resumed.statistics()
    if preset == "mem0":
        assert counts(straight)["event.update"] > 0


def test_scopes_are_written_at_once_and_conversations_share_nothing() -> None:
    model = replying()
    memory = mem0(model)
    ingest(memory, conversation(["boat", "cake"]))
    order = [key.rpartition(":")[2] for role, key in model.calls]
    assert order == ["Ann", "Ben", "Ann", "Ben"]
    assert texts(memory, 0) == ["boat"] and texts(memory, 1) == ["cake"]
