"""The roles of xMemory but the reader's. Prompts are ``prompts/<role>.txt``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memsys.errors import ConfigError
from memsys.llm.contract import Role, make_role
from memsys.notes.roles import object_schema
from memsys.vocabulary import Json
from memsys.xmemory.rules import Estimator

PROMPTS = Path(__file__).parent / "prompts"

_TEXT: Json = {"type": "string"}
_STATEMENTS = object_schema(statements={"type": "array", "items": _TEXT})

#: JSON schema of each role's reply; ``None`` for plain text. The official boundary reply also holds a confidence and a
#: topic summary, which nothing reads.
SCHEMAS: Mapping[str, Mapping[str, Json] | None] = {
    "boundary": object_schema(should_end={"type": "boolean"}, reason=_TEXT),
    "episode": object_schema(title=_TEXT, content=_TEXT, timestamp=_TEXT),
    "extract": _STATEMENTS,
    "predict": None,
    "calibrate": _STATEMENTS,
    "theme": None,
    "probe": None,
}

#: Alternatives per token that the probe asks for: one where the token's own probability is all that counts.
_ALTERNATIVES: Mapping[Estimator, int] = {"nll": 1, "entropy": 20}


@dataclass(frozen=True, slots=True)
class Roles:
    """All roles of xMemory but the reader's.

    Attributes:
        boundary: does a message begin a new episode?
        episode: tell a block.
        extract: lasting facts of a told episode.
        predict: what an episode is likely to hold, given known facts.
        calibrate: what an episode's messages add to a prediction.
        theme: summary of a theme.
        probe: a short answer, of which not the words count but how sure they are.
    """

    boundary: Role
    episode: Role
    extract: Role
    predict: Role
    calibrate: Role
    theme: Role
    probe: Role


def make_roles(settings: Mapping[str, Mapping[str, Json]], estimator: Estimator) -> Roles:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    if set(settings) != set(SCHEMAS):
        raise ConfigError(
            f"memory.roles: {', '.join(settings)} were given; exactly these are needed: {', '.join(SCHEMAS)}"
        )
    alternatives = {"probe": _ALTERNATIVES[estimator]}
    return Roles(
        **{
            name: make_role(name, settings[name], PROMPTS, schema, top_logprobs=alternatives.get(name, 0))
            for name, schema in SCHEMAS.items()
        }
    )
