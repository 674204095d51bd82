"""Whatever the backbone replies, CLAG keeps every note exactly once, ranks exactly, and survives a snapshot."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.clag.cluster import Cluster, Partition
from memsys.clag.memory import ClagMemory
from memsys.clag.search import merged, search_clusters
from memsys.index.vector import VectorIndex
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from tests.support.clag import candidate_ids, evolution, memory, preset, sensible, unit, write_all
from tests.support.fakes import FakeModel

QUESTIONS = ("sea boat?", "oven w7 flour?", "?")


def moody(salt: int) -> FakeModel:
    """A backbone whose replies, good, odd and malformed, are a function of what it is asked."""

    def pick(role: str, values: Mapping[str, str], key: str) -> int:
        asked = repr((salt, role, key, sorted(values.items())))
        return int.from_bytes(hashlib.sha256(asked.encode()).digest()[:4], "big")

    def reply(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        mood = pick(role, values, key)
        if mood % 7 == 0:
            return ("", "{", '{"summary": "cut', "cluster_0", "[]")[mood % 5]
        if role == "evolve":
            return _evolve(mood, int(values["neighbour_count"]))
        if role == "router":
            return {"choice": (*candidate_ids(values), "cluster_99", "")[mood % (len(candidate_ids(values)) + 2)]}
        if role == "selector":
            return {
                "selected_clusters": [*candidate_ids(values), "cluster_99"][mood % 3 :: 1 + mood % 2] * (1 + mood % 2)
            }
        if role == "keywords" and mood % 5 == 0:
            return {"keywords": " , "}
        return sensible(role, values, key)

    return FakeModel(reply)


def _evolve(mood: int, neighbours: int) -> dict[str, Any]:
    actions = (["strengthen"], ["update_neighbor", "update_neighbor"], ["strengthen", "update_neighbor"], ["else"])
    return evolution(
        should_evolve=mood % 2 == 0,
        actions=actions[mood % 4],
        suggested_connections=[mood % 9, mood % 5, -1, 999],
        tags_to_update=["t" + str(mood % 3)] * (mood % 3),
        new_context_neighborhood=["c" + str(mood % 4)] * (neighbours - mood % 2),
        new_tags_neighborhood=[["n" + str(mood % 4)] * (mood % 3)] * max(0, neighbours + 1 - mood % 4),
    )


configs = st.builds(
    preset,
    st.sampled_from(["clag", "clag_code", "clag_cosine", "clag_kmeans", "clag_global_evolution"]),
    buffer_size=st.integers(1, 6),
    n_init=st.integers(1, 4),
    kmeans_restarts=st.just(1),
    tau=st.sampled_from([-1.0, 0.1, 0.5, 1.0]),
    tau_split=st.integers(1, 6),
    split_when=st.sampled_from(["consolidate", "on_insert"]),
    centroid_update=st.sampled_from(["none", "running_mean"]),
    consolidate_every=st.integers(1, 5),
    cold_start=st.sampled_from(["evolve", "buffer"]),
    invalid_route=st.sampled_from(["nearest", "new_cluster"]),
    constrain_ids=st.booleans(),
    candidate_metric=st.sampled_from(["l2", "cosine"]),
    k_retrieve=st.integers(1, 5),
    merge=st.sampled_from(["score", "concat"]),
)
#: Turns may repeat, so that some vectors are equal; ``None`` stands for a consolidation.
streams = st.lists(st.one_of(st.integers(0, 5), st.none()), min_size=1, max_size=24)


def run_stream(system: ClagMemory, stream: list[int | None], start: int = 0) -> list[str]:
    """Write turns and consolidate as the stream says; the ids written."""
    written = []
    for number, text in enumerate(stream, start=start):
        if text is None:
            asyncio.run(system.consolidate())
        else:
            write_all(system, [unit(number, f"turn about {text} and {text % 2}")])
            written.append(f"D1:{number}")
    return written


def outcome(system: ClagMemory) -> list[Any]:
    """All that can be seen of a memory, seconds apart."""
    seen: list[Any] = [repr(system.state()), system.statistics()]
    for question in QUESTIONS:
        found = asyncio.run(system.retrieve(question))
        trace = {key: value for key, value in found.trace.items() if key != "spans"}
        seen.append((found.hits, found.context, trace))
    return seen


@settings(max_examples=60, deadline=None)
@given(config=configs, stream=streams, salt=st.integers(0, 1000))
def test_no_note_is_lost_or_doubled(config: Any, stream: list[int | None], salt: int) -> None:
    system = memory(config, moody(salt))
    written = run_stream(system, stream)
    state = system.state()
    assert [note["note_id"] for note in state["notes"]] == written
    assert list(state["everything"]["ids"]) == written
    filed = Counter(note_id for entry in state["clusters"] for note_id in entry["index"]["ids"])
    assert filed == (Counter(written) if len(written) >= config.buffer_size else Counter())
    assert len({entry["cluster_id"] for entry in state["clusters"]}) == len(state["clusters"])
    for entry in state["clusters"]:
        members = entry["index"]["ids"]
        assert members
        assert set(entry["representatives"]) <= set(members)
        assert {system._partition.home(note_id) for note_id in members} == {entry["cluster_id"]}
    for note in state["notes"]:
        older = set(written[: written.index(note["note_id"])])
        assert set(note["links"]) <= older


@settings(max_examples=30, deadline=None)
@given(config=configs, stream=streams, salt=st.integers(0, 1000))
def test_retrieval_is_sound_whatever_the_replies(config: Any, stream: list[int | None], salt: int) -> None:
    system = memory(config, moody(salt))
    run_stream(system, stream)
    before = repr(system.state())
    for question in QUESTIONS:
        found = asyncio.run(system.retrieve(question))
        ids = [hit.memory_id for hit in found.hits]
        assert len(ids) == len(set(ids)) <= config.k_retrieve
        assert (found.trace["mode"] == "global") == (found.trace["reason"] is not None)
        assert 0.0 <= found.trace["reduction"] < 1.0 or not ids
        assert set(found.trace["selected"]) <= set(found.trace["candidates"])
    assert repr(system.state()) == before


@settings(max_examples=30, deadline=None)
@given(config=configs, first=streams, second=streams, salt=st.integers(0, 1000))
def test_a_restored_memory_behaves_alike(
    config: Any, first: list[int | None], second: list[int | None], salt: int
) -> None:
    original = memory(config, moody(salt))
    run_stream(original, first)
    copy = memory(config, moody(salt))
    copy.load_state(original.state())
    assert outcome(copy) == outcome(original)
    for system in (original, copy):
        run_stream(system, second, start=100)
    assert outcome(copy) == outcome(original)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_score_merge_equals_a_search_of_the_union(data: st.DataObject) -> None:
    notes = data.draw(st.integers(1, 30))
    # Few distinct vectors, so that ties happen.
    kinds = data.draw(st.lists(st.integers(0, 3), min_size=notes, max_size=notes))
    homes = data.draw(st.lists(st.integers(0, 3), min_size=notes, max_size=notes))
    vectors = np.stack([np.cos(0.3 * np.array(kinds)), np.sin(0.3 * np.array(kinds))], axis=1).astype(np.float32)
    partition, store = Partition(), NoteStore()
    for number in range(notes):
        store.add(Note(f"n{number}", "", "", [], "", [], ()))
    for home in sorted(set(homes)):
        rows = [row for row in range(notes) if homes[row] == home]
        index = VectorIndex(2)
        index.add([f"n{row}" for row in rows], vectors[rows])
        partition.put(Cluster(f"cluster_{home}", "", [], vectors[rows].mean(axis=0), index))
    present = sorted(set(homes))
    chosen = data.draw(st.lists(st.sampled_from(present), min_size=1, unique=True))
    count = data.draw(st.integers(1, 12))
    query = np.array([1.0, 0.0], dtype=np.float32)
    found = search_clusters(partition, [f"cluster_{home}" for home in chosen], query, count)
    union = [row for row in range(notes) if homes[row] in chosen]
    scores = np.round(vectors.astype(np.float64) @ query, 6)
    expected = sorted(union, key=lambda row: (-scores[row], row))[:count]
    assert [note_id for note_id, _ in merged(found, store, count, "score")] == [f"n{row}" for row in expected]
