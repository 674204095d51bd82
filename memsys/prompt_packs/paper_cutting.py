"""Cut a prompt out of the text of a paper by its lines, and repair what the extraction of that text did to it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memsys.errors import DataError
from memsys.prompt_packs.cutting import Piece, Segment, Slot

#: A slot of a printed prompt: a name in braces; the braces of printed JSON hold more than a name.
_SLOT = re.compile(r"\{([A-Za-z_]\w*)\}")
_LETTERS = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"'})
_SYMBOLS = {r"\rightarrow": "→", r"\in": "∈", r"\geq": "≥", r"\ge": "≥", r"\leq": "≤", r"\le": "≤"}
_SYMBOL = re.compile(r"\\[a-z]+(?![a-z])")
_FENCE = re.compile(r"^[ \t]*```.*\n?", re.MULTILINE)


def _without_formulas(text: str) -> str:
    return _SYMBOL.sub(lambda found: _SYMBOLS.get(found[0], found[0]), text).replace("$", "")


#: What an extraction may have done to a text, and how it is undone.
REPAIRS: Mapping[str, Callable[[str], str]] = {
    # Letters that the font joins are letters again.
    "ligatures": lambda text: text.translate(_LETTERS),
    # Words that a line end divides are one; the hyphen, which may be a soft one, goes.
    "words": lambda text: re.sub(r"(?<=[a-z])[-\u00ad]\n[ \t]*(?=[a-z])", "", text),
    # Whatever marks an item of a list is a dash.
    "dashes": lambda text: re.sub(r"^([ \t]*)[-•▪◦–—−∗] *", r"\1- ", text, flags=re.MULTILINE),
    # Lines begin at the margin, where the extraction's indents follow the page and not the text.
    "indents": lambda text: re.sub(r"^[ \t]+", "", text, flags=re.MULTILINE),
    # Marks of bold type go; extractions lose one of a pair.
    "bold": lambda text: text.replace("**", ""),
    # Marks of fixed width go: fences around a block, and back quotes around a word.
    "code": lambda text: _FENCE.sub("", text).replace("`", "").rstrip("\n"),
    # Formulas are the characters that the page shows.
    "formulas": _without_formulas,
    # Quotes of the page's type are those of a keyboard.
    "quotes": lambda text: text.translate(_QUOTES),
}


@dataclass(frozen=True, slots=True)
class PaperCut:
    """Place of a prompt in the text of a paper.

    Attributes:
        lines: its first and its last line, counted from 1.
        repairs: what is undone, in this order: names of :data:`REPAIRS`, or ``{from: ..., to: ...}`` for a word that
            the extraction misread.
    """

    lines: tuple[int, int]
    repairs: Sequence[str | Mapping[str, str]] = ()

    def __post_init__(self) -> None:
        first, last = self.lines
        if not 1 <= first <= last:
            raise ValueError(f"lines={list(self.lines)} must be a first and a last line, counted from 1")
        for repair in self.repairs:
            if repair not in REPAIRS if isinstance(repair, str) else set(repair) != {"from", "to"}:
                raise ValueError(f"repair {repair!r} is unknown; there are {', '.join(REPAIRS)}, or from and to")


def cut_lines(content: str, place: PaperCut, file: str) -> Piece:
    """Cut one text.

    Args:
        content: of the paper.
        place: which lines, and how they are repaired.
        file: its name, for errors.

    Raises:
        DataError: there are fewer lines, or a repair finds nothing to do.
    """
    lines, (first, last) = content.split("\n"), place.lines
    if last > len(lines):
        raise DataError(f"{file} has {len(lines)} lines, there is no line {last}")
    source = "\n".join(lines[first - 1 : last])
    text = source
    for repair in place.repairs:
        repaired = REPAIRS[repair](text) if isinstance(repair, str) else text.replace(repair["from"], repair["to"])
        if repaired == text:
            raise DataError(f"{file}, lines {first} to {last}: the repair {repair!r} changes nothing; take it away")
        text = repaired
    return Piece(source, tuple(_segments(text)))


def _segments(text: str) -> Iterator[Segment]:
    """Yield the texts and slots by turns; the pieces of a split at the slots are texts and names by turns."""
    for number, piece in enumerate(_SLOT.split(text)):
        if number % 2:
            yield Slot(piece)
        elif piece:
            yield piece
