"""The themes as geometry: centroids, cohesion and pairwise similarities, kept up to date theme by theme.

Sums run over single rows (``einsum``), so that a similarity has the same bits however and whenever it was computed: a
memory restored from a snapshot decides as the one that went on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.xmemory.objective import Bell, Floats, objective

#: Similarities, scores and gains are compared rounded to this many decimals; ties go to the older.
DECIMALS = 6

Rows = NDArray[np.int64]


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
        self._sizes: Floats = np.zeros(0)
        self._cohesion: Floats = np.zeros(0)
        self._cosines: Floats = np.zeros((0, 0))
        #: per row the highest cosine with another theme, and whose it is
        self._closest: Floats = np.zeros(0)
        self._partner: Rows = np.zeros(0, dtype=np.int64)
        self._live_rows: Rows | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    def put(self, theme_id: str, part: ThemePart) -> None:
        """Add a theme, or change one in its place."""
        if theme_id not in self._row_of:
            self._make_room()
            self._row_of[theme_id] = len(self._ids)
            self._ids.append(theme_id)
            self._live_rows = None
        row = self._row_of[theme_id]
        self._directions[row], self._sizes[row], self._cohesion[row] = part.direction, part.size, part.cohesion
        live = self._live()
        self._cosines[row, live] = self._cosines[live, row] = self._to(part.direction, live)
        self._cosines[row, row] = -np.inf
        nearer = live[self._cosines[live, row] > self._closest[live]]
        self._closest[nearer], self._partner[nearer] = self._cosines[nearer, row], row
        self._find_partners([row, *live[self._partner[live] == row]])

    def drop(self, theme_id: str) -> None:
        """Remove a theme."""
        row = self._row_of.pop(theme_id)
        self._live_rows = None
        self._cosines[row, :] = self._cosines[:, row] = -np.inf
        live = self._live()
        self._find_partners(live[self._partner[live] == row])

    def nearest(self, vector: Vectors) -> tuple[str, float] | None:
        """Return the theme whose centroid is nearest to a vector ``(d,)``, with their cosine; ties: the oldest."""
        live = self._live()
        if not len(live):
            return None
        wide = vector.astype(np.float64)
        norm = float(np.sqrt(np.einsum("i,i->", wide, wide))) or 1.0
        cosines = np.round(self._to(wide / norm, live), DECIMALS)
        best = int(cosines.argmax())
        return self._ids[live[best]], float(cosines[best])

    def cosine(self, one: str, other: str) -> float:
        """Return the cosine of two themes' centroids, rounded."""
        return float(np.round(self._cosines[self._row_of[one], self._row_of[other]], DECIMALS))

    def similar(self, theme_id: str, least: float, count: int | None) -> list[str]:
        """Return the themes whose centroids have at least this cosine with a theme's, best first, at most ``count``."""
        live = self._live()
        cosines = np.round(self._cosines[self._row_of[theme_id], live], DECIMALS)
        found = np.flatnonzero(np.isfinite(cosines) & (cosines >= least))
        order = found[np.argsort(-cosines[found], kind="stable")][:count]
        return [self._ids[row] for row in live[order]]

    def neighbours(self, count: int) -> dict[str, list[tuple[str, float]]]:
        """Return for each theme its nearest others of positive cosine, at most ``count``, best first."""
        return {
            theme_id: [(other, self.cosine(theme_id, other)) for other in self.similar(theme_id, 1e-6, count)]
            for theme_id in self._row_of
        }

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
        gone = np.zeros(len(self._ids), dtype=np.bool_)
        gone[[self._row_of[theme_id] for theme_id in without]] = True
        chosen = self._live() if among is None else np.array(sorted({self._row_of[name] for name in among}), np.int64)
        rows = chosen[~gone[chosen]]
        nearest = self._nearest_among(rows, gone, everything=among is None)
        sizes = np.concatenate([self._sizes[rows], [part.size for part in parts]])
        cohesion = np.concatenate([self._cohesion[rows], [part.cohesion for part in parts]])
        of_parts = np.full(len(parts), -np.inf)
        for place, part in enumerate(parts):
            cosines = self._to(part.direction, rows)
            nearest = np.maximum(nearest, cosines)
            others = [_dot(part.direction, other.direction) for other in parts if other is not part]
            of_parts[place] = max([float(cosines.max(initial=-np.inf)), *others])
        similarities = np.concatenate([nearest, of_parts])
        return objective(sizes, cohesion, np.where(np.isfinite(similarities), similarities, 0.0), bell)

    def _nearest_among(self, rows: Rows, gone: NDArray[np.bool_], *, everything: bool) -> Floats:
        """Similarity of each row's theme to the nearest other of the rows; -inf where there is no other."""
        if not len(rows):
            return np.zeros(0)
        if not everything:
            found: Floats = self._cosines[np.ix_(rows, rows)].max(axis=1)
            return found
        nearest = self._closest[rows].copy()
        orphaned = gone[self._partner[rows]]
        if orphaned.any():
            nearest[orphaned] = self._cosines[np.ix_(rows[orphaned], rows)].max(axis=1)
        return nearest

    def _find_partners(self, rows: Sequence[int] | Rows) -> None:
        for row in rows:
            self._partner[row] = self._cosines[row].argmax()
            self._closest[row] = self._cosines[row, self._partner[row]]

    def _to(self, direction: Floats, rows: Rows) -> Floats:
        used = len(self._ids)
        if 2 * len(rows) > used:  # copying the rows would cost more than the empty ones do
            whole: Floats = np.einsum("ij,j->i", self._directions[:used], direction)
            return whole[rows]
        chosen: Floats = np.einsum("ij,j->i", self._directions[rows], direction)
        return chosen

    def _live(self) -> Rows:
        """Rows of the stored themes, oldest first; found anew only after themes came or went."""
        if self._live_rows is None:
            self._live_rows = np.array(sorted(self._row_of.values()), dtype=np.int64)
        return self._live_rows

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
        self._sizes, self._cohesion = np.pad(self._sizes, (0, more)), np.pad(self._cohesion, (0, more))
        self._closest = np.pad(self._closest, (0, more), constant_values=-np.inf)
        self._partner = np.pad(self._partner, (0, more))
        self._cosines = np.pad(self._cosines, ((0, more), (0, more)), constant_values=-np.inf)

    def _keep_rows(self, live: Rows) -> None:
        self._ids = [self._ids[row] for row in live]
        self._row_of = {theme_id: row for row, theme_id in enumerate(self._ids)}
        self._live_rows = None
        self._directions, self._cosines = self._directions[live], self._cosines[np.ix_(live, live)]
        self._sizes, self._cohesion = self._sizes[live], self._cohesion[live]
        self._closest, self._partner = np.full(len(live), -np.inf), np.zeros(len(live), dtype=np.int64)
        self._find_partners(range(len(live)))


def _dot(one: Floats, other: Floats) -> float:
    return float(np.einsum("i,i->", one, other))
