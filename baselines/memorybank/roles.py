"""The roles of MemoryBank, all of them free text."""

from collections.abc import Mapping
from pathlib import Path

from memsys.llm.contract import Role
from memsys.llm.roles import roles_by_schema
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
    return roles_by_schema(settings, dict.fromkeys(ROLES), PROMPTS)
