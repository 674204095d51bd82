"""Parity with MemGPT's released code, without that code: the worker on stand-in files, replies, messages, the store."""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from baselines.memgpt.rules import FUNCTIONS
from eval.parity.agent_messages import message_tokens, shown_memory, shown_messages
from eval.parity.compare import FoundDifference
from eval.parity.config import TOKENS, backbone_settings, find_counterpart
from eval.parity.endpoint import word_tokens
from eval.parity.explain import explain
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, Request, read_request
from eval.parity.rules import passes
from eval.parity.stores import memgpt_store
from memsys.assets.paths import ROOT
from memsys.deviations import read_deviations
from memsys.errors import ConfigError
from memsys.vocabulary import Json
from tests.support.released import QUESTION, StandIn

CODE = find_counterpart("authors_memgpt")
BACKBONE = DeterministicBackbone(KnownTexts([]), backbone_settings().words, phrases=CODE.phrases)


@dataclass(frozen=True, slots=True)
class Saying(DeterministicBackbone):
    """Replies with these, in order."""

    said: list[Json] = field(default_factory=list)

    def reply(self, request: Request) -> str:
        """The next reply."""
        given = self.said.pop(0)
        return given if isinstance(given, str) else json.dumps(given)


def saying(*said: Json) -> Saying:
    return Saying(BACKBONE.known, BACKBONE.topics, phrases=CODE.phrases, said=list(said))


def call(function: str, **args: Json) -> Json:
    return {"thought": "so zq000001", "function": function, "args": args}


