"""Nemori's read path: two stores, three methods, what the reader sees."""

import asyncio
from typing import Any

import pytest

from baselines.nemori.memory import NemoriMemory
from memsys.vocabulary import Retrieval
from tests.support.nemori import TALK, ingest, memory, model_of, preset
from tests.support.shown import check_shown
from tests.support.xmemory import talk


def stored(name: str = "nemori", **changes: Any) -> NemoriMemory:
    return ingest(memory(preset(name, **changes)), talk(*TALK))


def ask(system: NemoriMemory, question: str = "sea boat") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def test_the_nearest_facts_and_episodes_are_found_without_a_call() -> None:
    system = stored(search={"episodes": 2, "facts": 3})
    before = len(model_of(system).calls)
    found = ask(system)
    assert len(model_of(system).calls) == before
    assert found.trace["facts"][0] == "s0" and len(found.trace["facts"]) == 3
    assert set(found.trace["episodes"]) == {"e0", "e3"}, "both are about the sea"
    assert [hit.memory_id for hit in found.hits] == [*found.trace["facts"], *found.trace["episodes"]]
    for hits in (found.hits[:3], found.hits[3:]):
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_every_hit_names_the_turns_that_it_came_from() -> None:
    by_id = {hit.memory_id: hit.turn_ids for hit in ask(stored()).hits}
    assert by_id["e1"] == by_id["s3"] == ("D1:3", "D1:4", "D1:5")
    assert by_id["s0"] == by_id["e0"] == ("D1:1", "D1:2")


def test_the_reader_sees_both_stores_and_the_messages_of_the_first_episodes() -> None:
    found = ask(stored(search={"episodes": 3, "facts": 1}, context={"raw_first": 1}))
    lines = found.context.splitlines()
    assert lines[0] == "Semantic memories:" and lines[1] == "- [2023-05-01T10:00:00] Ann: sea boat"
    start = lines.index("Episodic memories:")
    assert lines[start + 1 : start + 4] == [
        "- [2023-05-01T10:00:00] About sea. Ann: sea boat and Ben: sea sail",
        "Ann: sea boat",
        "Ben: sea sail",
    ]
    assert len(lines[start + 1 :]) == 5 and found.trace["raw"] == found.trace["episodes"][:1] == ["e0"]
    raw = [hit.text for hit in found.hits if hit.memory_id == "e0"]
    assert raw == ["About sea. Ann: sea boat and Ben: sea sail\nAnn: sea boat\nBen: sea sail"]


def test_its_own_prompt_shows_episodes_first_and_the_current_code_no_titles() -> None:
    assert ask(stored("nemori_code")).context.startswith("Episodic memories:\n- [2023-05-01T10:00:00] About sea. Ann")
    current = stored("nemori_current", batch={"least": 2})
    assert ask(current).context.startswith("Episodic memories:\n- [2023-05-01T10:00:00] Ann")


def test_a_limit_of_tokens_leaves_out_what_comes_last_and_counts_it() -> None:
    whole = ask(stored())
    limited = ask(stored(context={"max_tokens": 20}))
    assert whole.trace["dropped"] == 0
    assert limited.trace["dropped"] > 0 and len(limited.context.split()) <= 20 + len("Semantic memories: (none)" * 2)
    assert whole.context.startswith(limited.context.splitlines()[0])
    assert whole.shown == tuple(range(len(whole.hits)))


@pytest.mark.parametrize("first", [True, False])
def test_hits_that_had_no_room_are_not_shown(first: bool) -> None:
    found = ask(stored(context={"max_tokens": 20, "episodes_first": first, "raw_first": 0}))
    kept = [found.hits[place] for place in found.shown or ()]
    assert 0 < len(kept) == len(found.hits) - found.trace["dropped"]
    assert {hit.memory_id[0] for hit in kept} == {"e" if first else "s"}
    if not first:  # the text of an episode holds those of its facts
        check_shown(found)
    assert all(hit.text.splitlines()[0] in found.context for hit in kept)


def test_a_store_that_is_not_wanted_is_not_shown() -> None:
    assert "Episodic memories:\n(none)" in ask(stored(search={"episodes": 0})).context
    found = ask(stored(facts={"mode": "none"}))
    assert found.trace["facts"] == [] and {hit.memory_id[0] for hit in found.hits} == {"e"}


def test_words_find_only_what_holds_one_of_the_question() -> None:
    system = stored(search={"method": "bm25"})
    found = ask(system, "What about the oven?")
    assert found.trace["facts"] == ["s2"] and found.trace["episodes"] == ["e1"]
    assert ask(system, "the harbour").hits == () and ask(system, "the harbour").context == ""


def test_hybrid_search_adds_reciprocal_ranks_of_both_lists() -> None:
    """By words the oven is the only fact; by vector it is the first too: 1/61 + 1/61. The others have one list."""
    found = ask(stored(search={"method": "hybrid", "facts": 2}), "cake oven")
    scores = {hit.memory_id: hit.score for hit in found.hits if hit.memory_id.startswith("s")}
    assert next(iter(scores)) == "s2" and scores["s2"] == pytest.approx(2 / 61)
    assert len(scores) == 2 and list(scores.values())[1] < 2 / 61


def test_a_merged_episode_is_found_by_none_of_the_methods() -> None:
    changes: dict[str, Any] = {"batch": {"size": 4, "least": 2}}
    for method in ("vector", "bm25", "hybrid"):
        system = stored("nemori_current", search={"method": method}, **changes)
        assert system._store.merged_into
        found = ask(system, "sea boat cake oven song")
        assert not set(found.trace["episodes"]) & set(system._store.merged_into)
        assert set(found.trace["episodes"]) == set(system._store.episode_index.ids)


def test_a_restored_memory_finds_words_as_the_first_did() -> None:
    config = preset("nemori", search={"method": "hybrid"})
    system, other = ingest(memory(config), talk(*TALK)), memory(config)
    other.load_state(system.state())
    for question in ("sea boat", "cake", "nothing of it"):
        assert ask(other, question).hits == ask(system, question).hits
