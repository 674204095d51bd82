"""The roles of A-Mem: those of the notes for joint calls, free-text ones for staged calls."""

from collections.abc import Mapping
from pathlib import Path

from memsys.errors import ConfigError
from memsys.llm.contract import Role, make_role
from memsys.notes.roles import note_role
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"

JOINT = ("analyse", "evolve")
STAGED = ("analyse_sections", "focus_keywords", "decide", "strengthen", "update_neighbours")


def make_roles(calls: str, settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    own = STAGED if calls == "staged" else ()
    shared = ("keywords",) if calls == "staged" else (*JOINT, "keywords")
    if set(settings) != {*own, *shared}:
        given = ", ".join(settings) or "none"
        raise ConfigError(f"memory.roles: calls={calls} needs exactly {', '.join((*own, *shared))}; given are {given}")
    roles = {name: note_role(name, settings[name]) for name in shared}
    return roles | {name: make_role(name, settings[name], PROMPTS, None) for name in own}
