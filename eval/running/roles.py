"""Roles of a run's memory: which of them ask the second backbone, and which a chat in place of a raw prompt."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from eval.config.compose import choice_settings
from eval.config.memory_parts import memory_parts, with_changed_parts
from eval.config.presets import MEMORY, preset_names
from memsys.errors import ConfigError


def delegated_roles(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the roles of this run that ask the second backbone: those of ``second_roles`` that its memory has.

    Raises:
        ConfigError: a role without second backbone, a second backbone without roles, or a role that no memory has.
    """
    roles = named_roles("second_roles", settings)
    if bool(settings.get("second")) != bool(settings.get("second_roles")):
        raise ConfigError(
            "second and second_roles belong together: `+backbone@second=NAME second_roles=[ROLE]` lets another "
            "backbone answer a memory's role"
        )
    return roles


def named_roles(key: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the roles of this run's memory that a setting lists.

    An experiment names them for whichever memory is chosen, so a role that only other memories have is left out.

    Raises:
        ConfigError: the setting is not a list of names, or no memory has a role of such a name.
    """
    given = settings.get(key) or ()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ConfigError(f"{key}={given} must be a list, e.g. {key}=[{given}]")
    wanted = tuple(given)
    if not all(isinstance(role, str) for role in wanted):
        raise ConfigError(f"{key}={list(wanted)} must be a list of names of roles")
    own = role_names(settings["memory"])
    foreign = set(wanted) - own
    if foreign:
        unknown = sorted(foreign - set().union(*_preset_roles()))
        if unknown:
            known = ", ".join(sorted(own)) or "none"
            raise ConfigError(f"{key}: no memory has a role {', '.join(unknown)}; this one's are {known}")
    return tuple(role for role in wanted if role in own)


def with_chats(memory: Mapping[str, Any], roles: Collection[str]) -> dict[str, Any]:
    """Copy a memory's settings, and those of its host, with these roles asked through a chat, not by raw prompts."""
    return with_changed_parts(memory, partial(_with_own_chats, roles=roles))


def _with_own_chats(memory: Mapping[str, Any], roles: Collection[str]) -> dict[str, Any]:
    changed = dict(memory)
    if isinstance(given := memory.get("roles"), Mapping):
        chats = {name: {**given[name], "raw": False} for name in roles if (given.get(name) or {}).get("raw")}
        changed["roles"] = {**given, **chats}
    return changed


def check_raw_roles(memory: Mapping[str, Any], parts: Mapping[str, Any], delegated: Collection[str]) -> None:
    """Check that each role with a raw prompt asks a backbone that completes such prompts.

    Args:
        memory: its settings.
        parts: with the run's ``backbone`` and ``second``, ``None`` where it has none.
        delegated: roles that ask the second.

    Raises:
        ConfigError: one does not; names the settings.
    """
    for path, role in _raw_roles(memory):
        part = "second" if role in delegated else "backbone"
        if parts[part] is not None and not parts[part].completions:
            raise ConfigError(
                f"{path}.raw=true sends a raw prompt, but {part} {parts[part].name} serves chats alone "
                f"({part}.completions=false): set {path}.raw=false, or chat_roles=[{role}]"
            )


def _raw_roles(memory: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield dotted key and name of each role that sends a raw prompt."""
    for path, part in memory_parts(memory):
        for name, role in (part.get("roles") or {}).items():
            if isinstance(role, Mapping) and role.get("raw"):
                yield f"{path}.roles.{name}", name


def role_names(memory: Mapping[str, Any]) -> set[str]:
    """Return the roles in the settings of a memory and of its host."""
    return {role for _, part in memory_parts(memory) for role in part.get("roles") or ()}


def _preset_roles() -> Iterable[set[str]]:
    return (role_names(choice_settings("memory", name)) for name in preset_names(MEMORY))
