"""Plain retrieval: passages, chunks, scorers, limits."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.passages import Passage
from baselines.rag.chunking import ChunkPacker, CountedTurn
from eval.inspect_data import read_config
from memsys.errors import ConfigError
from memsys.protocol import MemorySystem
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Sample, Turn
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
    retrieval = asyncio.run(ingested("rag", k=1).retrieve("green garden rose"))
    assert retrieval.context == "[2 May 2023] Ann: green garden rose"
    assert retrieval.hits[0].text == "Ann: green garden rose" and retrieval.hits[0].turn_ids == ("D2:0",)
    assert retrieval.hits[0].score < 1


@pytest.mark.parametrize("scorer", ["dense", "bm25", "hybrid"])
def test_every_scorer_finds_the_words_asked_for(scorer: str) -> None:
    memory = ingested("rag", scorer=scorer, k=2)
    assert found(memory, "storm")[0] == "D2:1"
    assert len(found(memory, "storm")) == 2


def test_bm25_needs_no_embedder_and_finds_nothing_without_a_match() -> None:
    memory = memory_config("bm25_turn", k=2).build(parts(model()))
    ingest(memory, TALK)
    assert found(memory, "zebra") == [] and found(memory, "storm")[0] == "D2:1"


def test_bm25_fills_up_with_passages_of_score_0_only_where_others_match_and_says_so() -> None:
    constants = {"k1": 1.5, "b": 0.75, "epsilon": 0.25}
    filled, matching = (ingested("bm25_turn", k=3, bm25={**constants, "fill": fill}) for fill in (True, False))
    retrieval = asyncio.run(filled.retrieve("storm"))
    assert len(retrieval.hits) == 3 and retrieval.trace["unmatched"] == 2
    assert found(matching, "storm") == ["D2:1"]
    assert found(filled, "zebra") == found(matching, "zebra") == []


@pytest.mark.parametrize(
    ("said", "expected"), [(["a cat called Pixel"], ["D1:0"]), (["a dog", "a cat called Pixel"], ["D1:1"])]
)
def test_a_match_in_a_memory_of_one_or_two_passages_is_found_whatever_it_scores(
    said: list[str], expected: list[str]
) -> None:
    memory = ingested("bm25_turn", talk=conversation(said), date_in_index=False)
    assert found(memory, "Pixel") == expected and found(memory, "Byte") == []


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (["我养了一只猫。", "妹妹上周搬到了杭州。", "昨天去看了牙医。"], "妹妹搬到了哪里？"),
        (["猫を飼っています。", "妹は先週京都に引っ越した。", "歯医者に行った。"], "京都に引っ越したのは誰？"),
        (["고양이를 키워요.", "동생이 지난주에 부산으로 이사했어요.", "치과에 갔어요."], "누가 부산으로 이사했어?"),
        (["ฉันเลี้ยงแมว", "น้องสาวย้ายไปเชียงใหม่เมื่อวาน", "ฉันไปหาหมอฟัน"], "ใครย้ายไปเชียงใหม่"),
        (["عندي قطة.", "اِنتَقَلَتْ أختي إلى القاهرة.", "زرت طبيب الأسنان."], "من انتقلت إلى القاهرة؟"),
        (["יש לי חתול.", "אחותי עברה לחיפה.", "ביקרתי אצל רופא."], "מי עברה לחיפה?"),
        (["मेरे पास बिल्ली है।", "मेरी बहन दिल्ली चली गई।", "मैं दाँत दिखाने गया।"], "दिल्ली कौन चली गई?"),
        (["У меня кошка.", "Сестра переехала в Казань.", "Был у врача."], "Кто переехал в Казань?"),
        (["Bir kedim var.", "Kız kardeşim İstanbul'a taşındı.", "Dişçiye gittim."], "istanbul nerede?"),
        (["I have a cat.", "我妹妹 moved to 杭州 last week.", "I saw the dentist."], "谁搬到杭州了？"),
    ],
    ids=["zh", "ja", "ko", "th", "ar", "he", "hi", "ru", "tr", "zh-en"],
)
def test_bm25_finds_words_in_any_script(said: list[str], asked: str) -> None:
    assert found(ingested("bm25_turn", k=1, talk=conversation(said)), asked) == ["D1:1"]


def test_hybrid_without_a_lexical_match_keeps_the_dense_order() -> None:
    dense, hybrid = ingested("rag", k=6), ingested("hybrid_turn", k=6)
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
    assert found(without, "On 3 May?") == []
    assert "[1 May 2023]" in asyncio.run(without.retrieve("Which boat?")).context


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


def chunks_of(sample: Sample, **changes: Any) -> list[tuple[Turn, ...]]:
    """The chunks that ``rag_chunk`` makes of a sample, as turns."""
    memory = ingested("rag_chunk", talk=sample.conversation, k=10_000, **changes)
    turns = {turn.turn_id: turn for turn in sample.conversation.turns}
    hits = asyncio.run(memory.retrieve("anything")).hits
    order = {turn_id: place for place, turn_id in enumerate(turns)}
    found = [tuple(turns[turn_id] for turn_id in hit.turn_ids) for hit in hits]
    return sorted(found, key=lambda chunk: order[chunk[0].turn_id])


def test_a_chunk_of_hotpotqa_has_one_title() -> None:
    (sample,) = read_config("hotpotqa20_sample", {}).load().samples
    chunks = chunks_of(sample)
    assert [turn for chunk in chunks for turn in chunk] == list(sample.conversation.turns)
    titles = [[turn.text.splitlines()[0] for turn in chunk] for chunk in chunks]
    assert all(len(set(title)) == 1 for title in titles)
    assert [title[0] for title in titles] == list(dict.fromkeys(line for title in titles for line in title))
    mixed = chunks_of(sample, chunk_within="session")
    assert len(mixed) < len(chunks) and any(len({turn.text.splitlines()[0] for turn in chunk}) > 1 for chunk in mixed)


def test_a_chunk_of_bioasq_has_one_snippet_of_one_question() -> None:
    samples = read_config("bioasq20_sample", {}).load().samples
    for sample in samples:
        gold = {turn_id: each for each in sample.references for turn_id in sample.references[each].evidence}
        chunks = chunks_of(sample)
        assert [turn for chunk in chunks for turn in chunk] == list(sample.conversation.turns)
        assert all(len({turn.extra["record"] for turn in chunk}) == 1 for chunk in chunks)
        assert all(len({gold[turn.turn_id] for turn in chunk}) == 1 for chunk in chunks)


def test_chunks_of_perltqa_are_its_records() -> None:
    for sample in read_config("perltqa_sample", {}).load().samples:
        chunks = chunks_of(sample)
        assert [turn for chunk in chunks for turn in chunk] == list(sample.conversation.turns)
        kinds = {chunk[0].session_id: chunk for chunk in chunks}
        assert len(kinds["profile"]) == sum(turn.session_id == "profile" for turn in sample.conversation.turns) > 1
        people = [chunk for chunk in chunks if chunk[0].session_id == "relationships"]
        assert people and all(len(chunk) == 1 for chunk in people)
        assert all(
            len({turn.extra["item"] for turn in chunk}) == 1 for chunk in chunks if chunk[0].session_id != "profile"
        )
        talks = [chunk for chunk in chunks if "#" in chunk[0].session_id]
        assert any(len(chunk) > 1 for chunk in talks)
        evidence = {turn_id for reference in sample.references.values() for turn_id in reference.evidence}
        assert evidence <= {turn.turn_id for chunk in chunks for turn in chunk}


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "file"), [("hotpotqa20", "hotpot_200.json"), ("bioasq20", "bioasq10b")])
def test_no_chunk_of_the_published_pools_crosses_a_record(name: str, file: str, data_dir: Path) -> None:
    if not (data_dir / file).exists():
        pytest.skip(f"{file} is not in {data_dir}")
    sample = read_config(name, {"data_dir": str(data_dir), "limit_conversations": 1}).load().samples[0]
    chunks = chunks_of(sample)
    assert [turn for chunk in chunks for turn in chunk] == list(sample.conversation.turns)
    assert all(len({turn.extra["record"] for turn in chunk}) == 1 for chunk in chunks)
    assert all(len(chunk) == 1 or sum(len(turn.text.split()) for turn in chunk) <= 200 for chunk in chunks)


def test_speakers_can_stay_out_of_bm25_but_not_out_of_the_context() -> None:
    # "ann" opens three of six lines and stands in Ben's second line besides
    talk = conversation(["red boat", "ann has a cake"], ["green rose", "storm", "calm sea", "night"])
    with_names, without = (
        ingested("bm25_turn", k=1, talk=talk, date_in_index=False, speakers_in_bm25=flag) for flag in (True, False)
    )
    assert found(without, "Ann storm?") == ["D2:1"] and found(without, "Ann?") == []
    assert found(with_names, "ben calm") == ["D2:2"] == found(without, "ben calm")
    assert asyncio.run(with_names.retrieve("cake")).hits[0].score != asyncio.run(without.retrieve("cake")).hits[0].score
    assert asyncio.run(without.retrieve("cake")).context == "[1 May 2023] Ben: ann has a cake"


def test_bm25_without_speakers_scores_the_texts_without_their_labels() -> None:
    """By hand: three one-word lines "boat", "boat", "rose" once the labels are gone; idf(rose) = ln(2.5 / 1.5)."""
    memory = ingested("bm25_turn", k=3, talk=conversation(["boat", "boat", "rose"]), date_in_index=False,
                      speakers_in_bm25=False)  # fmt: skip
    best = asyncio.run(memory.retrieve("Ann rose")).hits[0]
    assert best.memory_id == "D1:2" and best.score == pytest.approx(0.5108256)


def test_a_set_whose_lines_name_no_speaker_loses_no_word() -> None:
    texts = ("the system failed", "all is well", "good night")
    talk = Conversation("c", tuple(Turn(f"t{n}", "s", "System", text) for n, text in enumerate(texts)))
    bare = memory_config("bm25_turn", k=1, speakers_in_bm25=False).build(
        parts(model(), turn_format=TurnFormat(style="bare"))
    )
    ingest(bare, talk)
    best = asyncio.run(bare.retrieve("system")).hits[0]
    assert best.memory_id == "t0" and best.score > 0


def test_labels_survive_the_snapshot() -> None:
    first = ingested("bm25_turn", speakers_in_bm25=False)
    second = memory_config("bm25_turn", speakers_in_bm25=False).build(parts(model()))
    second.load_state(first.state())
    for query in ("Ann storm", "boat"):
        one, other = (asyncio.run(memory.retrieve(query)) for memory in (first, second))
        assert one.hits == other.hits


def test_packing_is_greedy() -> None:
    packer = ChunkPacker(10)
    closed = [packer.add(counted(number, "a", 4)) for number in range(3)]
    assert closed[:2] == [None, None] and closed[2] is not None and closed[2].turn_ids == ("t0", "t1")


def test_a_token_budget_is_filled_by_rank() -> None:
    # "[2 May 2023] Ben: boat boat boat storm" is 8 words, "[1 May 2023] Ann: red boat harbour" 7
    assert found(ingested("bm25_turn", k=None, budget_tokens=15), "boat storm") == ["D2:1", "D1:0"]
    assert found(ingested("bm25_turn", k=None, budget_tokens=14), "boat storm") == ["D2:1"]
    assert found(ingested("bm25_turn", k=None, budget_tokens=7), "boat storm") == []
    assert len(found(ingested("rag", k=None, budget_tokens=10_000), "boat")) == 6


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
        ({"chunk_within": "title"}, "record, session"),
        ({"uses_gold": True}, "uses_gold"),
        ({"bm25": {"k1": 1.5, "b": 0.75}}, "memory.bm25"),
        ({"fusion": {"k": 60, "depth": 0, "dense_weight": 1, "bm25_weight": 1}}, "memory.fusion.depth"),
        ({"roles": {}}, "keywords"),
    ],
)
def test_bad_settings_are_refused(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        memory_config("rag", **changes)
