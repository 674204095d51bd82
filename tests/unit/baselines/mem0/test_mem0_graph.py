"""Mem0g's graph: names, merging by cosine, contradictions, search, and what it costs."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from math import acos, cos, sin
from typing import Any

import numpy as np
import pytest

from baselines.mem0.graph import UNTYPED, Edge, EntityGraph, EntityGraphRules, Triple, entity_name, relation_name
from baselines.mem0.graph_calls import ranked
from baselines.mem0.memory import Mem0Memory
from memsys.embedding.contract import Vectors
from memsys.errors import ConfigError
from memsys.vocabulary import Turn, Unit
from tests.support.composing import conversation, ingest, without_reading
from tests.support.fakes import FakeModel
from tests.support.mem0 import config, counts, mem0, replying
from tests.support.sage import monologue
from tests.support.shown import check_shown

RULES = config("mem0_graph").graph_rules


def unit(number: int = 1) -> Unit:
    return Unit(f"D{number}:0", (Turn(f"D{number}:0", f"s{number}", "Ann", "x", date_time=f"{number} May 2023"),))


def at(cosine: float) -> Vectors:
    """A vector at this cosine to ``at(1)``."""
    angle = acos(cosine)
    return np.array([cos(angle), sin(angle), 0], dtype=np.float32)


def far() -> Vectors:
    return np.array([0, 0, 1], dtype=np.float32)


def graph(*triples: tuple[str, str, str], rules: EntityGraphRules = RULES) -> tuple[EntityGraph, dict[str, Vectors]]:
    """A graph of entities that are nothing like each other, and their vectors."""
    names = list(dict.fromkeys(name for source, _, destination in triples for name in (source, destination)))
    vectors = dict(zip(names, np.eye(max(len(names), 3), dtype=np.float32), strict=False))
    made = EntityGraph(max(len(names), 3), rules)
    for triple in triples:
        made.merge(Triple(*triple), {}, vectors, unit())
    return made, vectors


def lines(edges: list[Edge]) -> list[str]:
    return [edge.triple.text for edge in edges]


def trip(values: Mapping[str, str], key: str) -> dict[str, Any]:
    """Relations of lines such as ``Ann: rome visits oslo``."""
    parts = [line.partition(": ")[2].split() for line in values["text"].splitlines()]
    return {"entities": [{"source": s, "relationship": r, "destination": d} for s, r, d in parts]}


def ends(values: Mapping[str, str], key: str) -> dict[str, Any]:
    """Every other word of a message or question is an entity."""
    words = [word for line in values["text"].splitlines() for word in line.rpartition(": ")[2].split()[::2]]
    return {"entities": [{"entity": word, "entity_type": "Some Thing"} for word in words]}


def mem0g(model: FakeModel | None = None, preset: str = "mem0_graph", **changes: Any) -> Mem0Memory:
    graph_settings = {**config(preset).graph, **changes}
    return mem0(model or replying(entities=ends, relations=trip), preset, graph=graph_settings)


def drawn(memory: Mem0Memory) -> dict[str, Any]:
    found: dict[str, Any] = memory.state()["scopes"][0]["graph"]
    return found


# presets


def test_the_graph_presets_differ_from_mem0_in_the_graph_and_its_roles() -> None:
    made = config("mem0_graph")
    assert made == replace(config(), name="mem0_graph", graph={**config().graph, "use": "read"}, roles=made.roles)
    assert {name: made.roles[name] for name in config().roles} == dict(config().roles)
    assert made.needed == ("extract", "route", "entities", "relations", "delete")
    unread: dict[str, Any] = {
        "name": "mem0_graph_in_sage",
        "prompt_date": "2026-05-01",
        "extract_prompt": "user_today",
        "graph": {**made.graph, "use": "written"},
    }
    in_sage = config("mem0_graph_in_sage")
    assert in_sage == replace(made, **unread, roles=in_sage.roles)
    assert without_reading(in_sage.roles) == without_reading(made.roles)  # see test_released_replies.py


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("use", "always"),
        ("search_similarity", 1.5),
        ("merge_similarity", -2),
        ("removal", "gone"),
        ("results", 0),
        ("include_invalid", "no"),
    ],
)
def test_wrong_graph_settings_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"graph.{key}"):
        config("mem0_graph", graph={**config("mem0_graph").graph, key: value})


# names and merging


def test_names_are_lower_case_with_underscores() -> None:
    assert entity_name("  New York\tCity ") == entity_name("new york city") == "new_york_city"
    assert relation_name("Works at (part-time)!") == "works_at_part_time"


def test_entities_that_differ_in_blanks_and_capitals_are_one() -> None:
    def relations(values: Mapping[str, str], key: str) -> dict[str, Any]:
        name = "New York" if key.startswith("D1") else "new  york"
        return {"entities": [{"source": "ANN", "relationship": "Lives In", "destination": name}]}

    memory = mem0g(replying(relations=relations))
    ingest(memory, monologue("a", "b", sessions=[1, 2]))
    assert [node["name"] for node in drawn(memory)["nodes"]] == ["ann", "new_york"]
    (edge,) = drawn(memory)["edges"]
    assert (edge["relation"], edge["mentions"], edge["created"], edge["updated"]) == (
        "lives_in", 2, "1 May 2023", "2 May 2023",
    )  # fmt: skip
    assert edge["turn_ids"] == ["D1:0", "D2:1"]


@pytest.mark.parametrize(("cosine", "nodes"), [(0.89, 3), (0.9, 2), (0.91, 2)])
def test_a_name_is_taken_for_the_nearest_node_from_a_cosine_of_090_on(cosine: float, nodes: int) -> None:
    made = EntityGraph(3, RULES)
    vectors = {"oslo": at(1), "oslo_city": at(cosine), "boat": far()}
    made.merge(Triple("boat", "in", "oslo"), {"oslo": "city"}, vectors, unit(1))
    made.merge(Triple("boat", "in", "oslo_city"), {}, vectors, unit(2))
    assert len(made.nodes) == nodes
    assert made.nodes["boat"].mentions == 2 and made.nodes["oslo"].mentions == 4 - nodes
    assert (made.nodes["oslo"].kind, made.nodes["boat"].kind) == ("city", UNTYPED)


@pytest.mark.parametrize(("cosine", "found"), [(0.69, 0), (0.7, 1), (0.71, 1)])
def test_edges_are_found_around_nodes_from_a_cosine_of_070_on(cosine: float, found: int) -> None:
    made = EntityGraph(3, RULES)
    made.merge(Triple("oslo", "has", "boat"), {}, {"oslo": at(1), "boat": far()}, unit())
    assert len(made.around([at(cosine)])) == found


def test_an_entity_may_be_related_to_itself() -> None:
    made, vectors = graph(("ann", "knows", "ann"))
    assert (list(made.nodes), made.nodes["ann"].mentions) == (["ann"], 2)
    assert lines(made.around([vectors["ann"]])) == ["ann -- knows -- ann"]


def test_edges_come_once_those_that_leave_a_node_first_and_no_more_than_the_limit() -> None:
    triples = ("oslo", "near", "ann"), ("ann", "likes", "boat"), ("ann", "likes", "oslo")
    made, vectors = graph(*triples)
    expected = ["ann -- likes -- boat", "ann -- likes -- oslo", "oslo -- near -- ann"]
    assert lines(made.around([vectors["ann"], vectors["oslo"]])) == expected
    few, vectors = graph(*triples, rules=replace(RULES, near_edges=2))
    assert lines(few.around([vectors["ann"]])) == expected[:2]


# contradictions


def test_a_contradicted_relation_is_kept_but_not_found_and_holds_again_when_stated_again() -> None:
    made, vectors = graph(("ann", "lives_in", "oslo"), ("ann", "likes", "boat"))
    triple = Triple("ann", "lives_in", "oslo")
    assert made.remove(triple, unit(2)) and not made.remove(triple, unit(3))
    assert lines(made.around([vectors["ann"]])) == ["ann -- likes -- boat"]
    (first, _) = made.around([vectors["ann"]], invalid=True)
    assert (first.valid, first.invalidated) == (False, "2 May 2023")
    assert first.line == "ann -- lives_in -- oslo (no longer so since 2 May 2023)"
    assert made.sizes() == {"nodes": 3, "edges": 1, "invalid_edges": 1}
    made.merge(triple, {}, vectors, unit(4))
    assert made.edges[triple].valid and made.edges[triple].mentions == 2 and made.edges[triple].invalidated == ""


def test_a_contradicted_relation_can_be_removed_for_good() -> None:
    made, vectors = graph(("ann", "lives_in", "oslo"), rules=replace(RULES, removal="hard"))
    assert made.remove(Triple("ann", "lives_in", "oslo"), unit(2))
    assert made.around([vectors["ann"]], invalid=True) == [] and list(made.nodes) == ["ann", "oslo"]
    assert not made.remove(Triple("ann", "lives_in", "rome"), unit(2))


def test_a_write_shows_what_it_may_contradict_takes_it_back_and_then_states_its_own() -> None:
    shown: list[str] = []

    def delete(values: Mapping[str, str], key: str) -> dict[str, Any]:
        shown.append(values["relations"])
        gone = [("Ann", "lives in", "Oslo"), ("ann", "lives_in", "nowhere")] if key.startswith("D2") else []
        return {"relations": [{"source": s, "relationship": r, "destination": d} for s, r, d in gone]}

    memory = mem0g(replying(entities=ends, relations=trip, delete=delete))
    ingest(memory, monologue("ann lives_in oslo", "ann lives_in rome", sessions=[1, 2]))
    assert shown == ["none", "ann -- lives_in -- oslo"]
    assert [(edge["destination"], edge["valid"]) for edge in drawn(memory)["edges"]] == [
        ("oslo", False),
        ("rome", True),
    ]
    found = counts(memory)
    assert (found["relations.stated"], found["relations.removed"], found["relations.remove_unknown"]) == (2, 1, 1)
    statistics = memory.statistics()
    assert (statistics["nodes"], statistics["edges"], statistics["invalid_edges"]) == (3, 1, 1)


# calls


def test_every_add_costs_three_calls_more_and_every_question_one_per_scope() -> None:
    talk = conversation(["a b c"] * 9, ["a b c"])
    plain, model = replying(), replying(entities=ends, relations=trip)
    ingest(mem0(plain), talk)
    memory = mem0g(model)
    ingest(memory, talk)
    adds = 2 * 3
    assert [model.count(role) for role in ("entities", "relations", "delete")] == [adds] * 3
    assert len(model.calls) == len(plain.calls) + 3 * adds
    asyncio.run(memory.retrieve("a"))
    assert model.count("entities") == adds + 2


def test_a_graph_that_is_not_read_changes_no_retrieval() -> None:
    talk, model = conversation(["a b c", "d e f"]), replying(entities=ends, relations=trip)
    unread, plain = mem0g(model, use="written"), mem0(replying())
    ingest(unread, talk)
    ingest(plain, talk)
    calls = len(model.calls)
    one, other = (asyncio.run(memory.retrieve("a d")) for memory in (unread, plain))
    assert (one.hits, one.context) == (other.hits, other.context) and len(model.calls) == calls
    assert len(drawn(unread)["edges"]) == 2


@pytest.mark.parametrize("role", ["entities", "relations", "delete"])
def test_a_malformed_reply_counts_as_an_empty_one(role: str) -> None:
    replies: dict[str, Any] = {"entities": ends, "relations": trip, role: "}{"}
    memory = mem0g(replying(**replies))
    ingest(memory, monologue("ann likes oslo"))
    assert counts(memory)[f"fallback.{role}"] == 1
    assert len(drawn(memory)["edges"]) == (role != "relations")
    retrieval = asyncio.run(memory.retrieve("ann"))
    assert retrieval.trace["fallbacks"] == (["entities:none"] if role == "entities" else [])


def test_relations_and_entities_without_a_name_are_left_out() -> None:
    unnamed = {"entities": [{"source": " ", "relationship": "x", "destination": "b"}]}
    memory = mem0g(replying(relations=unnamed, entities={"entities": [{"entity": " ", "entity_type": "x"}]}))
    ingest(memory, monologue("a"))
    assert drawn(memory)["nodes"] == [] and "relations.stated" not in counts(memory)


# reading


def test_relations_stand_after_the_memories_of_all_speakers() -> None:
    memory = mem0g()
    ingest(memory, conversation(["oslo has boat", "rome has cake"]))
    retrieval = asyncio.run(memory.retrieve("oslo"))
    assert retrieval.context.endswith(
        "\n\nRelations of Ann:\noslo -- has -- boat\n\nRelations of Ben:\noslo -- has -- boat"
    )
    assert [hit.memory_id for hit in retrieval.hits[-2:]] == ["Ann#oslo -- has -- boat", "Ben#oslo -- has -- boat"]
    assert retrieval.hits[-1].turn_ids == ("D1:0", "D1:1")
    assert retrieval.trace["relations"] == 2


def test_relations_get_the_room_that_memories_leave() -> None:
    talk = monologue("oslo has boat", "oslo has cake")
    memory = mem0(replying(entities=ends, relations=trip), "mem0_graph", context_max_tokens=18)
    ingest(memory, talk)
    retrieval = asyncio.run(memory.retrieve("oslo"))
    assert "Relations:\noslo -- has -- boat" in retrieval.context and "-- cake" not in retrieval.context
    assert retrieval.trace["left_out"] == 1
    check_shown(retrieval)


def made_edges(*triples: tuple[str, str, str]) -> list[Edge]:
    return [Edge(*triple, created="", updated="", turn_ids=("D1:0",)) for triple in triples]


def test_bm25_sees_names_as_single_words_and_five_come_back() -> None:
    edges = made_edges(*[("ann", "likes", f"thing_{n}") for n in range(6)], ("ann", "visits", "new_york"))
    as_in_code = ranked(edges, "When did Ann visit New York", RULES)
    assert lines([edge for edge, _ in as_in_code]) == lines(edges[:5]) and {score for _, score in as_in_code} == {0.0}
    assert ranked(edges, "about new_york", RULES)[0][0].destination == "new_york"
    split = ranked(edges, "When did Ann visit New York?", replace(RULES, split_underscores=True))
    assert split[0][0].destination == "new_york" and split[0][1] > split[1][1]


def test_relations_that_no_longer_hold_are_read_only_where_asked_for() -> None:
    def delete(values: Mapping[str, str], key: str) -> dict[str, Any]:
        gone = [{"source": "ann", "relationship": "lives_in", "destination": "oslo"}]
        return {"relations": gone if key.startswith("D2") else []}

    for include, found in ((False, 1), (True, 2)):
        memory = mem0g(replying(entities=ends, relations=trip, delete=delete), include_invalid=include)
        ingest(memory, monologue("ann lives_in oslo", "ann lives_in rome", sessions=[1, 2]))
        assert asyncio.run(memory.retrieve("ann")).trace["relations"] == found
