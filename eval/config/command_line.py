"""The command line of a run, taken apart before Hydra sees it: options here, settings there.

Hydra reads ``memory=a,b -m hydra/launcher=slurm`` as an error of its own options, answers an unknown option with its
usage, and an unreadable value with its grammar.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from eval.commands.suggestions import did_you_mean
from eval.config.compose import hydra_options
from memsys.errors import ConfigError

_MULTIRUN = ("-m", "--multirun")
_SHOWING = ("-c", "--cfg", "-i", "--info", "--hydra-help", "--version")
#: What other programs call going on with a run.
_RESUMING = ("--resume", "--continue", "--restart")
_CONFIG_DIR = ("-cd", "--config-dir")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line in two parts.

    Attributes:
        options: Hydra's own, with their values.
        overrides: settings, in order.
    """

    options: tuple[str, ...]
    overrides: tuple[str, ...]

    @property
    def multirun(self) -> bool:
        """Whether several values of a setting are one run each."""
        return any(option in _MULTIRUN for option in self.options)

    @property
    def shows_alone(self) -> bool:
        """Whether a configuration is shown, and nothing is run."""
        return any(option.partition("=")[0] in _SHOWING for option in self.options)

    @property
    def config_dir(self) -> Path | None:
        """Further folder of configuration."""
        for option, value in pairwise((*self.options, "")):
            name, equals, own = option.partition("=")
            if name in _CONFIG_DIR:
                return Path(own if equals else value)
        return None

    def arguments(self) -> list[str]:
        """Return all arguments in an order that Hydra accepts."""
        return [*self.options, *self.overrides]


def split(arguments: Sequence[str]) -> CommandLine:
    """Take a command line apart.

    Raises:
        ConfigError: an option that does not exist.
    """
    options: list[str] = []
    overrides: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("-"):
            options += _option(argument, rest)
        else:
            overrides.append(argument)
    return _with_optional_values(options, overrides)


def one_sweep_each(arguments: Sequence[str]) -> list[list[str]]:
    """Return a command line for each sweep of ``+sweep=a,b``, in this order; a sweep chooses the cells of its own."""
    sweeps = [argument for argument in arguments if argument.lstrip("+").startswith("sweep=")]
    names = [name for each in sweeps for name in each.partition("=")[2].strip("[]").split(",")]
    if len(names) < 2:
        return [list(arguments)]
    rest = [argument for argument in arguments if argument not in sweeps]
    return [[*rest, f"+sweep={name.strip()}"] for name in dict.fromkeys(names)]


def no_dashes(argument: str, rest: Iterable[str]) -> str:
    """Return how an unknown option is written as a setting, to end a message with; nothing for dashes alone.

    Args:
        argument: the option, perhaps with its value.
        rest: what comes after it; the first without an equals sign is taken for its value.
    """
    name, equals, given = argument.lstrip("-").partition("=")
    value = given if equals else next((each for each in rest if "=" not in each), "VALUE")
    return f"; settings have no dashes: write {name}={value}" if name else ""


def _option(argument: str, rest: Iterator[str]) -> list[str]:
    """Return an option and the value it needs."""
    name, equals, _ = argument.partition("=")
    actions = hydra_options()
    if name in _RESUMING:
        raise ConfigError(f"{name} is not an option of run: to resume a stopped run, run its command again")
    if name not in actions:
        settings = no_dashes(argument, rest)
        guess = did_you_mean(name, [each for each in actions if each.startswith("--")])
        raise ConfigError(f"{name} is not an option of run{settings}{guess}")
    if actions[name].nargs is not None or equals:
        _check_value(name, argument.partition("=")[2] if equals else None, actions[name])
        return [argument]
    given = [*islice(rest, 1)]
    _check_value(name, given[0] if given else "", actions[name])
    return [argument, *given]


def _check_value(name: str, value: str | None, action: Any) -> None:
    """Refuse a value that an option does not take, and options that choose another configuration than memsys's."""
    if action.dest in ("config_name", "config_path"):
        raise ConfigError(f"{name} does not apply to run, which reads conf/config.yaml; write --config-dir FOLDER")
    if value is not None and action.choices and value not in action.choices:
        raise ConfigError(f"{name} needs one of {', '.join(action.choices)}, not {value or 'nothing'}")


def _with_optional_values(options: list[str], overrides: list[str]) -> CommandLine:
    """Give ``--info`` its topic back, which needs none."""
    if "--info" in options or "-i" in options:
        topics = [each for each in overrides if "=" not in each and not each.startswith(("+", "~"))]
        place = options.index("--info" if "--info" in options else "-i")
        _check_value("--info", topics[0] if topics else None, hydra_options()["--info"])
        options[place] = f"--info={topics[0]}" if topics else "--info"
        overrides = [each for each in overrides if each not in topics[:1]]
    return CommandLine(tuple(options), tuple(overrides))
