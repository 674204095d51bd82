"""The roles that CLAG adds to those of the notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memsys.llm.contract import Role
from memsys.llm.roles import check_role_names, make_role
from memsys.notes.roles import note_role, object_schema
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"

_TEXT: Json = {"type": "string"}

SCHEMAS: Mapping[str, Mapping[str, Json]] = {
    "router": object_schema(choice=_TEXT),
    "profile": object_schema(summary=_TEXT, tags={"type": "array", "items": _TEXT}),
    "link": object_schema(suggested_connections={"type": "array", "items": {"type": "integer"}}),
    "rewrite": object_schema(update={"type": "boolean"}, context=_TEXT, tags={"type": "array", "items": _TEXT}),
    "selector": object_schema(selected_clusters={"type": "array", "items": _TEXT}),
}

#: What the official code reads: of a selection the candidates' ids, whatever else is in the list; of a profile the
#: summary that is a text and the tags that are a list, each without the other.
USED: Mapping[str, Mapping[str, Json]] = {
    "profile": {"type": "object"},
    "selector": {
        "type": "object",
        "properties": {"selected_clusters": {"type": "array"}},
        "required": ["selected_clusters"],
    },
}


@dataclass(frozen=True, slots=True)
class ClagRoles:
    """All roles of CLAG but the reader's; ``evolve`` is asked, or ``link`` and ``rewrite`` (``evolution_calls``)."""

    analyse: Role
    evolve: Role
    link: Role
    rewrite: Role
    keywords: Role
    router: Role
    profile: Role
    selector: Role


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> ClagRoles:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    names = tuple(ClagRoles.__slots__)
    check_role_names(settings, names)
    own = {name: make_role(name, settings[name], PROMPTS, SCHEMAS[name], used=USED.get(name)) for name in SCHEMAS}
    shared = {name: note_role(name, settings[name]) for name in names if name not in SCHEMAS}
    return ClagRoles(**own, **shared)


def router_for(role: Role, candidates: Sequence[str]) -> Role:
    """Restrict the router's reply to the candidates."""
    return replace(role, schema=object_schema(choice={"type": "string", "enum": list(candidates)}))


def selector_for(role: Role, candidates: Sequence[str], limit: int) -> Role:
    """Restrict the selector's reply to at most ``limit`` of the candidates."""
    items = {"type": "string", "enum": list(candidates)}
    return replace(role, schema=object_schema(selected_clusters={"type": "array", "items": items, "maxItems": limit}))
