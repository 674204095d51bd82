"""Number of the current cell of a sweep, and the estimated time for the rest."""

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from eval.commands.counting import duration

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader
    from omegaconf import DictConfig

#: Environment variable that tells the processes of a sweep how many cells it has.
CELLS_VARIABLE = "MEMSYS_SWEEP_CELLS"


def sweep_jobs(config: "DictConfig", loader: "ConfigLoader | None" = None) -> list[list[str]]:
    """Return the overrides of each cell of a sweep, in the order in which Hydra launches them.

    Args:
        config: composed for a sweep: ``hydra.sweeper.params`` count as the command line does, which wins.
        loader: knows the groups that ``glob(...)`` is over; ``None`` if none is asked for.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    from eval.config.compose import cells_of

    sweeper: Any = OmegaConf.to_container(config.hydra.sweeper)
    params = [f"{key}={value}" for key, value in (sweeper.get("params") or {}).items()]
    parsed = OverridesParser.create(config_loader=loader).parse_overrides([*params, *config.hydra.overrides.task])
    return cells_of(parsed)


def expect_cells(number: int) -> None:
    """Tell this process and those it starts how many cells there are."""
    os.environ[CELLS_VARIABLE] = str(number)


class CellClock:
    """Display of the current cell and, from finished cells of this process, the estimated remaining time.

    Args:
        clock: seconds from any beginning.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._ended = clock, clock(), 0

    def begin(self, number: int) -> str:
        """Return the line for a cell.

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
        """Record that a cell has ended."""
        self._ended += 1


#: The cells that run one after the other in this process.
CLOCK = CellClock()