#: In place of the authors' files: the names that the worker uses, and imports of what it replaces or leaves out.
FILES = {
    "memgpt.__init__": "from memgpt.client.client import Client\n",
    "memgpt.prompts.system.memgpt_chat": "\nYou are MemGPT, the latest version of this test.\n",
    "memgpt.constants": "FUNC_FAILED_HEARTBEAT_MESSAGE, REQ_HEARTBEAT_MESSAGE = 'it failed', 'go on'\n",
    "memgpt.utils": """
import demjson3
import pytz
import tiktoken
import yaml
from datetime import datetime
from memgpt.openai_backcompat.openai_object import OpenAIObject

def get_local_time():
    return datetime.now().strftime("%Y-%m-%d")

def count_tokens(text):
    return len(tiktoken.encoding_for_model("gpt-4").encode(text))
""",
    "memgpt.system": """
import json
from .utils import get_local_time

def packed(**fields):
    return json.dumps({**fields, "time": get_local_time()})

def package_user_message(text):
    return packed(type="user_message", message=text)

def get_heartbeat(reason):
    return packed(type="heartbeat", reason=reason)

def get_token_limit_warning():
    return packed(type="system_alert", message="nearly full")
""",
    "memgpt.config": """
from types import SimpleNamespace

class AgentConfig(SimpleNamespace):
    pass
""",
    "memgpt.persistence_manager": """
from types import SimpleNamespace
from memgpt.connectors.local import LocalStorageConnector
from memgpt.embeddings import embedding_model
from llama_index import Document
from llama_index.node_parser import SimpleNodeParser

class LocalStateManager:
    def __init__(self, config):
        self.all_messages, self.model = [], embedding_model()
        self.archival_memory = SimpleNamespace(storage=LocalStorageConnector(name=None, agent_config=config))

    def keep(self, text):
        parser = SimpleNodeParser.from_defaults(chunk_size=300)
        for node in parser.get_nodes_from_documents([Document(text=text)]):
            vector = self.model.get_text_embedding(node.text)
            self.archival_memory.storage.insert_many([SimpleNamespace(text=node.text, embedding=vector)])

    def found(self, text):
        vector = self.model.get_text_embedding(text)
        return [one.text for one in self.archival_memory.storage.query(text, vector, top_k=9)]
""",
    "memgpt.functions.functions": '''
from docstring_parser import parse

def example(message):
    """
    Says something.

    Args:
        message (str): What is said: all of it.

    Returns:
        str: nothing
    """

def load_all_function_sets():
    told = parse(example.__doc__)
    params = [(one.arg_name, one.description) for one in told.params]
    assert (told.short_description, params) == ("Says something.", [("message", "What is said: all of it.")])
    names = ["core_memory_append", "core_memory_replace", "conversation_search", "conversation_search_date",
             "archival_memory_insert", "archival_memory_search", "send_message", "pause_heartbeats", "other"]
    return {name: {"name": name} for name in names}
''',
    "memgpt.agent": """
import json
import requests
from box import Box
from types import SimpleNamespace
from memgpt.local_llm.chat_completion_proxy import get_chat_completion
from memgpt.utils import count_tokens, get_local_time

class Agent:
    agent_alerted_about_memory_pressure = False

    def __init__(self, config, model, system, functions, interface, persistence_manager, persona_notes, human_notes):
        assert "other" not in functions and len(functions) == 8 and config.context_window == 40
        head = f"{system}\\n0 previous messages are kept\\n0 total memories are kept"
        self.config, self.functions, self.interface = config, list(functions.values()), interface
        self.persistence_manager, self.messages, self.messages_total = persistence_manager, [], 0
        self.memory = SimpleNamespace(to_dict=lambda: {"persona": persona_notes, "human": human_notes})
        self.messages = [{"role": "system", "content": head}]
        self.persistence_manager.all_messages = [{"message": self.messages[0]}]

    def asked(self, messages, functions):
        data = {"model": self.config.model, "messages": messages, "functions": functions}
        response = requests.post(f"{self.config.model_endpoint}/chat/completions", headers={}, json=data)
        response.raise_for_status()
        return Box(response.json())

    def step(self, text, skip_verify):
        assert skip_verify
        event = {"role": "user", "content": text}
        try:
            reply = self.asked([*self.messages, event], self.functions)
        except requests.exceptions.HTTPError as error:
            assert error.response.json()["error"]["code"] == "context_length_exceeded"
            gone = self.messages[1:]
            assert count_tokens(str(gone)) == sum(count_tokens(str(one)) for one in gone) > 0
            system = {"role": "system", "content": "Your job is to summarize a history of previous messages."}
            listed = {"role": "user", "content": str(["earlier", *gone])}
            summary = self.asked([system, listed], None).choices[0].message.content
            self.messages = [self.messages[0], {"role": "user", "content": json.dumps(
                {"type": "system_alert", "message": f"{len(gone)}: {summary}", "time": get_local_time()})}]
            return self.step(text, skip_verify)
        message = reply.choices[0].message
        new, failed, again = [event, message], False, False
        if message.get("function_call"):
            args = json.loads(message.function_call.arguments)
            again, failed = args.pop("request_heartbeat", False), message.function_call.name == "fail"
            if message.function_call.name == "send_message":
                self.interface.assistant_message(args["message"])
            if message.function_call.name == "archival_memory_insert":
                self.persistence_manager.keep(args["content"])
            if message.function_call.name == "archival_memory_search":
                self.interface.assistant_message(", ".join(self.persistence_manager.found(args["query"])))
        self.messages = self.messages + new
        self.persistence_manager.all_messages += [{"message": one} for one in new]
        self.messages_total += len(new)
        return new, again, failed, reply["usage"]["total_tokens"] > 10_000
""",
}


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *said: Json) -> tuple[StandIn, Any]:
    stand_in = StandIn("authors_memgpt", FILES, saying(*said))
    stand_in.endpoint.tokens = message_tokens
    return stand_in, stand_in.run(folder, monkeypatch, {"window": 40, "mode": "turn"})


