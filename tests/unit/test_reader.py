"""The reader: prompts by category, options of category 5, what is scored when a reply is malformed."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from eval.reader import ReaderConfig
from memsys.errors import ConfigError
from memsys.llm.contract import Reply, Role
from memsys.vocabulary import Completion, Question, Reference

ROLES = {name: {"temperature": 0.7, "max_tokens": 10} for name in ("default", "temporal", "adversarial", "list")}
BY_CATEGORY = {"1": "default", "2": "temporal", "3": "default", "4": "default", "5": "adversarial", "6": "list"}


class Backbone:
    """Answers with a fixed reply and keeps what it was asked."""

    context_length = 100

    def __init__(self, value: Mapping[str, Any] | None, text: str = "") -> None:
        self.value, self.text = value, text
        self.asked: list[tuple[str, str]] = []

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        self.asked.append((role.name, role.prompt.render(values)))
        return Reply(self.value, self.text, Completion(self.text, 5, 2, 0.1, "stop"), malformed=self.value is None)

    async def count_tokens(self, text: str) -> int:
        return len(text.split())


def config(**changes: Any) -> ReaderConfig:
    settings: dict[str, Any] = {
        "name": "clag",
        "prompt_set": "clag",
        "roles": ROLES,
        "by_category": BY_CATEGORY,
        "answer_format": "json",
        "adversarial_options": True,
        "option_style": "named",
        "abstention": "Not mentioned in the conversation",
    }
    return ReaderConfig(**{**settings, **changes})


def ask(
    reader_config: ReaderConfig, backbone: Backbone, category: int, *, trap: str | None = None, seed: int = 0
) -> Any:
    question = Question("c:q1", "c", "Where does Ana live?", category)
    reference = Reference("c:q1", ("GOLD-ANSWER",), adversarial_answer=trap)
    return asyncio.run(reader_config.build(seed).answer(backbone, question, reference, "CONTEXT-TEXT"))


@pytest.mark.parametrize(
    ("category", "role"), [(1, "default"), (2, "temporal"), (3, "default"), (4, "default"), (6, "list")]
)
def test_each_category_has_its_prompt_and_never_sees_gold(category: int, role: str) -> None:
    backbone = Backbone({"answer": "Lisbon"})
    answer = ask(config(), backbone, category)
    ((asked_role, prompt),) = backbone.asked
    assert asked_role == role
    assert "CONTEXT-TEXT" in prompt and "Where does Ana live?" in prompt
    assert "GOLD-ANSWER" not in prompt
    assert answer.prediction == "Lisbon" and answer.options == ()


def test_adversarial_options_in_seeded_order() -> None:
    backbone = Backbone({"answer": "x"})
    orders = {ask(config(), backbone, 5, trap="in Porto", seed=seed).options for seed in range(12)}
    pair = ("Not mentioned in the conversation", "in Porto")
    assert orders == {pair, pair[::-1]}
    assert (
        ask(config(), backbone, 5, trap="in Porto", seed=3).options
        == ask(config(), backbone, 5, trap="in Porto", seed=3).options
    )
    assert all("in Porto" in prompt for _, prompt in backbone.asked)


def test_adversarial_without_options_asks_the_plain_question() -> None:
    backbone = Backbone({"answer": "x"})
    answer = ask(config(adversarial_options=False), backbone, 5, trap="in Porto")
    assert backbone.asked[0][0] == "default"
    assert "in Porto" not in backbone.asked[0][1] and answer.options == ()


def test_malformed_reply_is_scored_as_raw_text_and_counted() -> None:
    answer = ask(config(), Backbone(None, '{"answer": "Lis'), 4)
    assert answer.malformed and answer.prediction == '{"answer": "Lis'


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("(a)", 0), ("b", 1), ("(B) because", 1), ("a) yes", 0), ("Answer: neither", None), ("banana", None)],
)
def test_lettered_options_map_back(reply: str, expected: int | None) -> None:
    backbone = Backbone(None, reply)
    answer = ask(config(prompt_set="locomo", answer_format="text", option_style="lettered",
                        roles={k: v for k, v in ROLES.items() if k != "list"},
                        by_category={k: v for k, v in BY_CATEGORY.items() if v != "list"}),
                 backbone, 5, trap="in Porto")  # fmt: skip
    assert answer.prediction == (reply if expected is None else answer.options[expected])


def test_text_answers_take_the_first_line() -> None:
    backbone = Backbone(None, " Lisbon, I think \nQuestion: next")
    assert ask(config(answer_format="text"), backbone, 4).prediction == "Lisbon, I think"


def test_unknown_category_is_refused() -> None:
    with pytest.raises(ConfigError, match="no prompt for category 9"):
        ask(config(), Backbone({"answer": ""}), 9)


def test_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="lacks: poetic"):
        config(by_category={"1": "poetic"})
