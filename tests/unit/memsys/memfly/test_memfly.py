"""MemFly on a fixed-response backbone: the specification's acceptance checks."""

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.memfly.keywords import KeywordLayer
from memsys.memfly.memory import MemflyMemory
from memsys.memfly.rules import TopicRules
from memsys.memfly.topics import Topics, build_topics
from tests.support.composing import PRESETS
from tests.support.fakes import FakeModel
from tests.support.memfly import (
    counts,
    in_turn,
    memory,
    preset,
    relation,
    relations,
    replying,
    retrieve,
    told,
    unit,
    write_all,
)
from tests.support.shown import check_shown

ABLATIONS = sorted(name for name in PRESETS if name.startswith("memfly_no_"))
TURNS = ("boat sea", "boat harbour", "cake oven", "boat sea sail", "cake sugar", "sea harbour storm")


def judging(*entries: Mapping[str, Any]) -> FakeModel:
    return replying(update={"relations": list(entries)})


def model_of(system: MemflyMemory) -> FakeModel:
    model = system._ingestion.llm
    assert isinstance(model, FakeModel)
    return model


def contexts(system: MemflyMemory) -> list[str]:
    return [note.context for note in system._layers.notes]


def test_two_identical_turns_make_one_note_that_names_both() -> None:
    system = told("boat sea", "boat sea", model=judging(relation(1, "SUPPORTS", 1.0)))
    (note,) = system._layers.notes
    assert note.turn_ids == ("D1:0", "D1:1")
    assert [item.text for item in note.raw] == ["Ann: boat sea", "Ann: boat sea"]
    keywords = system._layers.keywords
    assert keywords.together(0, 1) == 1, "one note holds both keywords, however often it was told"
    assert contexts(system) == ["boat sea."], "what the old context holds word for word is not appended"
    hit = retrieve(system).hits[0]
    assert (hit.memory_id, hit.turn_ids) == ("D1:0", ("D1:0", "D1:1"))


@pytest.mark.parametrize(
    ("kind", "strength", "notes", "links"),
    [
        ("SUPPORTS", 0.7, 2, 1),  # not above the merge threshold: linked
        ("SUPPORTS", 0.71, 1, 0),
        ("SUPPORTS", 0.6, 2, 1),
        ("SUPPORTS", 0.5, 2, 0),  # not above the link threshold: appended
        ("RELATED_TO", 0.95, 2, 1),
        ("RELATED_TO", 0.51, 2, 1),
        ("RELATED_TO", 0.5, 2, 0),
        ("CONFLICTS", 0.95, 2, 1),
        ("CONFLICTS", 0.0, 2, 1),
    ],
)
def test_strict_thresholds_decide(kind: str, strength: float, notes: int, links: int) -> None:
    system = told("boat sea", "boat sail", model=judging(relation(1, kind, strength)))
    assert (len(system._layers.notes), len(system._layers.links)) == (notes, links)


def test_a_conflict_keeps_both_notes_and_is_told_in_the_older_one() -> None:
    system = told("boat red", "boat blue", model=judging(relation(1, "CONFLICTS", 0.95)))
    links = system.statistics()["links"]
    assert links == {"related": 0, "conflict": 1}
    assert contexts(system) == ["boat red. Yet on 1 May 2023 it was said: boat blue.", "boat blue."]
    assert [note.turn_ids for note in system._layers.notes] == [("D1:0",), ("D1:1",)]
    naming = preset(update={"conflicts_name_turns": True})
    lenient = told("boat red", "boat blue", model=judging(relation(1, "CONFLICTS", 0.95)), config=naming)
    assert [note.turn_ids for note in lenient._layers.notes] == [("D1:0", "D1:1"), ("D1:1",)]
    silent = preset(update={"annotate_conflicts": False})
    plain = told("boat red", "boat blue", model=judging(relation(1, "CONFLICTS", 0.95)), config=silent)
    assert contexts(plain) == ["boat red.", "boat blue."]
    assert [note.turn_ids for note in plain._layers.notes] == [("D1:0",), ("D1:1",)]


def test_the_first_turn_makes_no_call_of_update() -> None:
    system = told("boat sea")
    assert model_of(system).calls == [("ingest", "D1:0")]
    assert counts(system)["route.append"] == 1


def test_call_counts_are_those_of_the_cost_model() -> None:
    system = told(*["boat sea"] * 6)
    assert {role: model_of(system).count(role) for role in ("ingest", "update")} == {"ingest": 6, "update": 5}
    before = len(model_of(system).calls)
    retrieve(system)
    assert [role for role, _ in model_of(system).calls[before:]] == ["intent", "draft", "sufficient"]


