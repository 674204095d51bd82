"""Any table of messages, CSV, TSV, JSON or JSON Lines, whose columns are named."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.loaders.exports.chats import Chat, Export, Message, Options, Session
from eval.loaders.trees import read_tree
from memsys.dates import parse_date
from memsys.errors import ConfigError, DataError, quoted

#: Fields of a turn that a column may hold.
FIELDS = ("text", "speaker", "date", "conversation", "session")
#: Columns that a message lists.
_LISTED = 12


def read(source: Path, options: Options) -> Export:
    """Read messages in the order of the file, by conversation and session; without sessions those of a day are one.

    Raises:
        ConfigError: a field is not a field of a turn, or there is no such column.
        DataError: the file is not a table, or a value is not text.
    """
    rows = read_tree(source)
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise DataError(f"{source}: is not a table: expected rows with named columns (CSV, TSV, JSON or JSON Lines)")
    columns = _columns(rows, options.columns, source)
    sessions: dict[str, dict[str, list[Message]]] = {}
    latest: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        field = {name: _text(row.get(column), f"{source} row {number}: {column}") for name, column in columns.items()}
        moment = parse_date(field.get("date", ""))
        name = field.get("conversation") or source.stem
        day = f"{moment:%Y-%m-%d}" if moment else latest.get(name, "")  # what has no date was said with the row before
        session = latest[name] = field.get("session") or day
        chat = sessions.setdefault(name, {})
        message = Message(field.get("speaker", ""), field["text"], field.get("date", ""))
        chat.setdefault(session, []).append(message)
    return Export([Chat(name, [Session(*one) for one in own.items()], titled=True) for name, own in sessions.items()])


def _columns(rows: list[Mapping[str, Any]], named: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return field -> column: as named, else the column of the field's own name."""
    known = {str(key): None for row in rows for key in row}
    if unknown := named.keys() - {*FIELDS}:
        raise ConfigError(f"--map {min(unknown)}=: a turn has no such field; there are {', '.join(FIELDS)}")
    columns = {**{name: name for name in FIELDS if name in known}, **named}
    listed = ", ".join(quoted(name, 40) for name in list(known)[:_LISTED])
    if absent := next((column for column in columns.values() if column not in known), None):
        raise ConfigError(f"--map: {source} has no column {quoted(absent, 40)}; it has {listed}")
    if "text" not in columns:
        raise ConfigError(f"{source}: say which column holds what was said, --map text=COLUMN; it has {listed}")
    return columns


def _text(value: Any, where: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: expected text or number, found {quoted(value, 60)}")
    return str(value)
