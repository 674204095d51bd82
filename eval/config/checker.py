"""Choices and settings of ``conf/``, against which those of a command line are checked."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.plugins import VARIABLE, plugin_packages
from eval.commands.suggestions import close_names, did_you_mean
from eval.config.compose import compose, config_loader, is_sweep
from eval.config.composed_nodes import child_node, has_node, setting_names, takes_new_key
from eval.config.override_values import chosen_values, first_cell, sweep_values
from eval.config.presets import GLOBAL_GROUPS, MEMORY, named_systems
from memsys.assets.hints import of_source
from memsys.credentials import redacted
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

#: Settings that a message names as what may have been meant.
_GUESSES = 4
#: What OmegaConf says of a setting that a file leaves to the command line.
_MISSING = re.compile(r"Missing mandatory value: ([\w.]+)")


def plain_message(error: Exception) -> str:
    """Return Hydra's or OmegaConf's message in one line, without the advice to add settings that nothing reads."""
    if missing := _MISSING.search(str(error)):
        named, place = missing[1], getattr(error, "full_key", None)  # what an interpolation refers to is named in full
        name = named if "." in named else place or named
        return f"{name} has no value: add {name}=VALUE"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kept = [line for line in lines if "append" not in line and not line.startswith(("full_key", "object_type"))]
    return redacted(f"the configuration cannot be composed: {' '.join(kept[:2]) or repr(error)}")


class Checker:
    """Checks parsed settings against the choices and keys that there are.

    Args:
        folder: a further folder of configuration.
        name: file of ``conf/`` that the settings are for.
    """

    def __init__(self, folder: Path | None = None, name: str = "config") -> None:
        self._loader, self._name = config_loader(folder), name

    def parse(self, overrides: Iterable[str]) -> list[Any]:
        """Parse settings.

        Returns:
            ``hydra.core.override_parser.types.Override``, one for each.

        Raises:
            ConfigError: one is not of the form KEY=VALUE, or its value cannot be read.
        """
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra.errors import HydraException

        parser, parsed = OverridesParser.create(config_loader=self._loader), []
        for text in overrides:
            try:
                override = parser.parse_override(text)
            except HydraException as error:
                raise ConfigError(redacted(self._unreadable(text))) from error
            override.config_loader = self._loader  # glob(...) asks it which choices exist
            parsed.append(override)
        return parsed

    def _unreadable(self, text: str) -> str:
        key, equals, value = text.partition("=")
        if not equals:
            groups = [group for group in self.groups() if value in self._options(group) or text in self._options(group)]
            meant = f"; did you mean {' or '.join(f'{group}={text}' for group in groups)}?" if groups else ""
            return f"{text} is not a setting of the form KEY=VALUE, as in memory=rag{meant}"
        if value.endswith(","):
            return f"{text}: nothing follows the comma; write {text.rstrip(',')}, or more values with -m: {text}VALUE"
        return f"{text}: the value cannot be read; put it in quotes: '{key}=\"{value}\"'"

    def is_group(self, key: str) -> bool:
        """Return whether a key names a folder of choices."""
        return bool(self._loader.repository.group_exists(key))

    def groups(self) -> list[str]:
        """Return the groups at the top of ``conf/``."""
        return [group for group in self._loader.list_groups("") if group != "hydra"]

    def _options(self, group: str) -> list[str]:
        return list(self._loader.repository.get_group_options(group))

    def check_choices(self, parsed: Iterable[Any]) -> None:
        """Refuse choices that do not exist, files that only others are made of, and what leaves nothing to run.

        Raises:
            ConfigError: names the group and what may have been meant.
        """
        for override in parsed:
            group = override.key_or_group
            self._check_something_is_left(override)
            if not self.is_group(group) or override.is_delete():
                continue
            self._check_sign(override)
            values = list(chosen_values(override))
            for value in values:
                if not isinstance(value, str | dict):  # settings by name are merged into what is chosen
                    raise ConfigError(f"{override.input_line}: {group} is chosen by a name, as in {group}=NAME")
                if isinstance(value, str) and (self._is_part(group, value) or not self._has(group, value)):
                    raise ConfigError(self._unknown_choice(override, value))

    def _check_something_is_left(self, override: Any) -> None:
        key, text = override.key_or_group, override.input_line
        values = [*sweep_values(override)] if override.is_sweep_override() else []
        if repeated := [value for value in dict.fromkeys(values) if values.count(value) > 1]:
            raise ConfigError(f"{text}: {repeated[0]} is listed twice, which would be the same run; remove one")
        if override.is_delete() and key in self._needed():
            raise ConfigError(f"{text}: every run needs {key}; give it a value, as in {key}=VALUE")
        if override.is_sweep_override() and not values:
            raise ConfigError(f"{text}: no value given, so there is nothing to run")

    def _needed(self) -> set[str]:
        """Return the settings and choices at the top of the default configuration."""
        source: Any = self._loader.repository.load_config(self._name)
        return {str(key) for key in source.config} | self._default_groups() - {"local"}

    def _has(self, group: str, value: str) -> bool:
        return bool(self._loader.repository.config_exists(f"{group}/{value}"))

    def _is_part(self, group: str, value: str) -> bool:
        """Return whether a file is in a subfolder of its group that only parts of choices are in."""
        return "/" in value and group != MEMORY.name and self._has(group, value)

    def _check_sign(self, override: Any) -> None:
        group, text = override.key_or_group, override.input_line
        if override.is_add() and not override.package and group in self._default_groups():
            raise ConfigError(f"{text}: {group} is chosen already, a choice replaces it; write {text.lstrip('+')}")
        if group in GLOBAL_GROUPS and not (override.is_add() or override.is_force_add()):
            value = override.value()
            if group == "experiment" and isinstance(value, str) and not self._has(group, value):
                raise ConfigError(
                    f"{text}: there is no experiment/{value} to choose with +{text}; a folder of your own for the run "
                    f"is run_dir=FOLDER{did_you_mean(value, self._options(group))}"
                )
            raise ConfigError(f"{text}: {group} is not part of the default configuration; write +{text}")

    def _default_groups(self) -> set[str]:
        source: Any = self._loader.repository.load_config(self._name)
        return {entry.group for entry in source.defaults_list or () if getattr(entry, "group", None)}

    def _unknown_choice(self, override: Any, value: str) -> str:
        group, written = override.key_or_group, override.get_key_element().lstrip("+")
        options = self._options(group)
        few = f"; choose one of {', '.join(options)}" if len(options) <= 12 else ""
        guess = _as_called(group, value, options) or did_you_mean(value.lower(), options) or few
        added = "+" if group in GLOBAL_GROUPS else ""
        problem = f"there is no {group}/{value}"
        if self._is_part(group, value):
            problem = f"{group}/{value} is a part of other choices, not a choice itself"
        more = f"\n`memsys run --help {group}` says what each of its {len(options)} choices is"
        if not plugin_packages():
            more += f"; a package of your own is named in {VARIABLE} ({of_source('docs/plugins.md')})"
        return f"{added}{written}={value}: {problem}{guess}" + (more if self._name == "config" else "")

    def check_keys(self, parsed: Sequence[Any], multirun: bool) -> None:
        """Refuse settings that the chosen parts do not have, and several values where one is wanted.

        Raises:
            ConfigError: names the setting and what may have been meant.
        """
        from hydra.errors import HydraException

        try:
            config = self.compose_first_cell(parsed)
        except HydraException as error:
            raise ConfigError(self._unfit_choice(error)) from error
        for override in parsed:
            if not self.is_group(override.key_or_group):
                self._check_key(override, config)
        several = [override.input_line for override in parsed if override.is_sweep_override()]
        if several and not (multirun or is_sweep(config)):
            raise ConfigError(f"{several[0]}: several values are one run each, which needs -m; or name one value")

    def compose_above_cells(self, lines: Sequence[str]) -> "DictConfig":
        """Compose what is above the cells of a sweep; settings with several values are left out.

        Raises:
            HydraException: a setting does not fit.
        """
        return compose(self._loader, lines, sweep=True, name=self._name)

    def compose_first_cell(self, parsed: Sequence[Any]) -> "DictConfig":
        """Compose the choices of a sweep's first cell, or those of a run, without settings.

        Args:
            parsed: settings of a command line, which win over what an experiment sweeps by itself.

        Raises:
            HydraException: choices do not go together.
        """
        choices = [override for override in parsed if self.is_group(override.key_or_group)]
        given = {override.key_or_group for override in choices}
        lines = [first_cell(override) for override in choices]
        config = self.compose_above_cells(lines)
        params = self.parse(f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items())
        own = [each for each in params if self.is_group(each.key_or_group) and each.key_or_group not in given]
        return self.compose_above_cells([*map(first_cell, own), *lines]) if own else config

    def _unfit_choice(self, error: Exception) -> str:
        """Return why existing choices cannot be combined."""
        found = re.search(r"Could not override '([\w/@.]+)'", str(error))
        if not found:
            return plain_message(error)
        parent, _, child = found[1].rpartition("/")
        if not parent:
            return f"{found[1]} is not part of this configuration; `memsys run --help` lists the choices"
        able = [name for name in self._options(parent) if self._chooses(f"{parent}/{name}", child)]
        which = f", which may be {', '.join(able)}" if able else ""
        return f"{found[1]}: the chosen {parent} has no {child} that could be replaced; choose another {parent}{which}"

    def _chooses(self, name: str, child: str) -> bool:
        """Return whether the defaults of a choice, or of what it starts from, choose in a group below its own."""
        source: Any = self._loader.repository.load_config(name)
        group = name.rpartition("/")[0]
        for entry in source.defaults_list or ():
            if getattr(entry, "group", None) == child:
                return True
            base = str(getattr(entry, "path", "") or "").partition("@")[0]
            if base and base != "_self_":
                base = base.lstrip("/") if base.startswith("/") else f"{group}/{base}"
                if self._loader.repository.config_exists(base) and self._chooses(base, child):
                    return True
        return False

    def _check_key(self, override: Any, config: "DictConfig") -> None:
        key, text = override.key_or_group, override.input_line
        if key == "hydra.run.dir":
            raise ConfigError(f"{text}: not a location for runs; use run_dir=FOLDER, or runs_dir=FOLDER for all runs")
        if has_node(config, key):
            if override.is_add():
                raise ConfigError(f"{text}: {key} is there already; write {text.lstrip('+')}")
            _check_kind(override, config)
            return
        if (override.is_add() or override.is_force_add()) and takes_new_key(config, key):
            return
        raise ConfigError(redacted(self._unknown_key(key, text, config)))

    def _unknown_key(self, key: str, text: str, config: "DictConfig") -> str:
        parent, _, name = key.rpartition(".")
        if not parent:
            close = close_names(key, [*self.groups(), *(str(each) for each in config)])
            ends = {each: each.rpartition(".")[2] for each in setting_names(config)}
            close += [each for each, end in ends.items() if end == key]
            close += [each for each, end in ends.items() if end.startswith(f"{key}_")]
            guess = f"; did you mean {' or '.join(f'{each}=' for each in close[:_GUESSES])}?" if close else ""
            return f"{text}: there is no setting {key}{guess}\n`memsys run --help` lists the choices"
        if not has_node(config, parent):
            guess = did_you_mean(key, setting_names(config))
            return f"{text}: there is no {parent}{guess}\n`memsys run --cfg job` shows every setting"
        if _is_role_setting(parent, name) and takes_new_key(config, key):
            return f"{text}: {parent} leaves {name} at its default; to set it, write +{text}"
        part = key.partition(".")[0]
        inside = list(setting_names(config[part], part))
        siblings = [each.rpartition(".")[2] for each in inside if each.rpartition(".")[0] == parent]
        close = [f"{parent}.{each}" for each in close_names(name, siblings)]
        close += [each for each in inside if each.rpartition(".")[2] == name]
        close = close or [each for each in inside if each.rpartition(".")[2] in close_names(name, _last_parts(inside))]
        if close:
            return f"{text}: {parent} has no setting {name}; did you mean {' or '.join(close)}?"
        return f"{text}: {parent} has no setting {name}; there are {', '.join(siblings) or 'none'}"


def _as_called(group: str, value: str, options: Sequence[str]) -> str:
    """Return the hint at the memory whose description has this name: mem0g is Mem0g, mem0_graph."""
    called = [name for name in named_systems(value) if group == MEMORY.name]
    close = [*called[:1], *close_names(value, options)]
    return f"; did you mean {' or '.join(dict.fromkeys(close))}?" if close else ""


def _last_parts(names: Sequence[str]) -> list[str]:
    return [each.rpartition(".")[2] for each in names]


def _is_role_setting(parent: str, name: str) -> bool:
    """Return whether any role may have a setting without its YAML naming it, such as the file of its prompt."""
    from memsys.llm.roles import RoleSettings

    return parent.split(".")[-2:-1] == ["roles"] and name in {each.name for each in fields(RoleSettings)}


def _check_kind(override: Any, config: "DictConfig") -> None:
    """Refuse a list in place of settings by name, and no settings: Hydra would merge these into those there are."""
    from omegaconf import DictConfig

    node: Any = config
    for part in override.key_or_group.split("."):
        node = child_node(node, part)
    if override.is_delete() or override.is_sweep_override() or not isinstance(node, DictConfig) or not len(node):
        return
    key, value = override.key_or_group, override.value()
    first = str(next(iter(node.keys())))
    if isinstance(value, list):
        raise ConfigError(f"{override.input_line}: {key} is a mapping; set each key separately, as {key}.{first}=")
    if value == {}:
        raise ConfigError(
            f"{override.input_line} changes nothing: settings are merged into the existing ones; remove one with "
            f"~{key}.{first}"
        )