def test_the_longest_reading_makes_thirteen_calls_before_the_answer() -> None:
    never = {"sufficient": False, "missing_info": "more", "confidence": 0.1}
    asking = in_turn("What of one?", "What of two?", "What of three?", "What of four?")
    system = told(*TURNS, model=replying(sufficient=never, subquery=asking))
    before = len(model_of(system).calls)
    found = retrieve(system)
    assert [role for role, _ in model_of(system).calls[before:]] == ["intent"] + [
        "draft", "sufficient", "subquery", "intent",
    ] * 3  # fmt: skip
    assert (found.trace["stop"], found.trace["checks"], len(found.trace["rounds"])) == ("max_rounds", 3, 4)


@pytest.mark.parametrize("reply", ["no JSON at all", '{"relations": "none"}', '{"relations": [{"candidate_id": 1}]}'])
def test_a_malformed_update_appends_and_is_counted(reply: str) -> None:
    system = told("boat sea", "boat sea", model=replying(update=reply))
    assert (len(system._layers.notes), len(system._layers.links)) == (2, 0)
    assert counts(system)["fallback.update"] == 1
    assert counts(system)["update.entry_missing"] == 1


def test_valid_entries_of_a_malformed_update_are_used() -> None:
    reply = '{"relations": [{"candidate_id": 1, "relation_type": "SUPPORTS", "connection_strength": 7}, {"cand'
    system = told("boat sea", "boat sea", model=replying(update=reply))
    assert len(system._layers.notes) == 1
    found = counts(system)
    assert (found["fallback.update"], found["update.recovered"], found["update.strength_clipped"]) == (1, 1, 1)


def test_unknown_and_repeated_candidates_are_ignored() -> None:
    config = preset(update={"constrain_ids": False})
    entries = [relation(9, "SUPPORTS", 1.0), relation(1, "RELATED_TO", 0.6), relation(1, "SUPPORTS", 1.0)]
    system = told("boat sea", "boat sea", model=judging(*entries), config=config)
    assert (len(system._layers.notes), len(system._layers.links)) == (2, 1)
    found = counts(system)
    assert (found["update.entry_dropped"], found["update.entry_repeated"], found["fallback.update"]) == (1, 1, 0)


def test_a_note_merges_once_and_is_linked_to_the_others() -> None:
    entries = [relation(number, "SUPPORTS", strength) for number, strength in ((1, 0.8), (2, 0.9), (3, 0.6))]
    model = replying(update=in_turn(relations(), relations(), {"relations": entries}))
    system = told("boat one", "boat two", "boat three", "boat four", model=model)
    assert [note.merged for note in system._layers.notes].count(1) == 1
    assert sorted(link[2] for link in system._layers.links.state()) == [0.6, 0.8]
    survivor = next(position for position, note in enumerate(system._layers.notes) if note.merged)
    assert {link[0] for link in system._layers.links.state()} == {survivor}


def test_no_merged_context_is_taken_of_a_note_that_the_prompt_cut() -> None:
    merging = relation(1, "SUPPORTS", 0.9, text="all of boat sea and boat sail")
    whole = told("boat sea", "boat sail", model=judging(merging))
    assert contexts(whole) == ["all of boat sea and boat sail"]
    cutting = preset(candidates={"shown_chars": len("boat sea.") - 1})
    cut = told("boat sea", "boat sail", model=judging(merging), config=cutting)
    assert contexts(cut) == ["boat sea. More precisely: boat sail."]


def test_the_models_merged_context_is_taken_unless_it_is_too_short() -> None:
    long = "a boat on the open sea, red"
    merged = told("boat sea", "boat red", model=judging(relation(1, "SUPPORTS", 0.9, long)))
    assert contexts(merged) == [long]
    assert counts(merged)["merged_context.model"] == 1
    cut = told("boat sea", "boat red", model=judging(relation(1, "SUPPORTS", 0.9, "red")))
    assert contexts(cut) == ["boat sea. More precisely: boat red."]
    assert counts(cut)["merged_context.appended"] == 1


def test_notes_that_share_nothing_are_not_compared() -> None:
    system = told("boat sea", "guitar drum", model=judging(relation(1, "SUPPORTS", 0.9)))
    assert (len(system._layers.notes), model_of(system).count("update")) == (2, 0)
    assert counts(system)["candidates.none"] == 2


