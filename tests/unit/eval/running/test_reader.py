"""The reader: prompts by category, options of category 5, what is scored when a reply is malformed."""

import asyncio
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.question_types import kind_of
from eval.running.reader import ReaderConfig, readers_for
from memsys.errors import ConfigError
from memsys.llm.contract import Reply, Role
from memsys.llm.structured import parse_object
from memsys.vocabulary import Completion, Question, Reference

CONF = Path(__file__).resolve().parents[4] / "conf"

ROLES: dict[str, dict[str, Any]] = {
    name: {"temperature": 0.7, "max_tokens": 10} for name in ("default", "temporal", "adversarial", "list")
}
BY_KIND = {"temporal": "temporal", "adversarial": "adversarial", "list": "list"}


class Backbone:
    """Answers with a fixed reply and keeps what it was asked."""

    context_length = 100

    def __init__(self, value: Mapping[str, Any] | None, text: str = "") -> None:
        self.value, self.text = value, text
        self.asked: list[tuple[str, str]] = []
        self.roles: list[Role] = []

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        self.asked.append((role.name, role.prompt.render(values)))
        self.roles.append(role)
        return Reply(self.value, self.text, Completion(self.text, 5, 2, 0.1, "stop"), malformed=self.value is None)

    async def count_tokens(self, text: str) -> int:
        return len(text.split())


def config(**changes: Any) -> ReaderConfig:
    settings: dict[str, Any] = {
        "name": "clag",
        "prompt_set": "clag",
        "roles": ROLES,
        "default": "default",
        "by_kind": BY_KIND,
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


def test_an_object_without_an_answer_is_scored_as_raw_text_and_counted() -> None:
    """A role that accepts any object (reading.check: any) let it through, and the run stopped with a KeyError."""
    answer = ask(config(), Backbone({"reply": "Lisbon"}, '{"reply": "Lisbon"}'), 4)
    assert answer.malformed and answer.prediction == '{"reply": "Lisbon"}'


@pytest.mark.parametrize(
    ("reply", "expected"),
    [("(a)", 0), ("b", 1), ("B)", 1), ("A lake house", None), ("(b) in Porto", None), ("banana", None)],
)
def test_a_reply_of_a_letter_alone_names_its_option(reply: str, expected: int | None) -> None:
    """As LoCoMo's own code has it: "A lake house" is an answer, not the choice of option (a)."""
    backbone = Backbone(None, reply)
    answer = ask(config(prompt_set="locomo", answer_format="text", option_style="lettered",
                        roles={k: v for k, v in ROLES.items() if k != "list"},
                        by_kind={k: v for k, v in BY_KIND.items() if v != "list"}),
                 backbone, 5, trap="in Porto")  # fmt: skip
    assert answer.prediction == (reply if expected is None else answer.options[expected])


@pytest.mark.parametrize(("given", "scored"), [(None, ""), (False, ""), (7, "7"), (["a"], "['a']"), ("", "")])
def test_an_answer_of_another_type_is_text_and_null_is_none(given: object, scored: str) -> None:
    """Null was the word None, which judges read and which shares letters with answers."""
    assert ask(config(), Backbone({"answer": given}), 4).prediction == scored


@pytest.mark.parametrize(("number", "scored"), [(7, "7"), (0, "0"), (2.5, "2.5")])
def test_a_number_is_an_answer(number: float, scored: str) -> None:
    """A server without constrained decoding writes it so: it was malformed, asked again, and scored with its braces."""
    backbone = Backbone({"answer": number})
    assert ask(config(), backbone, 4).prediction == scored
    accepted = backbone.roles[0].accepts or {}
    assert parse_object(json.dumps({"answer": number}), accepted, repair=False).value == {"answer": number}
    assert parse_object('{"answer": null}', accepted, repair=False).value is None


def test_text_answers_take_the_first_line() -> None:
    backbone = Backbone(None, " Lisbon, I think \nQuestion: next")
    assert ask(config(answer_format="text"), backbone, 4).prediction == "Lisbon, I think"


def test_a_new_kind_takes_the_default_whatever_its_number() -> None:
    """A data set of its own numbers: its 5 is not LoCoMo's adversarial category, its 2 not the temporal one."""
    for number in (2, 5, 77):
        backbone = Backbone({"answer": "x"})
        question = Question("q", "c", "Where does Ana live?", number, kind="knowledge_update")
        reference = Reference("q", ("Lisbon",), adversarial_answer="in Porto")
        answer = asyncio.run(config().build(0).answer(backbone, question, reference, "CONTEXT-TEXT"))
        assert [role for role, _ in backbone.asked] == ["default"] and answer.options == ()


def test_an_adversarial_question_is_one_by_its_kind_whatever_its_number() -> None:
    backbone = Backbone({"answer": "x"})
    question = Question("q", "c", "Where does Ana live?", 12, kind="adversarial")
    reference = Reference("q", (), adversarial_answer="in Porto")
    answer = asyncio.run(config().build(0).answer(backbone, question, reference, "CONTEXT-TEXT"))
    assert [role for role, _ in backbone.asked] == ["adversarial"] and "in Porto" in answer.options


def test_a_kind_that_is_refused_is_not_asked_with_another_prompt() -> None:
    with pytest.raises(ConfigError, match="refuses questions of kind list"):
        ask(config(by_kind={**BY_KIND, "list": None}), Backbone({"answer": ""}), 6)


def test_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="lacks: poetic"):
        config(by_kind={"temporal": "poetic"})


