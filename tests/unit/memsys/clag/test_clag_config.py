"""CLAG's presets and settings, and the small parts: geometry, centroids, tau, profiles."""

import asyncio
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.config.presets import MEMORY, preset_names
from eval.runs.snapshot import load_snapshot, save_snapshot
from memsys.clag.centroids import Centroids
from memsys.clag.cluster import frequent_tags, provisional_summary
from memsys.clag.config import ClagConfig
from memsys.clag.geometry import groups, kmeans, mean, nearest_rows
from memsys.clag.profiling import profile_from_reply
from memsys.clag.roles import SCHEMAS, make_roles, router_for, selector_for
from memsys.clag.routing import Router
from memsys.errors import ConfigError
from memsys.llm.contract import Reply
from memsys.notes.note import Note
from memsys.notes.store import NoteStore
from memsys.vocabulary import Completion
from tests.support.clag import joint, memory, partition_of, preset, replying, unit, write_all
from tests.support.composing import composed

PRESETS = [name for name in preset_names(MEMORY) if name.startswith("clag") and name != "clag_quickstart"]

#: What each ablation changes against ``clag``.
ABLATIONS: dict[str, dict[str, Any]] = {
    "clag": {},
    "clag_cosine": {"clustering": "cosine"},
    "clag_kmeans": {"clustering": "kmeans"},
    "clag_global_evolution": {"evolution_scope": "global"},
    "clag_global_retrieval": {"retrieval_scope": "global"},
    **{f"clag_n_init_{count}": {"n_init": count} for count in (5, 10)},
    **{f"clag_tau_0{part}": {"tau": part / 100} for part in (15, 20, 25, 30)},
}


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_sets_every_field_and_bears_its_file_name(name: str) -> None:
    settings = {key: value for key, value in composed(name).items() if key != "_target_"}
    assert set(settings) == {field.name for field in fields(ClagConfig)}
    assert preset(name).name == name


@pytest.mark.parametrize("name", sorted(ABLATIONS))
def test_an_ablation_changes_one_thing(name: str) -> None:
    assert preset(name) == replace(preset("clag"), name=name, **ABLATIONS[name])


def test_the_presets_are_those_of_the_papers_table_8_and_of_the_code() -> None:
    paper, code = preset("clag"), preset("clag_code")
    for config in (paper, code):
        assert (config.buffer_size, config.n_init, config.tau_split, config.tau) == (100, 3, 300, 0.1)
        assert (config.k_local, config.k_retrieve, config.consolidate_every) == (5, 10, 100)
        temperatures = {name: role["temperature"] for name, role in config.roles.items()}
        assert temperatures == {
            "analyse": 0.7,
            "router": 0.2,
            "evolve": 0.7,
            "link": 0.7,
            "rewrite": 0.7,
            "profile": 0.3,
            "keywords": 0.7,
            "selector": 0.7,
        }
    assert (paper.k_route, paper.k_stage1, paper.top_n) == (3, 3, 3)
    assert (code.k_route, code.k_stage1, code.top_n) == (5, 5, 10)
    assert (paper.merge, paper.selector_query, paper.invalid_route) == ("score", "question", "nearest")
    assert (paper.cold_start, code.cold_start) == ("buffer", "evolve")
    assert (paper.split_when, code.split_when) == ("on_insert", "consolidate")
    assert (paper.profile_update, code.profile_update) == ("on_evolution", "consolidate")
    assert (paper.evolution_calls, code.evolution_calls) == ("per_neighbour", "joint")
    assert (paper.neighbour_query, code.neighbour_query) == ("note", "content")
    assert (paper.new_cluster_evolution, code.new_cluster_evolution) == ("none", "global")
    assert (code.merge, code.selector_query, code.invalid_route) == ("concat", "keywords", "new_cluster")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("merge", "sum"),
        ("tau", 1.5),
        ("tau", "low"),
        ("k_route", 0),
        ("n_init", True),
        ("uses_gold", True),
        ("roles", {}),
        ("evolution_rules", {}),
        ("context", {"colour": "red"}),
    ],
)
def test_wrong_settings_are_refused(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=key):
        joint(**{key: value})


def test_wrong_settings_inside_groups_are_refused() -> None:
    settings = composed("clag")
    with pytest.raises(ConfigError, match=r"router.*heat"):
        joint(roles={**settings["roles"], "router": {"heat": 1}})
    with pytest.raises(ConfigError, match=r"context\.link_cap"):
        joint(context={**settings["context"], "link_cap": "none"})


def test_a_cosine_of_tau_is_accepted_and_one_below_is_not() -> None:
    partition, store = partition_of(a=[1.0, 0.0]), NoteStore()
    store.add(Note("note of a", "old", "", [], "", [], ()))
    config = joint(tau=0.6)
    router = Router(replying(), make_roles(config.roles).router, config, store, partition)
    note = Note("new", "text", "", [], "", [], ())
    equal = asyncio.run(router.route(note, np.array([0.6, 0.8], dtype=np.float32)))
    assert (equal.cluster_id, equal.cause) == ("a", "chosen")
    below = asyncio.run(router.route(note, np.array([0.59, 0.8074], dtype=np.float32)))
    assert (below.cluster_id, below.cause) == (None, "new_tau")


