"""Products of directions with all themes' centroids, in single precision.

Directions come back: a fact is compared with all themes and then becomes one, a part of a theme is scored and then
stored, a theme of one fact is compared with each neighbouring theme. The products of the last directions are kept
therefore; where a row changes, one product of each is computed again.
"""

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.products import inner_products
from memsys.xmemory.objective import Floats

#: More would hardly be found again: what changed a while ago is rarely looked at.
_DIRECTIONS_KEPT = 16

Products = NDArray[np.float32]


class CentroidProducts:
    """Centroids in single precision by row, and the last directions' products with them.

    Args:
        dimension: of a centroid.

    Attributes:
        margin: bound of the error of a product, four times over.
    """

    def __init__(self, dimension: int) -> None:
        self.margin = (dimension + 8) * 2.0**-22
        self._rows: Vectors = np.zeros((0, dimension), dtype=np.float32)
        self._alive: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._slots: dict[bytes, int] = {}  # the direction that was asked for last comes last
        self._directions: Vectors = np.zeros((_DIRECTIONS_KEPT, dimension), dtype=np.float32)
        self._kept: Products = np.zeros((_DIRECTIONS_KEPT, 0), dtype=np.float32)

    def make_room(self, more: int) -> None:
        """Add empty rows."""
        self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._alive = np.pad(self._alive, (0, more))
        self._kept = np.pad(self._kept, ((0, 0), (0, more)), constant_values=-np.inf)

    def keep_rows(self, rows: NDArray[np.int64]) -> None:
        """Close the gaps between some rows; the others are gone."""
        self._rows, self._alive, self._kept = self._rows[rows], self._alive[rows], self._kept[:, rows]

    def put(self, row: int, direction: Floats) -> None:
        """Give a row a centroid ``(d,)``."""
        self._rows[row], self._alive[row] = direction, True
        known = len(self._slots)
        self._kept[:known, row] = inner_products(self._directions[:known], self._rows[row])

    def drop(self, row: int) -> None:
        """Empty a row."""
        self._alive[row] = False
        self._kept[:, row] = -np.inf

    def of(self, direction: Floats) -> Products:
        """Return the products of a direction ``(d,)`` with all rows, the caller's own; -inf with empty rows."""
        key = direction.tobytes()
        slot = self._slots.pop(key, None)
        if slot is None:
            slot = self._free_slot()
            self._directions[slot] = direction
            self._kept[slot] = self._computed(self._directions[slot])
        self._slots[key] = slot
        products: Products = self._kept[slot].copy()
        return products

    def _free_slot(self) -> int:
        if len(self._slots) < _DIRECTIONS_KEPT:
            return len(self._slots)
        return self._slots.pop(next(iter(self._slots)))

    def _computed(self, direction: Vectors) -> Products:
        products = inner_products(self._rows, direction)
        products[~self._alive] = -np.inf
        return products
