"""No memory and the oracle."""

import asyncio

import pytest

from baselines.references import NoMemoryConfig, OracleConfig
from eval.running.runner import gold_by_text
from memsys.errors import ConfigError
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn
from tests.support.composing import conversation, ingest, parts
from tests.support.fakes import FakeModel

TALK = conversation(["I bought a red boat", "Nice"], ["It sank"])


def model() -> FakeModel:
    return FakeModel(lambda role, values, key: "")


def test_no_memory_shows_nothing_and_calls_nothing() -> None:
    backbone = model()
    memory = NoMemoryConfig("no_memory", uses_gold=False).build(parts(backbone))
    ingest(memory, TALK)
    retrieval = asyncio.run(memory.retrieve("What did Ann buy?"))
    assert retrieval.hits == () and retrieval.context == "" and backbone.calls == []


def test_the_oracle_shows_the_gold_turns_in_the_order_of_the_conversation() -> None:
    gold = {"What became of the boat?": ("D2:0", "D1:0")}
    memory = OracleConfig("oracle", uses_gold=True).build(parts(model(), gold_evidence=gold))
    ingest(memory, TALK)
    retrieval = asyncio.run(memory.retrieve("What became of the boat?"))
    assert retrieval.context == "[1 May 2023] Ann: I bought a red boat\n[2 May 2023] Ann: It sank"
    assert [hit.turn_ids for hit in retrieval.hits] == [("D1:0",), ("D2:0",)]
    assert retrieval.trace["evidence"] == 2


def test_a_question_without_evidence_gets_an_empty_context() -> None:
    memory = OracleConfig("oracle", uses_gold=True).build(parts(model(), gold_evidence={"Why?": ()}))
    ingest(memory, TALK)
    assert asyncio.run(memory.retrieve("Why?")).context == ""
    assert asyncio.run(memory.retrieve("Unknown?")).trace["question_known"] is False


def test_gold_is_asked_for_and_only_by_the_oracle() -> None:
    with pytest.raises(ConfigError, match="gold evidence"):
        OracleConfig("oracle", uses_gold=True).build(parts(model()))
    with pytest.raises(ConfigError, match="uses_gold"):
        OracleConfig("oracle", uses_gold=False)
    with pytest.raises(ConfigError, match="uses_gold"):
        NoMemoryConfig("no_memory", uses_gold=True)


def test_equal_questions_of_a_conversation_share_their_gold() -> None:
    """A memory is asked a text: the oracle showed the gold of the last of them to all."""
    turns = tuple(Turn(f"D1:{number}", "s", "Ann", "text") for number in range(3))
    asked = tuple(Question(name, "c", text, 4) for name, text in (("q0", "Why?"), ("q1", "Why?"), ("q2", "How?")))
    gold = {"q0": ("D1:0", "D1:1"), "q1": ("D1:1", "D1:2"), "q2": ()}
    references = {name: Reference(name, (), evidence) for name, evidence in gold.items()}
    found = gold_by_text(Sample(Conversation("c", turns, ("Ann",)), asked, references))
    assert found == {"Why?": ("D1:0", "D1:1", "D1:2"), "How?": ()}
