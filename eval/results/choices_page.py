"""The table of memory systems in docs/choices.md, made from the first sentence of their presets.

``python -m eval.results.choices_page`` writes it between its markers; a test checks that it is up to date.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from eval.commands.commands import explains_errors, start
from eval.commands.escaping import markdown_cell, markdown_row
from eval.config.choices import MEMORY, Preset, presets
from eval.results.papers.departures import systems
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError

README = ROOT / "docs" / "choices.md"
BEGIN, END = "<!-- memory systems: begin -->", "<!-- memory systems: end -->"


def main_presets(names: Sequence[str]) -> list[str]:
    """Return the presets whose name no other one's begins: ``rag`` of ``rag``, ``rag_prune`` and ``rag_chunk``."""
    return [name for name in names if not any(name.startswith(f"{other}_") for other in names)]


def rows(folder: Path = MEMORY) -> Iterator[str]:
    """Yield a line of Markdown for each main preset of each system."""
    known = presets(folder)
    for _, names in systems(folder).values():
        for name in main_presets(names):
            about = markdown_cell(_about(known[name])).replace("\\`", "`")  # commands in presets stay code
            yield markdown_row([f"`{name}`", about])


def _about(preset: Preset) -> str:
    """First sentence of what a preset says of itself, without its full stop."""
    return first_sentence(preset.file) if preset.of is None else _sentence(preset.about)


def first_sentence(preset: Path) -> str:
    """Return the first sentence of the comment that a preset begins with, without its full stop."""
    lines = []
    for line in preset.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        lines.append(line.removeprefix("#").strip())
    return _sentence(" ".join(lines))


def _sentence(text: str) -> str:
    return re.split(r"\.(?= |$)", text, maxsplit=1)[0]


def with_table(text: str, folder: Path = MEMORY) -> str:
    """Return the text of docs/choices.md with the table between its markers.

    Raises:
        ConfigError: a marker is not there, or the first stands behind the second.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ConfigError(f"{README}: put the lines {BEGIN} and {END} where the table of systems belongs")
    table = "\n".join(("| `memory=` | what |", "|---|---|", *rows(folder)))
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table into docs/choices.md."""
    argparse.ArgumentParser(prog="python -m eval.results.choices_page", description=main.__doc__).parse_args(arguments)
    write_atomic(README, with_table(README.read_text(encoding="utf-8")).encode())
    return 0


if __name__ == "__main__":
    start(main)