def test_the_worker_tells_the_agent_its_sessions_and_asks_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, again = call("archival_memory_insert", content="boats"), call("fail", request_heartbeat=True)
    stand_in, result = run(
        tmp_path, monkeypatch, again, note, "a summary", call("archival_memory_search", query="boats")
    )
    assert stand_in.roles() == ["step", "step", "sum_up", "step"]
    prompts = [request.prompt.splitlines() for request in (one.request for one in stand_in.endpoint.calls["theirs"])]
    told = {"type": "user_message", "message": "Ann: t1\nAnn: t2", "time": "1-01-01"}
    assert prompts[0] == [f"user: {json.dumps(told)}"]
    assert [line.partition(": ")[0] for line in prompts[1]] == ["user", "assistant", "user"]
    assert json.loads(prompts[1][1].partition(": ")[2]) == again and "it failed" in prompts[1][2]
    assert prompts[2] == ["earlier", *prompts[1], f"assistant: {json.dumps(note)}"]
    assert "4: a summary" in prompts[3][0] and "why?" in prompts[3][1]
    assert result.answers == {"q": Answered("why?", "", "boats")}
    assert result.store["queue"] == prompts[2][1:] == result.store["recall"] and result.store["archival"] == ["boats"]
    assert result.store["core"]["core"]["human"] == "Ann:"
    assert result.store["counts"]["counts"] == {"total": 4, "messages": 0, "notes": 0, "warned": False}


def test_a_reply_that_is_no_call_is_a_thought_and_no_message_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, result = run(tmp_path, monkeypatch, "I shall wait.", '{"other": 1}')
    assert result.store["queue"][1] == 'assistant: {"thought": "I shall wait."}'
    assert result.answers["q"].prediction == ""


# Replies


def said(role: str, number: int) -> str:
    message = {"role": "user", "content": f"{CODE.phrases[role][1]} zq{number:06x}"}
    return BACKBONE.reply(read_request({"messages": [message]}, CODE.phrases))


def test_either_wording_of_a_role_gets_the_same_reply() -> None:
    for role, phrases in CODE.phrases.items():
        bodies = [{"messages": [{"role": "user", "content": f"{phrase} zq000001"}]} for phrase in phrases]
        requests = [read_request(body, CODE.phrases) for body in bodies]
        assert {request.role for request in requests} == {role}
        assert len({BACKBONE.reply(request) for request in requests}) == 1


def test_replies_are_varied_as_those_of_small_models() -> None:
    replies = [said("step", number) for number in range(600)]
    calls = [json.loads(reply) for reply in replies if reply.startswith("{")]
    assert 20 < len(replies) - len(calls) < 90, "thoughts alone"
    names = Counter(one["function"] for one in calls)
    assert set(FUNCTIONS) | {"merge"} == set(names) and names["send_message"] > 150
    args = [one["args"] for one in calls]
    assert {"notes", "human", "persona"} == {one["name"] for one in args if "name" in one}
    assert {True, False, "true", None} <= {one.get("request_heartbeat", 0) for one in args}
    assert any("content" not in one["args"] for one in calls if one["function"] == "archival_memory_insert")
    assert any(one["args"].get("page") == "first" for one in calls)
    assert all(isinstance(one["thought"], str) and "zq" in one["thought"] for one in calls)
    assert said("sum_up", 1) and not said("sum_up", 1).startswith("{")


# Messages


def line(sender: str, **fields: Json) -> str:
    return f"{sender}: {json.dumps(fields)}"


HEARTBEATS = (
    line("user", type="heartbeat", message="Your last call failed.", time="t"),
    line("user", type="heartbeat", reason="Function call failed, returning control", time="t"),
)
SUMMARIES = (
    line("user", type="system_alert", message="9 are hidden: x zq000001", time="t"),
    line("user", type="system_alert", message="Note: prior messages (9 of 12 total) zq000001", time="t"),
)
GO, ON = (json.dumps({"type": "heartbeat", **told, "time": "t"}) for told in ({"message": "Go"}, {"reason": "On"}))
RESULTS = (
    f"Results 6 to 6 of 6, page 1 of 0 to 1: {json.dumps([f't, user - {GO}'])}",
    f"Showing 1 of 6 results (page 1/1): {json.dumps([f'timestamp: t, user - {ON}'])}",
)


