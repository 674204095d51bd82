"""The roles of A-Mem: those of the notes for joint calls, free-text ones for staged calls."""

from collections.abc import Mapping
from pathlib import Path

from memsys.errors import ConfigError
from memsys.llm.contract import Role
from memsys.llm.roles import make_role
from memsys.notes.roles import note_role
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"

JOINT = ("analyse", "evolve", "keywords")
STAGED = ("analyse_sections", "focus_keywords", "decide", "strengthen", "update_neighbours", "keywords")


def make_roles(calls: str, settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    names = STAGED if calls == "staged" else JOINT
    if set(settings) != set(names):
        given = ", ".join(settings) or "none"
        raise ConfigError(f"memory.roles: calls={calls} needs exactly {', '.join(names)}; given are {given}")
    if calls == "staged":
        return {name: make_role(name, settings[name], PROMPTS, None) for name in names}
    return {name: note_role(name, settings[name]) for name in names}
