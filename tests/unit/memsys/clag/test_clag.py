"""CLAG on a fixed-response backbone: the specification's acceptance checks."""

import asyncio
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pytest

from memsys.clag.memory import ClagMemory
from memsys.protocol import MemorySystem
from memsys.vocabulary import Retrieval
from tests.support.clag import candidate_ids, evolution, joint, memory, replying, unit, write_all
from tests.support.composing import composed
from tests.support.fakes import FakeModel
from tests.support.shown import check_shown

SMALL = {"buffer_size": 8}


def clusters_of(system: ClagMemory) -> dict[str, list[str]]:
    return {entry["cluster_id"]: list(entry["index"]["ids"]) for entry in system.state()["clusters"]}


def model_of(system: ClagMemory) -> FakeModel:
    model = system._parts.llm
    assert isinstance(model, FakeModel)
    return model


def retrieve(system: ClagMemory, question: str = "boat sea?") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def filled(notes: int = 16, model: FakeModel | None = None, name: str = "clag", **changes: Any) -> ClagMemory:
    system = memory(joint(name, **{**SMALL, **changes}), model)
    write_all(system, [unit(number) for number in range(notes)])
    return system


def test_the_hundredth_note_makes_three_clusters_and_three_profiles() -> None:
    system = memory(joint())
    write_all(system, [unit(number) for number in range(99)])
    assert clusters_of(system) == {}
    assert model_of(system).count("profile") == 0
    write_all(system, [unit(99)])
    assert list(clusters_of(system)) == ["cluster_0", "cluster_1", "cluster_2"]
    assert model_of(system).count("profile") == 3
    assert sorted(chain.from_iterable(clusters_of(system).values())) == sorted(f"D1:{n}" for n in range(100))


def test_call_counts_are_those_of_the_cost_plan() -> None:
    system = filled(20)
    counts = {role: model_of(system).count(role) for role in ("analyse", "evolve", "router", "profile")}
    assert counts == {"analyse": 20, "evolve": 20, "router": 12, "profile": 3}
    before = len(model_of(system).calls)
    retrieve(system)
    assert [role for role, _ in model_of(system).calls[before:]] == ["keywords", "selector"]


@pytest.mark.parametrize(("name", "routers"), [("clag_cosine", 0), ("clag_kmeans", 0), ("clag_global_evolution", 8)])
def test_geometric_variants_never_ask_the_router(name: str, routers: int) -> None:
    system = filled(16, name=name)
    assert model_of(system).count("router") == routers
    assert sum(len(members) for members in clusters_of(system).values()) == 16


def test_keys_of_the_calls_do_not_depend_on_the_variant() -> None:
    calls = [set(model_of(filled(10, name=name)).calls) for name in ("clag", "clag_cosine")]
    assert {call for call in calls[0] if call[0] != "router"} == calls[1]
    assert ("analyse", "D1:3") in calls[0]
    assert ("profile", "profile:1:cluster_0") in calls[0]


def test_an_off_list_choice_goes_to_the_nearest_cluster_or_founds_one() -> None:
    odd = {"choice": "cluster_99"}
    near = filled(9, replying(router=odd), constrain_ids=False)
    assert len(clusters_of(near)) == 3
    assert near.statistics()["counts"]["route.invalid_nearest"] == 1
    fresh = filled(9, replying(router=odd), constrain_ids=False, invalid_route="new_cluster")
    assert clusters_of(fresh)["cluster_new_3"] == ["D1:8"]
    assert fresh.statistics()["counts"]["route.new_invalid"] == 1
    assert fresh.statistics()["counts"]["fallback.router"] == 0


def test_a_malformed_choice_is_counted_as_malformed_too() -> None:
    system = filled(9, replying(router="I choose cluster_1"))
    assert system.statistics()["counts"]["fallback.router"] == 1
    assert system.statistics()["counts"]["route.invalid_nearest"] == 1


def test_constrained_ids_restrict_the_router_to_its_candidates() -> None:
    system = filled(9, replying(router={"choice": "cluster_99"}))
    assert system.statistics()["counts"]["fallback.router"] == 1


