"""Published answers, scored alike: the audit's tables as the page shows them, where an audit was written."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from eval.audit.config import AuditConfig, load_config
from eval.audit.field import Row
from eval.audit.labels import SECTIONS, TERMS
from eval.audit.measured import left_out_text, with_measured_judges
from eval.audit.page import BOARD, DATA_NAMES, board, caption, chosen, findings, named_rows, short, used_columns
from eval.audit.stored import stored_tables
from eval.commands.places import RESULTS
from eval.scoring.verdicts.figures import stored_figures
from memsys.vocabulary import Json

FOLDER = RESULTS / "audit"
#: Columns of words, which are on the left.
_WORDS = {
    "system", "backbone", "run", "metric", "nearest", "source", "higher", "lower", "flips_under", "category", "judge",
    "answers_of", "renamed_categories", "experiment",
}  # fmt: skip
#: Longer than a range of figures.
_RANGE = 20


def audit_section(folder: Path = FOLDER, *, unmeasured_judges: bool = False) -> Json:
    """Return what was found, the terms, and the tables as texts; ``None`` where no audit was written.

    Args:
        folder: of the audit.
        unmeasured_judges: show verdicts of judges too that were not measured.

    Raises:
        DataError: a file of the audit is damaged.
    """
    tables = {
        **stored_tables(folder),
        "judge_presets": [asdict(one) for one in stored_figures(folder / "judge_presets.csv")],
    }
    if not tables["leaderboard"]:
        return None
    config = load_config()
    tables = dict(with_measured_judges(tables, config, unmeasured=unmeasured_judges))
    names = sorted({str(row["data"]) for row in tables["leaderboard"]})
    shown = [_board(tables, config, name) for name in names]
    for name, section in SECTIONS.items():
        rows = chosen(name, tables)
        if rows:
            columns = used_columns(rows, section.columns)
            shown.append(_table(section.title, plain(section.text), named_rows(rows), columns, section.decimals))
    return {"findings": list(map(_named, findings(tables))), "terms": list(map(_named, TERMS)), "tables": shown}


def _named(text: str) -> tuple[str, str]:
    """Return what a line is about, and what it says of it."""
    name, _, rest = text.partition("**: ")
    return plain(name), plain(rest)


def _board(tables: Mapping[str, Sequence[Row]], config: AuditConfig, data: str) -> Json:
    rows = board(tables["leaderboard"], config, data)
    notes = " ".join(plain(text) for text in (caption(data), left_out_text(tables, data, "memsys report")) if text)
    return _table(f"Leaderboard, {DATA_NAMES.get(data, data)}", notes, rows, used_columns(rows, BOARD), None)


def plain(text: str) -> str:
    """Return a text without the marks of Markdown."""
    return text.replace("*", "").replace("`", "")


def _table(title: str, note: str, rows: Sequence[Row], columns: Mapping[str, str], decimals: int | None) -> Json:
    return {
        "title": title,
        "note": note,
        "headings": list(columns.values()),
        "words": [name in _WORDS and all(isinstance(row.get(name), str | None) for row in rows) for name in columns],
        "rows": [[_unbroken(short(row.get(name), decimals)) for name in columns] for row in rows],
    }


def _unbroken(text: str) -> str:
    """Return an interval or a range on one line."""
    return text.replace(" ", "\u00a0") if text[:1] in "[0123456789" and len(text) < _RANGE else text
