"""Text that others wrote, made safe for where it is shown: terminal, Markdown, HTML, SVG, LaTeX, spreadsheet.

Names, ids, categories, questions and replies come from data sets and models. Whatever is in them must be read as
text: no command of a terminal, no markup of a page, no formula of a spreadsheet. Control characters, which none of
these can show, are written out as hexadecimal escapes.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from memsys.vocabulary import Json

#: Texts whose escaped form is kept: tables repeat names and numbers.
_CACHED = 4096
#: Control characters but for line break and tab, marks that turn the direction of writing, separators of lines and
#: paragraphs, and halves of surrogate pairs, which no file can hold.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_LINE_BREAK = re.compile(r"[ \t]*[\n\r\t\x0b\x0c\x85\u2028\u2029]+[ \t]*")
#: What begins a formula, or splits a cell, in a spreadsheet; blanks and quotation marks before it do not help.
_FORMULA = re.compile(r"\s*['\"]*\s*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
#: Most cells: a word or a number, and nothing that needs a closer look.
_PLAIN = re.compile(r"(?:[A-Za-z0-9_.][A-Za-z0-9_.:,/ ]*)?")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?")
#: Begins of tags, comments and character references; code; ends of link texts.
_MARKDOWN = re.compile(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|`|\](?=[(\[:])")
_MARKDOWN_WRITTEN = {"<": "&lt;", "&": "&amp;", "`": "\\`", "]": "\\]"}
#: Marks of our own tables for outputs without Unicode, each as wide as it was.
_ASCII_MARKS = str.maketrans({"†": "+", "‡": "#", "–": "-", "…": "~", "τ": "t", "Δ": "d", "±": "~", "×": "x"})
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "{": r"\{",
        "}": r"\}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "†": r"$^\dagger$",
        "‡": r"$^\ddagger$",
        "τ": r"$\tau$",
        "Δ": r"$\Delta$",
        "±": r"$\pm$",
    }
)


def terminal(text: str) -> str:
    """Escape text for a terminal: line breaks and tabs stay, other control characters are written out."""
    return _UNSEEN.sub(_written_out, text)


def ascii_marks(text: str) -> str:
    """Convert text for an output without Unicode: marks of our tables become ASCII, other letters stay."""
    return text.translate(_ASCII_MARKS)


def one_line(text: str) -> str:
    """Put text on one line: line breaks and tabs become spaces, other control characters are written out."""
    return terminal(_LINE_BREAK.sub(" ", text))


def markdown(text: str) -> str:
    """Escape text for a line of Markdown outside of tables."""
    return _MARKDOWN.sub(lambda match: _MARKDOWN_WRITTEN[match[0]], one_line(text))


@lru_cache(maxsize=_CACHED)
def markdown_cell(text: str) -> str:
    """Escape text for a cell of a Markdown table, which a backslash before the bar would end."""
    return markdown(text).replace("\\|", "\\\\|").replace("|", "\\|")


def markdown_code(text: str) -> str:
    """Format text as code in a line of Markdown, inside more back-ticks than it contains."""
    plain = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", plain)), default=0))
    blank = " " if plain.startswith("`") or plain.endswith("`") else ""
    return f"{fence}{blank}{plain}{blank}{fence}"


def script_json(data: Json) -> str:
    """Return JSON that is safe inside a ``script`` element of HTML."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def svg(text: str) -> str:
    """Remove from a figure's text what XML does not allow; the figure's writer escapes markup itself."""
    return terminal(text).replace("\t", " ")


@lru_cache(maxsize=_CACHED)
def latex(text: str) -> str:
    """Escape text for one paragraph of LaTeX, also a bracket behind a line's end, which would be its option."""
    written = one_line(text).translate(_LATEX)
    return f"{{[}}{written[1:]}" if written.startswith("[") else written


def csv_cell(value: object) -> object:
    """Escape a CSV cell: text that a spreadsheet would read as a formula gets an apostrophe, numbers stay."""
    return _csv_text(value) if isinstance(value, str) else value


@lru_cache(maxsize=_CACHED)
def _csv_text(value: str) -> str:
    if _PLAIN.fullmatch(value) or _NUMBER.fullmatch(value):
        return value
    safe = terminal(value.replace("\r\n", "\n"))
    return f"'{safe}" if _FORMULA.match(value) else safe


def csv_row(values: Iterable[object]) -> list[object]:
    """Return the cells of a row of a CSV file."""
    return [csv_cell(value) for value in values]


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table from escaped texts."""
    return f"| {' | '.join(cells)} |"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
