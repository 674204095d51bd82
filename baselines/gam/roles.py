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

#: JSON schema of each role's reply; ``None`` for free text.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "abstract": None,
    "plan": object_schema(
        info_needs=_TEXTS,
        tools={"type": "array", "items": {"type": "string", "enum": list(TOOLS)}},
        keyword_collection=_TEXTS,
        vector_queries=_TEXTS,
        page_index={"type": "array", "items": {"type": "integer"}},
    ),
    "integrate": object_schema(content={"type": "string"}, sources=_TEXTS),
    "check": object_schema(enough={"type": "boolean"}),
    "requests": object_schema(new_requests=_TEXTS),
}


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    return roles_by_schema(settings, SCHEMAS, PROMPTS)
