"""``python -m eval.run --help [GROUP ...]``: what can be chosen, read from ``conf/`` without Hydra.

Hydra's own help composes every group to list it, which takes seconds; the folders, the first comment line of each file
and the ``about`` of each variant say the same and what the choice is.
"""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from eval.configs.choices import MEMORY, presets
from eval.configs.presets import CONF
from memsys.errors import ConfigError

#: Folders whose files others start from; none is a choice.
_BASES = "base"
_WIDTH, _INDENT = 100, 4

_USAGE = """\
memsys runs a memory system over a data set with a backbone and scores its answers.

usage: python -m eval.run [+experiment=NAME] [GROUP=CHOICE ...] [KEY=VALUE ...] [-m for sweeps: memory=a,b]
"""
_CLOSING = """\
`--help GROUP` (for instance `--help memory`) says what each choice of a group is. Groups with + are not in the default
configuration: write +experiment=NAME. Every key can be overridden: seed=1 memory.k=20 dataset.conversations=[conv-26]
A run shows the name of a memory (clag/small: clag_small), which may be written as well: memory=clag_small
`--cfg job` prints the composed config, `--info defaults-tree` where each part comes from.
"""


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the command line asks for the help of :func:`help_text`."""
    return any(argument in ("--help", "-h") for argument in arguments)


def help_text(arguments: Sequence[str], conf: Path = CONF) -> str:
    """Make the help that a command line asks for.

    Args:
        arguments: of the command line; names of groups among them ask for their choices with a description each.
        conf: folder of the configuration.

    Raises:
        ConfigError: a name that is no group.
    """
    known = list(groups(conf))
    named = [argument for argument in arguments if not argument.startswith("-") and "=" not in argument]
    for name in named:
        if name not in known:
            raise ConfigError(f"--help {name}: no such group; choose from {', '.join(known)}")
    if named:
        return "\n".join(_described(conf / name, name) for name in named)
    listed = "".join(_listed(conf, name) for name in known)
    return f"{_USAGE}\nChoices (conf/):\n\n{listed}\n{_CLOSING}"


def groups(conf: Path) -> Iterator[str]:
    """Names of the configuration groups of a run, sorted: the folders that hold presets."""
    folders = [path for path in conf.rglob("*") if path.is_dir()]
    for folder in sorted(path for path in folders if path.name != _BASES and path.parent.name != MEMORY.name):
        if presets(folder):
            yield folder.relative_to(conf).as_posix()


def _listed(conf: Path, name: str) -> str:
    added = "+" if name in ("experiment", "sweep") else ""
    choices = textwrap.fill(
        ", ".join(preset.choice for preset in presets(conf / name).values()),
        _WIDTH,
        initial_indent=" " * _INDENT,
        subsequent_indent=" " * _INDENT,
        break_on_hyphens=False,
    )
    return f"  {added}{name}=\n{choices}\n"


def _described(folder: Path, name: str) -> str:
    found = list(presets(folder).values())
    width = max((len(preset.choice) for preset in found), default=0)
    lines = [f"  {preset.choice:<{width}}  {preset.about}".rstrip() for preset in found]
    return "\n".join((f"{name}=", *lines, ""))
