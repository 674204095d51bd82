"""The themes as geometry: centroids, cohesion and nearest others, kept up to date theme by theme.

Sums run over single rows (``einsum``), so that a similarity has the same bits however and whenever it was computed: a
memory restored from a snapshot decides as the one that went on. Which themes may be near is found in single precision,
within a margin that no rounding exceeds; only their similarities are then computed. Pairs of themes are not kept: their
number would grow with the square of the themes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.vector import inner_products
from memsys.xmemory.objective import Bell, Floats, objective

#: Similarities, scores and gains are compared rounded to this many decimals; ties go to the older.
DECIMALS = 6

Rows = NDArray[np.int64]

#: So few themes are compared in double precision at once.
_FEW = 64
#: Half a unit of the last decimal on both sides of a comparison, and more.
_ROUNDING = 2e-6


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
        #: per row the highest cosine with another theme, and whose it is
        self._closest: Floats = np.zeros(0)
        self._partner: Rows = np.zeros(0, dtype=np.int64)
        #: bound of the error of a product in single precision, four times over
        self._margin = (dimension + 8) * 2.0**-22
        self._scores: dict[Bell, float] = {}
        self._last: tuple[str, NDArray[np.float32]] | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    def put(self, theme_id: str, part: ThemePart) -> None:
        """Add a theme, or change one in its place."""
        if theme_id not in self._row_of:
            self._make_room()
            self._row_of[theme_id] = len(self._ids)
            self._ids.append(theme_id)
        row = self._row_of[theme_id]
        self._directions[row], self._sizes[row], self._cohesion[row] = part.direction, part.size, part.cohesion
        self._narrow[row], self._alive[row] = part.direction, True
        self._changed()
        near = self._about(theme_id)
        others = np.flatnonzero(near + self._margin > self._closest[: len(self._ids)])
        cosines = self._to(part.direction, others)
        nearer = cosines > self._closest[others]
        self._closest[others[nearer]], self._partner[others[nearer]] = cosines[nearer], row
        followers = np.setdiff1d(self._followers(row), others[nearer], assume_unique=True)
        self._find_partners([row, *followers])

    def drop(self, theme_id: str) -> None:
        """Remove a theme."""
        row = self._row_of.pop(theme_id)
        self._alive[row], self._closest[row] = False, -np.inf
        self._changed()
        self._find_partners(self._followers(row))

    def nearest(self, vector: Vectors) -> tuple[str, float] | None:
        """Return the theme whose centroid is nearest to a vector ``(d,)``, with their cosine; ties: the oldest."""
        if not len(self._row_of):
            return None
        wide = vector.astype(np.float64)
        norm = float(np.sqrt(np.einsum("i,i->", wide, wide))) or 1.0
        rows = self._top(self._products(wide / norm), 1)
        cosines = np.round(self._to(wide / norm, rows), DECIMALS)
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
        near = self._about(theme_id)
        rows = np.flatnonzero(np.isfinite(near) & (near >= least - self._margin - _ROUNDING))
        if count is not None and len(rows) > count:
            rows = rows[self._top(near[rows], count)]
        cosines = np.round(self._to(self._directions[self._row_of[theme_id]], rows), DECIMALS)
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
        gone = np.zeros(len(self._ids), dtype=np.bool_)
        gone[[self._row_of[theme_id] for theme_id in without]] = True
        chosen = self._live() if among is None else np.array(sorted({self._row_of[name] for name in among}), np.int64)
        rows = chosen[~gone[chosen]]
        nearest = self._nearest_among(rows, gone, everything=among is None)
        sizes = np.concatenate([self._sizes[rows], [part.size for part in parts]])
        cohesion = np.concatenate([self._cohesion[rows], [part.cohesion for part in parts]])
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

    def _nearest_among(self, rows: Rows, gone: NDArray[np.bool_], *, everything: bool) -> Floats:
        """Similarity of each row's theme to the nearest other of the rows; -inf where there is no other."""
        if not everything:
            return np.array([self._partner_among(row, rows)[1] for row in rows.tolist()], dtype=np.float64)
        nearest = self._closest[rows].copy()
        for place in np.flatnonzero(gone[self._partner[rows]]).tolist():
            nearest[place] = self._partner_among(int(rows[place]), rows)[1]
        return nearest

    def _partner_among(self, row: int, rows: Rows) -> tuple[int, float]:
        """Of some rows, ascending, the nearest other one to a row, and their cosine; -inf where there is no other."""
        others = rows[rows != row]
        if len(others) > _FEW:
            others = others[self._top(self._products(self._directions[row])[others], 1)]
        if not len(others):
            return 0, -np.inf
        cosines = self._to(self._directions[row], others)
        best = int(cosines.argmax())
        return int(others[best]), float(cosines[best])

    def _followers(self, row: int) -> Rows:
        """The stored themes, by row, whose nearest other is the theme of this row."""
        used = len(self._ids)
        return np.flatnonzero(self._alive[:used] & (self._partner[:used] == row) & (np.arange(used) != row))

    def _find_partners(self, rows: Sequence[int] | Rows) -> None:
        live = self._live() if len(rows) else np.zeros(0, dtype=np.int64)
        for row in rows:
            self._partner[row], self._closest[row] = self._partner_among(int(row), live)

    def _top(self, products: NDArray[np.float32], count: int) -> Rows:
        """Places that may hold one of the ``count`` highest rounded cosines, given their products; ascending."""
        if count >= len(products):
            return np.arange(len(products))
        last = np.partition(products, len(products) - count)[len(products) - count] if count > 1 else products.max()
        return np.flatnonzero(products >= last - 2 * self._margin - _ROUNDING)

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
        self._last = None

    def _make_room(self) -> None:
        """Make sure that there is an empty row at the end: by closing the gaps, if they are many, or by growing."""
        used = len(self._ids)
        if used < len(self._sizes):
            return
        live = self._live()
        if len(live) + len(live) // 4 < used:
            self._keep_rows(live)
        more = max(32, len(self._sizes) // 4)
        self._directions = np.pad(self._directions, ((0, more), (0, 0)))
        self._narrow = np.pad(self._narrow, ((0, more), (0, 0)))
        self._alive = np.pad(self._alive, (0, more))
        self._sizes, self._cohesion = np.pad(self._sizes, (0, more)), np.pad(self._cohesion, (0, more))
        self._closest = np.pad(self._closest, (0, more), constant_values=-np.inf)
        self._partner = np.pad(self._partner, (0, more))

    def _keep_rows(self, live: Rows) -> None:
        moved = np.cumsum(self._alive) - 1
        self._partner = np.where(np.isfinite(self._closest[live]), moved[self._partner[live]], 0)
        self._ids = [self._ids[row] for row in live]
        self._row_of = {theme_id: row for row, theme_id in enumerate(self._ids)}
        self._directions, self._narrow, self._alive = self._directions[live], self._narrow[live], self._alive[live]
        self._sizes, self._cohesion, self._closest = self._sizes[live], self._cohesion[live], self._closest[live]


def _dot(one: Floats, other: Floats) -> float:
    return float(np.einsum("i,i->", one, other))
