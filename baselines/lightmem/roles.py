"""The roles of LightMem."""

from collections.abc import Mapping
from pathlib import Path

from memsys.llm.contract import Role
from memsys.llm.roles import roles_by_schema
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

#: What the update may do to a stored fact.
ACTIONS = ("update", "delete", "ignore")

_TEXT: Json = {"type": "string"}

#: JSON schema of each role's reply.
SCHEMAS: Mapping[str, Mapping[str, Json]] = {
    "extract": object_schema(
        data={"type": "array", "items": object_schema(source_id={"type": "integer"}, fact=_TEXT)},
    ),
    "update": object_schema(action={"type": "string", "enum": list(ACTIONS)}, new_memory=_TEXT),
}

#: What is read of a reply where ``reading.check`` is ``used``: a rewritten text matters only to an update.
USED: Mapping[str, Mapping[str, Json]] = {
    "extract": {"type": "object", "required": ["data"], "properties": {"data": {"type": "array"}}},
    "update": {
        "type": "object",
        "required": ["action"],
        "properties": {"action": {"type": "string", "enum": list(ACTIONS)}},
    },
}


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    return roles_by_schema(settings, SCHEMAS, PROMPTS, USED)
