"""Plain retrieval: passages, chunks, scorers, limits."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.passages import Passage
from baselines.rag.chunking import ChunkPacker, CountedTurn
from memsys.errors import ConfigError
from memsys.protocol import MemorySystem
from memsys.vocabulary import Conversation
from tests.support.composing import conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel

TALK = conversation(
    ["red boat harbour", "blue cake oven", "red boat again"],
    ["green garden rose", "boat boat boat storm", "quiet evening"],
)


def model(**replies: Mapping[str, Any] | str) -> FakeModel:
    return FakeModel(lambda role, values, key: replies[role])


def ingested(preset: str, backbone: FakeModel | None = None, talk: Conversation = TALK, **changes: Any) -> MemorySystem:
    memory = memory_config(preset, **changes).build(parts(backbone or model()))
    ingest(memory, talk)
    return memory


def found(memory: MemorySystem, query: str) -> list[str]:
    return [hit.memory_id for hit in asyncio.run(memory.retrieve(query)).hits]


def test_a_turn_is_shown_with_its_date_speaker_and_text() -> None:
    retrieval = asyncio.run(ingested("rag_turn", k=1).retrieve("green garden rose"))
    assert retrieval.context == "[2 May 2023] Ann: green garden rose"
    assert retrieval.hits[0].text == "Ann: green garden rose" and retrieval.hits[0].turn_ids == ("D2:0",)
    assert retrieval.hits[0].score < 1


@pytest.mark.parametrize("scorer", ["dense", "bm25", "hybrid"])
def test_every_scorer_finds_the_words_asked_for(scorer: str) -> None:
    memory = ingested("rag_turn", scorer=scorer, k=2)
    assert found(memory, "storm")[0] == "D2:1"
    assert len(found(memory, "storm")) == 2


def test_bm25_needs_no_embedder_and_keeps_document_order_without_a_match() -> None:
    memory = memory_config("bm25_turn", k=2).build(parts(model()))
    ingest(memory, TALK)
    assert found(memory, "zebra") == ["D1:0", "D1:1"]


def test_hybrid_without_a_lexical_match_keeps_the_dense_order() -> None:
    dense, hybrid = ingested("rag_turn", k=6), ingested("hybrid_turn", k=6)
    assert found(hybrid, "zebra") == found(dense, "zebra")


def test_hybrid_fuses_ranks() -> None:
    retrieval = asyncio.run(ingested("hybrid_turn", k=1).retrieve("storm"))
    assert retrieval.hits[0].score == pytest.approx(2 / 61)


def test_the_date_can_stay_out_of_the_index_but_not_out_of_the_context() -> None:
    talk = conversation(["red boat", "blue cake"], ["green rose", "storm"], ["calm"])
    with_date, without = (
        ingested("bm25_turn", k=1, talk=talk),
        ingested("bm25_turn", k=1, talk=talk, date_in_index=False),
    )
    assert found(with_date, "On 3 May?") == ["D3:0"]
    assert found(without, "On 3 May?") == ["D1:0"]  # no match: document order
    assert "[1 May 2023]" in asyncio.run(without.retrieve("On 3 May?")).context


def test_order_by_time_changes_the_context_alone() -> None:
    by_rank, by_time = ingested("bm25_turn", k=3), ingested("bm25_turn", k=3, order="time")
    one, other = asyncio.run(by_rank.retrieve("boat storm")), asyncio.run(by_time.retrieve("boat storm"))
    assert one.hits == other.hits and one.hits[0].memory_id == "D2:1"
    assert other.context.splitlines() == sorted(one.context.splitlines(), key=lambda line: "storm" in line)


def test_chunks_pack_whole_turns_of_one_session() -> None:
    # 4 words a line (speaker included), 3 words the date: limit 11 holds the date and two lines
    memory = ingested("rag_chunk", chunk_tokens=11)
    retrieval = asyncio.run(memory.retrieve("boat"))
    chunks = {hit.memory_id: hit.turn_ids for hit in retrieval.hits}
    assert chunks == {"D1:0": ("D1:0", "D1:1"), "D1:2": ("D1:2",), "D2:0": ("D2:0",), "D2:1": ("D2:1", "D2:2")}
    assert "[1 May 2023]\nAnn: red boat harbour\nBen: blue cake oven" in retrieval.context
    assert memory.statistics()["turns"] == 6


def counted(number: int, session: str, tokens: int) -> CountedTurn:
    return CountedTurn(Passage(f"t{number}", "d", (f"line {number}",), (f"t{number}",)), (session, ""), tokens, 2)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 30)), max_size=20), st.integers(1, 40))
def test_packing_keeps_every_turn_once_in_order_within_limit_and_session(
    turns: list[tuple[str, int]], limit: int
) -> None:
    packer = ChunkPacker(limit)
    session_of = {f"t{number}": session for number, (session, _) in enumerate(turns)}
    closed = [packer.add(counted(number, session, tokens)) for number, (session, tokens) in enumerate(turns)]
    chunks = [chunk for chunk in [*closed, packer.close()] if chunk is not None]
    assert [turn for chunk in chunks for turn in chunk.turn_ids] == list(session_of)
    for chunk in chunks:
        assert len({session_of[turn] for turn in chunk.turn_ids}) == 1
        assert chunk.tokens <= limit or len(chunk.turn_ids) == 1
        assert chunk.tokens == 2 + sum(turns[int(turn[1:])][1] for turn in chunk.turn_ids)


def test_packing_is_greedy() -> None:
    packer = ChunkPacker(10)
    closed = [packer.add(counted(number, "a", 4)) for number in range(3)]
    assert closed[:2] == [None, None] and closed[2] is not None and closed[2].turn_ids == ("t0", "t1")


def test_a_token_budget_is_filled_by_rank() -> None:
    # "[2 May 2023] Ben: boat boat boat storm" is 8 words, "[1 May 2023] Ann: red boat harbour" 7
    assert found(ingested("bm25_turn", k=None, budget_tokens=15), "boat storm") == ["D2:1", "D1:0"]
    assert found(ingested("bm25_turn", k=None, budget_tokens=14), "boat storm") == ["D2:1"]
    assert found(ingested("bm25_turn", k=None, budget_tokens=7), "boat storm") == []
    assert len(found(ingested("rag_turn", k=None, budget_tokens=10_000), "boat")) == 6


def test_keywords_are_searched_by_and_fall_back_to_the_question() -> None:
    backbone = model(keywords={"keywords": "garden, rose"})
    assert found(ingested("bm25_turn", backbone, query="keywords", k=1), "storm?") == ["D2:0"]
    assert backbone.count("keywords") == 1
    memory = ingested("bm25_turn", model(keywords="no JSON about garden"), query="keywords", k=1)
    retrieval = asyncio.run(memory.retrieve("storm?"))
    assert retrieval.hits[0].memory_id == "D2:1" and retrieval.trace["fallbacks"] == ["keywords:question"]


def test_the_question_needs_no_backbone_call() -> None:
    backbone = model()
    asyncio.run(ingested("hybrid_turn", backbone).retrieve("boat"))
    assert backbone.calls == []


def test_an_interrupted_chunk_survives_the_snapshot() -> None:
    memory = memory_config("rag_chunk", chunk_tokens=11).build(parts(model()))
    units = memory.units(TALK)

    async def part(target: MemorySystem, first: int, last: int) -> None:
        for unit in units[first:last]:
            await target.write(unit, await target.prepare(unit))

    asyncio.run(part(memory, 0, 2))
    other = memory_config("rag_chunk", chunk_tokens=11).build(parts(model()))
    other.load_state(memory.state())
    for each in (memory, other):
        asyncio.run(part(each, 2, 6))
        asyncio.run(each.consolidate())
    assert found(memory, "boat") == found(other, "boat") and len(found(other, "boat")) > 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"k": None}, "set one of them"),
        ({"budget_tokens": 100}, "set one of them"),
        ({"k": 0}, "memory.k=0"),
        ({"scorer": "bm42"}, "dense, bm25, hybrid"),
        ({"uses_gold": True}, "uses_gold"),
        ({"bm25": {"k1": 1.5, "b": 0.75}}, "memory.bm25"),
        ({"fusion": {"k": 60, "depth": 0, "dense_weight": 1, "bm25_weight": 1}}, "memory.fusion.depth"),
        ({"roles": {}}, "keywords"),
    ],
)
def test_bad_settings_are_refused(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        memory_config("rag_turn", **changes)