def test_a_distant_note_founds_a_cluster_without_a_profile() -> None:
    system = filled(9, tau=0.999)
    founded = system.state()["clusters"][-1]
    assert (founded["cluster_id"], founded["index"]["ids"]) == ("cluster_new_3", ["D1:8"])
    assert founded["summary"].startswith("Notes about")
    assert founded["representatives"] == []
    assert model_of(system).count("profile") == 3
    assert system.statistics()["counts"]["route.new_tau"] == 1


def test_evolution_looks_into_the_routed_cluster_only() -> None:
    def lines(system: ClagMemory) -> str:
        return model_of(system).prompts[-1]

    local, everywhere = filled(9), filled(9, evolution_scope="global", k_local=9)
    home = local._partition.home("D1:8")
    members = next(ids for cluster_id, ids in clusters_of(local).items() if cluster_id == home)
    shown = {f"D1:{n}" for n in range(8) if f"memory index: {n}\t" in lines(local)}
    assert shown and shown <= set(members)
    assert all(f"memory index: {n}\t" in lines(everywhere) for n in range(8))


def test_links_beyond_the_shown_notes_are_dropped_and_counted() -> None:
    reply = evolution(actions=["strengthen"], suggested_connections=[0, 500, -3])
    system = filled(2, replying(evolve=reply))
    notes = system.state()["notes"]
    assert [note["links"] for note in notes] == [[], ["D1:0"]]
    assert system.statistics()["counts"]["links.created"] == 1
    assert system.statistics()["counts"]["links.dropped"] == 5
    assert len(retrieve(system).context.splitlines()) == 2


def test_rewritten_neighbours_are_embedded_again_at_once_or_at_consolidation() -> None:
    def rewrite(values: Mapping[str, str], key: str) -> dict[str, Any]:
        contexts = [f"Rewritten by {key}"] * int(values["neighbour_count"])
        tags = [["fresh"]] * len(contexts)
        acted = evolution(actions=["update_neighbor"], new_context_neighborhood=contexts, new_tags_neighborhood=tags)
        return acted if key == "D1:8" else evolution(should_evolve=False)

    for name, stale in (("clag", False), ("clag_code", True)):
        system = filled(9, replying(evolve=rewrite), name=name, consolidate_every=10**6)
        changed = [note.note_id for note in system._store if note.context == "Rewritten by D1:8"]
        assert changed
        assert (local_vector_is_fresh(system, changed[0]), global_vector_is_fresh(system, changed[0])) == (
            (not stale,) * 2
        )
        asyncio.run(system.consolidate())
        assert local_vector_is_fresh(system, changed[0])
        assert global_vector_is_fresh(system, changed[0]) is not stale


def local_vector_is_fresh(system: ClagMemory, note_id: str) -> bool:
    home = system._partition.home(note_id)
    assert home is not None
    vector = system._partition[home].index.vectors([note_id])
    return np.allclose(vector, asyncio.run(system._parts.embedder.embed([system._store[note_id].text("clustered")])))


def global_vector_is_fresh(system: ClagMemory, note_id: str) -> bool:
    vector = system._everything.vectors([note_id])
    return np.allclose(vector, asyncio.run(system._parts.embedder.embed([system._store[note_id].text("labelled")])))


def test_every_so_many_evolved_notes_the_clusters_are_consolidated() -> None:
    system = filled(14, replying(evolve=evolution()), consolidate_every=4)
    assert system.statistics()["evolved_notes"] == 14
    # The 4th comes before there are clusters, the 8th just before they are made, the 12th finds them.
    assert system.statistics()["counts"]["consolidations"] == 1
    assert all(
        len(entry["representatives"]) == min(3, len(entry["index"]["ids"])) for entry in system.state()["clusters"]
    )
    asyncio.run(system.consolidate())
    assert system.statistics()["counts"]["consolidations"] == 2


def oversized(**changes: Any) -> tuple[ClagMemory, dict[str, list[str]]]:
    """A memory whose 301 later notes all went to one cluster."""

    def router(values: Mapping[str, str], key: str) -> dict[str, str]:
        return {"choice": min(candidate_ids(values))}

    system = filled(8 + 301, replying(router=router), tau=-1.0, **changes)
    return system, clusters_of(system)


