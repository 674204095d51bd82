"""Write what the documents say of the presets: the systems in docs/choices.md, and docs/deviations.md.

``python -m eval.results.choices_page`` writes both; a test checks that they are up to date.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from eval.commands.commands import explains_errors, start
from eval.commands.rendering.markdown import render_markdown, replace_tables
from eval.commands.rendering.table import Column, Span, Table
from eval.config.presets import MEMORY, descriptions
from eval.results.papers.deviations import deviations_page, load_deviations, systems
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT

PAGE, DEVIATIONS = ROOT / "docs" / "choices.md", ROOT / "docs" / "deviations.md"
#: Name of the table in its markers.
NAME = "memory systems"


def main_presets(names: Sequence[str]) -> list[str]:
    """Return the presets whose name no other one's begins: ``rag`` of ``rag``, ``rag_prune`` and ``rag_chunk``."""
    return [name for name in names if not any(name.startswith(f"{other}_") for other in names)]


def systems_table(folder: Path = MEMORY) -> str:
    """Return the main presets of each system with the first sentence of each, as Markdown."""
    known = descriptions(folder)
    rows = [
        (Span(name, "code"), _marked(first_sentence(known[name])))
        for _, names in systems(folder).values()
        for name in main_presets(names)
    ]
    heading = Column("memory=", "left")
    return render_markdown(Table("", [heading, Column("what", "left")], rows), level=0)


def _marked(text: str) -> tuple[Span | str, ...]:
    """Return a text with what is between backticks as code."""
    return tuple(Span(part, "code") if place % 2 else part for place, part in enumerate(text.split("`")))


def first_sentence(text: str) -> str:
    """Return the first sentence of a description, without its full stop."""
    return re.split(r"\.(?= |$)", text, maxsplit=1)[0]


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of memory systems into docs/choices.md, and docs/deviations.md."""
    argparse.ArgumentParser(prog="python -m eval.results.choices_page", description=main.__doc__).parse_args(arguments)
    write_atomic(PAGE, replace_tables(PAGE, {NAME: systems_table()}).encode())
    write_atomic(DEVIATIONS, deviations_page(load_deviations()).encode())
    return 0


if __name__ == "__main__":
    start(main)
