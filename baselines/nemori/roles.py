"""The roles of Nemori but the reader's: those of the episodes, one that segments, two that merge."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memsys.episodes import roles as episodes
from memsys.episodes.roles import EpisodeRoles, shared_roles
from memsys.llm.contract import Role
from memsys.llm.roles import check_role_names, make_role
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

_TEXT: Json = {"type": "string"}
_GROUP = object_schema(indices={"type": "array", "items": {"type": "integer"}}, topic=_TEXT)

#: JSON schema of each role's reply that no other system has.
OWN: Mapping[str, Mapping[str, Json]] = {
    "segment": object_schema(episodes={"type": "array", "items": _GROUP}),
    "decide_merge": object_schema(decision={"type": "string", "enum": ["merge", "new"]}, target=_TEXT, reason=_TEXT),
    "merge": object_schema(title=_TEXT, content=_TEXT, timestamp=_TEXT),
}
#: Those whose reply is read field by field, whatever object it is.
_READ_LOOSELY = ("segment", "decide_merge", "merge")
#: JSON schema of the reply of every role; ``None`` for plain text.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {**episodes.SCHEMAS, **OWN}


@dataclass(frozen=True, slots=True)
class NemoriRoles(EpisodeRoles):
    """All roles of Nemori but the reader's.

    Attributes:
        segment: which messages of a batch belong together?
        decide_merge: does a new episode continue a stored one?
        merge: describe two episodes as one.
    """

    segment: Role
    decide_merge: Role
    merge: Role


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> NemoriRoles:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    check_role_names(settings, SCHEMAS)
    own = {
        name: make_role(name, settings[name], PROMPTS, schema, loose=name in _READ_LOOSELY)
        for name, schema in OWN.items()
    }
    return NemoriRoles(**shared_roles(settings), **own)
