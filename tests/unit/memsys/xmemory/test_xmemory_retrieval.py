"""xMemory's read path: pools, ranks, what the reader sees, and the ablations of table 4."""

import asyncio
from typing import Any

import pytest

from memsys.episodes.nodes import Episode, Fact, Message
from memsys.vocabulary import Retrieval
from memsys.xmemory.assembly import write_context
from memsys.xmemory.memory import XMemory
from memsys.xmemory.rules import XMemoryContextRules
from tests.support.fakes import FakeModel, WordEmbedder
from tests.support.xmemory import ProbedModel, ingest, memory, preset, replying, sensible, talk

TALK = ("sea boat", "sea sail", "cake oven", "cake sugar", "cake flour", "song band", "sea wind", "sea fish")


def stored(name: str = "xmemory", model: FakeModel | None = None, **changes: Any) -> XMemory:
    return ingest(memory(preset(name, **changes), model), talk(*TALK))


def ask(system: XMemory, question: str = "sea boat") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def ids(retrieval: Retrieval, kind: str) -> list[str]:
    return [hit.memory_id for hit in retrieval.hits if hit.memory_id.startswith(kind)]


def test_the_reader_sees_facts_then_episodes_each_after_its_time_and_no_theme() -> None:
    found = ask(stored())
    lines = found.context.splitlines()
    assert lines[0] == "Semantic memories:" and "Episodic memories:" in lines
    assert all(line.startswith("- [2023-05-01T") for line in lines if line.startswith("- "))
    assert "- [2023-05-01T10:00:00] Ann: sea boat" in lines
    assert [hit.memory_id[0] for hit in found.hits] == ["s"] * len(ids(found, "s")) + ["e"] * len(ids(found, "e"))


def test_facts_are_hits_in_the_order_of_their_cosine_and_carry_their_episodes_turns() -> None:
    found = ask(stored())
    facts = [hit for hit in found.hits if hit.memory_id.startswith("s")]
    assert facts[0].text == "Ann: sea boat" and facts[0].turn_ids == ("D1:1", "D1:2")
    assert [hit.score for hit in facts] == sorted((hit.score for hit in facts), reverse=True)


def test_an_expanded_episode_brings_its_messages() -> None:
    surer = ProbedModel(sensible, lambda values: [2.0 - len(values["episodes"]) / 1000])
    found = ask(stored(model=surer))
    assert found.trace["expanded"] == found.trace["raw"] == found.trace["episodes"] != []
    assert "- [2023-05-01T10:00:00] Ann: sea boat and Ben: sea sail\nAnn: sea boat\nBen: sea sail" in found.context
    text = next(hit.text for hit in found.hits if hit.memory_id == "e0")
    assert text == "Ann: sea boat and Ben: sea sail\nAnn: sea boat\nBen: sea sail"


def test_without_a_gain_one_episode_is_shown_and_two_probes_are_asked() -> None:
    system = stored(model=replying())
    found = ask(system)
    assert len(ids(found, "e")) == 1 and found.trace["expanded"] == []
    assert [probe["gain"] for probe in found.trace["probes"]] == [0.0]


def test_the_candidates_are_the_chosen_facts_episodes_and_the_nearest_ones() -> None:
    system = stored(retrieval={"vector_episodes": 1, "facts": 1, "themes": 1})
    found = ask(system, "cake oven")
    owner = system._store.facts[found.trace["facts"][0]].episode_id
    assert set(found.trace["candidate_episodes"]) >= {owner}
    assert len(found.trace["candidate_episodes"]) <= 2


def test_an_episode_rises_with_the_relevance_of_its_chosen_facts() -> None:
    system = stored(retrieval={"support": 0.0})
    plainly = ask(system, "sea boat").trace["candidate_episodes"]
    assert plainly[0] in ("e0", "e3")
    strong = stored(retrieval={"support": 100.0, "facts": 1})
    found = ask(strong, "sea boat")
    assert found.trace["candidate_episodes"][0] == strong._store.facts[found.trace["facts"][0]].episode_id


def test_only_facts_of_chosen_themes_and_of_the_pool_are_chosen() -> None:
    system = stored(retrieval={"themes": 1, "pool": 3})
    found = ask(system)
    home = system._store.themes.home
    assert len(found.trace["themes"]) == 1
    assert {home[fact_id] for fact_id in found.trace["facts"]} == set(found.trace["themes"])
    pool = {name for name, _ in system._store.fact_index.search(_vector("sea boat"), 3)}
    assert set(found.trace["facts"]) <= pool
    whole = ask(stored(retrieval={"themes": 1, "pool": 1, "whole_themes": True}))
    assert set(whole.trace["facts"]) <= set(system._store.themes.members[whole.trace["themes"][0]])


def _vector(text: str) -> Any:
    return asyncio.run(WordEmbedder().embed([text]))[0]


