"""MemGPT's released code (0.2.11) as a worker: its agent is told a conversation session by session, and then asked.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    window: tokens of the context window.
    mode: a session is one message of the user's (``session``), or each pair of its turns is (``turn``).

The loop around the agent's step is that of its command line, without verifying the first message. Replaced are the
package ``requests`` (a server of OpenAI's kind that refuses a prompt longer than the window, and shows messages line
by line to the endpoint; its object becomes a call of a function), tiktoken (the endpoint counts messages), the clock
(the time of the session), LlamaIndex (an exact search in memory; a note is one passage), its embedding model (vectors
come from the embedder's address), and docstring_parser, Box and demjson3, of which little is used. The persona and the
human are those of our preset. A question is asked of a copy of the agent.
"""

import ast
import copy
import json
import re
import sys
import types
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, EndpointEmbedder, load, prepare

#: Imported by the released files, called by nothing that runs here.
UNUSED = ("memgpt.client", "memgpt.local_llm", "memgpt.openai_backcompat", "pytz", "yaml")
#: Functions of the release's preset for chats.
FUNCTIONS = ("send_message", "pause_heartbeats", "core_memory_append", "core_memory_replace", "conversation_search",
             "conversation_search_date", "archival_memory_insert", "archival_memory_search")  # fmt: skip
#: Turns of a message in mode ``turn``.
PAIR = 2
#: How LoCoMo writes the time of a session.
_TIME = "%I:%M %p on %d %B, %Y"
_COUNTS = re.compile(r"^(\d+) (?:previous messages|total memories) ", re.MULTILINE)


class Box(dict):  # type: ignore[type-arg]
    """Replacement of the package's class: an object whose values are attributes too."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        super().__init__({key: _boxed(value) for key, value in given.items()})

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]

    def __deepcopy__(self, memo: Any) -> "Box":
        return Box({key: copy.deepcopy(value) for key, value in self.items()})


def _boxed(value: Any) -> Any:
    if isinstance(value, list):
        return [_boxed(one) for one in value]
    return Box(value) if isinstance(value, Mapping) else value


def line(message: Any) -> str:
    """Return a message as prompts of this run show it."""
    if isinstance(message, str):
        return message
    if message["role"] != "assistant":
        return f"{message['role']}: {message['content']}"
    said: dict[str, Any] = {"thought": message["content"]}
    if message.get("function_call"):
        call = message["function_call"]
        said |= {"function": call["name"], "args": json.loads(call["arguments"])}
    return f"assistant: {json.dumps(said)}"


class Endpoint:
    """The model's server, told messages, and the counter of tokens.

    Args:
        url: base URL.
        window: tokens of a prompt, at most.
    """

    def __init__(self, url: str, window: int) -> None:
        self._url, self._window = url, window
        self._counted: dict[str, int] = {}

    def count(self, messages: Sequence[Any]) -> int:
        """Return the tokens of messages."""
        return sum(self._tokens(line(message)) for message in messages)

    def _tokens(self, text: str) -> int:
        if text not in self._counted:
            answer = self._send(f"{self._url.removesuffix('/v1')}/tokenize", {"prompt": text})
            self._counted[text] = int(answer["count"])
        return self._counted[text]

    def post(self, url: str, headers: Any = None, json: Any = None) -> Any:
        """Replace ``requests.post``, by which the release sends its messages."""
        system, *told = json["messages"]
        asked = self.count(told)
        if json.get("functions") is None:
            told = _listed(told[0]["content"])
        elif asked > self._window:
            return Answered({"error": {"code": "context_length_exceeded", "message": f"{asked} tokens"}}, 400)
        prompt = {"role": "user", "content": "\n".join(map(line, told))}
        body = {"model": json["model"], "messages": [{"role": "system", "content": system["content"]}, prompt]}
        text = self._send(f"{self._url}/chat/completions", body)["choices"][0]["message"]["content"]
        message = said(text) if json.get("functions") else {"role": "assistant", "content": text}
        usage = {"total_tokens": asked + self.count([message])}
        return Answered({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}, 200)

    def _send(self, url: str, body: Any) -> Any:
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def encode(self, text: str) -> list[int]:
        """Replace tiktoken's encoding: return as many tokens as the messages, in Python notation, count here."""
        written = ast.literal_eval(text)
        return [0] * self.count(written if isinstance(written, list) else [written])


