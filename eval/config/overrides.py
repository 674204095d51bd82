"""Settings of a command line, checked against ``conf/``: what does not exist is one clear message, never Hydra's.

Names of choices are checked before Hydra composes anything. Names of settings are checked against a composed
configuration where Hydra would take them without a word (a new key written with ``+``, the cells of a sweep), and
where Hydra has failed, to say why. A setting that nothing reads is refused; one that only a sweep's cells have is given
to them alone.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eval.config.checker import Checker, plain_message
from eval.config.command_line import CommandLine, split
from eval.config.compose import compose
from eval.config.sweep_settings import settings_for_hydra
from memsys.credentials import check_settings, redacted
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from omegaconf import DictConfig

#: Parts that only a run with a backbone has.
_PARTS_OF_ANSWERS = ("backbone", "second", "reader")


def check_command_line(arguments: Sequence[str]) -> CommandLine:
    """Read the command line of a run and refuse what does not exist.

    Returns:
        It, with its settings as Hydra can compose them.

    Raises:
        ConfigError: says which argument is wrong, and what may have been meant.
    """
    line = split(arguments)
    check_settings(line.overrides)
    if line.config_dir is not None and not line.config_dir.is_dir():
        raise ConfigError(f"--config-dir {line.config_dir}: there is no such folder; name one with the layout of conf/")
    checker = Checker(line.config_dir)
    parsed = checker.parse(line.overrides)
    checker.check_choices(parsed)
    settings = settings_for_hydra(checker, parsed, line.multirun)
    unsure = line.multirun or line.config_dir or settings != line.overrides
    if unsure or any(_needs_keys(each, checker) for each in parsed):
        checker.check_keys(parsed, line.multirun)
    return replace(line, overrides=settings)


def report_repeated(settings: Iterable[str]) -> None:
    """Say on standard error which settings have no effect because the same one comes again.

    That the last holds is what scripts rely on that put settings of their own before those they are called with.

    Args:
        settings: as on the command line.
    """
    given: dict[str, str] = {}
    for text in settings:
        key = text.partition("=")[0].lstrip("+~")
        if key in given:
            sys.stderr.write(f"note: {redacted(given[key])} has no effect: {redacted(text)} comes after it\n")
        given[key] = text


def explained(arguments: Sequence[str], error: Exception) -> ConfigError:
    """Say why Hydra could not compose what a command line asks for.

    Args:
        arguments: the command line.
        error: what Hydra raised.
    """
    line = split(arguments)
    checker = Checker(line.config_dir)
    try:
        checker.check_keys(checker.parse(line.overrides), line.multirun)
    except ConfigError as problem:
        return problem
    return ConfigError(plain_message(error))


def _needs_keys(override: Any, checker: Checker) -> bool:
    """Return whether Hydra would accept an unfitting setting silently, or with a message of its own."""
    if override.is_sweep_override() or override.key_or_group == "hydra.run.dir":
        return True
    if checker.is_group(override.key_or_group) or override.is_delete():
        return False
    return override.is_add() or override.is_force_add() or override.value() in ({}, [])


def compose_checked(loader: Any, overrides: Sequence[str], *, sweep: bool = False) -> "DictConfig":
    """Compose one configuration, Hydra's own part included, or say why it cannot be composed.

    Args:
        loader: of :func:`eval.config.compose.config_loader`.
        overrides: as on the command line.
        sweep: compose what is above the cells of a sweep.

    Raises:
        ConfigError: an override is wrong.
    """
    from hydra.errors import HydraException

    try:
        return compose(loader, overrides, sweep=sweep)
    except HydraException as error:
        raise explained([*(["-m"] if sweep else []), *overrides], error) from error


def check_effect(config: "DictConfig", overrides: Sequence[str]) -> None:
    """Refuse settings of parts that a run without a backbone has not, and answers to show where nothing is scored.

    Args:
        config: as composed.
        overrides: that it was composed of.

    Raises:
        ConfigError: names the setting.
    """
    asked = any(text.partition("=")[0] == "show_answers" for text in overrides)  # an experiment may say it for others
    if asked and config.get("show_answers") and not config.get("score", True):
        raise ConfigError(
            f"show_answers={config.show_answers} changes nothing: answers are shown with their scores, and score=false "
            "makes none; leave one of them out"
        )
    if config.get("mode") != "retrieval_only":
        return
    for text in overrides:
        part = re.split(r"[.=/@]", text.lstrip("+~"), maxsplit=1)[0]
        if part in _PARTS_OF_ANSWERS:
            raise ConfigError(
                f"{redacted(text)} changes nothing: mode=retrieval_only has no {part}; leave one of them out"
            )
