"""The roles of GAM: one writes abstracts, four research a question."""

from collections.abc import Mapping
from pathlib import Path

from baselines.gam.rules import TOOLS
from memsys.llm.contract import Role
from memsys.llm.roles import roles_by_schema
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

_TEXTS: Json = {"type": "array", "items": {"type": "string"}}
_NUMBER_IN_WORDS: Json = {"type": "string", "pattern": r"^\s*[+-]?\d+\s*$"}


def _object(**properties: Json) -> dict[str, Json]:
    """Return the schema of an object with optional fields that allows others."""
    return {"type": "object", "properties": properties}


#: JSON schema of each role's reply; ``None`` for free text.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "abstract": None,
    "plan": object_schema(
        info_needs=_TEXTS,
        tools={"type": "array", "items": {"type": "string", "enum": list(TOOLS)}},
        keyword_collection=_TEXTS,
        vector_queries=_TEXTS,
        # may be empty whatever min_items says: a plan need not open a page, and a small model would open the first ones
        page_index={"type": "array", "items": {"type": "integer"}, "minItems": 0},
    ),
    "integrate": object_schema(content={"type": "string"}, sources=_TEXTS),
    "check": object_schema(enough={"type": "boolean"}),
    "requests": object_schema(new_requests=_TEXTS),
}

#: What the released code reads of each reply (``reading.check: used``): fields may be missing, tools unknown.
USED: Mapping[str, Mapping[str, Json]] = {
    "plan": _object(
        info_needs=_TEXTS,
        tools=_TEXTS,
        keyword_collection=_TEXTS,
        vector_queries=_TEXTS,
        page_index={"type": "array", "items": {"anyOf": [{"type": ["integer", "boolean"]}, _NUMBER_IN_WORDS]}},
    ),
    "integrate": _object(content={"type": "string"}, sources={"type": ["array", "object", "string", "null"]}),
    "check": _object(),
    "requests": _object(new_requests=_TEXTS),
}


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    return roles_by_schema(settings, SCHEMAS, PROMPTS, USED)
