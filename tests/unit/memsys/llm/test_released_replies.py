"""Presets that follow a release read malformed, cut, fenced, padded and odd replies as the released codes do."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from baselines.amem.roles import make_roles as amem_roles
from baselines.memoryos.roles import make_roles as memoryos_roles
from eval.running.reader import ReaderConfig
from memsys.clag.profiling import profile_from_reply
from memsys.clag.roles import make_roles as clag_roles
from memsys.episodes.extraction import extract_directly
from memsys.episodes.nodes import Episode
from memsys.episodes.roles import EpisodeRoles, shared_roles
from memsys.errors import ConfigError
from memsys.facts.extraction import extract_role, facts_from_reply
from memsys.llm.contract import Reply, Role
from memsys.llm.reading import ReplyReading
from memsys.llm.roles import make_role
from memsys.llm.scripted import ScriptedModel
from memsys.llm.wire import make_request
from memsys.notes.roles import note_role
from memsys.vocabulary import Question, Reference, Turn, Unit
from tests.support.backbones import backbone_config
from tests.support.clag import evolution
from tests.support.composing import composed, memory_config, parts
from tests.support.fakes import FakeModel

CONF = Path(__file__).resolve().parents[4] / "conf"

ANALYSIS = {"keywords": ["sea", "boat"], "context": "Ann sails", "tags": ["hobby"]}
EVOLUTION = evolution(
    actions=["strengthen", "update_neighbor"], suggested_connections=[0], tags_to_update=["joined"],
    new_context_neighborhood=["told again"], new_tags_neighborhood=[["changed"]],
)  # fmt: skip

NOTE_READ = (["sea", "boat"], "Ann sails", ["hobby"])
NOTE_LOST = ([], "General", [])


def cut(value: Mapping[str, Any]) -> str:
    """Cut a reply short within its last member, as a limit of new tokens does."""
    return json.dumps(value)[:-3]


def fenced(value: Mapping[str, Any]) -> str:
    return f"```json\n{json.dumps(value)}\n```"


def padded(value: Mapping[str, Any]) -> str:
    return f"Sure, here it is:\n{json.dumps(value)}\nIs there more?"


def written(preset: str, **replies: str) -> tuple[list[dict[str, Any]], ScriptedModel]:
    """Write two notes; the replies are those to the roles of the second, well-formed ones stand in."""

    def script(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        usual = ANALYSIS if role == "analyse" else evolution(should_evolve=False)
        return replies.get(role, usual) if key == "u1" else usual

    model = ScriptedModel(script)
    memory = memory_config(preset).build(parts(FakeModel(script), llm=model))

    async def run() -> None:
        for name, text in (("u0", "a boat"), ("u1", "a boat again")):
            unit = Unit(name, (Turn(name, "s", "Ann", text, date_time="1 May"),))
            await memory.write(unit, await memory.prepare(unit))

    asyncio.run(run())
    return list(memory.state()["notes"]), model


def analysed(preset: str, reply: str) -> tuple[list[str], str, list[str]]:
    notes, model = written(preset, analyse=reply)
    assert [call.role for call in model.calls].count("analyse") == 2  # nothing is asked again
    return notes[1]["keywords"], notes[1]["context"], notes[1]["tags"]


ODD_ANALYSES = [
    ("cut", cut(ANALYSIS), NOTE_LOST),
    ("empty entries", json.dumps({"keywords": [" sea ", ""], "context": " c ", "tags": [""]}),
     ([" sea ", ""], " c ", [""])),
    ("wrong types", json.dumps({"keywords": None, "context": ["a", "b"], "tags": ""}), ([], "a b", [])),
    ("a number as text", json.dumps({**ANALYSIS, "context": 5}), NOTE_LOST),
    ("extra fields", json.dumps({**ANALYSIS, "mood": "good"}), NOTE_READ),
    ("missing field", json.dumps({"keywords": ["sea"], "context": "c"}), NOTE_LOST),
    ("no JSON", "I cannot help with that.", NOTE_LOST),
]  # fmt: skip


@pytest.mark.parametrize("preset", ["amem_v1", "amem_v2", "clag_code"])
@pytest.mark.parametrize(("reply", "note"), [case[1:] for case in ODD_ANALYSES], ids=[case[0] for case in ODD_ANALYSES])
def test_analyses(preset: str, reply: str, note: tuple[list[str], str, list[str]]) -> None:
    assert analysed(preset, reply) == note


@pytest.mark.parametrize(("preset", "note"), [("amem_v1", NOTE_LOST), ("amem_v2", NOTE_READ), ("clag_code", NOTE_READ)])
def test_what_stands_around_an_object_is_cut_since_the_second_release(preset: str, note: Any) -> None:
    assert analysed(preset, fenced(ANALYSIS)) == analysed(preset, padded(ANALYSIS)) == note


def test_the_tolerant_reading_stays_the_default() -> None:
    assert analysed("amem", cut(ANALYSIS)) == analysed("amem", fenced(ANALYSIS)) == NOTE_READ
    blanks = {"keywords": [" sea ", ""], "context": " c ", "tags": [""]}
    assert analysed("amem", json.dumps(blanks)) == (["sea"], "c", [])
    roles = [role for name in ("amem", "clag", "sage", "mem0") for role in composed(name)["roles"].values()]
    assert all("reading" not in role for role in roles) and ReplyReading() == ReplyReading(
        True, True, "exact", True, True, "texts"
    )


Evolved = tuple[list[str], list[str], str, list[str]]
UNCHANGED: Evolved = ([], ["hobby"], "Ann sails", ["hobby"])
CHANGED: Evolved = (["u0"], ["joined"], "told again", ["changed"])


def evolved(preset: str, reply: str) -> Evolved:
    """Links and tags of the new note, context and tags of its neighbour."""
    (old, new), model = written(preset, evolve=reply)
    assert [call.role for call in model.calls].count("evolve") == 2
    return new["links"], new["tags"], old["context"], old["tags"]


STRENGTHENED = {"should_evolve": True, "actions": ["strengthen"], "suggested_connections": [0], "tags_to_update": ["x"]}
ODD_EVOLUTIONS: list[tuple[str, str, Evolved]] = [
    ("cut", cut(EVOLUTION), UNCHANGED),
    ("empty entries", json.dumps({**EVOLUTION, "tags_to_update": ["", " a "], "new_context_neighborhood": [" "],
                                  "new_tags_neighborhood": [[""]]}), (["u0"], ["", " a "], " ", [""])),
    ("a word as truth", json.dumps({**EVOLUTION, "should_evolve": "no"}), CHANGED),
    ("links as words", json.dumps({**EVOLUTION, "suggested_connections": ["0", "none", 0.0]}),
     (["u0", "u0"], *CHANGED[1:])),
    ("actions as a word", json.dumps({**EVOLUTION, "actions": "strengthen"}), UNCHANGED),
    ("a number as tags", json.dumps({**EVOLUTION, "tags_to_update": 7}), UNCHANGED),
    ("extra fields", json.dumps({**EVOLUTION, "reason": "alike"}), CHANGED),
    ("only what is asked", json.dumps(STRENGTHENED), (["u0"], ["x"], "Ann sails", ["hobby"])),
    ("less than is asked", json.dumps({**STRENGTHENED, "actions": ["update_neighbor"]}), UNCHANGED),
    ("another type of what nobody asked for", json.dumps({**STRENGTHENED, "new_tags_neighborhood": None}),
     (["u0"], ["x"], "Ann sails", ["hobby"])),
    ("a text for contexts", json.dumps({**EVOLUTION, "new_context_neighborhood": "ab"}),
     (["u0"], ["joined"], "a", ["changed"])),
    ("no and nothing else", '{"should_evolve": false}', UNCHANGED),
]  # fmt: skip


@pytest.mark.parametrize("preset", ["amem_v1", "amem_v2", "clag_code"])
@pytest.mark.parametrize(
    ("reply", "result"), [case[1:] for case in ODD_EVOLUTIONS], ids=[case[0] for case in ODD_EVOLUTIONS]
)
def test_evolutions(preset: str, reply: str, result: Evolved) -> None:
    assert evolved(preset, reply) == result


@pytest.mark.parametrize(("preset", "result"), [("amem_v1", UNCHANGED), ("amem_v2", CHANGED), ("clag_code", CHANGED)])
def test_what_stands_around_an_evolution(preset: str, result: Evolved) -> None:
    assert evolved(preset, fenced(EVOLUTION)) == evolved(preset, padded(EVOLUTION)) == result


def test_a_link_written_as_a_fraction_is_no_crash_in_any_preset() -> None:
    assert evolved("amem", json.dumps({**EVOLUTION, "suggested_connections": [0.0]})) == CHANGED


KEYWORDS = {"keywords": "sea, boat"}
ODD_KEYWORDS = [
    (cut(KEYWORDS), cut(KEYWORDS)),
    (fenced(KEYWORDS), fenced(KEYWORDS)),
    (padded(KEYWORDS), padded(KEYWORDS)),
    ('{"keywords": " , sea "}', " , sea "),
    ('{"keywords": ["sea"]}', '{"keywords": ["sea"]}'),
    ('{"keywords": "sea", "more": 1}', "sea"),
]


@pytest.mark.parametrize("preset", ["amem_v1", "amem_v2", "clag_code"])
@pytest.mark.parametrize(("reply", "query"), ODD_KEYWORDS)
def test_keywords(preset: str, reply: str, query: str) -> None:
    model = ScriptedModel(lambda role, values, key: reply)
    memory = memory_config(preset).build(parts(FakeModel(lambda *_: ""), llm=model))
    assert asyncio.run(memory.retrieve("Where?")).trace["keywords"] == query
    assert len(model.calls) == 1


def asked(role: Role, reply: str) -> Reply:
    """Ask a role that gets one reply, and has no second attempt."""
    values = dict.fromkeys(("content", "context", "tags", "candidates", "samples", "query", "query_tags", "top_n"), "x")
    return asyncio.run(ScriptedModel([reply]).ask(role, values, key="k"))


@pytest.mark.parametrize(
    ("name", "good"), [("router", {"choice": "cluster_0"}), ("selector", {"selected_clusters": ["cluster_0"]})]
)
def test_choices_of_clusters(name: str, good: Mapping[str, Any]) -> None:
    role = getattr(clag_roles(composed("clag_code")["roles"]), name)
    assert asked(role, cut(good)).value is None
    for reply in (fenced(good), padded(good), json.dumps({**good, "reason": "near"})):
        value = asked(role, reply).value
        assert value is not None and value.items() >= good.items()
    assert asked(role, json.dumps(dict.fromkeys(good, 5))).value is None


@pytest.mark.parametrize(
    ("reply", "profile"),
    [
        ('{"summary": "On sails", "tags": ["boat", "sea"', ("On sails", ("boat", "sea"))),
        ('```json\n{"summary": "On sails", "tags": ["boat deck", ""]}\n```', ("On sails", ("boat",))),
        ('Here: {"summary": "On sails", "tags": ["boat"]}', ("On sails", ("boat",))),
        ('{"summary": " On sails ", "tags": ["boat", " "], "more": 1}', ("On sails", ("boat",))),
        ('{"summary": "On sails", "tags": ["boat", 3]}', ("On sails", ("boat",))),
        ('{"summary": "On sai', ("", ())),
    ],
)
def test_profiles(reply: str, profile: tuple[str, tuple[str, ...]]) -> None:
    found = profile_from_reply(asked(clag_roles(composed("clag_code")["roles"]).profile, reply), 3)
    assert (found.summary, found.tags) == profile


@cache
def reader(name: str) -> ReaderConfig:
    from hydra import compose, initialize_config_dir
    from hydra.utils import instantiate

    with initialize_config_dir(str(CONF), version_base=None):
        made: ReaderConfig = instantiate(compose(f"reader/{name}").reader, _convert_="all")
    return made


ANSWER = {"answer": "in Lisbon"}
ODD_ANSWERS = [
    (cut(ANSWER), cut(ANSWER)),
    (fenced(ANSWER), fenced(ANSWER)),
    (padded(ANSWER), padded(ANSWER)),
    ('{"answer": " in Lisbon "}', " in Lisbon "),
    ('{"answer": 7}', "7"),
    ('{"answer": ["a", "b"]}', "['a', 'b']"),
    ('{"answer": "in Lisbon", "why": "said so"}', "in Lisbon"),
    ('{"reply": "in Lisbon"}', '{"reply": "in Lisbon"}'),
    ('["in Lisbon"]', '["in Lisbon"]'),
]


@pytest.mark.parametrize("name", ["amem_code", "clag_code"])
@pytest.mark.parametrize(("reply", "prediction"), ODD_ANSWERS)
def test_readers(name: str, reply: str, prediction: str) -> None:
    model = ScriptedModel([reply])
    question = Question("c:q1", "c", "Where?", 4)
    answer = asyncio.run(reader(name).build(0).answer(model, question, Reference("c:q1", ("x",)), "context"))
    assert answer.prediction == prediction and len(model.calls) == 1


@pytest.mark.parametrize(
    ("reply", "prediction"),
    [
        (" in Lisbon \nby the sea\n", "in Lisbon \nby the sea"),
        (fenced(ANSWER), "in Lisbon"),
        (json.dumps({**ANSWER, "why": "said so"}), "in Lisbon"),
        ('{"answer": 7}', "7"),
        (cut(ANSWER), cut(ANSWER)),
        (padded(ANSWER), padded(ANSWER)),
        ('{"reply": "in Lisbon"}', '{"reply": "in Lisbon"}'),
        ("[1]", "[1]"),
    ],
)
def test_the_robust_reader_asks_for_free_text(reply: str, prediction: str) -> None:
    model, question = ScriptedModel([reply]), Question("c:q1", "c", "Where?", 4)
    answer = asyncio.run(reader("amem_robust").build(0).answer(model, question, Reference("c:q1", ("x",)), "context"))
    assert answer.prediction == prediction and not answer.malformed
    assert "JSON" not in model.calls[0].prompt


FACTS = {"facts": ["sails", "has a boat"]}


@pytest.mark.parametrize("preset", ["sage_code", "mem0_in_sage", "mem0_graph_in_sage"])
@pytest.mark.parametrize(
    ("reply", "facts"),
    [
        (json.dumps(FACTS), ("sails", "has a boat")),
        (cut(FACTS), ()),
        (fenced(FACTS), ("sails", "has a boat")),
        (json.dumps({**FACTS, "more": 1}), ("sails", "has a boat")),
        ('["sails"]', ()),
        (f"Here it is: {fenced(FACTS)}", ("sails", "has a boat")),
        (f"Here it is: {json.dumps(FACTS)}", ()),
        (
            '{"facts": [" sails ", "", {"fact": "rows"}, {"text": "dives"}, {"other": "x"}]}',
            (" sails ", "rows", "dives"),
        ),
        ('{"facts": [7, null, ["sails"]]}', ("7", "None", "['sails']")),
        ('{"facts": "abc"}', ("a", "b", "c")),
        ('{"facts": 7}', ()),
    ],
)
def test_facts(preset: str, reply: str, facts: tuple[str, ...]) -> None:
    role = extract_role(composed(preset)["roles"]["extract"])
    values = dict.fromkeys(("owner", "date", "messages"), "x")
    found = asyncio.run(ScriptedModel([reply]).ask(role, values, key="k"))
    assert facts_from_reply(found, None, role.reading).texts == facts


@pytest.mark.parametrize("preset", ["xmemory_code", "nemori_code"])
@pytest.mark.parametrize(
    ("replies", "statements"),
    [
        (['{"statements": ["sails"]}'], ("sails",)),
        (['{"statements": ["sails", "has'] * 4, ()),
        (['{"statements": ["sails", "has', '{"statements": ["late"]}'], ("late",)),
        (['```\n{"statements": ["sails"], "count": 1}\n```'], ("sails",)),
        (['So: {"statements": "sails"}'], ()),
    ],
)
def test_statements(preset: str, replies: list[str], statements: tuple[str, ...]) -> None:
    model = ScriptedModel(replies)
    roles = EpisodeRoles(**shared_roles(composed(preset)["roles"]))
    found = asyncio.run(extract_directly(model, roles, Episode("e", "t", "c", "", ()), "k"))
    assert found.statements == statements and len(model.calls) == len(replies)


@dataclass(frozen=True)
class Order:
    """Fields of the role ``evolve`` in the order in which constrained decoding writes them."""

    preset: str
    contexts_first: bool


@pytest.mark.parametrize(
    "case", [Order("amem_v1", True), Order("amem_v2", True), Order("clag_code", True), Order("amem", False)]
)
def test_order_of_the_fields_of_an_evolution(case: Order) -> None:
    settings = composed(case.preset)["roles"]
    role = clag_roles(settings).evolve if case.preset == "clag_code" else amem_roles("joint", settings)["evolve"]
    request = make_request(backbone_config(structured="json_schema"), "vllm", role, "prompt", 1)
    sent = json.dumps(request.body)
    assert (sent.index('"new_context_neighborhood"') < sent.index('"tags_to_update"')) is case.contexts_first


def test_the_cache_tells_requests_apart_by_order_and_system_message_and_not_by_reading() -> None:
    usual = {"temperature": 0.7, "max_tokens": 10}
    backwards = ["tags", "context", "keywords"]
    settings = [usual, {**usual, "field_order": backwards}, {**usual, "system": "s"},
                {**usual, "reading": {"repair": False, "check": "used"}, "malformed_retries": 0}]  # fmt: skip
    roles = [note_role("analyse", each) for each in settings]
    config = backbone_config(structured="json_schema")
    digests = [make_request(config, "vllm", role, "prompt", 1).digest("m") for role in roles]
    assert len(set(digests)) == 3 and digests[0] == digests[3]


@pytest.mark.parametrize(
    ("preset", "named"), [("amem_v1", True), ("amem_v2", True), ("clag_code", True), ("amem", False)]
)
def test_chat_backbones_get_the_system_message_in_every_role(preset: str, named: bool) -> None:
    roles = [make_role(name, {**settings, "prompt": __file__, "field_order": None}, CONF, None)
             for name, settings in composed(preset)["roles"].items()]  # fmt: skip
    for role in roles:
        chat = make_request(backbone_config(), "vllm", role, "prompt", 1).body["messages"]
        assert ({"role": "system", "content": "You must respond with a JSON object."} in chat) is named  # type: ignore[operator]
        completion = make_request(backbone_config(prompt_mode="completion"), "vllm", role, "prompt", 1)
        assert completion.body["prompt"] == "prompt" and "messages" not in completion.body


@pytest.mark.parametrize("preset", ["amem_v1", "amem_v2", "amem_robust"])
def test_the_cap_of_links_is_the_number_of_hits(preset: str) -> None:
    assert memory_config(preset).context_rules.max_links == 10  # type: ignore[attr-defined]
    assert memory_config(preset, retrieve_k=3).context_rules.max_links == 3  # type: ignore[attr-defined]
    assert memory_config("clag_code", k_retrieve=7).context_rules.max_links == 7  # type: ignore[attr-defined]
    assert memory_config("amem", retrieve_k=3).context_rules.max_links == 10  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reading": {"mend": True}}, "reading.mend is unknown; known are repair, cut"),
        ({"reading": {"repair": "no"}}, "reading.repair='no' must be true or false"),
        ({"reading": {"check": "loose"}}, "reading.check='loose' is unknown; choose one of exact, used, any"),
        ({"reading": {"check": "any"}}, "lack what the role reads of them; choose exact or used"),
        ({"field_order": ["keywords"]}, "must name each field of its schema once: keywords, context, tags"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match="role analyse") as caught:
        note_role("analyse", {"temperature": 0.7, "max_tokens": 10, **settings})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("preset", "roles"),
    [
        ("gam_code", ("plan", "integrate", "check", "requests")),
        ("lightmem_code", ("extract", "update")),
        ("memoryos_code", ("topics",)),
    ],
)
def test_codes_that_neither_repair_nor_ask_again(preset: str, roles: tuple[str, ...]) -> None:
    for name in roles:
        settings = composed(preset)["roles"][name]
        role = make_role(name, {**settings, "prompt": __file__}, CONF, None)
        assert (role.malformed_retries, role.reading.repair, role.reading.check) == (0, False, "used"), name


def test_a_cut_list_of_topics_is_no_topic_of_memoryos_released() -> None:
    """The page is lost, as in the release (``mid_term.unread_topics``)."""
    reply = json.dumps({"topics": [{"theme": "t", "keywords": ["k"], "content": "They sail."}]})[:-4]
    model = ScriptedModel(lambda role, values, key: reply)
    settings = composed("memoryos_code")["roles"]
    role = memoryos_roles(settings)["topics"]
    assert asyncio.run(model.ask(role, {"page": "p"}, key="k")).value is None
    assert len(model.calls) == 1
