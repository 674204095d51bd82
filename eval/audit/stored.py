"""The audit's tables read back from their CSV files, so that a page can be made without the answers."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.audit.leaderboard import Row
from memsys.errors import DataError

#: Tables of the audit, each a CSV file.
TABLES = (
    "leaderboard", "pairs", "headlines", "orderings", "detectors", "people", "judges", "wrong", "length", "repeats",
)  # fmt: skip
#: Columns that count something; other figures may have decimals.
_COUNTS = {
    "questions", "answers", "rows", "aligned", "altered_questions", "unaligned", "repeated_rows", "rows_without_answer",
    "questions_missing", "think_blocks_cut", "empty_answers", "gold_differs", "category_5_of_few",
    "answers_with_gold_inside", "run_again", "errors", "errors_among_run_again", "readings", "kept", "runs", "wins",
    "ties", "losses",
}  # fmt: skip
#: Columns of words; an empty one is not a value.
_WORDS = {
    "data", "run", "system", "backbone", "metric", "labels", "counting", "interval_by", "first", "second", "nearest",
    "source", "higher", "lower", "flips_under", "renamed_categories", "category", "judge", "experiment",
}  # fmt: skip
_FLAGS = {"yes": True, "no": False}


def stored_tables(folder: Path) -> Mapping[str, Sequence[Row]]:
    """Read the tables that an audit wrote; empty where their file is not there.

    Raises:
        DataError: a figure is not a number.
    """
    paths = {name: folder / f"{name}.csv" for name in TABLES}
    return {name: rows_of(path.read_text("utf-8"), path) if path.is_file() else [] for name, path in paths.items()}


def rows_of(text: str, path: Path) -> list[Row]:
    """Return the rows of a table as its CSV file has them.

    Raises:
        DataError: a figure is not a number.
    """
    found: list[Row] = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text)), start=2):
        try:
            found.append({name: _value(name, text or "") for name, text in row.items()})
        except ValueError as error:
            raise DataError(f"{path}: line {number}: {error}; `memsys audit` writes it again") from error
    return found


def _value(name: str, text: str) -> object:
    if name in _WORDS:
        return text or (None if name == "interval_by" else "")
    if not text or text in _FLAGS:
        return _FLAGS.get(text)
    return int(text) if name in _COUNTS else float(text)