def test_a_merged_note_is_found_by_its_new_text_and_keywords() -> None:
    merging = in_turn(relations(relation(1, "SUPPORTS", 0.9)), relations())
    system = told("boat sea", "boat drum", "cake oven", "rose soil", model=replying(update=merging))
    notes, keywords = system._layers.notes, system._layers.keywords
    assert [keywords.surface(number) for number in notes[0].keywords] == ["boat", "sea", "drum"]
    nowhere = np.zeros(64, dtype=np.float32)
    assert [one.position for one in notes.candidates("drum", [], nowhere)] == [0], "by its words"
    embedded = asyncio.run(system._ingestion.embedder.embed([notes[0].context]))[0]
    assert notes.index.search(embedded, 1)[0] == ("D1:0", pytest.approx(1.0)), "by its embedding"


def test_routes_sum_to_the_turns() -> None:
    def update(values: Mapping[str, str], key: str) -> dict[str, Any]:
        return relations(relation(1, "SUPPORTS", 0.9 if key in ("D1:1", "D1:3") else 0.1))

    system = told(*TURNS, model=replying(update=update))
    found = counts(system)
    assert found["route.merge"] + found["route.append"] == len(TURNS)
    assert found["route.merge"] == 2
    assert sum(len(note.raw) for note in system._layers.notes) == len(TURNS)


def test_the_models_operation_is_compared_and_never_carried_out() -> None:
    entry = relation(1, "RELATED_TO", 0.2, operation="MERGE")
    system = told("boat sea", "boat sail", model=judging(entry))
    assert len(system._layers.notes) == 2
    assert (counts(system)["operation.agrees"], counts(system)["operation.differs"]) == (0, 1)


@pytest.mark.parametrize("name", ["memfly", *ABLATIONS])
def test_an_empty_memory_is_asked_nothing(name: str) -> None:
    system = memory(config=preset(name))
    asyncio.run(system.consolidate())
    found = retrieve(system)
    assert (found.hits, found.context, model_of(system).calls) == ((), "", [])


def test_a_memory_without_any_keyword_still_answers() -> None:
    model = replying(ingest={"keywords": [], "context": "Ann greets."})
    system = told("hello", "hello there", model=model)
    assert system.statistics()["notes_without_keyword"] == 2
    assert system.statistics()["topics"] == 0
    found = retrieve(system)
    assert (len(found.hits), found.trace["rounds"][0]["filled"]) == (2, 2)
    bare = told("hello", "hello there", model=model, config=preset(retrieval={"dense_fill": False}))
    assert retrieve(bare).hits == ()


def test_a_malformed_ingestion_keeps_the_raw_text_and_its_names() -> None:
    system = told("We met Caroline Smith in the Old Harbour", "fine weather", model=replying(ingest="oops"))
    first, second = system._layers.notes
    assert first.context == "Ann: We met Caroline Smith in the Old Harbour"
    surfaces = [system._layers.keywords.surface(number) for number in first.keywords + second.keywords]
    assert surfaces == ["Caroline Smith", "Old Harbour", "fine", "weather"]
    assert counts(system)["fallback.ingest"] == 2


def test_phatic_turns_are_skipped_only_where_the_config_says() -> None:
    model = replying(ingest={"keywords": [], "context": "Nothing."})
    kept = told("wow", model=model)
    skipped = told(
        "wow", "a turn of many words that has no keyword", model=model, config=preset(ingest={"skip_phatic": True})
    )
    assert (len(kept._layers.notes), len(skipped._layers.notes)) == (1, 1)
    found = counts(skipped)
    assert (found["route.skipped"], found["route.append"]) == (1, 1)


def test_without_update_every_turn_is_a_note_of_its_own() -> None:
    system = told(*TURNS, model=judging(relation(1, "SUPPORTS", 1.0)), config=preset("memfly_no_update"))
    assert model_of(system).count("update") == 0
    assert (len(system._layers.notes), len(system._layers.links)) == (len(TURNS), 0)
    assert system.statistics()["topics"] > 0


def test_without_denoising_contexts_are_raw_and_keywords_remain() -> None:
    model = replying(ingest={"keywords": ["boat"], "context": "A statement."})
    system = told("boat sea", model=model, config=preset("memfly_no_denoise"))
    assert contexts(system) == ["Ann: boat sea"]
    assert len(system._layers.keywords) == 1
    assert retrieve(system).context == "[1 May 2023] Ann: boat sea\n", "the raw turn is not shown twice"


def test_an_empty_statement_counts_only_where_one_is_wanted() -> None:
    model = replying(ingest={"keywords": ["boat"], "context": " "})
    wanted, unwanted = (told("boat sea", model=model, config=preset(name)) for name in ("memfly", "memfly_no_denoise"))
    assert contexts(wanted) == contexts(unwanted) == ["Ann: boat sea"]
    assert [counts(system)["fallback.ingest_context"] for system in (wanted, unwanted)] == [1, 0]


