"""The roles that Nemori and xMemory share, so that equal requests give equal replies in both.

xMemory has a prompt of its own for ``extract`` where it asks for facts directly.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from memsys.llm.contract import Role
from memsys.llm.roles import make_role
from memsys.notes.roles import object_schema
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

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
}


@dataclass(frozen=True, slots=True)
class EpisodeRoles:
    """The shared roles.

    Attributes:
        boundary: does a message begin a new episode?
        episode: describe a block.
        extract: lasting facts of an episode.
        predict: what an episode is likely to hold, given known facts.
        calibrate: what an episode's messages add to a prediction.
    """

    boundary: Role
    episode: Role
    extract: Role
    predict: Role
    calibrate: Role


def shared_roles(settings: Mapping[str, Mapping[str, Json]]) -> dict[str, Role]:
    """Make the shared roles from a config's ``roles``, by name.

    Raises:
        ConfigError: settings are wrong, or a prompt file does not exist.
    """
    return {name: make_role(name, settings[name], PROMPTS, schema, loose=True) for name, schema in SCHEMAS.items()}
