"""The roles of MemFly and what they reply with (paper, appendix A; the schema of ``update`` is ours)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Literal

from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt
from memsys.llm.roles import roles_by_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

Relation = Literal["SUPPORTS", "CONFLICTS", "RELATED_TO"]
RELATIONS: tuple[Relation, ...] = ("SUPPORTS", "CONFLICTS", "RELATED_TO")
OPERATIONS = ("MERGE", "LINK", "APPEND")

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}


def _object(**properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_RELATION = _object(
    candidate_id={"type": "integer"},
    relation_type={"type": "string", "enum": list(RELATIONS)},
    connection_strength=_NUMBER,
    operation={"type": "string", "enum": list(OPERATIONS)},
    updated_context=_TEXT,
)

#: JSON schema of each role's reply; ``None`` for free text.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "ingest": _object(keywords={"type": "array", "items": _TEXT}, context=_TEXT),
    "update": _object(relations={"type": "array", "items": _RELATION}),
    "intent": _object(topic_desc=_TEXT, keywords={"type": "array", "items": _TEXT}),
    "draft": None,
    "sufficient": _object(sufficient={"type": "boolean"}, missing_info=_TEXT, confidence=_NUMBER),
    "subquery": None,
}

#: What a malformed reply of ``update`` may still be read as: entries are then checked one by one.
LOOSE_UPDATE: Mapping[str, Json] = {
    "type": "object",
    "properties": {"relations": {"type": "array"}},
    "required": ["relations"],
}


@dataclass(frozen=True, slots=True)
class MemFlyRoles:
    """All roles of MemFly but the reader's."""

    ingest: Role
    update: Role
    intent: Role
    draft: Role
    sufficient: Role
    subquery: Role


def make_roles(settings: Mapping[str, Mapping[str, Json]], *, thresholds: bool) -> MemFlyRoles:
    """Make the roles from the config's ``roles``.

    Args:
        settings: per role its settings.
        thresholds: whether the prompt of ``update`` explains the operations by the printed thresholds.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    roles = MemFlyRoles(**roles_by_schema(settings, SCHEMAS, PROMPTS))
    return replace(roles, update=_with_operations(roles.update, thresholds))


def _with_operations(role: Role, thresholds: bool) -> Role:
    """Put the explanation of the operations into the prompt, so that the prompt's hash covers it.

    A prompt without a place for it, such as the authors', stays as it is.
    """
    if "$operations" not in role.prompt.text:
        return role
    explained = Prompt.load(PROMPTS / f"operations{'_thresholds' if thresholds else ''}.txt").text
    text = Template(role.prompt.text).safe_substitute(operations=explained)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return replace(role, prompt=replace(role.prompt, text=text, sha256=sha256))


def update_for(role: Role, candidates: int) -> Role:
    """Restrict the reply of ``update`` to the numbers 1 to ``candidates``, one entry each at most.

    A ``min_items`` of the role's settings holds as far as there are so many candidates.
    """
    if role.schema is None:
        raise ValueError("the role update has a schema")
    relations = role.schema["properties"]["relations"]
    item = relations["items"]
    numbered = {"type": "integer", "enum": list(range(1, candidates + 1))}
    items = {**item, "properties": {**item["properties"], "candidate_id": numbered}}
    limit = min(candidates, relations.get("maxItems", candidates))
    bounds = {"maxItems": limit}
    if "minItems" in relations:
        bounds["minItems"] = min(relations["minItems"], limit)
    return replace(role, schema=_object(relations={**relations, "items": items, **bounds}))
