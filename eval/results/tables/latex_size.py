"""Estimated sizes of LaTeX tables, so that none has to be shrunk until nobody can read it, or leaves the page below.

Sizes are in points at footnote size (8 pt), where a digit of Computer Modern is 4.25 pt wide and prose a little less.
"""

import math
import re
from collections.abc import Sequence

from eval.commands.escaping import latex

#: Width of a page's text in points: 16 cm, the narrower of the usual two-column styles.
TEXT_WIDTH = 455.0
#: Height of a table with its caption and notes in points: a little less than the lowest of the usual styles' pages.
TEXT_HEIGHT = 530.0
#: From one line of a table to the next.
LINE = 9.5
#: A rule with the blank above and below it.
RULE = 6.0
#: Height of a caption, and of the blank around it and above the notes.
CAPTION = 40.0
#: Blank beside a column: twice ``\tabcolsep`` of 3 pt.
GAP = 6.0
_DIGIT, _SMALL, _BOLD = 4.25, 3.0, 1.15
#: Notes are at script size (7 pt): width of a letter of prose, and from line to line.
_NOTE_LETTER, _NOTE_LINE = 3.4, 8.0
#: A heading of more letters is stacked word by word.
_HEADING = 9
_SUPERSCRIPT = re.compile(r"\$\^(?:\\mathrm\{.\}|\\ddagger)\$")
_MATH_SIGN = re.compile(r"\$(?:-|\\pm)\$")
_COMMAND = re.compile(
    r"\\(?:textbf|textit|underline|raggedright|allowbreak|shortstack(?:\[\w\])?|textasciitilde|textbackslash)\b ?"
)
#: Behind these, within a word, a setting's name may be broken.
_PARTS = re.compile(r"(?:\\_|[.=/])(?=\w)")
_SPAN = re.compile(r"\\multicolumn\{(\d+)\}\{\w\}\{(.*)\}\s*$")


def text_width(cell: str) -> float:
    """Width of one cell without the blank beside it; of stacked lines that of the longest."""
    small = len(_SUPERSCRIPT.findall(cell)) * _SMALL
    text = _MATH_SIGN.sub("+", _SUPERSCRIPT.sub("", cell))
    factor = _BOLD if r"\textbf" in text else 1.0
    text = re.sub(r"\\([&%$#_{}])", r"\1", _COMMAND.sub("", text).replace(r"\\", "\n"))
    longest = max((len(line.strip(" {}")) for line in text.split("\n")), default=0)
    return longest * _DIGIT * factor + small


def table_width(lines: Sequence[str], paragraph: float = 0.0) -> float:
    r"""Width of a tabular.

    Args:
        lines: its rows, ``&`` between cells and ``\\`` at the end; rules and other lines are passed over.
        paragraph: width of a first column that is set as a paragraph; 0 for a plain one.
    """
    rows = [_cells(line) for line in lines if line.rstrip().endswith(r"\\")]
    count = max((sum(span for span, _ in row) for row in rows), default=0)
    widths = [0.0] * count
    for row in rows:
        if all(span == 1 for span, _ in row):
            widths = [max(old, text_width(cell)) for old, (_, cell) in zip(widths, row, strict=False)]
    if paragraph:
        widths[0] = paragraph
    for row in rows:
        _stretch(widths, row)
    return sum(widths) + GAP * count


def stacked(heading: str) -> str:
    """A long heading with its words below each other; short words share a line."""
    if len(heading) <= _HEADING or " " not in heading:
        return latex(heading)
    lines: list[str] = []
    for word in heading.split():
        if lines and len(lines[-1]) + len(word) < _HEADING:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return r"\shortstack[r]{" + r" \\ ".join(map(latex, lines)) + "}"


def ragged(text: str) -> str:
    """A cell of a narrow column, where a line may end behind each part of a setting's name."""
    return r"\raggedright " + _PARTS.sub(r"\g<0>\\allowbreak ", latex(text))


def lines_of(text: str, width: float) -> int:
    """Lines that a text takes in a column of so many points, with room for words that do not break; at least 1."""
    return max(1, math.ceil(text_width(text) / (0.85 * width)))


def notes_height(texts: Sequence[str]) -> float:
    """Height of notes in one paragraph below a table, as wide as the page's text."""
    letters = sum(len(text) + 1 for text in texts)
    return letters * _NOTE_LETTER / TEXT_WIDTH * _NOTE_LINE


def _stretch(widths: list[float], row: Sequence[tuple[int, str]]) -> None:
    """Widen the last column under a heading that is wider than the columns it spans."""
    place = 0
    for span, cell in row:
        if span > 1:
            own = sum(widths[place : place + span]) + GAP * (span - 1)
            widths[place + span - 1] += max(0.0, text_width(cell) - own)
        place += span


def _cells(line: str) -> list[tuple[int, str]]:
    parts = re.split(r"(?<!\\)&", line.rstrip()[:-2])
    found = []
    for part in parts:
        match = _SPAN.match(part.strip())
        found.append((int(match[1]), match[2]) if match else (1, part.strip()))
    return found
