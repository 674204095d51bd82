"""Plans of runs from configurations that Hydra composed: parts become objects, and the rest plain settings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from eval.running.plan import Plan

#: Parts of the configuration that become objects; everything else is plain settings.
PARTS = ("backbone", "embedder", "memory", "dataset", "reader", "protocol", "scoring")


def make_plan(config: "DictConfig", overrides: Sequence[str] | None = None) -> "Plan":
    """Turn a composed configuration into a :class:`eval.running.plan.Plan`: plain objects, no OmegaConf.

    Args:
        config: without Hydra's own part.
        overrides: it was composed with; ``None``: those of Hydra's command line.

    Raises:
        ConfigError: a part does not accept its settings, or a setting has the wrong type.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from eval.commands.plugins import load_plugins
    from eval.config.checker import plain_message
    from eval.config.targets import check_parts
    from eval.running.plan import make_plan as plan
    from memsys.errors import ConfigError

    load_plugins()
    if isinstance(config.second, str):
        raise ConfigError(f"second={config.second} is not a choice; write +backbone@second={config.second}")
    if isinstance(host := config.memory.get("host"), str):
        raise ConfigError(f"memory.host={host} is not a choice; write memory@memory.host={host}")
    check_parts(config, PARTS if config.second is None else (*PARTS, "second"))
    try:
        config = with_chat_roles(with_prompts(config))
        settings: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:  # Hydra's message has a line of its own before the cause
        raise ConfigError(plain_message(error)) from error
    parts: dict[str, Any] = {"backbone": None, "second": None}
    for name in PARTS:
        if name == "backbone" and config.mode == "retrieval_only":
            continue
        parts[name] = make_part(config, name)
    if config.second is not None and config.mode != "retrieval_only":
        parts["second"] = make_part(config, "second")
    for name in ("backbone", "second"):
        if parts[name] is not None:
            parts[name] = replace(parts[name], explicit=given_settings(name, overrides))
    return plan(settings, parts)


def given_settings(part: str, overrides: Sequence[str] | None = None) -> frozenset[str]:
    """Return the names of a part's settings that the user gave.

    Args:
        part: of the configuration.
        overrides: that give them; ``None``: Hydra's command line does, with the files of its ``--config-dir``.
    """
    from hydra.core.hydra_config import HydraConfig

    from eval.config.compose import OWN_PROVIDER, own_settings

    in_files: frozenset[str] = frozenset()
    if overrides is None:
        hydra = HydraConfig.get() if HydraConfig.initialized() else None
        overrides = hydra.overrides.task if hydra else ()
        for source in hydra.runtime.config_sources if hydra else ():
            if source.provider == OWN_PROVIDER:
                in_files = own_settings(Path(source.path), part, overrides)
    keys = [str(override).lstrip("+").partition("=")[0].split(".") for override in overrides]
    return in_files.union(key[1] for key in keys if key[0] == part and len(key) > 1)


def make_part(config: "DictConfig", name: str) -> Any:
    """Make one part of a composed configuration.

    Raises:
        ConfigError: the part does not accept its settings, or one has the wrong type.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    from eval.config.field_types import misfits, wrong_types
    from eval.config.targets import check_part, check_targets
    from memsys.errors import ConfigError, MemsysError

    settings: Any = OmegaConf.to_container(config[name], resolve=True)
    check_targets(settings, name)
    try:
        made = instantiate(config[name], _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__ or error
        if isinstance(cause, MemsysError):
            raise cause from error
        raise ConfigError("; ".join(misfits(settings, name)) or f"{name}: {_lines(cause)}") from error
    check_part(made, name, settings)
    if problems := wrong_types(settings, name):
        raise ConfigError("; ".join(problems))
    return made


def plan_of(arguments: Sequence[str]) -> "Plan":
    """Compose the plan of a single run from its command line, outside of ``hydra.main``.

    Raises:
        ConfigError: an argument is wrong, or the settings do not fit together.
    """
    from eval.config.compose import config_loader, without_hydra
    from eval.config.overrides import check_command_line, compose_checked

    overrides = check_command_line(arguments).overrides
    return make_plan(without_hydra(compose_checked(config_loader(), overrides)), overrides)


def compose_plan(overrides: Sequence[str]) -> "Plan":
    """Compose the plan that these command-line overrides describe, for scripts and tests.

    Raises:
        ConfigError: see :func:`make_plan`.
    """
    from eval.config.compose import compose, config_loader, without_hydra

    return make_plan(without_hydra(compose(config_loader(), overrides)), overrides)


def with_prompts(config: "DictConfig") -> "DictConfig":
    """Put the authors' prompts into memory and reader where ``prompts=authors`` asks for them.

    Raises:
        ConfigError: one of them has not been fetched.
    """
    from omegaconf import OmegaConf, open_dict

    from eval.config.prompt_choice import wants_authors, with_authors_prompts

    if not wants_authors(config):
        return config
    changed = config.copy()
    with open_dict(changed):
        for part in ("memory", "reader"):
            plain: Any = OmegaConf.to_container(config[part], resolve=True, throw_on_missing=True)
            changed[part] = with_authors_prompts(plain)
    return changed


def with_chat_roles(config: "DictConfig") -> "DictConfig":
    """Let the memory's roles that ``chat_roles`` lists ask through a chat, whatever their preset says.

    Raises:
        ConfigError: no memory has such a role.
    """
    from omegaconf import OmegaConf, open_dict

    from eval.running.roles import named_roles, with_chats

    if not config.get("chat_roles"):
        return config
    memory: Any = OmegaConf.to_container(config.memory, resolve=True, throw_on_missing=True)
    roles = named_roles("chat_roles", {"memory": memory, "chat_roles": config.chat_roles})
    changed = config.copy()
    with open_dict(changed):
        changed.memory = with_chats(memory, roles)
    return changed


def _lines(error: BaseException) -> str:
    """Return the first and last line of Hydra's message: the object that failed, and the reason."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()] or [repr(error)]
    return " ".join(dict.fromkeys((lines[0], lines[-1])))