def test_consolidation_bisects_a_cluster_above_the_limit() -> None:
    system, before = oversized()
    large = max(before, key=lambda cluster_id: len(before[cluster_id]))
    assert len(before[large]) > 300
    asyncio.run(system.consolidate())
    after = clusters_of(system)
    assert large not in after
    halves = after[f"{large}_a"] + after[f"{large}_b"]
    assert sorted(halves) == sorted(before[large])
    assert after[f"{large}_a"] and after[f"{large}_b"]
    assert {note_id: system._partition.home(note_id) for note_id in halves}.keys() == set(before[large])
    assert system.statistics()["counts"]["splits"] == 1


def test_a_cluster_at_the_limit_stays_whole() -> None:
    _, before = oversized()
    largest = max(len(members) for members in before.values())
    same, _ = oversized(tau_split=largest)
    asyncio.run(same.consolidate())
    assert same.statistics()["counts"]["splits"] == 0


def test_on_insert_a_cluster_is_bisected_as_soon_as_it_is_too_large() -> None:
    system = filled(40, split_when="on_insert", tau_split=6)
    assert system.statistics()["counts"]["splits"] > 0
    assert sum(len(members) for members in clusters_of(system).values()) == 40
    assert all(len(members) <= 6 for members in clusters_of(system).values())


def test_notes_that_all_look_the_same_cannot_be_split() -> None:
    system = memory(joint(buffer_size=2, tau_split=3))
    write_all(system, [unit(number, "same words") for number in range(6)])
    asyncio.run(system.consolidate())
    assert clusters_of(system) == {"cluster_0": [f"D1:{n}" for n in range(6)]}
    assert system.statistics()["counts"]["splits.impossible"] == 1


def test_profiles_are_cleaned_and_kept_when_malformed() -> None:
    system = filled(8)
    assert system.state()["clusters"][0]["tags"] == ["one", "two", "three"]
    summaries = [entry["summary"] for entry in system.state()["clusters"]]
    model_of(system).function = lambda role, values, key: "nonsense"
    asyncio.run(system.consolidate())
    assert [entry["summary"] for entry in system.state()["clusters"]] == summaries
    assert system.statistics()["counts"]["profile.kept"] == 3


def test_a_profile_cut_short_is_recovered() -> None:
    system = filled(8, replying(profile='{"summary": "Boats at sea", "tags": ["boat", "sea sal'))
    assert {entry["summary"] for entry in system.state()["clusters"]} == {"Boats at sea"}
    assert {tuple(entry["tags"]) for entry in system.state()["clusters"]} == {("boat",)}
    assert system.statistics()["counts"]["profile.recovered"] == 3


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"selected_clusters": []}, "selector_empty"),
        ({"selected_clusters": ["cluster_99"]}, "selector_off_list"),
        ("all of them", "selector_malformed"),
    ],
)
def test_without_a_picked_cluster_all_notes_are_searched(reply: object, reason: str) -> None:
    system = filled(16, replying(selector=reply), constrain_ids=False)
    found = retrieve(system)
    assert (found.trace["mode"], found.trace["reason"], found.trace["reduction"]) == ("global", reason, 0.0)
    assert len(found.hits) == 10
    assert (found.trace["searched"], found.trace["searched_notes"]) == ([], 16)


def test_other_reasons_for_searching_all_notes() -> None:
    assert retrieve(filled(4)).trace["reason"] == "no_clusters"
    assert retrieve(filled(16, name="clag_global_retrieval")).trace["reason"] == "configured"
    silent = filled(16, replying(keywords={"keywords": " , "}), name="clag_code")
    assert retrieve(silent).trace["reason"] == "no_tags"
    assert model_of(silent).count("selector") == 1, "the code asks, and then searches all notes whatever the reply"
    spared = filled(16, replying(keywords={"keywords": " , "}), empty_keywords="empty")
    assert retrieve(spared).trace["reason"] == "no_tags"
    assert model_of(spared).count("selector") == 0


