"""The commands that there are: found in the package ``eval``, described by their first line, none of them imported."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.commands.suggestions import did_you_mean
from memsys.errors import ConfigError
from memsys.yaml_files import read_yaml

PACKAGE = Path(__file__).resolve().parents[1]
#: Headings of the list of commands, and the commands of each.
TASKS = Path(__file__).with_name("tasks.yaml")
_REST = "Others"


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: as it is typed.
        module: holds its ``main``.
        summary: what it does, in one line.
    """

    name: str
    module: str
    summary: str


@dataclass(frozen=True, slots=True)
class Task:
    """A heading of the list of commands.

    Attributes:
        heading: what its commands are for.
        commands: in the order in which they are listed.
        described: each has a line of its own; otherwise names alone are listed.
    """

    heading: str
    commands: list[Command]
    described: bool


def tasks(known: Sequence[Command], path: Path = TASKS) -> list[Task]:
    """Return the commands by what they are for; those that the file does not place come last.

    Raises:
        ConfigError: the file cannot be read.
    """
    by_name = {command.name: command for command in known}
    placed = []
    for kind, headings in read_yaml(path, "it is part of memsys").items():
        for heading, names in headings.items():
            found = [by_name.pop(name) for name in names if name in by_name]
            placed.append(Task(heading, found, kind == "described"))
    return [task for task in (*placed, Task(_REST, list(by_name.values()), False)) if task.commands]


def commands(package: Path = PACKAGE) -> list[Command]:
    """Return all commands, by name: modules of the package and ``__main__`` of its folders that have a ``main``."""
    modules = [path for path in package.glob("*.py") if not path.name.startswith("_")]
    found = [_command(path, package) for path in (*modules, *package.glob("*/**/__main__.py"))]
    return sorted((command for command in found if command), key=lambda command: command.name)


def _command(path: Path, package: Path) -> Command | None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
        return None
    summary = (ast.get_docstring(tree) or "").partition("\n")[0].partition(" ``")[0].rstrip(":.")
    module = ".".join((PACKAGE.name, *path.relative_to(package).with_suffix("").parts))
    return Command(path.parent.name if path.stem == "__main__" else path.stem, module, summary)


def find_command(name: str, known: Iterable[Command]) -> Command:
    """Find a command by its name, with hyphens or underscores, or by a beginning that no other command has.

    Raises:
        ConfigError: there is none, or several begin like this.
    """
    by_name = {command.name: command for command in known}
    written = name.replace("-", "_")
    if written in by_name:
        return by_name[written]
    begun = [each for each in by_name if each.startswith(written)]
    if len(begun) == 1:
        return by_name[begun[0]]
    if begun:
        raise ConfigError(f"{name} may be {' or '.join(begun)}; write one of them")
    guess = did_you_mean(name, by_name)
    raise ConfigError(f"there is no command {name!r}{guess or ';'} `memsys --help` lists the commands")
