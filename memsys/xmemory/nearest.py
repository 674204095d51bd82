"""For each row of a table of centroids a few nearest others, kept up to date row by row.

Of the pairs a few for each row are kept, as the number of all grows with the square of the rows. A bound says what the
others of a row do not exceed.
"""

import numpy as np
from numpy.typing import NDArray

from memsys.xmemory.objective import Floats

Rows = NDArray[np.int64]

#: So many nearest others of a row are kept: where some of them go, the next one is known.
KEPT = 6


class NearestLists:
    """Lists by row.

    Attributes:
        near: the nearest others, best first, shape (rows, :data:`KEPT`); -1 where fewer are known.
        cosines: with each of them; -inf where fewer are known.
        floor: what no cosine with another one that is not listed exceeds; -inf where all others are listed, inf for
            empty rows.
    """

    def __init__(self) -> None:
        self.near: Rows = np.zeros((0, KEPT), dtype=np.int64)
        self.cosines: Floats = np.zeros((0, KEPT))
        self.floor: Floats = np.zeros(0)

    def make_room(self, more: int) -> None:
        """Add empty rows at the end."""
        self.near = np.pad(self.near, ((0, more), (0, 0)), constant_values=-1)
        self.cosines = np.pad(self.cosines, ((0, more), (0, 0)), constant_values=-np.inf)
        self.floor = np.pad(self.floor, (0, more), constant_values=np.inf)

    def keep_rows(self, live: Rows, moved: Rows) -> None:
        """Keep some rows alone, ascending; ``moved`` is by row its new place."""
        near = self.near[live]
        self.near = np.where(near >= 0, moved[near], -1)
        self.cosines, self.floor = self.cosines[live], self.floor[live]

    def fill(self, row: int, others: Rows, cosines: Floats, *, whole: bool) -> None:
        """List the nearest of some others again.

        Args:
            row: whose list.
            others: among which the nearest are, ascending.
            cosines: with each of them.
            whole: whether the list holds all others that there are.
        """
        best = np.argsort(-cosines, kind="stable")[:KEPT]
        self.near[row], self.cosines[row] = -1, -np.inf
        self.near[row, : len(best)], self.cosines[row, : len(best)] = others[best], cosines[best]
        self.floor[row] = -np.inf if whole else self.cosines[row, -1]

    def strike(self, row: int) -> list[int]:
        """Take a row out of all lists; return the rows whose lists are empty now though there are others."""
        found, places = np.divmod(self._places(row), KEPT)
        if not len(found):
            return []
        kept = np.arange(KEPT - 1) + (np.arange(KEPT - 1) >= places[:, None])
        self.near[found, :-1] = np.take_along_axis(self.near[found], kept, axis=1)
        self.cosines[found, :-1] = np.take_along_axis(self.cosines[found], kept, axis=1)
        self.near[found, -1], self.cosines[found, -1] = -1, -np.inf
        short = found[np.isneginf(self.cosines[found, 0]) & np.isfinite(self.floor[found])]
        return [int(other) for other in short]

    def listing(self, row: int) -> Rows:
        """Return the rows that list a row, ascending."""
        return self._places(row) // KEPT

    def _places(self, row: int) -> Rows:
        """Return the positions, ascending, where a row occurs in the concatenated lists."""
        return np.flatnonzero(self.near.ravel() == row)

    def enter(self, others: Rows, row: int, cosines: Floats) -> None:
        """Put a row into the lists of others, whose last gives way where the list is full.

        Args:
            others: rows of the lists, each once.
            row: what enters.
            cosines: its cosine with each of them, above their floors.
        """
        if not len(others):
            return
        near, listed, new = self.near[others], self.cosines[others], cosines[:, None]
        places = (listed >= new).sum(axis=1, keepdims=True)
        ranks = np.arange(KEPT)
        before, here, moved = ranks < places, ranks == places, np.maximum(ranks - 1, 0)
        self.near[others] = np.where(before, near, np.where(here, row, near[:, moved]))
        self.cosines[others] = np.where(before, listed, np.where(here, new, listed[:, moved]))
        last = listed[:, -1]
        below = np.where(places[:, 0] == KEPT, cosines, last)  # the row itself, or what it pushed out
        self.floor[others] = np.where(np.isfinite(below), below, self.floor[others])
