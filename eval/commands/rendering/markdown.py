"""Tables as Markdown, the pages that they are on, and tables between the markers of a document."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from eval.commands.escaping import markdown, markdown_cell, markdown_code, markdown_row
from eval.commands.rendering.table import Cell, Column, Span, Table, spans
from memsys.errors import ConfigError

_STYLES = {"": "{}", "bold": "**{}**", "underline": "<u>{}</u>", "superscript": "<sup>{}</sup>"}
_BEGIN, _END = "<!-- {}: begin -->", "<!-- {}: end -->"


def render_markdown(table: Table, level: int = 2) -> str:
    """Return a table as Markdown: heading, rows, notes as a list.

    Args:
        table: labels of its blocks are in a first column.
        level: of the heading; 0 for none.
    """
    table = table.numbered().labelled()
    lines = [
        [markdown_cell(column.heading) for column in table.columns],
        ["---" if column.align == "left" else "---:" for column in table.columns],
        *([_cell(*one) for one in zip(row, table.columns, strict=True)] for row in table.rows),
    ]
    heading = f"{'#' * level} {markdown(table.title)}" if level else ""
    return blocks(heading, "\n".join(map(markdown_row, lines)), bullets(table.notes))


def blocks(*parts: str) -> str:
    """Return parts of a page with a blank line between two; those that are empty are left out."""
    return "\n\n".join(filter(None, parts))


def page(*parts: str) -> str:
    """Return a whole page of parts with a blank line between two."""
    return f"{blocks(*parts)}\n"


def bullets(entries: Iterable[str | Span]) -> str:
    """Return texts as a list; nothing if there are none."""
    return "\n".join(f"- {inline((entry,))}" for entry in entries)


def section(heading: str, entries: Iterable[str | Span]) -> str:
    """Return a heading with a list below it; nothing where there are no entries."""
    listed = bullets(entries)
    return blocks(f"## {heading}", listed) if listed else ""


def replace_tables(path: Path, tables: Mapping[str, str]) -> str:
    """Return a document with tables that are made again between their markers.

    A table lies between the lines ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``.

    Args:
        path: of the document.
        tables: name -> the text between its markers.

    Raises:
        ConfigError: the markers of a table are missing, or the second comes first.
    """
    text = path.read_text(encoding="utf-8")
    for name, table in tables.items():
        before, begin, rest = text.partition(_BEGIN.format(name))
        _, end, after = rest.partition(_END.format(name))
        if not begin or not end:
            raise ConfigError(
                f"{path.name} lacks the lines {_BEGIN.format(name)} and {_END.format(name)}; put them where the table "
                "belongs"
            )
        text = f"{before}{begin}\n{table}\n{end}{after}"
    return text


def inline(parts: Sequence[Span | str]) -> str:
    """Return a text in several parts as Markdown outside of tables."""
    return "".join(_set(part, markdown, markdown_code) if isinstance(part, Span) else markdown(part) for part in parts)


def _code_cell(text: str) -> str:
    """Return a text as code, without bars, which would end the cell."""
    return markdown_code(text).replace("|", "\\|")


def _cell(cell: Cell, column: Column) -> str:
    return "".join(_set(span, markdown_cell, _code_cell) for span in spans(cell, column))


def _set(span: Span, escaped: Callable[[str], str], code: Callable[[str], str]) -> str:
    text = code(span.text) if span.style == "code" else _STYLES[span.style].format(escaped(span.text))
    return f"[{text}]({span.link})" if span.link else text
