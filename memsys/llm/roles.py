"""The roles of a system from its preset: all that it asks, and no others."""

from collections.abc import Collection, Mapping
from pathlib import Path

from memsys.errors import ConfigError
from memsys.llm.contract import Role, make_role
from memsys.vocabulary import Json


def check_role_names(settings: Mapping[str, Mapping[str, Json]], needed: Collection[str]) -> None:
    """Check that a preset describes exactly the roles that are needed.

    Args:
        settings: the preset's ``roles``.
        needed: names.

    Raises:
        ConfigError: a role is missing or unknown.
    """
    if set(settings) != set(needed):
        raise ConfigError(
            f"memory.roles: {', '.join(settings) or 'none'} were given; exactly these are needed: {', '.join(needed)}"
        )


def roles_by_schema(
    settings: Mapping[str, Mapping[str, Json]],
    schemas: Mapping[str, Mapping[str, Json] | None],
    shipped: Path,
    used: Mapping[str, Mapping[str, Json]] | None = None,
) -> dict[str, Role]:
    """Make one role for each schema.

    Args:
        settings: the preset's ``roles``.
        schemas: JSON schema of each role's reply; ``None`` for free text.
        shipped: folder of the shipped prompts.
        used: what a role reads of a reply, where that is not all of the schema.

    Raises:
        ConfigError: a role is missing or unknown, or its settings are wrong.
    """
    check_role_names(settings, schemas)
    read = used or {}
    return {
        name: make_role(name, settings[name], shipped, schema, used=read.get(name)) for name, schema in schemas.items()
    }
