"""The roles of MemGPT: the agent, which takes in events and searches for questions, and the summariser."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from baselines.memgpt.rules import SEND, AgentRules, CoreRules, FunctionName
from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt
from memsys.llm.roles import roles_by_schema
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

#: Names of the blocks of core memory, by how the block about the speakers is kept.
BLOCKS: Mapping[str, tuple[str, ...]] = {
    "whole": ("persona", "human"),
    "halves": ("persona", "human_1", "human_2"),
}

#: Arguments of each function, besides ``request_heartbeat``, which all but ``send_message`` take.
ARGUMENTS: Mapping[FunctionName, tuple[str, ...]] = {
    "send_message": ("message",),
    "core_memory_append": ("name", "content"),
    "core_memory_replace": ("name", "old_content", "new_content"),
    "conversation_search": ("query", "page"),
    "conversation_search_date": ("start_date", "end_date", "page"),
    "archival_memory_insert": ("content",),
    "archival_memory_search": ("query", "page"),
}

#: What is read of a call; the rest is checked when the function runs.
USED: Mapping[str, Json] = {
    "type": "object",
    "required": ["function"],
    "properties": {"function": {"type": "string"}},
}

_TEXT: Json = {"type": "string"}


def make_roles(settings: Mapping[str, Mapping[str, Json]], agent: AgentRules, core: CoreRules) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    schemas = {
        "agent": call_schema(agent.ingest_functions, core),
        "search": call_schema(agent.question_functions, core),
        "summarise": None,
    }
    roles = roles_by_schema(settings, schemas, PROMPTS, {"agent": USED, "search": USED})
    if agent.answer == "agent" and settings["search"].get("prompt") is None:
        roles["search"] = replace(roles["search"], prompt=Prompt.load(PROMPTS / "answer.txt"))
    return roles


def call_schema(functions: Sequence[FunctionName], core: CoreRules) -> Mapping[str, Json]:
    """Make the schema of a call of one of these functions: the arguments of all, of which a call fills its own.

    What is searched for comes before what is said to the user: a small model that wrote a message first put that into
    the query.
    """
    by_use = sorted(functions, key=lambda function: function == SEND)
    named = dict.fromkeys(argument for function in by_use for argument in ARGUMENTS[function])
    special: dict[str, Json] = {
        "page": {"type": "integer"},
        "name": {"type": "string", "enum": list(BLOCKS[core.human])},
    }
    arguments = {argument: special.get(argument, _TEXT) for argument in named}
    if set(functions) != {SEND}:
        arguments["request_heartbeat"] = {"type": "boolean"}
    return object_schema(
        thought=_TEXT, function={"type": "string", "enum": list(functions)}, args=object_schema(**arguments)
    )


def described(function: FunctionName) -> str:
    """Say what a function does, as prompts list it."""
    return {
        "send_message": TEXTS("send_message"),
        "core_memory_append": TEXTS("core_memory_append"),
        "core_memory_replace": TEXTS("core_memory_replace"),
        "conversation_search": TEXTS("conversation_search"),
        "conversation_search_date": TEXTS("conversation_search_date"),
        "archival_memory_insert": TEXTS("archival_memory_insert"),
        "archival_memory_search": TEXTS("archival_memory_search"),
    }[function]