def test_without_facts_the_nearest_episodes_are_taken_without_a_probe() -> None:
    system = stored(model=replying(extract={"statements": []}))
    found = ask(system)
    assert (ids(found, "s"), len(ids(found, "e")), found.trace["fallbacks"]) == ([], 4, ["facts:none"])
    assert found.trace["probes"] == [] and "Semantic memories:\n(none)" in found.context


def test_an_empty_memory_gives_an_empty_context() -> None:
    system = memory(preset())
    asyncio.run(system.consolidate())
    found = ask(system)
    assert (found.hits, found.context, found.trace["fallbacks"]) == ((), "", [])


def test_the_ablations_of_table_4_switch_one_stage_each() -> None:
    stored_once = {
        name: stored(name) for name in ("xmemory_memory_only", "xmemory_repsel", "xmemory_uncsion", "xmemory")
    }
    asked = {}
    for name, system in stored_once.items():
        model = system._parts.llm
        assert isinstance(model, FakeModel)
        found = ask(system)
        asked[name] = (model.count("probe") > 0, bool(found.trace["raw"]))
    assert asked == {
        "xmemory_memory_only": (False, True),
        "xmemory_repsel": (False, True),
        "xmemory_uncsion": (True, False),
        "xmemory": (True, False),
    }


def test_memory_only_is_plain_similarity() -> None:
    system = stored("xmemory_memory_only")
    found = ask(system)
    expected = [name for name, _ in system._store.fact_index.search(_vector("sea boat"), 10)]
    assert found.trace["facts"] == expected == ids(found, "s")
    near = [name for name, _ in system._store.episode_index.search(_vector("sea boat"), 10)]
    assert found.trace["episodes"] == near == found.trace["raw"]


def test_uncsion_takes_facts_by_cosine_and_at_most_five_of_their_themes() -> None:
    found = ask(stored("xmemory_uncsion", theme={"attach": 1.0, "tiny_min": 1.0}))
    assert len(found.trace["facts"]) == 8 and len(found.trace["themes"]) == 5


TEXTS = preset().texts
FACTS = [Fact("s0", "Ann sails", "e0", "2023-05-01T13:00:00"), Fact("s1", "Ben bakes bread", "e0", "")]
EPISODES = [Episode("e0", "T", "They met", "2023-05-01T13:00:00", (Message("D1:1", "s", "Ann: hi", ""),))]


def context(*, raw: tuple[str, ...] = (), first: bool = False, limit: int | None = None) -> tuple[str, int]:
    rules = XMemoryContextRules(raw_first=0, raw_expanded=10, episodes_first=first, max_tokens=limit)
    written = asyncio.run(write_context(FakeModel(sensible), rules, TEXTS, FACTS, EPISODES, raw))
    return written.text, written.dropped


def test_the_context_to_the_letter() -> None:
    facts = "Semantic memories:\n- [2023-05-01T13:00:00] Ann sails\n- Ben bakes bread"
    episode = "Episodic memories:\n- [2023-05-01T13:00:00] They met"
    assert context() == (f"{facts}\n\n{episode}", 0)
    assert context(raw=("e0",)) == (f"{facts}\n\n{episode}\nAnn: hi", 0)
    assert context(first=True) == (f"{episode}\n\n{facts}", 0)


@pytest.mark.parametrize(("limit", "dropped"), [(100, 0), (12, 0), (11, 1), (8, 1), (7, 2), (3, 3)])
def test_a_token_limit_leaves_out_what_comes_last(limit: int, dropped: int) -> None:
    text, left_out = context(limit=limit)  # words: 4, 4, 4
    assert left_out == dropped
    assert ("They met" in text) == (dropped == 0)
    assert ("Ann sails" in text) == (dropped < 3)


@pytest.mark.parametrize("first", [True, False])
def test_hits_that_had_no_room_are_not_shown(first: bool) -> None:
    limits = {"max_tokens": 12, "episodes_first": first, "raw_first": 0, "raw_expanded": 0}
    found = ask(stored(context=limits))
    shown = {found.hits[place].memory_id for place in found.shown or ()}
    kept = [name for name in (*found.trace["facts"], *found.trace["episodes"]) if name in shown]
    texts = {hit.memory_id: hit.text for hit in found.hits}
    assert 0 < len(kept) < len(found.hits) == len(kept) + found.trace["dropped"]
    # By lines, since an episode repeats the texts of its facts.
    assert sorted(line[24:] for line in found.context.splitlines() if line.startswith("- ")) == sorted(
        texts[name] for name in kept
    )


def test_the_memory_goes_by_the_shared_turn_format() -> None:
    system = memory(preset())
    captioned = talk("sea boat", "sea sail")
    found = ingest(system, captioned)
    assert [message.line for message in found._store.episodes["e0"].messages] == ["Ann: sea boat", "Ben: sea sail"]
