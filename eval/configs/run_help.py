"""``python -m eval.run --help [GROUP ...]``: what can be chosen, read from ``conf/`` without Hydra.

Hydra's own help composes every group to list it, which takes seconds; the folders and the first comment line of each
file say the same and what the choice is.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from eval.configs.presets import CONF, preset_names
from memsys.errors import ConfigError

#: Folders of ``conf/`` that are no part of a run's configuration: tables, analyses and judges read them.
_NOT_OF_A_RUN = ("tables", "analysis", "judge")
_WIDTH, _INDENT = 100, 4

_USAGE = """\
memsys runs a memory system over a data set with a backbone and scores its answers.

usage: python -m eval.run [+experiment=NAME] [GROUP=CHOICE ...] [KEY=VALUE ...] [-m for sweeps: memory=a,b]
"""
_CLOSING = """\
`--help GROUP` (for instance `--help memory`) says what each choice of a group is. Groups with + are not in the default
configuration: write +experiment=NAME. Every key can be overridden: seed=1 memory.k=20 dataset.conversations=[conv-26]
`--cfg job` prints the composed config, `--info defaults-tree` where each part comes from.
"""


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for the help of :func:`help_text`."""
    return any(argument in ("--help", "-h") for argument in arguments)


def help_text(arguments: Sequence[str], conf: Path = CONF, added: Sequence[Path] = ()) -> str:
    """Make the help that a command line asks for.

    Args:
        arguments: of the command line; names of groups among them ask for their choices with a description each.
        conf: folder of the configuration.
        added: further folders, of plug-ins.

    Raises:
        ConfigError: a name that is no group.
    """
    folders = (conf, *added)
    known = sorted({name for folder in folders for name in groups(folder)})
    named = [argument for argument in arguments if not argument.startswith("-") and "=" not in argument]
    for name in named:
        if name not in known:
            raise ConfigError(f"--help {name}: no such group; choose from {', '.join(known)}")
    if named:
        return "\n".join(_described(_presets(folders, name), name) for name in named)
    listed = "".join(_listed(_presets(folders, name), name) for name in known)
    return f"{_USAGE}\nChoices (conf/):\n\n{listed}\n{_CLOSING}"


def groups(conf: Path) -> Iterator[str]:
    """Names of the configuration groups of a run, sorted: the folders that hold presets."""
    for folder in sorted(path for path in conf.rglob("*") if path.is_dir()):
        name = folder.relative_to(conf).as_posix()
        if name not in _NOT_OF_A_RUN and preset_names(folder):
            yield name


def description(preset: Path) -> str:
    """The first comment line of a preset that is no instruction to Hydra; empty where it has none."""
    for line in preset.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            return ""
        if not line.startswith("# @"):
            return line.removeprefix("#").strip()
    return ""


def _presets(folders: Sequence[Path], group: str) -> dict[str, Path]:
    """File of each choice of a group, by its name; the first folder that has a name wins, as for Hydra."""
    found: dict[str, Path] = {}
    for folder in folders:
        for name in preset_names(folder / group):
            found.setdefault(name, folder / group / f"{name}.yaml")
    return dict(sorted(found.items()))


def _listed(presets: Mapping[str, Path], name: str) -> str:
    added = "+" if name in ("experiment", "sweep") else ""
    choices = textwrap.fill(
        ", ".join(presets),
        _WIDTH,
        initial_indent=" " * _INDENT,
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )
    return f"  {added}{name}=\n{choices}\n"


def _described(presets: Mapping[str, Path], name: str) -> str:
    width = max(map(len, presets), default=0)
    lines = [f"  {choice:<{width}}  {description(path)}".rstrip() for choice, path in presets.items()]
    return "\n".join((f"{name}=", *lines, ""))
