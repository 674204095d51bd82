"""Help that fits the window: of argparse's parsers and of the commands that write their own."""

import argparse
import re
import shutil
import textwrap

#: Columns where the output is not a terminal, and those that a description needs next to its name.
_PIPE_WIDTH, _LEAST_TEXT = 100, 40


class Paragraphs(argparse.HelpFormatter):
    """Fills each paragraph of a description to the width of the window; argparse's own makes one of all."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return filled(text, width, indent)


def window() -> int:
    """Return the number of columns of the terminal, or of ``COLUMNS``."""
    return shutil.get_terminal_size((_PIPE_WIDTH, 0)).columns


def filled(text: str, width: int | None = None, indent: str = "") -> str:
    """Fill the paragraphs of a text, which empty lines separate; an indented line stays one of its own.

    Args:
        text: may be wrapped already, to another width.
        width: columns; ``None``: those of the window.
        indent: before every line.
    """
    logical = re.sub(r"(?<=\S)\n(?=\S)", " ", text.strip("\n"))
    return "\n".join(_wrapped(line, width or window(), indent) for line in logical.split("\n"))


def _wrapped(line: str, width: int, indent: str) -> str:
    own = indent + line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line.strip(), width, initial_indent=own, subsequent_indent=own, break_on_hyphens=False)


def side_by_side(name: str, about: str) -> str:
    """Return a name with its description next to it, or below it where the window is too narrow for both.

    Args:
        name: padded to the width of its column.
        about: may be empty.
    """
    width = max(window(), _LEAST_TEXT)
    if width - len(name) < _LEAST_TEXT:
        return f"{name.rstrip()}\n{filled(about, width, '    ')}".rstrip()
    text = textwrap.fill(about, width, initial_indent=name, subsequent_indent=" " * len(name), break_on_hyphens=False)
    return (text or name).rstrip()
