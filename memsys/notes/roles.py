"""The roles that A-Mem and CLAG share, so that equal requests give equal replies in both."""

from collections.abc import Mapping
from pathlib import Path

from memsys.llm.contract import Role, make_role
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"

_TEXT: Json = {"type": "string"}
_TEXTS: Json = {"type": "array", "items": _TEXT}


def object_schema(**properties: Json) -> dict[str, Json]:
    """Make the schema of an object that has exactly these keys."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


#: JSON schema of each shared role's reply.
SCHEMAS: Mapping[str, Mapping[str, Json]] = {
    "analyse": object_schema(keywords=_TEXTS, context=_TEXT, tags=_TEXTS),
    "evolve": object_schema(
        should_evolve={"type": "boolean"},
        actions=_TEXTS,
        suggested_connections={"type": "array", "items": {"type": "integer"}},
        tags_to_update=_TEXTS,
        new_context_neighborhood=_TEXTS,
        new_tags_neighborhood={"type": "array", "items": _TEXTS},
    ),
    "keywords": object_schema(keywords=_TEXT),
}


def note_role(name: str, settings: Mapping[str, Json]) -> Role:
    """Make one of the shared roles (``analyse``, ``evolve``, ``keywords``) from its YAML settings.

    Raises:
        ConfigError: an unknown setting, or a prompt file that does not exist.
    """
    return make_role(name, settings, PROMPTS, SCHEMAS[name])
