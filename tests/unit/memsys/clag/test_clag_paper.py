"""What the paper of CLAG says and the official code does not do: Algorithms 1 and 3, equations 2 to 4."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from memsys.clag.cards import candidate_cards
from memsys.clag.memory import ClagMemory
from memsys.notes.note import Note, unit_timestamp
from memsys.notes.store import NoteStore
from tests.support.clag import memory, partition_of, preset, replying, unit, write_all
from tests.support.fakes import FakeModel

UNCHANGED = {"update": False, "context": "", "tags": []}


def model_of(system: ClagMemory) -> FakeModel:
    model = system._parts.llm
    assert isinstance(model, FakeModel)
    return model


def one_cluster(model: FakeModel | None = None, notes: int = 5, **changes: Any) -> ClagMemory:
    """Four buffered notes in one cluster, then further ones; two neighbours each."""
    settings: dict[str, Any] = {"buffer_size": 4, "n_init": 1, "k_local": 2, "tau": -1.0, **changes}
    system = memory(preset("clag", **settings), model)
    write_all(system, [unit(number) for number in range(notes)])
    return system


def shown(prompt: str) -> list[str]:
    return re.findall(r"memory index: (\d+)", prompt)


def test_buffered_notes_wait_and_only_then_do_notes_evolve() -> None:
    system = one_cluster(notes=4)
    assert {role for role, _ in model_of(system).calls} == {"analyse", "profile"}
    assert system.statistics()["evolved_notes"] == 0
    calls = [call for call in model_of(one_cluster(notes=5)).calls if call[0] not in ("analyse", "profile")]
    assert [role for role, _ in calls] == ["router", "link", "rewrite", "rewrite"]


def test_each_neighbour_is_asked_about_beside_the_others() -> None:
    system = one_cluster()
    calls = list(zip(model_of(system).calls, model_of(system).prompts, strict=True))
    (links,) = [prompt for (role, _), prompt in calls if role == "link"]
    rewrites = {key: shown(prompt) for (role, key), prompt in calls if role == "rewrite"}
    first, second = shown(links)
    assert rewrites == {f"D1:4:D1:{first}": [second, first], f"D1:4:D1:{second}": [first, second]}


@pytest.mark.parametrize("role", ["link", "rewrite"])
def test_the_new_note_is_shown_with_its_time_and_tags(role: str) -> None:
    """Eq. 1: both belong to a note, and a link may rest on what happened first."""
    model = model_of(one_cluster())
    prompt = next(prompt for (asked, _), prompt in zip(model.calls, model.prompts, strict=True) if asked == role)
    new = prompt[prompt.index("New note") :]
    assert f"time: {unit_timestamp(unit(4))}\n" in new and "tags: ['w4']" in new


def test_links_and_rewritings_of_the_calls_are_applied_together() -> None:
    def rewrite(values: Mapping[str, str], key: str) -> Mapping[str, Any]:
        changed = {"update": True, "context": f"since {key}", "tags": ["fresh"]}
        return changed if key.endswith("D1:0") else UNCHANGED

    system = one_cluster(replying(link={"suggested_connections": [0, 3, 99]}, rewrite=rewrite), k_local=4)
    new, old = system._store["D1:4"], system._store["D1:0"]
    assert new.links == ["D1:0", "D1:3"] and new.tags == ["w4"]
    assert (old.context, old.tags) == ("since D1:4:D1:0", ["fresh"])
    assert [system._store[f"D1:{n}"].evolution_history for n in (1, 2, 3)] == [[], [], []]
    counts = system.statistics()["counts"]
    assert (counts["evolution.yes"], counts["links.created"], counts["links.dropped"]) == (1, 2, 1)
    assert counts["evolution.rewritten"] == 1
    fresh = asyncio.run(system._parts.embedder.embed([old.text("clustered")]))
    assert np.allclose(system._partition["cluster_0"].index.vectors(["D1:0"]), fresh)


def test_calls_about_neighbours_see_the_notes_as_they_were() -> None:
    prompts = model_of(one_cluster(replying(rewrite={"update": True, "context": "later", "tags": ["later"]}))).prompts
    assert not any("later" in prompt for prompt in prompts if "The stored note:" in prompt)


@pytest.mark.parametrize(
    ("replies", "yes", "fallbacks"),
    [
        ({"link": "none of them"}, 0, 1),
        ({"rewrite": "no"}, 0, 2),
        ({"link": "none", "rewrite": "no"}, 0, 3),
        ({"link": {"suggested_connections": [0]}, "rewrite": "no"}, 1, 2),
        ({}, 0, 0),
    ],
)
def test_a_malformed_reply_changes_nothing_and_is_counted(replies: Any, yes: int, fallbacks: int) -> None:
    system = one_cluster(replying(**replies), k_local=2)
    counts = system.statistics()["counts"]
    assert (counts["evolution.yes"], counts["fallback.evolve"]) == (yes, fallbacks)
    assert all(not note.evolution_history for note in system._store)


def test_a_note_that_founds_a_cluster_evolves_nowhere_or_among_all() -> None:
    alone = one_cluster(tau=1.0)
    assert "cluster_new_1" in alone._partition
    assert model_of(alone).count("link") == model_of(alone).count("rewrite") == 0
    among_all = one_cluster(tau=1.0, new_cluster_evolution="global")
    assert (model_of(among_all).count("link"), model_of(among_all).count("rewrite")) == (1, 2)


def test_neighbours_are_near_to_the_whole_note_or_to_its_content() -> None:
    analyses = {
        "D1:0": {"keywords": [], "context": "x", "tags": []},
        "D1:1": {"keywords": ["cake"] * 3, "context": "cake", "tags": ["cake"]},
        "D1:2": {"keywords": ["cake"] * 9, "context": "cake", "tags": ["cake"] * 9},
    }
    nearest = {}
    for query in ("note", "content"):
        settings: dict[str, Any] = {"buffer_size": 2, "n_init": 1, "k_local": 1, "tau": -1.0, "neighbour_query": query}
        model = replying(analyse=lambda values, key: analyses[key])
        write_all(
            memory(preset("clag", **settings), model),
            [unit(0, "boat harbour"), unit(1, "cake oven"), unit(2, "boat sail")],
        )
        nearest[query] = shown(next(p for c, p in zip(model.calls, model.prompts, strict=True) if c[0] == "link"))
    assert nearest == {"note": ["1"], "content": ["0"]}  # by its metadata it is about cakes, by its words about boats


def test_a_profile_is_renewed_when_a_note_of_the_cluster_was_rewritten() -> None:
    def rewrite(values: Mapping[str, str], key: str) -> Mapping[str, Any]:
        return {"update": key.startswith("D1:5"), "context": "new", "tags": ["new"]}

    def profiles(**changes: Any) -> list[str]:
        calls = model_of(one_cluster(replying(rewrite=rewrite), notes=7, **changes)).calls
        return [key for role, key in calls if role == "profile"]

    assert profiles() == ["profile:1:cluster_0", "profile:2:cluster_0"], "one of D1:4, D1:5 and D1:6 rewrote notes"
    assert profiles(profile_update="consolidate") == ["profile:1:cluster_0"]
    assert profiles(consolidate_every=1) == ["profile:1:cluster_0", "profile:2:cluster_0"], "not twice"


def test_a_split_does_not_keep_another_clusters_profile_from_being_renewed() -> None:
    def rewrite(values: Mapping[str, str], key: str) -> Mapping[str, Any]:
        return {"update": key in ("D1:4:D1:0", "D1:4:D1:2"), "context": "new", "tags": ["new"]}

    settings: dict[str, Any] = {"buffer_size": 4, "n_init": 2, "k_local": 4, "tau": -1.0, "tau_split": 2}
    model = replying(rewrite=rewrite)
    system = memory(preset("clag", evolution_scope="global", **settings), model)
    texts = ("boat sail", "boat sea", "cake oven", "cake sugar", "boat harbour")
    write_all(system, [unit(number, text) for number, text in enumerate(texts)])
    cakes = system._partition.home("D1:2")
    assert system.statistics()["counts"]["splits"] == 1 and system._partition.home("D1:0") != cakes
    rounds = [key.split(":")[1:] for role, key in model.calls if role == "profile"]
    assert [number for number, _ in rounds] == ["1", "1", "2", "2", "3"], "the halves once, as they were made"
    assert rounds[-1] == ["3", cakes]


def test_a_cluster_is_bisected_as_soon_as_it_is_too_large() -> None:
    system = one_cluster(notes=6, tau_split=5)
    assert sorted(cluster.cluster_id for cluster in system._partition.clusters) == ["cluster_0_a", "cluster_0_b"]
    assert system.statistics()["counts"]["consolidations"] == 0


def test_line_breaks_in_examples_of_a_card_become_blanks() -> None:
    store = NoteStore()
    store.add(Note("note of a", "Title: Oslo\nContent:\nA city", "", [], "", [], ("D1:1",)))
    cards = candidate_cards(partition_of(a=[1.0]).clusters, store, preset(card_chars=20).card_rules, show_size=False)
    assert cards.splitlines()[-1] == "  example: Title: Oslo Content:"
    whole = candidate_cards(partition_of(a=[1.0]).clusters, store, preset(card_chars=23).card_rules, show_size=False)
    assert whole.splitlines()[-1] == "  example: Title: Oslo Content: A "