def returned(message: Json, status: str = "OK") -> str:
    return line("function", status=status, message=message, time="t")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        HEARTBEATS,
        SUMMARIES,
        tuple(map(returned, RESULTS)),
        (returned("done"), returned("None")),
        (returned("done"), returned(None)),
        (returned("No result on page 3; there are 2 results."), returned("No results found.")),
        (returned("It takes a text.", "Failed"), returned("Error calling function x", "Failed")),
        (
            line("assistant", thought="I am awake.", function="send_message", args={"message": "Hello."}),
            line("assistant", thought="Booted.", function="send_message", args={"message": "Hi."}),
        ),
        (line("user", type="login", message="come", time="t"), line("user", type="login", last_login="no", time="t")),
    ],
)
def test_messages_say_the_same_in_either_wording(ours: str, theirs: str) -> None:
    assert shown_messages(ours) == shown_messages(theirs) != []
    assert message_tokens(ours) == message_tokens(theirs) == 10 + 4 * ours.count("zq")
    assert passes("same_agent_message", "queue.1", ours, theirs)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (HEARTBEATS[0], HEARTBEATS[1].replace("failed", "made")),
        (SUMMARIES[0], SUMMARIES[1].replace("9 of", "8 of")),
        (SUMMARIES[0], SUMMARIES[1].replace("zq000001", "zq000002")),
        (returned(RESULTS[0]), returned(RESULTS[1].replace("of 6", "of 7"))),
        (returned(RESULTS[0]), returned(RESULTS[1].replace("page 1", "page 0"))),
        (returned(RESULTS[0]), returned(RESULTS[1].replace("heartbeat", "login"))),
        (returned("done"), returned("None", "Failed")),
        (
            line("user", type="user_message", message="a", time="t"),
            line("user", type="user_message", message="b", time="t"),
        ),
        (
            line("user", type="user_message", message="a", time="t"),
            line("user", type="user_message", message="a", time="u"),
        ),
        (line("assistant", thought="zq000001", function="f", args={}), line("assistant", thought="zq000001")),
        (line("assistant", thought="cut off"), line("assistant", thought="cut")),
        (line("assistant", thought="", function="f", args={}), line("assistant", thought="", function="g", args={})),
    ],
)
def test_messages_that_say_other_things_are_not_the_same(ours: str, theirs: str) -> None:
    assert not passes("same_agent_message", "queue.1", ours, theirs)


def test_notes_and_thoughts_among_results_are_read() -> None:
    listed = ["t, memory: a, user - b", "t, assistant - zq000001, memory: c"]
    notes = f"Results 1 to 2 of 2, page 0 of 0 to 0: {json.dumps(listed)}"
    theirs = f"Showing 2 of 2 results (page 0/0): {json.dumps([f'timestamp: {one}' for one in listed])}"
    found = shown_messages(returned(notes))[0][-1]
    assert found == (2, 0, 0, [("t", "a, user - b"), ("t", "assistant", "zq000001, memory: c")])
    assert shown_messages(returned(theirs))[0][-1] == found


def test_prompts_show_the_same_messages_marks_and_core_memory() -> None:
    turn = line("user", type="user_message", message="Ann: boat sea", time="t")
    stored = "Stored beyond this page: 7 messages in recall memory, 2 notes in archival memory."
    core = "<persona: 3 of 9 characters>\nI\n<human: 4 of 9 characters>\nAnn:\nsails zq000001"
    ours = f"{core}\n\n{stored}\n\n{turn}\n\nReply"
    theirs = ("7 previous messages are kept\n2 total memories are kept\n"
              '<persona characters="3/9">\nI\n</persona>\n<human characters="4/9">\nAnn:\nsails zq000001\n</human>\n'
              f"{turn}")  # fmt: skip
    assert shown_memory(ours) == [("3", "9", "I", "4", "9", "Ann:\nsails zq000001"), ("7", "2")] == shown_memory(theirs)
    assert passes("same_agent_prompt", "step 1", ours, theirs)
    for change in ("sails", "7 previous", "boat", "zq000001"):
        assert not passes("same_agent_prompt", "step 1", ours, theirs.replace(change, "8 x"))
    assert not passes("same_agent_prompt", "step 1", "a", "a")
    assert passes("same_agent_message", "sum_up 1", turn, turn), "summaries show no core memory"
    assert not passes("same_agent_prompt", "step 1", turn, turn), "nothing of core memory was compared"
    assert message_tokens(theirs) == 10 + 3, "instructions and core memory count nothing"


