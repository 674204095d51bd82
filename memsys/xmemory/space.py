"""The themes as geometry: centroids, cohesion and nearest others, kept up to date theme by theme.

Sums run over single rows (``einsum``), so that a similarity has the same bits however and whenever it was computed: a
memory restored from a snapshot decides as the one that went on. Which themes may be near is found in single precision,
within a margin that no rounding exceeds; only their similarities are then computed. Of the pairs of themes a few for
each are kept, as the number of all grows with the square of the themes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.products import inner_products
from memsys.index.ranking import near_highest
from memsys.xmemory.objective import Bell, Floats, objective

#: Similarities, scores and gains are compared rounded to this many decimals; ties go to the older.
DECIMALS = 6

Rows = NDArray[np.int64]

#: So few themes are compared in double precision at once.
_FEW = 64
#: So many nearest others of a theme are kept: where some of them go, the next one is known.
_KEPT = 6
#: Half a unit of the last decimal on both sides of a comparison, and more.
_ROUNDING = 2e-6


@dataclass(frozen=True, slots=True)
class _Standing:
    """Columns of the stored themes, oldest first, as they are until a theme changes.

    Attributes:
        rows: ascending.
        sizes: facts of each.
        cohesion: of each.
        nearest: highest cosine of each with another one; -inf where there is none.
        first: row of that other one; -1 where there is none.
    """

    rows: Rows
    sizes: Floats
    cohesion: Floats
    nearest: Floats
    first: Rows


@dataclass(frozen=True, slots=True)
class ThemePart:
    """A theme, stored or only considered: unit centroid ``(d,)``, number of facts, mean cosine with the centroid."""

    direction: Floats
    size: int
    cohesion: float


def part_of(vectors: Vectors) -> ThemePart:
    """Describe the theme of the given facts, rows ``(n, d)``; its centroid is their plain mean."""
    wide = vectors.astype(np.float64)
    centroid = wide.mean(axis=0)
    norm = float(np.sqrt(np.einsum("i,i->", centroid, centroid)))
    direction = centroid / norm if norm > 0 else centroid
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    cosines = np.divide(np.einsum("ij,j->i", wide, direction), norms, out=np.zeros(len(wide)), where=norms > 0)
    return ThemePart(direction, len(wide), float(cosines.mean()))


class ThemeSpace:
    """Stored themes, oldest first. A theme that is gone leaves its row empty until there are many such rows."""

    def __init__(self, dimension: int) -> None:
        self._row_of: dict[str, int] = {}
        self._ids: list[str] = []
        self._directions: Floats = np.zeros((0, dimension))
        self._narrow: Vectors = np.zeros((0, dimension), dtype=np.float32)
        self._alive: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._sizes: Floats = np.zeros(0)
        self._cohesion: Floats = np.zeros(0)
        #: per row the nearest others, best first, and their cosines; -1 and -inf where fewer are known
        self._near: Rows = np.zeros((0, _KEPT), dtype=np.int64)
        self._cosines: Floats = np.zeros((0, _KEPT))
        #: per row what no cosine with another one exceeds; -inf where all others are listed, inf for empty rows
        self._floor: Floats = np.zeros(0)
        #: bound of the error of a product in single precision, four times over
        self._margin = (dimension + 8) * 2.0**-22
        self._scores: dict[Bell, float] = {}
        self._last: tuple[str, NDArray[np.float32]] | None = None
        #: the direction whose nearest theme was sought last, with its products: it often becomes a theme
        self._sought: tuple[Floats, NDArray[np.float32]] | None = None
        self._columns: _Standing | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    def put(self, theme_id: str, part: ThemePart) -> None:
        """Add a theme, or change one in its place."""
        new = theme_id not in self._row_of
        if new:
            self._make_room()
            self._row_of[theme_id] = len(self._ids)
            self._ids.append(theme_id)
        row, sought = self._row_of[theme_id], self._sought
        short = [] if new else self._strike(row)
        self._directions[row], self._sizes[row], self._cohesion[row] = part.direction, part.size, part.cohesion
        self._narrow[row], self._alive[row] = part.direction, True
        self._changed()
        if new and sought is not None and np.array_equal(sought[0], part.direction):
            self._last = theme_id, np.append(sought[1], np.float32(-np.inf))
        near = self._about(theme_id)
        others = np.flatnonzero(near + self._margin > self._floor[: len(self._ids)])
        cosines = self._to(part.direction, others)
        entering = cosines > self._floor[others]
        self._enter(others[entering], row, cosines[entering])
        self._refill([row, *(other for other in short if not np.isfinite(self._cosines[other, 0]))])

    def drop(self, theme_id: str) -> None:
        """Remove a theme."""
        row = self._row_of.pop(theme_id)
        self._alive[row], self._floor[row] = False, np.inf
        self._changed()
        self._refill(self._strike(row))

    def nearest(self, vector: Vectors) -> tuple[str, float] | None:
        """Return the theme whose centroid is nearest to a vector ``(d,)``, with their cosine; ties: the oldest."""
        if not len(self._row_of):
            return None
        wide = vector.astype(np.float64)
        direction = wide / (float(np.sqrt(np.einsum("i,i->", wide, wide))) or 1.0)
        products = self._products(direction)
        self._sought = direction, products
        rows = self._top(products, 1)
        cosines = np.round(self._to(direction, rows), DECIMALS)
        best = int(cosines.argmax())
        return self._ids[rows[best]], float(cosines[best])

    def cosine(self, one: str, other: str) -> float:
        """Return the cosine of two themes' centroids, rounded."""
        return round(_dot(self._directions[self._row_of[one]], self._directions[self._row_of[other]]), DECIMALS)

    def similar(self, theme_id: str, least: float, count: int | None) -> list[str]:
        """Return the themes whose centroids have at least this cosine with a theme's, best first, at most ``count``."""
        return [other for other, _ in self._similar(theme_id, least, count)]

    def neighbours(self, count: int) -> dict[str, list[tuple[str, float]]]:
        """Return for each theme its nearest others of positive cosine, at most ``count``, best first."""
        return {theme_id: self._similar(theme_id, 1e-6, count) for theme_id in self._row_of}

    def _similar(self, theme_id: str, least: float, count: int | None) -> list[tuple[str, float]]:
        row = self._row_of[theme_id]
        if self._floor[row] < least - _ROUNDING:  # what is not listed is no candidate
            rows = np.sort(self._near[row][self._near[row] >= 0])
        else:
            near = self._about(theme_id)
            rows = np.flatnonzero(np.isfinite(near) & (near >= least - self._margin - _ROUNDING))
            if count is not None and len(rows) > count:
                rows = rows[self._top(near[rows], count)]
        cosines = np.round(self._to(self._directions[row], rows), DECIMALS)
        found = np.flatnonzero(cosines >= least)
        order = found[np.argsort(-cosines[found], kind="stable")][:count]
        return [(self._ids[rows[place]], float(cosines[place])) for place in order]

    def score(
        self,
        bell: Bell,
        *,
        without: Sequence[str] = (),
        parts: Sequence[ThemePart] = (),
        among: Sequence[str] | None = None,
    ) -> float:
        """Return ``f`` of the stored themes with some of them replaced.

        Args:
            bell: see :class:`memsys.xmemory.objective.Bell`.
            without: stored themes that are gone.
            parts: themes that take their place.
            among: the stored themes that count at all; ``None`` for all of them.
        """
        whole = among is None and not without and not parts
        if not whole or bell not in self._scores:
            found = self._scored(bell, without, parts, among)
            if not whole:
                return found
            self._scores[bell] = found
        return self._scores[bell]

    def _scored(
        self, bell: Bell, without: Sequence[str], parts: Sequence[ThemePart], among: Sequence[str] | None
    ) -> float:
        gone = sorted(self._row_of[theme_id] for theme_id in without)
        if among is None:
            rows, sizes, cohesion, nearest = self._all_but(gone)
        else:
            rows = np.array(sorted({self._row_of[name] for name in among} - {*gone}), np.int64)
            nearest = np.array([self._closest_among(row, rows) for row in rows.tolist()], dtype=np.float64)
            sizes, cohesion = self._sizes[rows], self._cohesion[rows]
        sizes = np.concatenate([sizes, [part.size for part in parts]])
        cohesion = np.concatenate([cohesion, [part.cohesion for part in parts]])
        of_parts = np.full(len(parts), -np.inf)
        for place, part in enumerate(parts):
            highest = self._raise(nearest, part.direction, rows)
            others = [_dot(part.direction, other.direction) for other in parts if other is not part]
            of_parts[place] = max([highest, *others])
        similarities = np.concatenate([nearest, of_parts])
        return objective(sizes, cohesion, np.where(np.isfinite(similarities), similarities, 0.0), bell)

    def _raise(self, nearest: Floats, direction: Floats, rows: Rows) -> float:
        """Raise the rows' highest cosines (n,) to those with a direction; return the highest of these."""
        if len(rows) <= _FEW:
            cosines = self._to(direction, rows)
            np.maximum(nearest, cosines, out=nearest)
            return float(cosines.max(initial=-np.inf))
        products = self._products(direction)[rows]
        places = np.flatnonzero((products + self._margin > nearest) | (products >= products.max() - 2 * self._margin))
        cosines = self._to(direction, rows[places])
        nearest[places] = np.maximum(nearest[places], cosines)
        return float(cosines.max())

    def _all_but(self, gone: Sequence[int]) -> tuple[Rows, Floats, Floats, Floats]:
        """Rows of the stored themes but some, ascending, their sizes, cohesion and highest cosines with each other."""
        known = self._standing()
        places = np.searchsorted(known.rows, gone).tolist()
        rows, nearest = _without(known.rows, places), _without(known.nearest, places)
        for row in {int(row) for each in gone for row in known.rows[known.first == each]}.difference(gone):
            nearest[np.searchsorted(rows, row)] = self._next(row, gone, rows)
        return rows, _without(known.sizes, places), _without(known.cohesion, places), nearest

    def _standing(self) -> _Standing:
        if self._columns is None:
            rows = self._live()
            nearest, first = self._cosines[rows, 0], self._near[rows, 0]
            self._columns = _Standing(rows, self._sizes[rows], self._cohesion[rows], nearest, first)
        return self._columns

    def _next(self, row: int, gone: Sequence[int], rows: Rows) -> float:
        """Similarity of a row's theme to the nearest one that stays; -inf where there is none."""
        for other, cosine in zip(self._near[row].tolist(), self._cosines[row].tolist(), strict=True):
            if other >= 0 and other not in gone:
                return float(cosine)
        return -np.inf if np.isneginf(self._floor[row]) else self._closest_among(row, rows)

    def _closest_among(self, row: int, rows: Rows) -> float:
        """Highest cosine of a row with others of some rows, ascending; -inf where there is no other."""
        others = rows[rows != row]
        if len(others) > _FEW:
            others = others[self._top(self._products(self._directions[row])[others], 1)]
        return float(self._to(self._directions[row], others).max(initial=-np.inf))

    def _refill(self, rows: Sequence[int]) -> None:
        """List the nearest others of rows anew."""
        for row in rows:
            products = self._about(self._ids[row])
            others = np.flatnonzero(np.isfinite(products))
            chosen = others[self._top(products[others], _KEPT)]
            cosines = self._to(self._directions[row], chosen)
            best = np.argsort(-cosines, kind="stable")[:_KEPT]
            self._near[row], self._cosines[row] = -1, -np.inf
            self._near[row, : len(best)], self._cosines[row, : len(best)] = chosen[best], cosines[best]
            self._floor[row] = self._cosines[row, -1] if len(others) > _KEPT else -np.inf

    def _strike(self, row: int) -> list[int]:
        """Take a row out of all lists; return the rows whose lists are empty now though there are others."""
        found, places = np.nonzero(self._near[: len(self._ids)] == row)
        for other, place in zip(found.tolist(), places.tolist(), strict=True):
            self._near[other, place:-1], self._near[other, -1] = self._near[other, place + 1 :].copy(), -1
            self._cosines[other, place:-1] = self._cosines[other, place + 1 :].copy()
            self._cosines[other, -1] = -np.inf
        short = found[np.isneginf(self._cosines[found, 0]) & np.isfinite(self._floor[found])]
        return [int(other) for other in short]

    def _enter(self, others: Rows, row: int, cosines: Floats) -> None:
        """Put a row into the lists of others, whose last gives way where the list is full.

        Args:
            others: rows of the lists, each once.
            row: what enters.
            cosines: its cosine with each of them, above their floors.
        """
        near, listed, new = self._near[others], self._cosines[others], cosines[:, None]
        places = (listed >= new).sum(axis=1, keepdims=True)
        before, here = np.arange(_KEPT) < places, np.arange(_KEPT) == places
        self._near[others] = np.where(before, near, np.where(here, row, np.roll(near, 1, axis=1)))
        self._cosines[others] = np.where(before, listed, np.where(here, new, np.roll(listed, 1, axis=1)))
        last = listed[:, -1]
        below = np.where(places[:, 0] == _KEPT, cosines, last)  # the row itself, or what it pushed out
        self._floor[others] = np.where(np.isfinite(below), below, self._floor[others])

    def _top(self, products: NDArray[np.float32], count: int) -> Rows:
        """Places that may hold one of the ``count`` highest rounded cosines, given their products; ascending."""
        return near_highest(products, count, 2 * self._margin + _ROUNDING)

    def _about(self, theme_id: str) -> NDArray[np.float32]:
        """A theme's products with all rows; -inf with itself. Kept until a theme changes: they are asked for again."""
        if self._last is None or self._last[0] != theme_id:
            row = self._row_of[theme_id]
            products = self._products(self._directions[row])
            products[row] = -np.inf
            self._last = theme_id, products
        return self._last[1]

    def _products(self, direction: Floats) -> NDArray[np.float32]:
        """Cosines of a direction with all rows ``(used,)``, in single precision; -inf with rows that are empty."""
        used = len(self._ids)
        products = inner_products(self._narrow[:used], direction.astype(np.float32))
        products[~self._alive[:used]] = -np.inf
        return products

    def _to(self, direction: Floats, rows: Rows) -> Floats:
        cosines: Floats = np.einsum("ij,j->i", self._directions[rows], direction)
        return cosines

    def _live(self) -> Rows:
        """Rows of the stored themes, oldest first."""
        return np.flatnonzero(self._alive[: len(self._ids)])

    def _changed(self) -> None:
        self._scores.clear()
        self._last = self._sought = self._columns = None

    def _make_room(self) -> None:
        """Make sure that there is an empty row at the end: by closing the gaps, if they are many, or by growing."""
        used = len(self._ids)
        if used < len(self._sizes):
            return
        live = self._live()
        if len(live) + len(live) // 4 < used:
            self._keep_rows(live)
            self._changed()
        more = max(32, len(self._sizes) // 4)
        self._directions = np.pad(self._directions, ((0, more), (0, 0)))
        self._narrow = np.pad(self._narrow, ((0, more), (0, 0)))
        self._alive = np.pad(self._alive, (0, more))
        self._sizes, self._cohesion = np.pad(self._sizes, (0, more)), np.pad(self._cohesion, (0, more))
        self._near = np.pad(self._near, ((0, more), (0, 0)), constant_values=-1)
        self._cosines = np.pad(self._cosines, ((0, more), (0, 0)), constant_values=-np.inf)
        self._floor = np.pad(self._floor, (0, more), constant_values=np.inf)

    def _keep_rows(self, live: Rows) -> None:
        moved = np.cumsum(self._alive) - 1
        near = self._near[live]
        self._near, self._cosines, self._floor = (
            np.where(near >= 0, moved[near], -1),
            self._cosines[live],
            self._floor[live],
        )
        self._ids = [self._ids[row] for row in live]
        self._row_of = {theme_id: row for row, theme_id in enumerate(self._ids)}
        self._directions, self._narrow, self._alive = self._directions[live], self._narrow[live], self._alive[live]
        self._sizes, self._cohesion = self._sizes[live], self._cohesion[live]


def _without(values: NDArray[Any], places: Sequence[int]) -> NDArray[Any]:
    """Return a copy of values without those at some places, ascending."""
    ends = zip([0, *(place + 1 for place in places)], [*places, len(values)], strict=True)
    return np.concatenate([values[start:end] for start, end in ends])


def _dot(one: Floats, other: Floats) -> float:
    return float(np.einsum("i,i->", one, other))