@cache
def preset(name: str) -> ReaderConfig:
    from hydra import compose, initialize_config_dir
    from hydra.utils import instantiate

    with initialize_config_dir(str(CONF), version_base=None):
        made: ReaderConfig = instantiate(compose(f"reader/{name}").reader, _convert_="all")
    return made


class Recorder(Backbone):
    """Replies with a plain text to a role that asks for one."""

    def __init__(self, text: str = "it is Lisbon") -> None:
        super().__init__({"answer": text}, text)

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        reply = await super().ask(role, values, key=key)
        return reply if role.schema is not None else Reply(None, self.text, reply.completion)


READERS = sorted(path.stem for path in (CONF / "reader").glob("*.yaml"))

#: Reader -> category -> role and temperature, as the papers' drivers have them (specification of each paper).
ASKED: Mapping[str, Mapping[int, tuple[str, float]]] = {
    "clag": {1: ("default", 0.7), 2: ("temporal", 0.7), 3: ("default", 0.7), 4: ("default", 0.7),
             5: ("adversarial", 0.5), 6: ("list", 0.7)},
    "clag_small": {1: ("default", 0.7), 2: ("temporal", 0.7), 3: ("default", 0.7), 4: ("default", 0.7),
                   5: ("adversarial", 0.5), 6: ("list", 0.7)},
    "amem": {1: ("default", 0.7), 2: ("temporal", 0.7), 3: ("default", 0.7), 4: ("default", 0.7),
             5: ("adversarial", 0.5)},
    "amem_code": {1: ("default", 0.7), 2: ("temporal", 0.7), 3: ("default", 0.7), 4: ("default", 0.7),
             5: ("adversarial", 0.5)},
    "amem_robust": {1: ("default", 0.7), 2: ("temporal", 0.7), 3: ("default", 0.7), 4: ("default", 0.7),
             5: ("adversarial", 0.5)},
    "clag_code": {1: ("default", 0.7), 2: ("temporal", 0.7), 3: ("default", 0.7), 4: ("default", 0.7),
                  5: ("adversarial", 0.5), 6: ("list", 0.7)},
    "locomo": {1: ("default", 0.0), 2: ("temporal", 0.0), 3: ("default", 0.0), 4: ("default", 0.0),
               5: ("adversarial", 0.0)},
    "xmemory": dict.fromkeys(range(1, 6), ("default", 0.0)),
    "sage": dict.fromkeys(range(1, 6), ("default", 0.0)),
    "gam": {**dict.fromkeys((1, 2, 4, 5), ("default", 0.3)), 3: ("open_domain", 0.3)},
    "perltqa": dict.fromkeys(range(7, 11), ("sentence", 0.0)),
    "perltqa_zh": dict.fromkeys(range(7, 11), ("sentence", 0.0)),
    "realtalk": dict.fromkeys(range(1, 4), ("default", 0.0)),
    "factconsolidation": dict.fromkeys((1, 4), ("default", 0.0)),
    "longmemeval": {21: ("default", 0.0)},
    "beam": {34: ("default", 0.0)},
}  # fmt: skip
CASES = [(name, category) for name, categories in ASKED.items() for category in categories]


def test_every_reader_is_listed_here() -> None:
    assert set(READERS) == set(ASKED)


def test_kinds_of_the_chat_data_sets_have_prompts_of_their_own() -> None:
    beam, longmemeval = preset("beam"), preset("longmemeval")
    assert [beam.role_of(kind, options=False) for kind in ("event_ordering", "summarization")] == [
        "ordering",
        "default",
    ]
    assert [longmemeval.role_of(kind, options=False) for kind in ("preference", "temporal")] == [
        "preference",
        "default",
    ]


def test_the_date_of_the_question_is_shown() -> None:
    backbone = Recorder()
    question = Question("q", "c", "Where does Ana live?", 21, "temporal", "2023/05/30 (Tue) 21:40")
    asyncio.run(preset("longmemeval").build(0).answer(backbone, question, Reference("q", ("x",)), "nothing"))
    assert "Today is 2023/05/30 (Tue) 21:40." in backbone.asked[0][1]


@pytest.mark.parametrize(("name", "category"), CASES)
def test_role_and_temperature_of_each_category(name: str, category: int) -> None:
    backbone = Recorder()
    ask(preset(name), backbone, category, trap="in Porto" if category == 5 else None)
    (role,) = backbone.roles
    assert (role.name, role.temperature) == ASKED[name][category]


