"""Statements of a paper's running text about its tables, recomputed (``papers/<paper>/printed_numbers.py``)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.results.papers.arithmetic import Recomputed
from eval.results.papers.printed import TEXT, PrintedNumber


class PrintedTable:
    """Printed numbers of one paper, looked up by their place."""

    def __init__(self, numbers: Sequence[PrintedNumber]) -> None:
        self._numbers = numbers

    def find(self, **wanted: object) -> PrintedNumber:
        """Return the one number with these attributes."""
        (found,) = self.all(**wanted)
        return found

    def value(self, **wanted: object) -> float:
        """Return the value of the one number with these attributes."""
        return self.find(**wanted).value

    def all(self, **wanted: object) -> list[PrintedNumber]:
        """Return the numbers with these attributes, in the order of the tables."""
        return [
            number for number in self._numbers if all(getattr(number, name) == value for name, value in wanted.items())
        ]


@dataclass(frozen=True, slots=True)
class Claim:
    """A number of the text: the row it has in the registry, what it follows from, and how."""

    row: str
    rule: str
    compute: Callable[[PrintedTable, PrintedNumber], float]


def recompute_claims(claims: Sequence[Claim], numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Recompute the claims of a paper's text.

    Args:
        claims: of the paper.
        numbers: its printed numbers.
    """
    printed = PrintedTable(numbers)
    # The text's rounding only: authors take a difference from the table's own digits.
    return [
        Recomputed(number, claim.compute(printed, number), number.half_unit, claim.rule)
        for claim in claims
        for number in printed.all(table=TEXT, row=claim.row)
    ]
