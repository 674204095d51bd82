"""The roles of MemoryBank, all of them free text."""

from collections.abc import Mapping
from pathlib import Path

from memsys.errors import ConfigError
from memsys.llm.contract import Role, make_role
from memsys.texts import FILE, ShownTexts
from memsys.vocabulary import Json

PROMPTS = Path(__file__).parent / "prompts"
TEXTS = ShownTexts(Path(__file__).with_name(FILE))

ROLES = ("day_summary", "day_personality", "overall_history", "overall_personality")


def make_roles(settings: Mapping[str, Mapping[str, Json]]) -> Mapping[str, Role]:
    """Make the roles from the config's ``roles``.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    if set(settings) != set(ROLES):
        raise ConfigError(
            f"memory.roles: {', '.join(settings) or 'none'} were given; exactly these are needed: {', '.join(ROLES)}"
        )
    return {name: make_role(name, settings[name], PROMPTS, None) for name in ROLES}
