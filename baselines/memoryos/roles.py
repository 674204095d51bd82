"""The roles of MemoryOS; all but ``topics`` reply with free text."""

from collections.abc import Mapping
from pathlib import Path

from memsys.llm.contract import Role
from memsys.llm.roles import roles_by_schema
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

#: Topics of one page at most.
MOST_TOPICS = 2

_TEXT: Json = {"type": "string"}
_TOPIC = object_schema(theme=_TEXT, keywords={"type": "array", "items": _TEXT}, content=_TEXT)

#: JSON schema of each role's reply; ``None`` for free text.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "continues": None,
    "chain": None,
    "topics": object_schema(topics={"type": "array", "items": _TOPIC, "maxItems": MOST_TOPICS}),
    "profile": None,
    "agent_facts": None,
    "merge_profile": None,
    "keywords": None,
}

#: What is read of a reply, for presets that check no more (``reading.check: used``).
USED: Mapping[str, Mapping[str, Json]] = {
    "topics": {
        "type": "object",
        "properties": {
            "topics": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"content": _TEXT, "keywords": {"anyOf": [{"type": "array", "items": _TEXT}, _TEXT]}},
                },
            }
        },
        "required": ["topics"],
    }
}


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    return roles_by_schema(settings, SCHEMAS, PROMPTS, USED)
