"""LightMem: segments, batches, facts and their sources, the update at the end, and what the reader sees."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines.lightmem.attention import HuggingFaceEncoder, TokenAttention, load, peaks, text_attention
from baselines.lightmem.entries import DatedFact, moments
from baselines.lightmem.memory import LightMemMemory
from baselines.lightmem.revision import queues
from baselines.lightmem.rules import RevisionRules, SegmentRules
from baselines.lightmem.sensory import BufferedTurn, SensoryBuffer, boundaries
from baselines.lightmem.short_term import ShortTermBuffer
from baselines.pruned.compressor import CompressorSettings
from eval.sweep.calls import memory_calls
from memsys.call_model import DataShape
from memsys.errors import AssetError, ConfigError
from memsys.index.vector import VectorIndex
from memsys.vocabulary import Conversation, Retrieval
from tests.support.composing import composed, conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel, TableEmbedder
from tests.support.shown import check_shown

TALK = conversation(["boat sea", "boat sail"], ["cake oven", "cake milk"])
RULES = SegmentRules(enabled=True, buffer_tokens=4, peaks="off", layers=[0], edge=0, near=3, tau=[0.2, 0.5, 0.05])


def facts_of(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """One fact per message of the prompt: its text."""
    lines = [line for line in values["messages"].splitlines() if not line.startswith("---")]
    return [{"source_id": number, "fact": line.rpartition(": ")[2]} for number, line in enumerate(lines)]


def replying(update: Any = None, extract: Any = None) -> FakeModel:
    """Extract each message as a fact, and decide about updates by a function of the values."""

    def function(role: str, values: Mapping[str, str], key: str) -> Any:
        if role == "extract":
            return extract(values) if extract else {"data": facts_of(values)}
        return update(values) if update else {"action": "ignore", "new_memory": ""}

    return FakeModel(function)


def memory(model: FakeModel, preset: str = "lightmem_uncompressed", **changes: Any) -> LightMemMemory:
    settings = {
        group: {**composed(preset)[group], **change} if isinstance(change, Mapping) else change
        for group, change in changes.items()
    }
    system = memory_config(preset, **settings).build(parts(model))
    assert isinstance(system, LightMemMemory)
    return system


def ingested(model: FakeModel | None = None, talk: Conversation = TALK, **changes: Any) -> LightMemMemory:
    system = memory(model or replying(), **changes)
    ingest(system, talk)
    return system


def asked(system: LightMemMemory, question: str = "boat") -> Retrieval:
    return asyncio.run(system.retrieve(question))


def facts(system: LightMemMemory) -> list[DatedFact]:
    return [DatedFact.from_state(entry) for entry in system.state()["facts"]]


def turn(number: int, vector: Sequence[float], tokens: int = 1) -> BufferedTurn:
    return BufferedTurn(f"t{number}", "Ann", "", f"w{number}", tokens, tokens, np.asarray(vector, np.float32))


def ids(segments: Sequence[Sequence[BufferedTurn]]) -> list[list[str]]:
    return [[each.turn_id for each in segment] for segment in segments]


# Segments


def test_attention_between_turns_by_hand() -> None:
    # Tokens: [CLS] a a b c [SEP]; texts 0 = a a, 1 = b, 2 = c. The edge of one leaves the special tokens out.
    weights = np.zeros((6, 6))
    weights[3, 1:3] = 0.25, 0.35
    weights[4, 1:4] = 0.1, 0.1, 0.6
    found = text_attention(TokenAttention(weights, (-1, 0, 0, 1, 2, -1)), 3, edge=1)
    np.testing.assert_allclose(found, [[0, 0, 0], [1, 0, 0], [0.25, 0.75, 0]])
    assert text_attention(TokenAttention(weights, (-1, 0, 0, 1, 2, -1)), 3, edge=3).sum() == 0


def test_a_peak_exceeds_both_neighbours_and_is_neither_first_nor_last() -> None:
    attention = np.zeros((6, 6))
    for place, value in enumerate((0.9, 0.2, 0.8, 0.3, 0.9)):
        attention[place + 1, place] = value
    assert peaks(attention) == [2]
    assert peaks(np.zeros((1, 1))) == [] == peaks(np.zeros((0, 0)))


@pytest.mark.parametrize(
    ("cosines", "found_peaks", "expected"),
    [
        ((0.1, 0.45, 0.9), None, [1]),  # the lowest threshold with a drop wins: 0.45 is not looked at
        ((0.9, 0.45, 0.46), None, [2, 3]),  # both are below 0.5, and none is below 0.45
        ((0.9, 0.9, 0.9), None, []),
        ((0.1, 0.1, 0.1), [], []),  # no peak: one segment, whatever the drops
        ((0.1, 0.9, 0.9, 0.9, 0.9, 0.1), [6], [6]),  # the drop at 1 is five turns from the peak
        ((0.1, 0.9, 0.9, 0.9, 0.9, 0.9), [6], [1]),  # no drop is near: all of them
    ],
)
def test_boundaries_by_hand(cosines: Sequence[float], found_peaks: list[int] | None, expected: list[int]) -> None:
    angles = np.concatenate([[0.0], np.cumsum(np.arccos(cosines))])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert boundaries(vectors, found_peaks, RULES) == expected


def test_a_full_buffer_is_cut_and_its_last_topic_waits() -> None:
    buffer = SensoryBuffer(RULES, None)
    turns = [turn(0, (1, 0)), turn(1, (1, 0)), turn(2, (0, 1)), turn(3, (0, 1))]
    assert asyncio.run(buffer.push(turns)) == []
    assert ids(asyncio.run(buffer.push([turn(4, (0, 1))]))) == [["t0", "t1"]]
    assert ids(asyncio.run(buffer.push([turn(5, (1, 0), tokens=9)]))) == [["t2", "t3", "t4"]]
    assert ids(asyncio.run(buffer.push([turn(6, (1, 0))]))) == [["t5"]]
    assert ids(asyncio.run(buffer.flush())) == [["t6"]]
    assert asyncio.run(buffer.flush()) == []


def test_the_forced_cut_at_the_end_loses_no_segment() -> None:
    """The released code replaces the segments of the last call by those of the forced cut."""
    talk = conversation(["boat sea"], [f"word{n} other{n}" for n in range(9)])
    system = ingested(talk=talk, segment={"buffer_tokens": 5}, stm_tokens=3)
    assert {fact.turn_ids for fact in facts(system)} == {(each.turn_id,) for each in talk.turns}


def test_segments_wait_until_the_next_would_exceed_the_limit() -> None:
    buffer = ShortTermBuffer(4)
    first, second, long = [turn(0, (1, 0), 3)], [turn(1, (1, 0), 1)], [turn(2, (1, 0), 9)]
    assert buffer.push(first) == [] == buffer.push(second)
    (batch,) = buffer.push(long)
    assert [topic.number for topic in batch] == [0, 1]
    assert [[topic.number for topic in batch] for batch in buffer.flush()] == [[2]]
    assert buffer.flush() == []


# Facts


def test_a_batch_as_the_backbone_sees_it() -> None:
    model = replying()
    ingested(model, segment={"enabled": False})
    assert model.calls == [("extract", "D1:0..D2:1")]
    assert (
        "--- Topic 0 ---\n[1 May 2023, Monday] 0.Ann: boat sea\n[1 May 2023, Monday] 1.Ben: boat sail\n"
        "--- Topic 1 ---\n[2 May 2023, Tuesday] 2.Ann: cake oven\n[2 May 2023, Tuesday] 3.Ben: cake milk\n"
    ) in model.prompts[0]


def test_a_fact_has_date_speaker_and_source_of_the_message_it_names() -> None:
    data = [{"source_id": 3, "fact": "z"}, {"source_id": 0, "fact": "a"}, {"source_id": 99, "fact": "end"}]
    system = ingested(replying(extract=lambda values: {"data": data}), segment={"enabled": False})
    assert [(fact.text, fact.turn_ids, fact.speaker, fact.date) for fact in facts(system)] == [
        ("a", ("D1:0",), "Ann", "1 May 2023"), ("z", ("D2:1",), "Ben", "2 May 2023"),
        ("end", ("D1:0", "D1:1", "D2:0", "D2:1"), "Ben", "2 May 2023"),
    ]  # fmt: skip
    assert system.statistics()["counts"]["facts.source_out_of_range"] == 1


def test_items_of_a_malformed_reply_are_dropped_singly() -> None:
    text = '{"data": [{"source_id": "1", "fact": "kept"}, 5, {"source_id": null, "fact": "too"}, {"fact": ""}]}'
    system = ingested(replying(extract=lambda values: text), segment={"enabled": False})
    assert [(fact.text, fact.turn_ids) for fact in facts(system)] == [
        ("too", ("D1:0", "D1:1", "D2:0", "D2:1")), ("kept", ("D1:1",)),
    ]  # fmt: skip
    counts = system.statistics()["counts"]
    assert (counts["fallback.extract"], counts["facts.unreadable"]) == (1, 2)


@pytest.mark.parametrize(
    ("reply", "tolerant", "released"),
    [
        ('{"data": [{"source_id": 1, "fact": "x"}]}', 1, 1),
        ('[{"source_id": 1, "fact": "x"}]', 0, 1),
        ('[{"source_id": 1, "fact": "x"}, 5]', 0, 1),
        ('```json\n{"data": [{"source_id": 1, "fact": "x"}]}\n```', 1, 1),
        ('Facts:\n```\n[{"source_id": 1, "fact": "x"}]\n```', 0, 1),
        ('Here it is: {"data": [{"source_id": 1, "fact": "x"}]}', 1, 0),
        ('{"data": [{"source_id": 1, "fact": "x"}', 1, 0),
        ('{"data": [{"source_id": 1, "fact": "x"}, {"source_id": 0, "fa', 1, 0),
        ('["x"', 0, 0),
    ],
)
def test_replies_are_read_tolerantly_or_as_released(reply: str, tolerant: int, released: int) -> None:
    """The released code takes a list for the object, and what stands in a code block; prose costs it the batch."""
    bare = {"compress": {"mode": "off"}, "segment": {"enabled": False, "peaks": "off"}}
    for preset, expected in (("lightmem", tolerant), ("lightmem_code", released)):
        system = memory(replying(extract=lambda values: reply), preset, **bare)
        ingest(system, TALK)
        assert [fact.turn_ids for fact in facts(system)] == [("D1:1",)] * expected, preset


# The update at the end


def test_time_stamps_begin_again_with_every_extraction_of_a_session() -> None:
    first = [replace(turn(number, (1, 0)), date="1:56 pm on 8 May, 2023") for number in range(2)]
    other = replace(turn(2, (1, 0)), date="9 May 2023")
    assert moments([*first, other]) == {
        "t0": "2023-05-08T13:56:00", "t1": "2023-05-08T13:56:01", "t2": "2023-05-09T00:00:00",
    }  # fmt: skip
    assert moments(first[1:]) == {"t1": "2023-05-08T13:56:00"}
    assert moments([turn(0, (1, 0)), turn(1, (1, 0))]) == {"t0": "0001-01-01T00:00:00", "t1": "0001-01-01T00:00:01"}


def test_facts_of_one_time_stamp_may_change_each_other_as_released() -> None:
    index = VectorIndex(2)
    index.add(["a", "b", "c"], np.asarray([(1, 0), (1, 0), (1, 0)], np.float32))
    rules = RevisionRules(mode="offline_by_time", theta=0.6, keep=5, reembed=False)
    assert queues(index, rules, ["1", "1", "0"]) == {"a": ["b"], "b": ["a"], "c": ["a", "b"]}


def test_the_batches_that_one_turn_completes_are_one_extraction() -> None:
    """The fifth turn completes the first batch, the end of the conversation the second and the third."""
    talk = conversation(["boat one", "boat two", "boat six", "boat ten", "boat four", "boat five"])
    settings = {"compress": {"mode": "off"}, "segment": {"buffer_tokens": 4, "peaks": "off"}, "stm_tokens": 4}
    system = memory(replying(), "lightmem_code", **settings)
    ingest(system, talk)
    stamps = [fact.moment.removeprefix("2023-05-01T00:00:") for fact in facts(system)]
    assert stamps == ["00", "01", "00", "01", "02", "03"]
    restored = memory(replying(), "lightmem_code", **settings)
    restored.load_state(system.state())
    assert facts(restored) == facts(system)
    assert all("moment" not in entry for entry in ingested(talk=talk).state()["facts"])


def test_only_later_facts_within_the_queues_may_change_a_fact() -> None:
    index = VectorIndex(2)
    index.add(["a", "b", "c", "d"], np.asarray([(1, 0), (0, 1), (1, 0), (0.8, 0.6)], np.float32))
    rules = RevisionRules(mode="offline", theta=0.6, keep=2, reembed=True)
    # d's two nearest earlier facts are a and c (0.8 each); b (0.6) does not get into its queue.
    assert queues(index, rules) == {"a": ["c", "d"], "c": ["d"]}
    assert queues(index, RevisionRules(mode="offline", theta=0.6, keep=3, reembed=True))["b"] == ["d"]


def test_an_update_rewrites_embeds_and_keeps_all_sources() -> None:
    def update(values: Mapping[str, str]) -> Any:
        first = values["target"].endswith("boat sea")
        return {"action": "update", "new_memory": "harbour"} if first else {"action": "delete", "new_memory": ""}

    system = ingested(replying(update), update={"theta": 0.3})
    texts = [(fact.text, fact.turn_ids) for fact in facts(system)]
    # The two facts about the boat are one, those about the cake too: a deleted fact is gone from store and index.
    assert texts == [("harbour", ("D1:0", "D1:1")), ("boat sail", ("D1:1",)), ("cake milk", ("D2:1",))]
    assert asked(system, "harbour").hits[0].score == pytest.approx(1.0)
    old = ingested(replying(update), update={"theta": 0.3, "reembed": False})
    assert asked(old, "boat sea").hits[0].text == "harbour"


@pytest.mark.parametrize("reply", ["none", {"action": "update", "new_memory": "  "}, {"action": "ignore"}])
def test_an_update_to_nothing_changes_nothing(reply: Any) -> None:
    system = ingested(replying(lambda values: reply), update={"theta": 0.3})
    assert len(facts(system)) == 4
    assert system.statistics()["counts"]["update.ignore"] == 2


# Reading


def test_the_context_of_both_layouts() -> None:
    shown = asked(ingested(), "boat sea").context.splitlines()
    assert shown[:2] == ["Semantic memories:", "- [1 May 2023, Monday] boat sea"]
    assert shown[-2:] == ["Episodic memories:", "(none)"]
    speakers = asked(ingested(context={"layout": "speakers"}), "boat sea").context
    assert speakers.startswith("Memories of Ann:\n- [1 May 2023, Monday] boat sea\n- [2 May")
    assert "\n\nMemories of Ben:\n- [1 May 2023, Monday] boat sail" in speakers


def test_the_limits_of_facts_and_tokens() -> None:
    assert len(asked(ingested(retrieve={"k": 1})).hits) == 1
    both = asked(ingested(retrieve={"k": 1, "scope": "per_speaker"}))
    assert sorted(hit.turn_ids for hit in both.hits) == [("D1:0",), ("D1:1",)]
    system = ingested(retrieve={"k": 1, "scope": "per_speaker"})
    assert system._by_speaker() is system._by_speaker()  # counted once, again after the facts changed
    system.load_state(ingested(talk=conversation(["alone"]), retrieve={"k": 1, "scope": "per_speaker"}).state())
    assert len(asked(system).hits) == 1
    cut = asked(ingested(context={"max_tokens": 9}))
    assert cut.trace["left_out"] == 3 and cut.context.count("- [") == 1
    check_shown(cut)
    with pytest.raises(ConfigError, match="reserve_tokens"):
        ingested(context={"reserve_tokens": 9000})


# The encoder


def test_an_encoder_of_transformers_shows_its_attention(tmp_path: Path) -> None:
    from transformers import BertConfig, BertModel, BertTokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "boat", "sea", "cake"]
    (tmp_path / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    size = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
    BertModel(BertConfig(vocab_size=len(words), **size)).save_pretrained(tmp_path)
    settings = CompressorSettings(str(tmp_path), "s", 0.6, [], "cpu")
    encoder = load(settings, [0, 1])
    assert isinstance(encoder, HuggingFaceEncoder) and encoder.count("boat sea") == 2
    found = encoder.attention(["boat sea", "cake"])
    assert found.text_of == (-1, 0, 0, 1, -1)
    np.testing.assert_allclose(found.weights.sum(axis=1), 1.0, rtol=1e-5)
    assert len(encoder.attention(["boat " * 600]).text_of) == 512
    with pytest.raises(AssetError, match="has 2 layers"):
        load(settings, [0, 2])


def test_a_missing_encoder_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=r"memory\.segment\.peaks=off"):
        load(CompressorSettings(str(tmp_path / "none"), "microsoft/x", 0.6, [], "cpu"), [0])


def test_without_segments_no_encoder_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path))
    settings = composed("lightmem")
    segment = {**settings["segment"], "enabled": False, "peaks": "attention"}
    config = memory_config("lightmem", segment=segment, compress={**settings["compress"], "mode": "off"})
    config.build(parts(FakeModel(lambda role, values, key: "")))


# Compression


def test_compressed_texts_replace_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    class FirstWord:
        def prune(self, text: str) -> str:
            return text.split()[0]

    monkeypatch.setattr("baselines.pruned.compressor.load", lambda settings: FirstWord())
    model = replying()
    talk = conversation(["boat sea wind", "no"])
    system = ingested(model, talk, compress={"mode": "llmlingua2", "min_tokens": 2})
    assert "0.Ann: boat\n" in model.prompts[0] and "1.Ben: no" in model.prompts[0]
    counts = system.statistics()["counts"]
    assert (counts["characters.said"], counts["characters.kept"]) == (15, 6)


# Plans


def test_calls_by_hand() -> None:
    shape = DataShape([100, 100], [20] * 10, {1: 10}, turn_tokens=32.0)
    found = {(each.phase, each.role): each.calls for each in memory_calls(memory_config("lightmem"), shape) or ()}
    # 100 turns * 32 tokens * 0.6 = 1,920 tokens in batches of 512 * 0.85 = 435.2: 5 per conversation, one at its end.
    assert (found["write", "extract"], found["consolidate", "extract"]) == (8, 2)
    assert found["consolidate", "update"] == pytest.approx(6.0)


def test_wrong_settings_are_named() -> None:
    for change, message in (
        ({"segment": {"tau": [0.5, 0.2, 0.05]}}, "memory.segment.tau"),
        ({"update": {"theta": 2}}, "memory.update.theta"),
        ({"stm_tokens": 0}, "memory.stm_tokens"),
        ({"context_texts": {"entry": "{text}"}}, "memory.context_texts.entry"),
    ):
        with pytest.raises(ConfigError, match=message):
            memory(replying(), **change)


def test_thresholds_have_both_ends() -> None:
    assert RULES.thresholds == [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]


def test_equal_scores_go_by_age() -> None:
    """Facts with equal vectors are found oldest first."""
    system = memory_config("lightmem_uncompressed").build(
        parts(replying(), embedder=TableEmbedder({"boat sea": (1, 0), "boat sail": (1, 0), "cake oven": (1, 0),
                                                  "cake milk": (1, 0), "q": (1, 0)}))
    )  # fmt: skip
    ingest(system, TALK)
    assert [hit.turn_ids[0] for hit in asyncio.run(system.retrieve("q")).hits] == ["D1:0", "D1:1", "D2:0", "D2:1"]