def test_picked_clusters_limit_the_search() -> None:
    def first(values: Mapping[str, str], key: str) -> dict[str, list[str]]:
        return {"selected_clusters": candidate_ids(values)[:1] * 2}

    system = filled(16, replying(selector=first))
    trace = retrieve(system).trace
    members = clusters_of(system)[trace["searched"][0]]
    assert trace["mode"] == "cluster"
    assert len(trace["searched"]) == 1  # named twice, searched once
    assert set(trace["hit_ids"]) <= set(members)
    assert trace["searched_notes"] == len(members)
    assert trace["reduction"] == pytest.approx(1 - len(members) / 16)
    assert set(trace["hit_clusters"]) == set(trace["searched"])
    assert set(trace["spans"]) == {"keywords", "embed", "select", "search", "format"}


def test_concatenation_fills_up_from_the_first_picked_cluster() -> None:
    system = filled(60, name="clag_code", k_retrieve=3)
    trace = retrieve(system).trace
    assert len(trace["selected"]) == 3
    assert set(trace["hit_clusters"]) == {trace["selected"][0]}


def test_the_first_three_clusters_can_be_forced() -> None:
    system = filled(16, select="force_first_three", n_init=5)
    assert retrieve(system).trace["selected"] == ["cluster_0", "cluster_1", "cluster_2"]
    assert model_of(system).count("selector") == 0


def test_the_selector_sees_the_question_or_the_keywords() -> None:
    for name, shown in (("clag", "Query: boat sea?"), ("clag_code", "Query: boat, sea")):
        system = filled(16, name=name)
        retrieve(system)
        assert f"{shown}\n" in model_of(system).prompts[-1]


def test_linked_notes_enter_the_context_but_not_the_hits() -> None:
    reply = evolution(actions=["strengthen"], suggested_connections=[0])
    system = filled(6, replying(evolve=reply), k_retrieve=1)
    found = retrieve(system, "garden rose w3?")
    assert [hit.turn_ids for hit in found.hits] == [("D1:3",)]
    assert found.trace["linked_ids"] == ["D1:0"]
    assert len(found.context.splitlines()) == 2


def test_hits_that_had_no_room_are_not_shown() -> None:
    whole = retrieve(filled())
    assert whole.shown == tuple(range(len(whole.hits)))
    check_shown(retrieve(filled(context={**composed("clag")["context"], "max_tokens": 40})))


def test_an_empty_memory_retrieves_nothing() -> None:
    found = retrieve(memory(joint()))
    assert (found.hits, found.context, found.trace["reduction"]) == ((), "", 0.0)


def test_retrieving_changes_nothing() -> None:
    system = filled(16)
    before = repr(system.state())
    retrieve(system)
    assert repr(system.state()) == before


def test_buffered_notes_may_wait_without_evolving() -> None:
    system = filled(10, cold_start="buffer")
    assert model_of(system).count("evolve") == 2


def test_a_running_mean_moves_the_centroid() -> None:
    still, moving = filled(9), filled(9, centroid_update="running_mean")
    home = moving._partition.home("D1:8")
    assert home is not None
    assert not np.allclose(still._partition[home].centroid, moving._partition[home].centroid)


def test_kmeans_partitions_all_notes_anew_at_consolidation() -> None:
    system = filled(24, name="clag_kmeans")
    asyncio.run(system.consolidate())
    clusters = clusters_of(system)
    assert list(clusters) == ["cluster_0", "cluster_1", "cluster_2"]
    assert sorted(chain.from_iterable(clusters.values())) == sorted(f"D1:{n}" for n in range(24))


def test_the_order_of_preparation_does_not_matter() -> None:
    async def ahead(system: ClagMemory) -> None:
        units = [unit(number) for number in range(12)]
        prepared = await asyncio.gather(*(system.prepare(each) for each in reversed(units)))
        for each, ready in zip(units, reversed(prepared), strict=True):
            await system.write(each, ready)

    system = memory(joint(**SMALL), replying(analyse=lambda values, key: "bad" if key == "D1:5" else _analysis(key)))
    asyncio.run(ahead(system))
    other = memory(joint(**SMALL), model_of(system))
    write_all(other, [unit(number) for number in range(12)])
    assert repr(system.state()) == repr(other.state())
    assert system.statistics()["counts"]["fallback.analyse"] == 1


def _analysis(key: str) -> dict[str, Any]:
    return {"keywords": [key], "context": f"About {key}", "tags": ["t"]}


def test_it_is_a_memory_system() -> None:
    assert isinstance(memory(joint()), MemorySystem)
