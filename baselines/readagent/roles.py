"""The roles of ReadAgent; numbers come as JSON that is bound to the valid ones, or as free text."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Literal

from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt
from memsys.llm.roles import check_role_names, make_role
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

Replies = Literal["json", "text"]

#: What ends a sequential look-up.
STOP = "STOP"


#: JSON schema of each role's reply; ``None`` where it is free text in any case.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "paginate": object_schema(label={"type": "integer"}),
    "gist": None,
    "lookup": object_schema(pages={"type": "array", "items": {"type": "integer"}}),
    "lookup_next": object_schema(page={"type": "string"}),
}


def make_roles(settings: Mapping[str, Mapping[str, Json]], replies: Replies, *, keep_facts: bool) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    check_role_names(settings, SCHEMAS)
    return {name: _role(name, settings[name], replies, keep_facts=keep_facts) for name in SCHEMAS}


def _role(name: str, settings: Mapping[str, Json], replies: Replies, *, keep_facts: bool) -> Role:
    schema = SCHEMAS[name]
    role = make_role(name, settings, PROMPTS, schema if replies == "json" else None)
    if schema is None:
        return _with(role, keep=_part("gist_facts") if keep_facts else "")
    return _with(role, reply=_part(f"{name}_{replies}"))


def _part(name: str) -> str:
    return Prompt.load(PROMPTS / f"{name}.txt").text


def _with(role: Role, **parts: str) -> Role:
    """Put parts into the prompt once and for all, so that its hash covers them; ``$$`` stays for the next rendering."""
    text = Template(role.prompt.text.replace("$$", "$$$$")).safe_substitute(parts)
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    return replace(role, prompt=replace(role.prompt, text=text, sha256=sha256))


def paginate_for(role: Role, labels: Sequence[int]) -> Role:
    """Restrict the reply of ``paginate`` to the marks of a chunk, where it is JSON."""
    return _bound(role, label={"type": "integer", "enum": list(labels)})


def lookup_for(role: Role, pages: Sequence[int], most: int) -> Role:
    """Restrict the reply of ``lookup`` to the pages that are shown, one to ``most`` of them, where it is JSON."""
    items = {"type": "integer", "enum": list(pages)}
    return _bound(role, pages={"type": "array", "items": items, "minItems": 1, "maxItems": min(most, len(pages))})


def lookup_next_for(role: Role, pages: Sequence[int]) -> Role:
    """Restrict the reply of ``lookup_next`` to the pages that may be opened and ``STOP``, where it is JSON."""
    return _bound(role, page={"type": "string", "enum": [*map(str, pages), STOP]})


def _bound(role: Role, **properties: Json) -> Role:
    return role if role.schema is None else replace(role, schema=object_schema(**properties))
