"""Which text, vector and example CLAG uses where (the specification's table of text formats)."""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from memsys.clag.cards import candidate_cards
from memsys.clag.memory import ClagMemory
from memsys.clag.roles import make_roles
from memsys.clag.routing import Router
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from tests.support.clag import candidate_ids, evolution, joint, memory, partition_of, preset, replying, unit, write_all
from tests.support.fakes import FakeModel, WordEmbedder


def vector_of(system: ClagMemory, text: str) -> np.ndarray[Any, Any]:
    return asyncio.run(system._parts.embedder.embed([text]))[0]


def prompts(system: ClagMemory) -> list[str]:
    model = system._parts.llm
    assert isinstance(model, FakeModel)
    return model.prompts


def test_neighbours_are_near_to_the_content_alone() -> None:
    analyses = {
        "D1:0": {"keywords": [], "context": "x", "tags": []},
        "D1:1": {"keywords": ["cake"] * 3, "context": "cake", "tags": ["cake"]},
        "D1:2": {"keywords": ["cake"] * 9, "context": "cake", "tags": ["cake"] * 9},
    }
    system = memory(joint(k_local=1), replying(analyse=lambda values, key: analyses[key]))
    write_all(system, [unit(0, "boat harbour"), unit(1, "cake oven"), unit(2, "boat sail")])
    assert re.findall(r"memory index: (\d)", prompts(system)[-1]) == ["0"]


def test_the_vectors_of_a_stored_note_have_the_texts_after_its_evolution() -> None:
    reply = evolution(actions=["strengthen"], tags_to_update=["fresh"])
    system = memory(joint(buffer_size=4, tau=1.0), replying(evolve=reply))
    write_all(system, [unit(number) for number in range(5)])
    note = system._store["D1:4"]
    assert note.tags == ["fresh"]
    founded = system._partition["cluster_new_3"]
    assert founded.tags == ["fresh"]
    assert np.allclose(founded.centroid, vector_of(system, note.text("plain")))
    assert np.allclose(founded.index.vectors(["D1:4"])[0], vector_of(system, note.text("clustered")))
    assert np.allclose(system._everything.vectors(["D1:4"])[0], vector_of(system, note.text("labelled")))


def test_initial_centroids_are_means_of_plain_texts_and_later_ones_of_clustered_texts() -> None:
    system = memory(joint(buffer_size=8))
    write_all(system, [unit(number) for number in range(8)])
    for text_format in ("plain", "clustered"):
        for cluster in system._partition.clusters:
            rows = [vector_of(system, system._store[note_id].text(text_format)) for note_id in cluster.members]  # type: ignore[arg-type]
            assert np.allclose(cluster.centroid, np.mean(rows, axis=0), atol=1e-6)
            assert bool(cluster.representatives) is (text_format == "clustered")
        asyncio.run(system.consolidate())


def test_a_note_is_routed_by_its_plain_text_before_evolution() -> None:
    system = memory(joint(buffer_size=4))
    write_all(system, [unit(number) for number in range(4)])
    prepared = asyncio.run(system.prepare(unit(4)))
    assert np.allclose(prepared.plain_vector, vector_of(system, prepared.note.text("plain")))
    assert np.allclose(prepared.neighbour_query, vector_of(system, prepared.note.content))


def test_stage_two_searches_by_keywords_alone() -> None:
    model = replying(keywords={"keywords": "oven, flour"})
    system = memory(joint(buffer_size=8, k_retrieve=1), model)
    write_all(system, [unit(number) for number in range(16)])
    embedder = system._parts.embedder
    assert isinstance(embedder, WordEmbedder)
    found = asyncio.run(system.retrieve("boat boat boat harbour harbour?"))
    assert embedder.calls[-1] == ["oven, flour", "boat boat boat harbour harbour? oven flour"]
    best = system._everything.search(vector_of(system, "oven, flour"), 1)
    assert [found.hits[0].memory_id] == [note_id for note_id, _ in best]


def test_the_code_preset_searches_clusters_by_keywords_twice() -> None:
    system = memory(preset("clag_code", buffer_size=4), replying(keywords={"keywords": "oven, flour"}))
    write_all(system, [unit(number) for number in range(6)])
    asyncio.run(system.retrieve("boat?"))
    embedder = system._parts.embedder
    assert isinstance(embedder, WordEmbedder)
    assert embedder.calls[-1] == ["oven, flour", "oven, flour oven flour"]


def test_a_write_embeds_in_one_batch_and_a_consolidation_too() -> None:
    reply = evolution(
        actions=["update_neighbor"], new_context_neighborhood=["c"] * 5, new_tags_neighborhood=[["t"]] * 5
    )
    system = memory(preset("clag_code", buffer_size=8, consolidate_every=100), replying(evolve=reply))
    write_all(system, [unit(number) for number in range(12)])
    embedder = system._parts.embedder
    assert isinstance(embedder, WordEmbedder)
    prepared = asyncio.run(system.prepare(unit(12)))
    before = len(embedder.calls)
    asyncio.run(system.write(unit(12), prepared))
    assert len(embedder.calls) == before + 1
    asyncio.run(system.consolidate())
    assert len(embedder.calls) == before + 2


