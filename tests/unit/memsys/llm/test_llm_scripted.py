"""The scripted model follows its script through the parser that real replies go through."""

import asyncio
from typing import Any

import pytest

from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.scripted import ScriptedModel, ScriptEndedError
from tests.support.backbones import role

GOOD = {"keywords": ["a"], "context": "b"}


def ask(model: LanguageModel, asked: Role, text: str = "x") -> Reply:
    return asyncio.run(model.ask(asked, {"text": text}, key="t1"))


def test_sayings_come_in_order_and_end() -> None:
    model = ScriptedModel([GOOD, "free text"])
    assert ask(model, role()).value == GOOD
    assert ask(model, role(schema=None)).text == "free text"
    assert [(call.role, call.key, call.prompt) for call in model.calls] == [("analyse", "t1", "Describe: x")] * 2
    with pytest.raises(ScriptEndedError, match="role analyse, t1: the script ended after 2 calls"):
        ask(model, role())


@pytest.mark.parametrize(
    ("sayings", "value", "malformed", "repaired", "calls"),
    [
        (["no", GOOD], GOOD, False, False, 2),
        (["no", "no", GOOD], None, True, False, 2),  # the third belongs to the next call
        (['{"keywords": ["a"], "context": "b'], GOOD, False, True, 1),
        (["<think>{</think>", GOOD], GOOD, False, False, 2),
    ],
)
def test_malformed_sayings(sayings: list[Any], value: Any, malformed: bool, repaired: bool, calls: int) -> None:
    model = ScriptedModel(sayings)
    reply = ask(model, role(malformed_retries=1))
    assert (reply.value, reply.malformed, reply.repaired, len(model.calls)) == (value, malformed, repaired, calls)


def test_a_function_answers_by_role_values_and_key() -> None:
    model = ScriptedModel(lambda name, values, key: {"keywords": [name, key], "context": values["text"]})
    assert ask(model, role(), "y").value == {"keywords": ["analyse", "t1"], "context": "y"}
    assert model.context_length == 8192 and asyncio.run(model.count_tokens("a b c")) == 3