def test_what_we_have_alone() -> None:
    assert passes("ours_alone", "q", "x", "") and passes("ours_alone", "q", "x", None)
    assert not passes("ours_alone", "q", "x", "y") and not passes("ours_alone", "q", None, "y")
    assert not passes("ours_alone", "step.temperature", 0.5, 0.0), "a 0 is a value"


def test_tokens_are_counted_by_name() -> None:
    assert (TOKENS[CODE.tokens], TOKENS["words"]) == (message_tokens, word_tokens)
    with pytest.raises(ConfigError, match="tokens='letters' is unknown; choose one of words, messages"):
        replace(CODE, tokens="letters")


# Deviations and the store


def test_a_call_of_one_side_alone_is_not_explained_but_for_the_reader() -> None:
    deviations = read_deviations(ROOT / "baselines" / "memgpt" / "deviations.yaml")
    calls = [
        FoundDifference("calls", "step 1", "content", "a", None, "step"),
        FoundDifference("calls", "step 1", "content", None, "a", "step"),
        FoundDifference("calls", "reply 1", "content", "a", None, "reply"),
        FoundDifference("prompt", "step 1", "content", "a", "b", "step"),
        FoundDifference("answer", "q", "content", "a", "b"),
        FoundDifference("answer", "q", "content", "a", ""),
        FoundDifference("calls", "unknown 1", "content", "a", None, "unknown"),
        FoundDifference("calls", "step.temperature", "content", 0.0, None, "step"),
        FoundDifference("calls", "step.temperature", "content", 0.0, 0.7, "step"),
        FoundDifference("calls", "step.max_tokens", "content", 768, 100, "step"),
    ]
    explained = [one.deviation is not None for one in explain(calls, deviations, "memgpt_code", "ours")]
    assert explained == [False, False, True, False, False, True, False, True, False, False]


def test_every_file_is_named_with_a_checksum_and_our_prompts_have_their_phrases() -> None:
    sources = CODE.sources(CODE.find_pack(ROOT))
    assert {"memgpt.agent", "memgpt.memory", "memgpt.functions.function_sets.base"} <= set(sources)
    assert {len(source.sha256) for source in sources.values()} == {64}
    assert len({(source.repository, source.commit) for source in sources.values()}) == 1
    for role, file in (("step", "agent"), ("sum_up", "summarise")):
        assert CODE.phrases[role][1] in (ROOT / "baselines" / "memgpt" / "prompts" / f"{file}.txt").read_text()


def test_the_state_of_memgpt_in_the_form_that_is_compared() -> None:
    message = {"sender": "user", "text": "{}", "date": "t"}
    state = {
        "core": [{"name": "persona", "text": "I"}, {"name": "human", "text": "Ann:"}],
        "queue": [message], "log": [message, message], "archival": {"records": [{"text": "a"}]},
        "shown_counts": [3, 1], "total": 5, "alerted": True,
    }  # fmt: skip
    assert memgpt_store(state) == {
        "core": {"core": {"persona": "I", "human": "Ann:"}},
        "queue": ["user: {}"], "recall": ["user: {}"] * 2, "archival": ["a"],
        "counts": {"counts": {"total": 5, "messages": 3, "notes": 1, "warned": True}},
    }  # fmt: skip
    assert QUESTION.text == "why?"
