"""The roles that A-Mem and CLAG share, so that equal requests give equal replies in both."""

from collections.abc import Mapping
from pathlib import Path

from memsys.llm.contract import Role
from memsys.llm.roles import make_role
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

_NOTHING: Json = {"enum": [None, False, 0, "", {}]}
_TEXTS_OR_NOTHING: Json = {"anyOf": [_TEXTS, _NOTHING]}


def _needs(action: str, **fields: Json) -> Json:
    """Return the schema rule that an object whose actions contain ``action`` needs these fields, with these types."""
    asked: Json = {"properties": {"actions": {"contains": {"const": action}, "type": "array"}}, "required": ["actions"]}
    return {"if": asked, "then": {"properties": fields, "required": list(fields)}}


#: What the released codes read of a reply without an exception, so far as a note can hold it: fields they do not know,
#: and those of actions that were not requested, do not matter; a falsy value stands for an empty one; a context may be
#: a list; whatever Python calls true is a yes; links may be anything, those that are no number are dropped.
USED: Mapping[str, Mapping[str, Json]] = {
    "analyse": {
        "type": "object",
        "properties": {"keywords": _TEXTS_OR_NOTHING, "context": {"anyOf": [_TEXT, _TEXTS_OR_NOTHING]},
                       "tags": _TEXTS_OR_NOTHING},
        "required": ["keywords", "context", "tags"],
    },
    "evolve": {
        "type": "object",
        "required": ["should_evolve"],
        "if": {"properties": {"should_evolve": {"anyOf": [_NOTHING, {"maxItems": 0, "type": "array"}]}}},
        "else": {
            "properties": {"actions": {"type": ["array", "string", "object"]}},
            "required": ["actions"],
            "allOf": [
                _needs("strengthen", suggested_connections={"type": "array"}, tags_to_update=_TEXTS),
                _needs(
                    "update_neighbor",
                    new_context_neighborhood={"anyOf": [_TEXTS, _TEXT]},
                    new_tags_neighborhood={"type": "array", "items": _TEXTS},
                ),
            ],
        },
    },
}  # fmt: skip


def note_role(name: str, settings: Mapping[str, Json]) -> Role:
    """Make one of the shared roles (``analyse``, ``evolve``, ``keywords``) from its YAML settings.

    Raises:
        ConfigError: an unknown setting, or a prompt file that does not exist.
    """
    return make_role(name, settings, PROMPTS, SCHEMAS[name], used=USED.get(name))
