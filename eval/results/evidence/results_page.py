"""The tables of docs/results.md, from the exported runs: ``python -m eval.results.evidence.results_page``.

Each table lies between two marks, ``<!-- results: NAME -->`` and ``<!-- end: NAME -->``; ``results_page.yaml`` says
which runs it shows.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from eval.commands.commands import explains_errors, start
from eval.config.presets import read_settings
from eval.results.evidence.report import quality_groups
from eval.results.evidence.systems import SystemLine, system_lines
from eval.results.tables.plain import PlainTable, figure, plain_markdown
from eval.results.tables.spec import preset_labels
from eval.results.tables.stored import StoredRun, read_runs
from eval.runs.files import write_atomic
from eval.runs.folders import SUMMARIES
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError

PAGE = ROOT / "docs" / "results.md"
FILE = Path(__file__).with_name("results_page.yaml")
BEGIN, END = "<!-- results: {} -->", "<!-- end: {} -->"
#: What names of bounded presets end with, which the page says once for all.
_BOUNDED = ", bounded replies"
_COLUMNS: Mapping[str, Callable[[SystemLine], str]] = {
    "F1": lambda line: figure(line.score),
    "F1 answerable": lambda line: figure(line.answerable),
    "R@5": lambda line: figure(line.at_5),
    "R@10": lambda line: figure(line.at_10),
    "calls per question": lambda line: figure(line.read.calls),
    "tokens per question": lambda line: figure(line.read.tokens, 0),
    "tokens per turn written": lambda line: figure(line.write.tokens, 0),
}


def with_tables(text: str, folder: Path = SUMMARIES) -> str:
    """Return the text of the page with its tables made anew.

    Args:
        text: of the page.
        folder: of the exported runs.

    Raises:
        ConfigError: the marks of a table are missing, or ``results_page.yaml`` names a column that there is not.
        RunDirectoryError: an experiment is missing, or its files are damaged.
    """
    for name, table in read_settings(FILE).items():
        before, begin, rest = text.partition(BEGIN.format(name))
        _, end, after = rest.partition(END.format(name))
        if not begin or not end:
            raise ConfigError(f"{PAGE}: put the lines {BEGIN.format(name)} and {END.format(name)} where it belongs")
        runs, _ = read_runs([folder / table["experiment"]])
        rows = _rows(runs, table.get("prompts", "ours"), table["columns"])
        lines = plain_markdown(PlainTable(name, ("system", *table["columns"]), rows), "")
        text = "\n".join([before + begin, *lines[1:-1], end + after])
    return text


def _rows(runs: Sequence[StoredRun], prompts: str, columns: Sequence[str]) -> list[list[str]]:
    """Rows of a table: its systems, those that show what is possible first, then by score."""
    unknown = [name for name in columns if name not in _COLUMNS]
    if unknown:
        raise ConfigError(f"{FILE}: there is no column {unknown[0]}; there are {', '.join(_COLUMNS)}")
    shown = [run for run in runs if (run.record["config"].get("prompts") or {}).get("source", "ours") == prompts]
    lines = [line for group in quality_groups(shown) for line in system_lines(group)]
    return [[_name(line.run), *(_COLUMNS[name](line) for name in columns)] for line in lines]


def _name(run: StoredRun) -> str:
    return str(preset_labels().get(run.memory, run.memory.replace("_", " "))).removesuffix(_BOUNDED)


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables into docs/results.md."""
    argparse.ArgumentParser(prog="python -m eval.results.evidence.results_page", description=main.__doc__).parse_args(
        arguments
    )
    write_atomic(PAGE, with_tables(PAGE.read_text(encoding="utf-8")).encode())
    return 0


if __name__ == "__main__":
    start(main)