def said(text: str) -> dict[str, Any]:
    """Return a reply as a message: a function call if it is an object, else a thought."""
    try:
        given = json.loads(text)
        call = {"name": given["function"], "arguments": json.dumps(given["args"])}
    except (ValueError, KeyError, TypeError):
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": given["thought"], "function_call": call}


def _listed(text: str) -> list[Any]:
    """Return the messages that the release summarises, parsed from their Python notation."""
    found = ast.literal_eval(text)
    assert isinstance(found, list)
    return found


class HTTPError(OSError):
    """Replacement of the package's error: a request was refused."""

    def __init__(self, response: "Answered") -> None:
        super().__init__("the server refused a request")
        self.response = response


class Answered:
    """Replacement of the package's response."""

    headers: Mapping[str, str] = types.MappingProxyType({"Content-Type": "application/json"})

    def __init__(self, body: Any, status: int) -> None:
        self._body, self.status_code = body, status

    def json(self) -> Any:
        """Return the body."""
        return self._body

    def raise_for_status(self) -> None:
        """Raise what tells of a refusal."""
        if self.status_code != 200:
            raise HTTPError(self)


class Notes:
    """Replacement of the release's storage on LlamaIndex: passages, found by cosine."""

    def __init__(self, **given: Any) -> None:
        self.passages: list[Any] = []

    def insert_many(self, passages: Sequence[Any]) -> None:
        """Keep passages."""
        self.passages += passages

    def query(self, query: str, query_vec: Sequence[float], top_k: int) -> list[Any]:
        """Return the passages nearest to a query, the older of equally near ones first."""
        import numpy as np

        if not self.passages:
            return []
        scores = np.array([one.embedding for one in self.passages], dtype=np.float32) @ np.array(query_vec, np.float32)
        places = np.argsort(-np.round(scores, 6), kind="stable")[:top_k]
        return [self.passages[place] for place in places]

    def size(self) -> int:
        """Return the number of passages."""
        return len(self.passages)


class _Embedding:
    def __init__(self, embedder: EndpointEmbedder) -> None:
        self._embedder = embedder

    def get_text_embedding(self, text: str) -> list[float]:
        return self._embedder.embed([text])[0]

    def __deepcopy__(self, memo: Any) -> "_Embedding":
        return self


