"""Files of rows as parsed trees: JSON, JSON Lines, CSV, each possibly compressed, one file or a folder."""

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eval.loaders.jsonfile import is_json_lines
from memsys.assets.hints import of_source
from memsys.counting import repeated
from memsys.errors import DataError, quoted

_LINES, _TABLES = (".jsonl", ".ndjson"), {".csv": ",", ".tsv": "\t"}
#: What programs separate columns by, and its name in a message; Excel writes `;` where a comma is in numbers.
_SEPARATORS = (",", ";", "\t", "|")
_KNOWN = (".json", *_LINES, *_TABLES)
#: Half of a surrogate pair as JSON can write it.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
#: Characters before a fault that its message shows.
_NEAR = 30


def files_of(path: Path) -> list[Path]:
    """Return the file, or the files of a folder that can be read, sorted by name.

    Raises:
        DataError: nothing is there.
    """
    try:
        found_file, found_folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise DataError(f"{quoted(str(path))}: cannot be read ({error.strerror}); check the path") from error
    if found_file:
        return [path]
    if not found_folder:
        raise DataError(f"{path}: no such file or folder")
    found = sorted(one for one in path.iterdir() if one.is_file() and _suffix(one) in _KNOWN)
    if not found:
        raise DataError(f"{path}: no file here ends in {', '.join(_KNOWN)} (or these with .gz)")
    return found


def _suffix(path: Path) -> str:
    return Path(path.stem).suffix.lower() if path.suffix.lower() == ".gz" else path.suffix.lower()


def is_table(path: Path) -> bool:
    """Tell by its name whether a file is a table with a header."""
    return _suffix(path) in _TABLES


def read_tree(path: Path, encoding: str = "utf-8") -> Any:
    """Parse a file.

    Returns:
        What JSON holds; a list of rows for JSON lines and tables.

    Raises:
        DataError: unreadable, cut or not of its format; names file and line.
    """
    suffix = _suffix(path)
    if suffix in _KNOWN:
        return _tree(path, suffix, encoding)
    try:
        return _tree(path, suffix, encoding)
    except DataError as error:
        known = ", ".join(_KNOWN)
        raise DataError(
            f"{path}: is not JSON, and {suffix or 'no ending'} is not one of {known}; save it as one of these ({error})"
        ) from error


def _tree(path: Path, suffix: str, encoding: str) -> Any:
    text = _text(path, encoding)
    if suffix in _TABLES:
        with _cells_of(len(text)):
            return list(_table(path, text, _TABLES[suffix]))
    return _values(path, text, suffix in _LINES)


def _values(path: Path, text: str, named_lines: bool) -> Any:
    """Parse JSON or JSON Lines, whichever the text is: files of both carry the other's ending."""
    if is_json_lines(text):
        return [_parsed(line, path, number) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if named_lines and not text.strip():
        return []
    found = _parsed(text, path)
    return [found] if named_lines and not isinstance(found, list) else found


def _text(path: Path, encoding: str) -> str:
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if path.suffix.lower() == ".gz" else data
        return data.decode(encoding).removeprefix("\ufeff")
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}); check the file, or fetch it again") from error
    except (UnicodeError, LookupError) as error:
        raise DataError(
            f"{path} is not {encoding} text ({error}); save it as UTF-8; for recorded answers a YAML "
            f"can name its `encoding` (--shape FILE; {of_source('docs/recorded.md')} has the keys)"
        ) from error


def _parsed(text: str, path: Path, line: int = 0) -> Any:
    """Parse a file's text, or one line of it, counted from 1; ``NaN``, which programs write for no value, is none.

    Raises:
        DataError: it is not JSON, has a key twice, or holds half of a surrogate pair (a reply that was cut in the
            middle of an emoji), which no file of a run can hold.
    """
    where = f"{path}:{line}" if line else str(path)
    try:
        found = json.loads(text, parse_constant=lambda name: None, object_pairs_hook=_members)
    except _DuplicateKeyError as error:
        raise DataError(f"{where}: an object has the key {error}; remove one of the two") from None
    except json.JSONDecodeError as error:
        place = f"line {line or error.lineno}, column {error.colno}"
        raise DataError(
            f"{where} is not JSON ({error.msg} at {place}); correct it there, or fetch the file again if it was fetched"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where} is not JSON that can be read ({error}); correct it") from error
    if _SURROGATE_ESCAPE.search(text):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            near = error.object[max(0, error.start - _NEAR) : error.start]
            raise DataError(
                f"{where} holds half of a surrogate pair (\\u{ord(error.object[error.start]):04x}), which is not text, "
                f"behind {near!r}; correct it"
            ) from error
    return found


class _DuplicateKeyError(Exception):
    """A key occurs twice in one object."""


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DuplicateKeyError(f"{repeated(key for key, _ in pairs)[0]!r} twice ({quoted(found, 80)})")
    return found


@contextmanager
def _cells_of(length: int) -> Iterator[None]:
    """Let a table have cells of this many characters: a reader's context is often longer than the 131,072 of csv."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, length))
    try:
        yield
    finally:
        csv.field_size_limit(before)  # it holds for the whole process


def _table(path: Path, text: str, delimiter: str) -> Iterator[dict[str, str]]:
    # strict: otherwise a quote that is never closed takes all rows behind it into its cell
    reader = csv.DictReader(io.StringIO(text), delimiter=_separator(text, delimiter), strict=True)
    try:
        if twice := repeated(name for name in reader.fieldnames or () if name):
            raise DataError(f"{path}:1: column `{twice[0]}` is there twice; rename or remove one of the two")
        for row in reader:
            if None in row or None in row.values():
                raise DataError(f"{path}:{reader.line_num}: has another number of columns than the header")
            yield row
    except csv.Error as error:
        raise DataError(f"{path}:{reader.reader.line_num}: {error}; correct the quotes there or above") from error


def _separator(text: str, usual: str) -> str:
    """Return what separates the columns: another sign where the header is one column by the usual one.

    Spreadsheets of countries that write a decimal comma save .csv with semicolons.
    """
    header = text.partition("\n")[0]
    return usual if usual in header else next((sign for sign in _SEPARATORS if sign in header), usual)
