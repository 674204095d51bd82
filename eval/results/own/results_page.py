"""The tables of docs/results.md, from the exported runs: ``python -m eval.results.own.results_page``.

Each table lies between markers (:func:`eval.commands.rendering.markdown.replace_tables`); ``results_page.yaml`` says
which runs it shows.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from eval.commands.commands import explains_errors, start
from eval.commands.rendering.markdown import render_markdown, replace_tables
from eval.commands.rendering.table import Table, columns, figure
from eval.config.presets import read_settings
from eval.results.frame import read_runs
from eval.results.own.memory_quality import quality_groups
from eval.results.own.systems import SystemLine, system_lines
from eval.results.stored_run import StoredRun
from eval.results.tables.spec import preset_labels
from eval.runs.files import write_atomic
from eval.runs.folders import SUMMARIES
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError

PAGE = ROOT / "docs" / "results.md"
FILE = Path(__file__).with_name("results_page.yaml")
#: What names of bounded presets end with, which the page says once for all.
_BOUNDED = ", bounded replies"
_FIGURES: Mapping[str, Callable[[SystemLine], str]] = {
    "F1": lambda line: figure(line.score),
    "F1 answerable": lambda line: figure(line.answerable),
    "R@5": lambda line: figure(line.at_5),
    "R@10": lambda line: figure(line.at_10),
    "calls per question": lambda line: figure(line.read.calls),
    "tokens per question": lambda line: figure(line.read.tokens, 0),
    "tokens per turn written": lambda line: figure(line.write.tokens, 0),
}


def page_tables() -> dict[str, str]:
    """Return the tables of the page by name.

    Raises:
        ConfigError: ``results_page.yaml`` names a figure that there is not.
        RunDirectoryError: an experiment is missing, or its files are damaged.
    """
    lines = cache(lambda experiment: _lines(SUMMARIES / experiment))
    return {name: render_markdown(_table(settings, lines), level=0) for name, settings in read_settings(FILE).items()}


def _table(settings: Mapping[str, Sequence[str]], lines: Callable[[str], Mapping[str, SystemLine]]) -> Table:
    """Return a table of systems by columns, a dash where an experiment has no run of a system."""
    unknown = [name for _, name in settings.values() if name not in _FIGURES]
    if unknown:
        raise ConfigError(f"{FILE}: there is no figure {unknown[0]}; there are {', '.join(_FIGURES)}")
    shown = [(lines(experiment), _FIGURES[name]) for experiment, name in settings.values()]
    systems = dict.fromkeys(system for known, _ in shown for system in known)
    rows = [[name, *(write(known[name]) if name in known else None for known, write in shown)] for name in systems]
    return Table("", columns(("system", *settings)), rows)


def _lines(experiment: Path) -> dict[str, SystemLine]:
    """Return an experiment's runs with our prompts by system: those that show what is possible first, then by score."""
    runs, _ = read_runs([experiment])
    shown = [run for run in runs if (run.record["config"].get("prompts") or {}).get("source", "ours") == "ours"]
    return {_name(line.run): line for group in quality_groups(shown) for line in system_lines(group)}


def _name(run: StoredRun) -> str:
    return str(preset_labels().get(run.memory, run.memory.replace("_", " "))).removesuffix(_BOUNDED)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables into docs/results.md."""
    argparse.ArgumentParser(prog="python -m eval.results.own.results_page", description=main.__doc__).parse_args(
        arguments
    )
    write_atomic(PAGE, replace_tables(PAGE, page_tables()).encode())
    return 0


if __name__ == "__main__":
    start(main)
