"""``memsys run --help [GROUP ...]``: what can be chosen, read from ``conf/`` without Hydra.

Hydra's own help composes every group to list it, which takes seconds; the folders and the comment that each file
begins with say the same and what the choice is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from eval.commands.commands import described
from eval.commands.help_text import filled, side_by_side
from eval.config.presets import CONF, GLOBAL_GROUPS, descriptions, preset_names, read_settings
from memsys.errors import ConfigError

#: Folders whose files others start from; none is a choice.
_BASES = "base"
#: Folders of ``conf/`` that are no part of a run's configuration: ``eval.judge`` reads them.
_NOT_OF_A_RUN = ("judge",)
_INDENT = 4 * " "

#: Sections of the groups' choices.
SECTIONS = CONF / "help.yaml"
_REST = "more"

_USAGE = """\
memsys runs a memory system over a data set with a backbone and scores its answers.

usage: memsys run [+experiment=NAME] [GROUP=CHOICE ...] [KEY=VALUE ...] [-m for sweeps: memory=a,b]

To begin:
  memsys run memory=rag dataset=locomo_sample
  memsys run +experiment=quickstart
"""
_CLOSING = described("""\
`--help GROUP` (for instance `--help memory`) says what each choice of a group is. Groups with + are not in the default
configuration: write +experiment=NAME. Every key can be overridden: seed=1 memory.k=20 dataset.conversations=[conv-26].
context.budget=1024 gives every memory as many tokens of context, stress.kind=poison changes the data: docs/measures.md

A model of your own, on vLLM or any OpenAI-compatible endpoint: docs/models.md

`--cfg job` prints the composed config, `--info defaults-tree` where each part comes from.
""")


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Return whether the command line asks for the help of :func:`help_text`."""
    return any(argument in ("--help", "-h") for argument in arguments)


def help_text(arguments: Sequence[str], added: Sequence[Path] = ()) -> str:
    """Make the help that a command line asks for.

    Args:
        arguments: of the command line; names of groups among them ask for their choices with a description each.
        added: folders of plug-ins.

    Raises:
        ConfigError: a name that is not a group.
    """
    folders = (CONF, *added)
    first = list(read_settings(SECTIONS))
    known = sorted(groups(*folders), key=lambda name: first.index(name) if name in first else len(first))
    named = [argument for argument in arguments if not argument.startswith("-") and "=" not in argument]
    for name in named:
        if name not in known:
            raise ConfigError(f"--help {name}: no such group; choose from {', '.join(known)}")
    if named:
        return "\n".join(_described(choices(folders, name), name) for name in named)
    listed = "".join(_listed(choices(folders, name), name) for name in known)
    return f"{filled(_USAGE)}\n\nChoices (conf/):\n\n{listed}\n{filled(_CLOSING)}\n"


def groups(*folders: Path) -> list[str]:
    """Return the names of the configuration groups of a run, sorted: the folders below these that hold presets."""
    inner = [(path, path.relative_to(conf).as_posix()) for conf in folders for path in conf.rglob("*") if path.is_dir()]
    return sorted({name for path, name in inner if _is_group(path, name)})


def _is_group(folder: Path, name: str) -> bool:
    return folder.name != _BASES and name not in _NOT_OF_A_RUN and bool(preset_names(folder))


def choices(folders: Sequence[Path], group: str) -> dict[str, str]:
    """Return the description of each choice of a group, sorted; as for Hydra, the first folder with a choice wins."""
    found: dict[str, str] = {}
    for folder in folders:
        found = {**descriptions(folder / group), **found}
    return dict(sorted(found.items()))


def typed(group: str) -> str:
    """Return a group's name as it is typed before its choice: with + where the default configuration has none of it."""
    return f"+{group}" if group in GLOBAL_GROUPS else group


@dataclass(frozen=True, slots=True)
class Section:
    """Some of a group's choices.

    Attributes:
        heading: what they have in common; empty where a group has no sections.
        choices: the listed ones first.
        listed: how many of the choices the short help shows.
    """

    heading: str
    choices: list[str]
    listed: int


def sections(group: str, names: Iterable[str], path: Path = SECTIONS) -> list[Section]:
    """Return the choices of a group by its sections; one section without a heading for a group that has none.

    Raises:
        ConfigError: the file cannot be read.
    """
    left = sorted(names)
    patterns: Mapping[str, Sequence[str]] | None = read_settings(path).get(group)
    if patterns is None:
        return [Section("", left, len(left))]
    heads: dict[str, list[str]] = {}
    for heading, listed in patterns.items():
        heads[heading] = [name for pattern in listed for name in left if fnmatchcase(name, pattern)]
        left = [name for name in left if name not in heads[heading]]
    owners = {head: heading for heading, listed in heads.items() for head in listed}
    heads[_REST] = []
    variants: dict[str, list[str]] = {heading: [] for heading in heads}
    for name in left:
        variants[owners.get(_head_of(name, owners), _REST)].append(name)
    found = [Section(heading, [*heads[heading], *variants[heading]], len(heads[heading])) for heading in heads]
    return [section for section in found if section.choices]


def _head_of(name: str, heads: Iterable[str]) -> str:
    """Return the listed choice that a variant's name begins with, the longest; empty without one."""
    return max((head for head in heads if name.startswith(f"{head}_")), key=len, default="")


def _listed(names: Iterable[str], group: str) -> str:
    found = sections(group, names)
    lines = [f"  {typed(group)}="]
    for section in found:
        heading = f"{section.heading}: " if section.heading else ""
        if section.listed:
            lines.append(filled(heading + ", ".join(section.choices[: section.listed]), indent=_INDENT))
    if more := sum(len(section.choices) - section.listed for section in found):
        lines.append(filled(f"and {more} more: `--help {group}`", indent=_INDENT))
    return "\n".join((*lines, ""))


def _described(abouts: Mapping[str, str], group: str) -> str:
    width = max(map(len, abouts), default=0)
    lines = []
    for section in sections(group, abouts):
        lines += ["", section.heading] if section.heading else []
        lines += [side_by_side(f"  {choice:<{width}}  ", abouts[choice]) for choice in _together(section)]
    return "\n".join((f"{group}=", *lines, ""))


def _together(section: Section) -> list[str]:
    """Return a section's choices with the variants of each after it."""
    heads, variants = section.choices[: section.listed], section.choices[section.listed :]
    if not heads:
        return variants
    return [name for head in heads for name in (head, *(each for each in variants if _head_of(each, heads) == head))]
