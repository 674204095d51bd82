"""Which cell of how many a sweep is at, and how long the rest may take."""

import os
import time
from collections.abc import Callable, Sequence

from eval.running.progress import duration

#: Environment variable that tells the processes of a sweep how many cells it has.
CELLS_VARIABLE = "MEMSYS_SWEEP_CELLS"


def count_cells(overrides: Sequence[str]) -> int:
    """How many cells the arguments of a sweep make: the product of what their commas list.

    What cannot be read counts as one value: Hydra says what is wrong with it.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    number = 1
    for text in overrides:
        try:
            parsed = OverridesParser.create().parse_override(text)
        except HydraException:
            continue
        if parsed.is_sweep_override():
            number *= sum(1 for _ in parsed.sweep_iterator())
    return number


def expect_cells(number: int) -> None:
    """Tell this process and those it starts how many cells there are."""
    os.environ[CELLS_VARIABLE] = str(number)


class CellClock:
    """Says which cell begins, and from the cells that this process has ended how long the others may take.

    Args:
        clock: seconds from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._ended = clock, clock(), 0

    def begin(self, number: int) -> str:
        """The line for a cell.

        Args:
            number: of the cell, from 1.
        """
        total = int(os.environ.get(CELLS_VARIABLE) or 0)
        if not total:
            return f"cell {number}"
        line = f"cell {number} of {total}"
        if not self._ended or self._ended != number - 1:  # cells run side by side: this process knows only its own
            return line
        each = (self._clock() - self._begun) / self._ended
        return f"{line}, all done in about {duration(each * (total - number + 1))}"

    def end(self) -> None:
        """A cell has ended."""
        self._ended += 1


#: The cells that run one after the other in this process.
CLOCK = CellClock()