class Interface:
    """Replacement of the agent's interface: its messages are kept, all else is ignored."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def assistant_message(self, text: str) -> None:
        """Keep a message of the agent."""
        self.messages.append(text)

    def _unseen(self, text: Any) -> None:
        pass

    internal_monologue = function_message = user_message = _unseen


class _Clock:
    """Replacement of ``datetime`` in the release: returns the time of the session."""

    moment = datetime(1, 1, 1, tzinfo=UTC)

    @classmethod
    def now(cls) -> datetime:
        """Return the time, without the zone that the release would write behind it."""
        return cls.moment.replace(tzinfo=None)


def _moment(date: str) -> datetime:
    """Return the time of a session; the minimum where it cannot be parsed."""
    try:
        return datetime.strptime(date, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return datetime(1, 1, 1, tzinfo=UTC)


class Worker(ConversationWorker):
    """The authors' agent for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        self._window = int(settings["window"])
        self._url = opening["llm"]["base_url"]
        _replace_packages(Endpoint(self._url, self._window), _Embedding(EndpointEmbedder(opening)))
        files = settings["files"]
        sys.path.insert(0, str(Path(files["memgpt.agent"]).parents[1]))
        self._system = Path(files["memgpt.prompts.system.memgpt_chat"]).read_text(encoding="utf-8").strip()
        self._code = load("memgpt", files["memgpt.__init__"])
        self._code.__path__ = [str(Path(files["memgpt.agent"]).parent)]
        from memgpt import agent, config, constants, persistence_manager, system, utils
        from memgpt.functions.functions import load_all_function_sets

        utils.datetime = _Clock
        self._agents, self._configs, self._constants, self._events = agent, config, constants, system
        self._managers, self._functions = persistence_manager, load_all_function_sets()
        self._agent: Any = None

    def finish(self) -> list[dict[str, str]]:
        """Tell the agent the conversation, session by session."""
        sessions: dict[str, list[dict[str, Any]]] = {}
        for turn in self._turns:
            sessions.setdefault(turn["session"], []).append(turn)
        for turns in sessions.values():
            _Clock.moment = _moment(turns[0]["date"])
            if self._agent is None:
                self._agent = self._made()
            size = PAIR if self._settings["mode"] == "turn" else len(turns)
            for start in range(0, len(turns), size):
                self._take_in(self._agent, "\n".join(turn["line"] for turn in turns[start : start + size]))
        return []

    def _made(self) -> Any:
        speakers = list(dict.fromkeys(turn["speaker"] for turn in self._turns))
        names = " and ".join(speakers)
        config = self._configs.AgentConfig(
            name="agent", persona="persona", human="human", model="gpt-4", model_endpoint_type="openai",
            model_endpoint=self._url, context_window=self._window,
        )  # fmt: skip
        return self._agents.Agent(
            config=config,
            model="gpt-4",
            system=self._system,
            functions={name: self._functions[name] for name in FUNCTIONS},
            interface=Interface(),
            persistence_manager=self._managers.LocalStateManager(config),
            persona_notes=f"I keep the memory of the conversation between {names}. "
            "I write down facts with names and dates.",
            human_notes="\n".join(f"{speaker}:" for speaker in speakers),
        )

    def _take_in(self, agent: Any, text: str) -> None:
        """Show the agent a message, and go on as the release's command line does."""
        events, constants = self._events, self._constants
        shown = events.package_user_message(text)
        while True:
            _, again, failed, warned = agent.step(shown, skip_verify=True)
            if warned:
                shown = events.get_token_limit_warning()
            elif failed:
                shown = events.get_heartbeat(constants.FUNC_FAILED_HEARTBEAT_MESSAGE)
            elif again:
                shown = events.get_heartbeat(constants.REQ_HEARTBEAT_MESSAGE)
            else:
                return

    def export(self) -> list[dict[str, str]]:
        """Return the notes in the order they were written."""
        return [{"memory_id": str(place), "text": text} for place, text in enumerate(self._notes())]

    def _notes(self) -> list[str]:
        return [passage.text for passage in self._agent.persistence_manager.archival_memory.storage.passages]

    def store(self) -> dict[str, Any]:
        """Return the agent's memory in the form that parity runs compare."""
        agent = self._agent
        kept = [one["message"] for one in agent.persistence_manager.all_messages]
        messages, notes = map(int, _COUNTS.findall(agent.messages[0]["content"]))
        warned = agent.agent_alerted_about_memory_pressure
        counts = {"total": agent.messages_total, "messages": messages, "notes": notes, "warned": warned}
        return {
            "core": {"core": agent.memory.to_dict()},
            "queue": [line(message) for message in agent.messages[1:]],
            "recall": [line(message) for message in kept if message["role"] != "system"],
            "archival": self._notes(),
            "counts": {"counts": counts},
        }

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Ask a copy of the agent; its last message is the answer, and there is no context that another would read."""
        agent = copy.deepcopy(self._agent)
        agent.interface.messages.clear()
        self._take_in(agent, question["text"])
        return {"prediction": (agent.interface.messages or [""])[-1], "context": ""}


def _replace_packages(endpoint: Endpoint, embedding: _Embedding) -> None:
    """Put replacements of packages, and for two modules of the release, in their places."""
    refusals = types.SimpleNamespace(HTTPError=HTTPError, RequestException=OSError, ConnectionError=OSError)
    parser = types.SimpleNamespace(from_defaults=lambda **given: _Parser())
    made: dict[str, dict[str, Any]] = {
        "requests": {"post": endpoint.post, "exceptions": refusals},
        "tiktoken": {"encoding_for_model": lambda model: endpoint},
        "box": {"Box": Box},
        "demjson3": {"decode": json.loads, "JSONDecodeError": ValueError},
        "docstring_parser": {"parse": documented},
        "llama_index": {"Document": types.SimpleNamespace},
        "llama_index.node_parser": {"SimpleNodeParser": parser},
        "memgpt.embeddings": {"embedding_model": lambda: embedding},
        "memgpt.connectors.local": {"LocalStorageConnector": Notes},
    }
    for name, values in made.items():
        module = types.ModuleType(name)
        module.__dict__.update(values)
        sys.modules[name] = module


class _Parser:
    def get_nodes_from_documents(self, documents: Sequence[Any]) -> Sequence[Any]:
        """Return each note as one passage."""
        return documents


def documented(text: str) -> Any:
    """Parse a docstring into its first line and a line for each argument."""
    lines = [one.strip() for one in text.strip().splitlines()]
    found = re.findall(r"^(\w+) \([^)]*\): (.*)$", "\n".join(lines), flags=re.MULTILINE)
    params = [types.SimpleNamespace(arg_name=name, description=told) for name, told in found]
    return types.SimpleNamespace(short_description=lines[0], params=params)