def test_cards_show_representatives_else_the_oldest_cut_to_length() -> None:
    store = NoteStore()
    for number in range(5):
        store.add(Note(f"n{number}", f"text{number}", "", [], "", [], ()))
    partition = partition_of(a=[1.0, 0.0])
    cluster = partition["a"]
    cluster.index.remove(cluster.members)
    cluster.index.add([f"n{number}" for number in range(5)], np.tile(np.float32([[1, 0]]), (5, 1)))
    cluster.summary, cluster.tags = "On texts", ["t", "u"]
    rules = replace(preset().card_rules, examples=2, example_chars=4)
    assert cluster.summary in candidate_cards([cluster], store, replace(rules, profiles="exchanged"), show_size=True)
    assert cluster.summary not in candidate_cards([cluster], store, replace(rules, profiles="none"), show_size=True)
    other = replace(cluster, cluster_id="other", summary="another profile")
    shown = candidate_cards([cluster, other], store, replace(rules, profiles="exchanged"), show_size=True)
    assert shown.index("another profile") < shown.index("other\n") < shown.index(cluster.summary)
    oldest = candidate_cards([cluster], store, rules, show_size=True)
    assert oldest == "id: a\n  size: 5\n  summary: On texts\n  tags: t, u\n  example: text\n  example: text"
    cluster.representatives = ["n4", "n3", "n2"]
    wide = replace(rules, example_chars=10)
    typical = candidate_cards([cluster], store, wide, show_size=False)
    assert typical == "id: a\n  summary: On texts\n  tags: t, u\n  example: text4\n  example: text3"


def test_the_router_sees_sizes_and_the_selector_does_not() -> None:
    system = memory(joint(buffer_size=4))
    write_all(system, [unit(number) for number in range(5)])
    asyncio.run(system.retrieve("boat?"))
    router = next(prompt for prompt in prompts(system) if "You file notes" in prompt)
    assert "  size: " in router
    assert "  size: " not in prompts(system)[-1]


@pytest.mark.parametrize(("clustering", "chosen"), [("cosine", "single"), ("kmeans", "broad")])
def test_geometric_routing_uses_its_own_metric(clustering: str, chosen: str) -> None:
    partition = partition_of(broad=[0.3, 0.0], single=[0.8, 0.6])
    config = joint(clustering=clustering, tau=-1.0)
    router = Router(replying(), make_roles(config.roles).router, config, NoteStore(), partition)
    note = Note("new", "text", "", [], "", [], ())
    # Squared L2: broad 1.45, single 2. Cosine: broad -0.6, single 0.
    assert asyncio.run(router.route(note, np.float32([-0.6, 0.8]))).cluster_id == chosen


def test_kmeans_routing_never_founds_a_cluster_and_cosine_routing_may() -> None:
    partition = partition_of(a=[1.0, 0.0])
    note = Note("new", "text", "", [], "", [], ())
    for clustering, cause in (("kmeans", "chosen"), ("cosine", "new_tau")):
        config = joint(clustering=clustering)
        router = Router(replying(), make_roles(config.roles).router, config, NoteStore(), partition)
        assert asyncio.run(router.route(note, np.float32([0.0, 1.0]))).cause == cause


def test_a_running_mean_weighs_all_members_alike() -> None:
    still, moving = (memory(joint(buffer_size=8, centroid_update=rule)) for rule in ("none", "running_mean"))
    for system in (still, moving):
        write_all(system, [unit(number) for number in range(9)])
    home = moving._partition.home("D1:8")
    assert home is not None
    old, new = still._partition[home], moving._partition[home]
    joined = new.index.vectors(["D1:8"])[0]
    assert np.allclose(new.centroid, (old.centroid * (len(new) - 1) + joined) / len(new), atol=1e-6)
    assert moving._partition.similarity(new.centroid, home) == 1.0


def split_memory(split_tags: str) -> ClagMemory:
    analyse = {f"D1:{n}": {"keywords": [], "context": "c", "tags": ["common", f"own{n}"]} for n in range(9)}
    model = replying(analyse=lambda values, key: analyse[key], profile="no profile")
    system = memory(joint(buffer_size=9, n_init=1, tau_split=8, provisional_tags=1, split_tags=split_tags), model)
    write_all(system, [unit(number) for number in range(9)])
    asyncio.run(system.consolidate())
    return system


def test_halves_of_a_split_have_the_frequent_tags_or_all_of_their_own_members() -> None:
    for cluster in split_memory("frequent")._partition.clusters:
        assert cluster.tags == ["common"]
        assert re.search(r"\(part [ab]\)$", cluster.summary)
    for cluster in split_memory("union")._partition.clusters:
        members = [note_id.removeprefix("D1:") for note_id in cluster.members]
        assert 0 < len(members) < 9
        assert cluster.tags == ["common", *(f"own{number}" for number in members)]


def test_stale_vectors_are_remembered_across_a_snapshot() -> None:
    def rewrite(values: Mapping[str, str], key: str) -> dict[str, Any]:
        count = int(values["neighbour_count"])
        return evolution(
            actions=["update_neighbor"],
            new_context_neighborhood=[f"since {key}"] * count,
            new_tags_neighborhood=[["t"]] * count,
        )

    config = preset("clag_code", buffer_size=4)
    original, copy = memory(config, replying(evolve=rewrite)), memory(config, replying(evolve=rewrite))
    write_all(original, [unit(number) for number in range(8)])
    copy.load_state(original.state())
    for system in (original, copy):
        asyncio.run(system.consolidate())
        for note in system._store:
            home = system._partition.home(note.note_id)
            assert home is not None
            stored = system._partition[home].index.vectors([note.note_id])[0]
            assert np.allclose(stored, vector_of(system, note.text("clustered")))


def test_the_router_gets_its_candidates_nearest_first() -> None:
    shown: list[list[str]] = []

    def router(values: Mapping[str, str], key: str) -> dict[str, str]:
        shown.append(candidate_ids(values))
        return {"choice": shown[-1][0]}

    system = memory(joint(buffer_size=8, n_init=4, k_route=2), replying(router=router))
    write_all(system, [unit(number) for number in range(8)])
    prepared = asyncio.run(system.prepare(unit(8)))
    expected = system._partition.nearest(prepared.plain_vector, 2, "l2")
    asyncio.run(system.write(unit(8), prepared))
    assert shown == [expected]
