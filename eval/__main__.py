"""All commands under one name: ``memsys COMMAND ...``, which is ``python -m eval COMMAND ...``."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import NoReturn

from eval.commands.catalogue import Command, commands, find_command, tasks
from eval.commands.commands import explains_errors, start
from eval.commands.help_text import filled, side_by_side

_USAGE = """\
usage: memsys COMMAND [ARGUMENTS]     (or: python -m eval COMMAND [ARGUMENTS])

memsys benchmarks and reproduces agent-memory systems.
"""
_CLOSING = """
`memsys COMMAND --help` says more, `memsys --help all` describes every command.
"""


@explains_errors
def main() -> int:
    """Say what there is, or run the command that is named first; returns its exit status."""
    asked = sys.argv[1] if sys.argv[1:] else "--help"
    if asked in ("--help", "-h", "help"):
        sys.stdout.write(listing(commands(), described=sys.argv[2:] == ["all"]))
        return 0
    if asked == "--version":
        sys.stdout.write(f"memsys {version('memsys')}\n")
        return 0
    command = find_command(asked, commands())
    sys.argv = [f"memsys {command.name}", *sys.argv[2:]]
    status: int = import_module(command.module).main()
    return status


def entry() -> NoReturn:
    """Run ``main`` as the console script ``memsys`` does."""
    start(main)


def listing(known: Sequence[Command], described: bool = False) -> str:
    """Return the list of commands by what they are for, as text; ``described``: with a line for every command."""
    width = max(len(command.name) for command in known)
    lines = []
    for task in tasks(known):
        if described or task.described:
            entries = (side_by_side(f"  {each.name:<{width}}  ", each.summary) for each in task.commands)
            lines += [task.heading, *entries]
        else:
            names = ", ".join(each.name for each in task.commands)
            lines.append(filled(f"{task.heading}: {names}"))
    return "\n".join((filled(_USAGE), "", *lines, "", filled(_CLOSING), ""))


if __name__ == "__main__":
    start(main)
