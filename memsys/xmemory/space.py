"""The themes as geometry: centroids, cohesion and nearest others, kept up to date theme by theme.

Sums run over single rows (``einsum``), so that a similarity has the same bits however and whenever it was computed: a
memory restored from a snapshot decides as the one that went on. Which themes may be near is found in single precision,
within a margin that no rounding exceeds; only their similarities are then computed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.ranking import near_highest
from memsys.index.vector import SCORE_DECIMALS
from memsys.xmemory.nearest import KEPT, NearestLists, Rows
from memsys.xmemory.objective import Bell, Floats, balance, objective, semantic_score
from memsys.xmemory.products import CentroidProducts, Products

#: So few themes are compared in double precision at once.
_FEW = 64
#: Half a unit of the last decimal on both sides of a comparison, and more.
_ROUNDING = 2e-6
#: Two centroids whose cosine squared is nearer to 1 count as one direction: their weights are not determined.
_PARALLEL = 1e-9


@dataclass(frozen=True, slots=True)
class _Standing:
    """The stored themes as they are until one changes.

    Attributes:
        rows: of the themes, ascending.
        cohesion: of each theme.
        nearest: by row, the highest cosine with another one; -inf where there is none.
        first: by row, that other one; -1 where there is none.
        facts: of all themes.
        squares: sum of the squares of the themes' numbers of facts.
    """

    rows: Rows
    cohesion: Floats
    nearest: Floats
    first: Rows
    facts: float
    squares: float


@dataclass(frozen=True, slots=True)
class ThemePart:
    """A theme, stored or only considered: unit centroid ``(d,)``, number of facts, mean cosine with the centroid."""

    direction: Floats
    size: int
    cohesion: float


def part_of(vectors: Vectors) -> ThemePart:
    """Describe the theme of the given facts, rows ``(n, d)``; its centroid is their plain mean."""
    wide, count = vectors.astype(np.float64), len(vectors)
    centroid = np.add.reduce(wide, axis=0) / count
    norm = math.sqrt(np.einsum("i,i->", centroid, centroid))
    direction = centroid / norm if norm > 0 else centroid
    norms = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    norms[norms == 0] = 1.0  # a vector without length has the cosine 0, as its product
    cosines = np.einsum("ij,j->i", wide, direction) / norms
    return ThemePart(direction, count, float(np.add.reduce(cosines)) / count)


class ThemeSpace:
    """Stored themes, oldest first. A theme that is gone leaves its row empty until there are many such rows."""

    def __init__(self, dimension: int) -> None:
        self._row_of: dict[str, int] = {}
        self._ids: list[str] = []
        self._directions: Floats = np.zeros((0, dimension))
        self._products = CentroidProducts(dimension)
        self._alive: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._sizes: Floats = np.zeros(0)
        self._cohesion: Floats = np.zeros(0)
        self._lists = NearestLists()
        self._scores: dict[Bell, float] = {}
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
        row = self._row_of[theme_id]
        short = [] if new else self._lists.strike(row)
        self._directions[row], self._sizes[row], self._cohesion[row] = part.direction, part.size, part.cohesion
        self._alive[row] = True
        self._products.put(row, part.direction)
        self._changed()
        near = self._about(theme_id)
        others = np.flatnonzero(near + self._products.margin > self._lists.floor[: len(self._ids)])
        cosines = self._to(part.direction, others)
        entering = cosines > self._lists.floor[others]
        self._lists.enter(others[entering], row, cosines[entering])
        self._refill([row, *(other for other in short if not np.isfinite(self._lists.cosines[other, 0]))])

    def drop(self, theme_id: str) -> None:
        """Remove a theme."""
        row = self._row_of.pop(theme_id)
        self._alive[row], self._lists.floor[row] = False, np.inf
        self._products.drop(row)
        self._changed()
        self._refill(self._lists.strike(row))

    def nearest(self, vector: Vectors) -> tuple[str, float] | None:
        """Return the theme whose centroid is nearest to a vector ``(d,)``, with their cosine; ties: the oldest."""
        if not len(self._row_of):
            return None
        wide = vector.astype(np.float64)
        direction = wide / (float(np.sqrt(np.einsum("i,i->", wide, wide))) or 1.0)
        rows = self._top(self._with_all(direction), 1)
        cosines = np.round(self._to(direction, rows), SCORE_DECIMALS)
        best = int(cosines.argmax())
        return self._ids[rows[best]], float(cosines[best])

    def cosine(self, one: str, other: str) -> float:
        """Return the cosine of two themes' centroids, rounded."""
        return round(_dot(self._directions[self._row_of[one]], self._directions[self._row_of[other]]), SCORE_DECIMALS)

    def similar(self, theme_id: str, least: float, count: int | None) -> list[str]:
        """Return the themes whose centroids have at least this cosine with a theme's, best first, at most ``count``."""
        return [other for other, _ in self._similar(theme_id, least, count)]

    def neighbours(self, count: int) -> dict[str, list[tuple[str, float]]]:
        """Return for each theme its nearest others of positive cosine, at most ``count``, best first."""
        return {theme_id: self._similar(theme_id, 1e-6, count) for theme_id in self._row_of}

    def _similar(self, theme_id: str, least: float, count: int | None) -> list[tuple[str, float]]:
        row = self._row_of[theme_id]
        if self._lists.floor[row] < least - _ROUNDING:  # what is not listed is not a candidate
            rows = np.sort(self._lists.near[row][self._lists.near[row] >= 0])
        else:
            near = self._about(theme_id)
            rows = np.flatnonzero(np.isfinite(near) & (near >= least - self._products.margin - _ROUNDING))
            if count is not None and len(rows) > count:
                rows = rows[self._top(near[rows], count)]
        cosines = np.round(self._to(self._directions[row], rows), SCORE_DECIMALS)
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
        gone = [self._row_of[theme_id] for theme_id in without]
        if among is None:
            return self._scored_all(bell, gone, parts)
        rows = np.array(sorted({self._row_of[name] for name in among} - {*gone}), np.int64)
        nearest = np.array([self._closest_among(row, rows) for row in rows.tolist()], dtype=np.float64)
        highest = [self._raise(nearest, part.direction, rows) for part in parts]
        sizes = np.concatenate([self._sizes[rows], [part.size for part in parts]])
        cohesion = np.concatenate([self._cohesion[rows], [part.cohesion for part in parts]])
        return objective(sizes, cohesion, _finite(np.concatenate([nearest, _closest(parts, highest)])), bell)

    def _scored_all(self, bell: Bell, gone: Sequence[int], parts: Sequence[ThemePart]) -> float:
        """Return ``f`` of all stored themes but some rows, and of some parts, from counts of facts."""
        known = self._standing()
        places = sorted(known.rows.searchsorted(gone).tolist())
        rows = _without(known.rows, places)
        count = len(rows) + len(parts)
        if not count:
            return 0.0
        nearest = self._nearest_but(gone, rows)
        highest = [self._raise_all(nearest, part.direction, gone, rows) for part in parts]
        cohesion = _without(known.cohesion, places, [part.cohesion for part in parts])
        similarities = np.concatenate([nearest[rows], _closest(parts, highest)])
        sizes, sizes_gone = [part.size for part in parts], [float(self._sizes[row]) for row in gone]
        facts = known.facts - sum(sizes_gone) + sum(sizes)
        squares = known.squares - sum(size * size for size in sizes_gone) + sum(size * size for size in sizes)
        return balance(count, facts, squares) + semantic_score(cohesion, _finite(similarities), bell)

    def _raise(self, nearest: Floats, direction: Floats, rows: Rows) -> float:
        """Raise the rows' highest cosines (n,) to those with a direction; return the highest of these."""
        if len(rows) <= _FEW:
            cosines = self._to(direction, rows)
            np.maximum(nearest, cosines, out=nearest)
            return float(cosines.max(initial=-np.inf))
        products, margin = self._with_all(direction)[rows], self._products.margin
        places = np.flatnonzero((products + margin > nearest) | (products >= products.max() - 2 * margin))
        cosines = self._to(direction, rows[places])
        nearest[places] = np.maximum(nearest[places], cosines)
        return float(cosines.max())

    def _raise_all(self, nearest: Floats, direction: Floats, gone: Sequence[int], rows: Rows) -> float:
        """Return the same for all remaining rows, with the highest cosines by row.

        Args:
            nearest: changed in place.
            direction: of a part that takes the place of what is gone.
            gone: rows.
            rows: those that stay.
        """
        near = rows
        if len(rows) > _FEW:
            merged = self._near_merged(nearest, direction, gone) if len(gone) == 2 else None
            near = self._near_direction(nearest, direction, gone) if merged is None else merged
        cosines = self._to(direction, near)
        nearest[near] = np.maximum(nearest[near], cosines)
        return float(cosines.max(initial=-np.inf))

    def _near_direction(self, nearest: Floats, direction: Floats, gone: Sequence[int]) -> Rows:
        """Return the rows that may be nearer to a direction than to any other theme; at least one."""
        products, margin = self._with_all(direction), self._products.margin
        products[gone] = -np.inf
        near = (products + margin > nearest) | (products >= products.max() - 2 * margin)
        return np.flatnonzero(near & np.isfinite(products))

    def _near_merged(self, nearest: Floats, direction: Floats, gone: Sequence[int]) -> Rows | None:
        """Return the same for the merger of two themes without a pass over all rows; ``None`` where that is impossible.

        The merger's centroid is a sum of both, but for a remainder that is measured: its cosine with a third theme is
        bounded by that of the one, whose products are known, and that of the other, which exceeds the floor of neither
        unless one of the two lists the other.
        """
        one, other = gone
        weights, rest = _as_sum(direction, self._directions[one], self._directions[other])
        if min(weights) <= 0:
            return None
        used, margin = len(self._ids), self._products.margin
        listing = self._lists.listing(other)
        listed = self._lists.near[gone].ravel()
        near = np.concatenate([listing, listed[listed >= 0]])
        near = near[self._alive[near] & (near != one) & (near != other)]
        if not len(near):
            return None
        bounds = np.minimum(self._lists.floor[:used], self._lists.floor[other])
        bounds *= weights[1]
        bounds += weights[0] * self._with_all(self._directions[one])
        bounds += rest + (1 + weights[0]) * margin
        least = float(self._to(direction, near).max())
        fitting = (bounds >= np.minimum(nearest, least)) & self._alive[:used]
        fitting[gone] = False
        fitting[near] = True
        return np.flatnonzero(fitting)

    def _nearest_but(self, gone: Sequence[int], rows: Rows) -> Floats:
        """Return the highest cosine of each remaining row with another one, rows ascending."""
        known = self._standing()
        nearest = known.nearest.copy()
        for row in gone:
            affected = np.flatnonzero(known.first == row)
            nearest[affected] = self._next(affected, gone, rows)
        return nearest

    def _standing(self) -> _Standing:
        if self._columns is None:
            rows, used = self._live(), len(self._ids)
            sizes, first = self._sizes[rows], np.where(self._alive[:used], self._lists.near[:used, 0], -1)
            nearest = self._lists.cosines[:used, 0].copy()
            facts, squares = float(sizes.sum()), float((sizes * sizes).sum())
            self._columns = _Standing(rows, self._cohesion[rows], nearest, first, facts, squares)
        return self._columns

    def _next(self, affected: Rows, gone: Sequence[int], rows: Rows) -> Floats:
        """Return the similarity of each affected row to the nearest one that stays; -inf where there is none."""
        near = self._lists.near[affected]
        stays = near >= 0
        for row in gone:
            stays &= near != row
        found: Floats = np.where(stays, self._lists.cosines[affected], -np.inf).max(axis=1, initial=-np.inf)
        for place in np.flatnonzero(np.isneginf(found) & np.isfinite(self._lists.floor[affected])).tolist():
            row = int(affected[place])
            found[place] = -np.inf if row in gone else self._closest_among(row, rows)
        return found

    def _closest_among(self, row: int, rows: Rows) -> float:
        """Return the highest cosine of a row with others of some rows, ascending; -inf where there is no other."""
        others = rows[rows != row]
        if len(others) > _FEW:
            others = others[self._top(self._with_all(self._directions[row])[others], 1)]
        return float(self._to(self._directions[row], others).max(initial=-np.inf))

    def _refill(self, rows: Sequence[int]) -> None:
        """List the nearest others of rows again."""
        for row in rows:
            products = self._about(self._ids[row])
            chosen = self._top(products, KEPT) if len(self) > KEPT else np.flatnonzero(np.isfinite(products))
            cosines = self._to(self._directions[row], chosen)
            self._lists.fill(row, chosen, cosines, whole=len(self) - 1 <= KEPT)

    def _top(self, products: Products, count: int) -> Rows:
        """Return the positions, ascending, that may hold one of the ``count`` highest rounded cosines."""
        return near_highest(products, count, 2 * self._products.margin + _ROUNDING)

    def _about(self, theme_id: str) -> Products:
        """Return a theme's products with all rows; -inf with itself."""
        row = self._row_of[theme_id]
        products = self._with_all(self._directions[row])
        products[row] = -np.inf
        return products

    def _with_all(self, direction: Floats) -> Products:
        """Return the cosines of a direction with all rows ``(used,)``, float32; -inf for empty rows."""
        return self._products.of(direction)[: len(self._ids)]

    def _to(self, direction: Floats, rows: Rows) -> Floats:
        cosines: Floats = np.einsum("ij,j->i", self._directions[rows], direction)
        return cosines

    def _live(self) -> Rows:
        """Return the rows of the stored themes, oldest first."""
        return np.flatnonzero(self._alive[: len(self._ids)])

    def _changed(self) -> None:
        self._scores.clear()
        self._columns = None

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
        self._products.make_room(more)
        self._alive = np.pad(self._alive, (0, more))
        self._sizes, self._cohesion = np.pad(self._sizes, (0, more)), np.pad(self._cohesion, (0, more))
        self._lists.make_room(more)

    def _keep_rows(self, live: Rows) -> None:
        self._lists.keep_rows(live, np.cumsum(self._alive) - 1)
        self._ids = [self._ids[row] for row in live]
        self._row_of = {theme_id: row for row, theme_id in enumerate(self._ids)}
        self._directions, self._alive = self._directions[live], self._alive[live]
        self._products.keep_rows(live)
        self._sizes, self._cohesion = self._sizes[live], self._cohesion[live]