def test_l2_prefers_a_broad_cluster_where_the_cosine_does_not() -> None:
    partition = partition_of(broad=[0.3, 0.0], single=[0.8, 0.6])
    query = np.array([0.28, 0.96], dtype=np.float32)
    # |q-c|^2: broad 1 + 0.09 - 2*0.084 = 0.922, single 2 - 2*0.8 = 0.4
    assert partition.nearest(query, 2, "l2") == ["single", "broad"]
    across = np.array([-0.6, 0.8], dtype=np.float32)
    # broad 1.09 + 0.36 = 1.45, single 2; cosines -0.6 and 0
    assert partition.nearest(across, 2, "l2") == ["broad", "single"]
    assert partition.nearest(across, 2, "cosine") == ["single", "broad"]
    assert partition.nearest(across, 1, "l2") == ["broad"]


def test_centroids_grow_move_and_drop_in_order() -> None:
    centroids = Centroids()
    assert centroids.nearest(np.zeros(2, dtype=np.float32), 3, "l2") == []
    for number in range(40):
        centroids.put(f"c{number}", np.array([number, 0], dtype=np.float32))
    query = np.array([20.2, 0.0], dtype=np.float32)
    assert centroids.nearest(query, 3, "l2") == ["c20", "c21", "c19"]
    centroids.drop("c20")
    centroids.put("c3", np.array([20.2, 0.0], dtype=np.float32))
    centroids.put("c40", np.array([20.2, 0.0], dtype=np.float32))
    assert centroids.nearest(query, 3, "l2") == ["c3", "c40", "c21"]  # a tie goes to the older
    assert centroids.similarity(query, "c0") == 0.0  # at the origin
    assert centroids.similarity(query, "c5") == 1.0


def test_kmeans_finds_two_clouds_and_is_repeatable() -> None:
    rows = np.array([[0, 0], [0, 0.1], [5, 5], [5, 5.1]], dtype=np.float32)
    labels = kmeans(rows, 2, seed=42, restarts=10)
    assert labels[0] == labels[1] != labels[2] == labels[3]
    assert (labels == kmeans(rows, 2, seed=42, restarts=10)).all()
    assert kmeans(np.ones((5, 2), dtype=np.float32), 3, seed=1, restarts=1).tolist() == [0] * 5
    assert len(set(kmeans(rows[[0, 0, 2]], 3, seed=1, restarts=1).tolist())) == 2
    assert groups(["a", "b", "c"], np.array([1, 0, 1])) == [["b"], ["a", "c"]]


def test_means_are_not_normalised_and_near_rows_come_first() -> None:
    rows = np.array([[1, 0], [0, 1], [1, 0]], dtype=np.float32)
    assert mean(rows).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert nearest_rows(mean(rows), rows, 2) == [0, 2]


def test_provisional_descriptions() -> None:
    rules = preset().provisional_rules
    notes = [Note(str(n), "", "", [], "c", tags, ()) for n, tags in enumerate([["b", "a"], ["a"], ["c", "b"]])]
    assert frequent_tags(notes, 2) == ["b", "a"]
    assert provisional_summary(["a", "b"], "context", 3, rules) == "Notes about a, b"
    assert provisional_summary([], "context", 3, rules) == "con"
    assert provisional_summary([], "", 3, rules) == "Notes on various topics"


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ({"summary": " S. ", "tags": ["Two words", "Two", "", "b", "c", "d"]}, "", ("S.", ("Two", "b", "c"), None)),
        ({"summary": " ", "tags": []}, "", ("", (), None)),
        ({"tags": ["a", ["b"], 7]}, "", ("", ("a",), None)),  # where the schema is not checked, each part alone
        ({"summary": "S", "tags": "a"}, "", ("S", (), None)),
        (None, '{"summary": "A \\"b\\"", "tags": ["x", "y"', ('A \\"b\\"', ("x", "y"), "recovered")),
        (None, "sorry", ("", (), "kept")),
    ],
)
def test_profiles_from_replies(value: Any, text: str, expected: tuple[object, ...]) -> None:
    reply = Reply(value, text, Completion(text, 1, 1, 0.0, "stop"), malformed=value is None)
    profile = profile_from_reply(reply, 3)
    assert (profile.summary, profile.tags, profile.fallback) == expected


def test_constrained_roles_list_the_candidates() -> None:
    roles = make_roles(joint().roles)
    choice = router_for(roles.router, ["a", "b"]).schema
    picks = selector_for(roles.selector, ["a", "b"], 2).schema
    assert choice and choice["properties"]["choice"]["enum"] == ["a", "b"]
    assert picks and picks["properties"]["selected_clusters"]["maxItems"] == 2
    assert roles.router.schema == SCHEMAS["router"]


def test_prompts_name_no_id_that_could_be_copied() -> None:
    roles = make_roles(joint().roles)
    for role in (roles.router, roles.profile, roles.selector):
        assert "cluster_" not in role.prompt.text


def test_a_snapshot_file_gives_the_same_hits_contexts_and_writes(tmp_path: Path) -> None:
    config = replace(joint(), buffer_size=6, consolidate_every=4)
    original, copy = memory(config), memory(config)
    write_all(original, [unit(number) for number in range(12)])
    save_snapshot(tmp_path / "memory.npz", original.state())
    copy.load_state(load_snapshot(tmp_path / "memory.npz"))
    for system in (original, copy):
        write_all(system, [unit(number) for number in range(12, 20)])
        asyncio.run(system.consolidate())
    first, second = (asyncio.run(system.retrieve("boat w3 sea?")) for system in (original, copy))
    assert (first.hits, first.context) == (second.hits, second.context)
    assert repr(original.state()) == repr(copy.state())
    assert original.statistics() == copy.statistics()