def test_without_links_the_third_pathway_is_empty() -> None:
    for kind in ("RELATED_TO", "CONFLICTS"):
        model = judging(relation(1, kind, 0.9))
        full = told(*TURNS, model=model)
        assert retrieve(full).trace["rounds"][0]["reached"]["neighbour"] > 0
        system = told(*TURNS, model=model, config=preset("memfly_no_link"))
        assert len(system._layers.links) == 0
        assert retrieve(system).trace["rounds"][0]["reached"]["neighbour"] == 0


def test_without_merging_what_would_merge_is_linked_or_left() -> None:
    model = judging(relation(1, "SUPPORTS", 0.9))
    system = told("boat sea", "boat sail", model=model, config=preset("memfly_no_merge"))
    assert (len(system._layers.notes), len(system._layers.links)) == (2, 1)
    append = preset("memfly_no_merge", update={"without_merge": "append"})
    apart = told("boat sea", "boat sail", model=model, config=append)
    assert (len(apart._layers.notes), len(apart._layers.links)) == (2, 0)


@pytest.mark.parametrize(
    ("name", "pathway"),
    [("memfly_no_topic", "topic"), ("memfly_no_keyword", "keyword"), ("memfly_no_neighbor", "neighbour")],
)
def test_a_pathway_can_be_left_out(name: str, pathway: str) -> None:
    model = judging(relation(1, "RELATED_TO", 0.9))
    system = told(*TURNS, model=model, config=preset(name))
    reached = retrieve(system).trace["rounds"][0]["reached"]
    assert reached[pathway] == 0
    assert all(reached[other] > 0 for other in reached if other != pathway)
    assert (system.statistics()["topics"] == 0) is (name == "memfly_no_topic")
    assert len(system._layers.links) == 4, "links are made whatever is searched"


def test_without_refinement_nothing_is_checked() -> None:
    system = told(*TURNS, config=preset("memfly_no_ier"))
    found = retrieve(system)
    assert {role for role, _ in model_of(system).calls} == {"ingest", "update", "intent"}
    assert (found.trace["stop"], found.trace["drafts"]) == ("off", [])


def test_ablations_make_the_same_requests_where_they_agree() -> None:
    def requests(name: str) -> set[tuple[str, str]]:
        return {call for call in model_of(told(*TURNS, config=preset(name))).calls if call[0] == "ingest"}

    assert len({frozenset(requests(name)) for name in ("memfly", *ABLATIONS)}) == 1