def _without(values: NDArray[Any], places: Sequence[int], more: Sequence[float] = ()) -> NDArray[Any]:
    """Return a copy of values without those at some places, ascending, and with some more at the end."""
    pieces, start = [], 0
    for place in places:
        pieces.append(values[start:place])
        start = place + 1
    return np.concatenate([*pieces, values[start:], *([np.array(more)] if more else [])])


def _closest(parts: Sequence[ThemePart], highest: Sequence[float]) -> Floats:
    """Return for each part the highest cosine with another one, given those with the stored themes."""
    return np.array(
        [
            max([most, *(_dot(part.direction, other.direction) for other in parts if other is not part)])
            for part, most in zip(parts, highest, strict=True)
        ],
        dtype=np.float64,
    )


def _finite(similarities: Floats) -> Floats:
    """Return similarities to the nearest other theme; 0 where there is none."""
    return np.where(np.isfinite(similarities), similarities, 0.0)


def _as_sum(direction: Floats, one: Floats, other: Floats) -> tuple[tuple[float, float], float]:
    """Return the weights by which two unit vectors best approximate a direction, and the length of the residual."""
    between, with_one, with_other = _dot(one, other), _dot(direction, one), _dot(direction, other)
    apart = 1.0 - between * between
    if apart < _PARALLEL:
        weights = 0.5, 0.5
    else:
        weights = (with_one - between * with_other) / apart, (with_other - between * with_one) / apart
    rest = direction - weights[0] * one - weights[1] * other
    return weights, math.sqrt(_dot(rest, rest))


def _dot(one: Floats, other: Floats) -> float:
    return float(np.einsum("i,i->", one, other))
