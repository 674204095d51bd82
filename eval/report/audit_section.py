"""Published answers, scored alike: the audit's tables as the page shows them, where an audit was written."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from eval.audit.config import AuditConfig, load_config
from eval.audit.field import Row
from eval.audit.measured import left_out_text, with_measured_judges
from eval.audit.page import BOARD, DATA_NAMES, board, caption, chosen, findings, named_rows, short, used_columns
from eval.audit.stored import stored_tables
from eval.audit.wording import SECTIONS, TERMS
from eval.cli.places import RESULTS
from eval.judge.people import stored_figures
from memsys.vocabulary import Json

FOLDER = RESULTS / "audit"


def audit_section(folder: Path = FOLDER, *, unmeasured_judges: bool = False) -> Json:
    """What was found, the terms, and the tables as texts; ``None`` where no audit was written.

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
        rows = chosen(name, tables.get(name) or [])
        if rows:
            columns = used_columns(rows, section.columns)
            shown.append(_table(section.title, plain(section.text), named_rows(rows), columns, section.decimals))
    return {"findings": list(map(plain, findings(tables))), "terms": list(map(plain, TERMS)), "tables": shown}


def _board(tables: Mapping[str, Sequence[Row]], config: AuditConfig, data: str) -> Json:
    rows = board(tables["leaderboard"], config, data)
    notes = " ".join(plain(text) for text in (caption(data), left_out_text(tables, data)) if text)
    return _table(f"Leaderboard, {DATA_NAMES.get(data, data)}", notes, rows, used_columns(rows, BOARD), None)


def plain(text: str) -> str:
    """A text without the marks of Markdown."""
    return text.replace("*", "").replace("`", "")


def _table(title: str, note: str, rows: Sequence[Row], columns: Mapping[str, str], decimals: int | None) -> Json:
    words = [all(isinstance(row.get(name), str | None) for row in rows) for name in columns]
    return {
        "title": title,
        "headings": list(columns.values()),
        "rows": [[short(row.get(name), decimals) for name in columns] for row in rows],
        "left": next((place for place, of_words in enumerate(words) if not of_words), len(words)),
        "notes": [note] if note else [],
    }