@pytest.mark.parametrize(
    ("topics", "turns", "before", "after"),
    [
        ({"every_notes": None}, 9, 0, 1),
        ({"every_notes": 4}, 9, 2, 3),
        ({"every_notes": 4}, 8, 2, 2),  # nothing is stale at the end
        ({"every_notes": None, "at_session_end": True}, 9, 2, 3),
    ],
)
def test_where_topics_are_due_is_counted(topics: dict[str, Any], turns: int, before: int, after: int) -> None:
    system = memory(config=preset(topics=topics))
    write_all(system, [unit(n, f"boat sea w{n}", session=n // 3 + 1) for n in range(turns)])
    assert counts(system)["topics.due"] == before
    for _ in range(2):
        asyncio.run(system.consolidate())
        assert counts(system)["topics.due"] == after


def test_when_topics_are_due_cannot_change_what_is_found() -> None:
    def found(**topics: Any) -> Any:
        system = memory(config=preset(topics=topics))
        write_all(system, [unit(n, f"{TURNS[n % 6]} w{n}", session=n // 5 + 1) for n in range(30)])
        early = retrieve(system)
        asyncio.run(system.consolidate())
        late = retrieve(system)
        assert early.hits == late.hits and early.context == late.context
        return [hit.memory_id for hit in late.hits], [members.tolist() for members in system._topics.members]

    assert found(every_notes=None) == found(every_notes=7) == found(at_session_end=True, every_notes=3)


def test_topics_are_built_by_whoever_reads_them_and_by_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    async def building(keywords: KeywordLayer, rules: TopicRules, seed: int) -> Topics:
        built.append(len(keywords))
        return await build_topics(keywords, rules, seed)

    monkeypatch.setattr("memsys.memfly.memory.build_topics", building)
    system = memory(config=preset(topics={"every_notes": 2}))
    write_all(system, [unit(n, f"boat sea w{n}") for n in range(9)])
    assert (built, counts(system)["topics.due"]) == ([], 4)
    before = system.state()
    for _ in range(3):
        retrieve(system)
    assert len(built) == 1, "questions between two writes share the topics"
    assert system.state()["topics"] == before["topics"] and system.state()["outdated"]
    asyncio.run(system.consolidate())
    retrieve(system)
    assert len(built) == 1 and not system.state()["outdated"]
    write_all(system, [unit(9, "harbour storm")])
    retrieve(system)
    assert len(built) == 2


@pytest.mark.parametrize("ask", [True, False])
def test_topics_of_a_graph_that_changed_meanwhile_are_not_kept(ask: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    system = memory()
    write_all(system, [unit(n, f"boat sea w{n}") for n in range(4)])
    later = unit(9, "harbour storm")

    async def run() -> None:
        started, released = asyncio.Event(), asyncio.Event()

        async def slow(keywords: KeywordLayer, rules: TopicRules, seed: int) -> Topics:
            topics = await build_topics(keywords, rules, seed)
            started.set()
            await released.wait()
            return topics

        monkeypatch.setattr("memsys.memfly.memory.build_topics", slow)
        reading = asyncio.ensure_future(system.retrieve("boat?") if ask else system.consolidate())
        await started.wait()
        await system.write(later, await system.prepare(later))
        released.set()
        await reading

    asyncio.run(run())
    monkeypatch.setattr("memsys.memfly.memory.build_topics", build_topics)
    assert system.state()["outdated"]
    held = sum(len(members) for members in asyncio.run(system._current_topics()).members)
    assert held == len(system._layers.keywords)
    asyncio.run(system.consolidate())
    assert not system.state()["outdated"]
    assert sum(map(len, system.state()["topics"])) == len(system._layers.keywords)


def test_an_older_snapshot_counts_under_the_former_name() -> None:
    system = memory(config=preset(topics={"every_notes": 2}))
    write_all(system, [unit(n, f"boat sea w{n}") for n in range(5)])
    state = system.state()
    older = {**state, "counts": {name.replace("due", "rebuilt"): n for name, n in dict(state["counts"]).items()}}
    again = memory(config=preset(topics={"every_notes": 2}))
    again.load_state(older)
    assert counts(again) == counts(system) and counts(again)["topics.due"] == 2
    assert again.state()["counts"] == state["counts"]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(["write", "write", "ask", "snapshot", "consolidate"]), max_size=14), st.integers(1, 4))
def test_topics_made_when_read_are_those_of_the_keywords_as_they_are(steps: list[str], every: int) -> None:
    """Whatever was asked, stored or restored before: found is what a memory finds whose topics are made once."""
    system, plain, written = memory(config=preset(topics={"every_notes": every})), memory(), 0
    for step in steps:
        if step == "write":
            for each in (system, plain):
                write_all(each, [unit(written, f"{TURNS[written % 6]} w{written // 2}")])
            written += 1
        elif step == "ask":
            retrieve(system)
        elif step == "consolidate":
            asyncio.run(system.consolidate())
        else:
            again = memory(config=preset(topics={"every_notes": every}))
            again.load_state(system.state())
            assert again.state()["topics"] == system.state()["topics"]
            system = again
    fresh = asyncio.run(build_topics(plain._layers.keywords, preset().rules().topics, plain._seed))
    current = asyncio.run(system._current_topics())
    assert [members.tolist() for members in current.members] == [members.tolist() for members in fresh.members]
    assert np.array_equal(current.centroids, fresh.centroids)
    assert (retrieve(system).hits, retrieve(system).context) == (retrieve(plain).hits, retrieve(plain).context)


def test_every_hit_of_a_much_merged_memory_names_its_turns() -> None:
    def update(values: Mapping[str, str], key: str) -> dict[str, Any]:
        return relations(relation(1, "SUPPORTS", 0.9 if int(key[3:]) % 3 else 0.6))

    system = told(*[f"{TURNS[n % 6]} w{n}" for n in range(24)], model=replying(update=update))
    notes = list(system._layers.notes)
    assert 1 < len(notes) < 24
    assert sorted(turn_id for note in notes for turn_id in note.turn_ids) == sorted(f"D1:{n}" for n in range(24))
    for hit in retrieve(system).hits:
        for turn_id in hit.turn_ids:
            assert TURNS[int(turn_id[3:]) % 6] in hit.text


def test_notes_that_had_no_room_are_not_shown() -> None:
    whole = retrieve(told(*TURNS))
    assert whole.shown == tuple(range(len(whole.hits)))
    half = preset(evidence={"max_tokens": len(whole.context.split()) // 2})
    check_shown(retrieve(told(*TURNS, config=half)))