@pytest.mark.parametrize(("name", "category"), CASES)
def test_a_reader_sees_no_gold_but_the_false_answer_that_its_config_names(name: str, category: int) -> None:
    backbone, reader = Recorder(), preset(name)
    answer = ask(reader, backbone, category, trap="in Porto")
    ((_, prompt),) = backbone.asked
    offered = category == 5 and reader.adversarial_options
    assert "GOLD-ANSWER" not in prompt and ("in Porto" in prompt) is offered
    assert prompt.count("CONTEXT-TEXT") == 1 and prompt.count("Where does Ana live?") == 1
    assert sorted(answer.options) == (sorted([reader.abstention, "in Porto"]) if offered else [])


@pytest.mark.parametrize(
    ("name", "tokens"), [("clag", 1000), ("amem", 1000), ("xmemory", 64), ("perltqa", 128), ("gam", 256)]
)
def test_length_of_a_reply(name: str, tokens: int) -> None:
    assert {settings["max_tokens"] for settings in preset(name).roles.values()} == {tokens}


@pytest.mark.parametrize(
    ("name", "category", "expected"),
    [
        ("locomo", 4, "In Lisbon, by the river."),
        ("perltqa", 7, "In Lisbon, by the river."),
        ("xmemory", 4, "In Lisbon, by the river.\nShe moved in 2021."),
        ("sage", 4, "In Lisbon, by the river.\nShe moved in 2021."),
    ],
)
def test_what_of_a_plain_reply_is_the_answer(name: str, category: int, expected: str) -> None:
    backbone = Recorder("\n In Lisbon, by the river.\nShe moved in 2021. \n")
    answer = ask(preset(name), backbone, category)
    assert answer.prediction == expected and not answer.malformed
    assert backbone.roles[0].schema is None


def test_a_sentence_with_periods_inside_is_not_cut() -> None:
    sentence = "Dr. Ana Reis, b. 1985, earns 1.5 million a year."
    assert ask(preset("perltqa"), Recorder(sentence), 8).prediction == sentence


def test_amem_asks_as_clag_does_but_for_lists() -> None:
    amem, clag = preset("amem"), preset("clag")
    assert amem.prompt_set == clag.prompt_set and clag.by_kind["list"] == "list" and amem.by_kind["list"] is None
    for name, settings in amem.roles.items():
        assert settings == clag.roles[name]


@pytest.mark.parametrize("name", ["clag", "amem"])
def test_what_a_reply_looks_like_is_said_outside_the_prompt(name: str) -> None:
    """Small models copy a shape such as `{"answer": "..."}` that stands at the end of a prompt."""
    backbone = Recorder('{"answer": "Lisbon"}')
    ask(preset(name), backbone, 4)
    role, values = backbone.roles[0], backbone.asked[0][1]
    assert "JSON" in role.system and '"answer"' in role.system
    assert "JSON" not in values and values.endswith("Short answer:")


def test_prompts_of_other_sets_carry_no_instruction_of_locomo() -> None:
    for category in (7, 8, 9, 10):
        backbone = Recorder()
        ask(preset("perltqa"), backbone, category)
        prompt = backbone.asked[0][1].lower()
        foreign = ("two people", "two speakers", "both", "conversation", "short phrase", "yesterday")
        assert not [words for words in foreign if words in prompt]
        assert "sentence" in prompt


@pytest.mark.parametrize(
    ("name", "dataset", "asked", "words"),
    [
        ("amem", "bioasq20", {4: ("factoid", "single_hop"), 6: ("list", "list")}, [
            "reader amem", "category 6 (list)", "data set bioasq20", "reader=clag", "dataset.categories=[4]",
            "by_kind"]),
    ],
)  # fmt: skip
def test_a_category_without_a_prompt_is_refused_with_what_to_choose(
    name: str, dataset: str, asked: Mapping[int, tuple[str, str]], words: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        preset(name).check(dataset, asked)
    for word in words:
        assert word in str(caught.value)


def test_nothing_is_offered_that_does_not_help() -> None:
    with pytest.raises(ConfigError) as caught:
        config(by_kind={"riddle": None}).check("other", {11: ("riddles", "riddle")})
    assert "leave these questions out" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "categories"),
    [("clag", [1, 2, 3, 4, 5]), ("clag", [4]), ("clag", [4, 6]), ("clag", [7, 8, 9, 10]), ("amem", [4]),
     ("locomo", [1, 2, 3, 4, 5]), ("xmemory", [1, 2, 3, 4, 5]), ("sage", [1, 2, 3, 4]), ("perltqa", [7, 8, 9, 10])],
)  # fmt: skip
def test_what_each_reader_answers(name: str, categories: list[int]) -> None:
    preset(name).check("any", {number: ("", kind_of("", number)) for number in categories})
    assert name in readers_for(kind_of("", number) for number in categories)


def test_a_prompt_with_an_unknown_placeholder_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("$context $question $answer")
    roles = {**ROLES, "default": {**ROLES["default"], "prompt": str(tmp_path / "mine.txt")}}
    with pytest.raises(ConfigError, match="placeholder 'answer' cannot be filled"):
        config(roles=roles).build(0)


def test_the_order_of_options_is_the_same_for_every_reader_that_shows_them() -> None:
    for seed in range(6):
        shown = [
            ask(preset(name), Recorder(), 5, trap="in Porto", seed=seed).options for name in ("clag", "amem", "locomo")
        ]
        assert len(set(shown)) == 1
