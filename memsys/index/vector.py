"""Search over unit vectors, with FAISS: exact, unless the run chose an approximate index."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.errors import ConfigError
from memsys.index.approximate import ApproximateCandidates
from memsys.index.bounds import LEAST_USEFUL, SimilarityBounds
from memsys.index.products import inner_products
from memsys.index.ranking import near_highest
from memsys.index.settings import IndexSettings, chosen_index

#: Scores, distances and gains that agree to this many decimals are ties, which go to the older item.
SCORE_DECIMALS = 6
#: Candidates this close to the last place are compared exactly; far above the rounding error of float32 sums.
_MARGIN = 1e-5
_SPARE_CANDIDATES = 16
#: An item whose cosine misses a wanted one by this is left out; beyond the rounding of scores to six decimals.
_MISSED = 1e-6
#: Far above the error of sums in double precision.
_SUM_ERROR = 1e-9
#: With fewer items a search among all costs less than to ask first which may reach a wanted cosine.
_FEW = 512
#: Rows of removed items stay, empty, until there are so many beyond one for every ``_LIVE_PER_GAP`` items.
_GAPS, _LIVE_PER_GAP = 32, 8


class VectorIndex:
    """Inner product over unit vectors (= cosine), in insertion order; exact with ``flat``, the default.

    The vectors lie in a flat FAISS index in main memory, where one row is replaced in place. A removed item leaves its
    row empty; the rows behind move up once there are many such gaps, as moving them with every removal would take time
    that grows with the index. On a GPU the index has a copy there that answers the searches: appended to as the index
    grows, copied again after a replacement or removal.
    FAISS finds the candidates; their scores are then computed in double precision, so that ranks and ties depend
    neither on the order of summation nor on the device.

    FAISS searches with one thread here (a setting of the calling thread). One query over 10,000 vectors takes 0.3 ms
    so; waking and joining a thread team for it costs more than it saves, and up to a hundred times more on busy cores.

    An approximate index (:class:`memsys.index.settings.IndexSettings`) lies next to the flat one and finds the
    candidates of searches among all items; their scores are exact all the same.

    Args:
        dimension: length of a vector.
        settings: kind of index and device; ``None`` for the run's choice.

    Raises:
        ConfigError: a GPU is asked for, and this FAISS has no GPU support or sees no GPU.
    """

    def __init__(self, dimension: int, settings: IndexSettings | None = None) -> None:
        import faiss

        self._dimension = dimension
        self._flat: Any = faiss.IndexFlatIP(dimension)
        settings = settings or chosen_index()
        self._gpu = _GpuCopy() if settings.device == "cuda" else None
        self._approximate = None if settings.kind == "flat" else ApproximateCandidates(settings, dimension)
        self._bounds: SimilarityBounds | None = None  # made by the first search that names a cosine to reach
        self._longest, self._measured = 0.0, 0  # square of the greatest length of this many first rows
        self._ids: list[str] = []  # by row, those of gaps too
        self._row_of: dict[str, int] = {}
        self._gaps: list[int] = []  # rows, ascending

    @property
    def ids(self) -> Sequence[str]:
        """The ids, oldest first."""
        return tuple(self._row_of)

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, item: object) -> bool:
        return item in self._row_of

    def position(self, item: str) -> int:
        """Return how many items are older.

        Raises:
            KeyError: the id is not there.
        """
        row = self._row_of[item]
        return row - bisect_left(self._gaps, row)

    def add(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Append items.

        Args:
            ids: new ids, each once.
            vectors: float32 unit vectors, shape ``(len(ids), dimension)``.

        Raises:
            ValueError: an id is there already, or the shapes do not agree.
        """
        self._check_shape(ids, vectors)
        known = [item for item in ids if item in self._row_of]
        if known or len(set(ids)) < len(ids):
            raise ValueError(f"ids added twice: {known or ids}")
        if not ids:
            return
        self._row_of.update({item: len(self._ids) + offset for offset, item in enumerate(ids)})
        self._ids.extend(ids)
        block = np.ascontiguousarray(vectors, dtype=np.float32)
        self._flat.add(block)
        for copy in (self._gpu, self._approximate):
            if copy:
                copy.append(block)

    def replace(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Give items new vectors; they keep their place in the order. Costs one row copy each.

        Raises:
            KeyError: an id is not there.
            ValueError: the shapes do not agree.
        """
        self._check_shape(ids, vectors)
        if ids:
            rows = self._rows(ids)
            self._matrix()[rows] = vectors
            self._measured = 0
            if self._gpu:
                self._gpu.drop()
            if self._bounds:
                self._bounds.replaced(rows)
            if self._approximate:
                once = np.unique(rows)
                self._approximate.replaced(once, self._matrix()[once])

    def remove(self, ids: Sequence[str]) -> None:
        """Take items out; the others keep their order.

        Raises:
            KeyError: an id is not there.
        """
        if not ids:
            return
        gone = np.unique(self._rows(ids))
        self._matrix()[gone] = 0.0
        for row in gone.tolist():
            del self._row_of[self._ids[row]]
            insort(self._gaps, row)
        # Copies that cannot move a row are made again after a removal; so they never hold a gap.
        fixed = self._gpu or (self._approximate and not self._approximate.changes)
        if fixed or len(self._gaps) > _GAPS + len(self) // _LIVE_PER_GAP:
            self._close_gaps()
        elif self._approximate:
            self._approximate.removed(gone)

    def _close_gaps(self) -> None:
        self._flat.remove_ids(np.array(self._gaps, dtype=np.int64))
        self._ids, self._gaps = list(self._row_of), []
        self._row_of = {item: row for row, item in enumerate(self._ids)}
        self._measured = 0
        self._drop_copies()

    def search(
        self,
        vector: NDArray[np.float32],
        k: int,
        *,
        among: NDArray[np.int64] | None = None,
        least: float | None = None,
    ) -> list[tuple[str, float]]:
        """Find the ``k`` most similar items.

        Args:
            vector: unit vector of shape ``(dimension,)``.
            k: how many; fewer come back when the index holds fewer.
            among: positions of the items that may be found, each once; ``None`` for all. Searched in main memory.
            least: items are left out whose cosine is lower than this by more than a millionth, so that few are looked
                at where it is high; ``None`` for none.

        Returns:
            Pairs of id and cosine, best first; ties (equal after rounding to six decimals) oldest first.
        """
        k = min(k, len(self) if among is None else len(among))
        if k <= 0:
            return []
        query = np.ascontiguousarray(vector, dtype=np.float32)
        rows = self._reaching(query, least) if among is None and least is not None else None
        if rows is None:
            rows = self._candidates(query, k, among)
        scores = self._exact(rows, query)
        if least is not None:
            kept = scores >= least - _MISSED
            rows, scores = rows[kept], scores[kept]
        order = np.lexsort((rows, -np.round(scores, SCORE_DECIMALS)))[:k]
        return [(self._ids[rows[place]], float(scores[place])) for place in order]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Return a copy of the items' vectors, shape ``(len(ids), dimension)``.

        Raises:
            KeyError: an id is not there.
        """
        return self._matrix()[self._rows(ids)].copy()

    def cosines(self, ids: Sequence[str], vector: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the items' cosines with a unit vector ``(dimension,)``, shape ``(len(ids),)``; equal to a search's.

        Raises:
            KeyError: an id is not there.
        """
        return self._exact(self._rows(ids), vector)

    def may_exceed(self, vector: NDArray[np.float32], cosine: float) -> bool:
        """Return whether an item's rounded cosine with a vector ``(dimension,)`` may be above this one.

        By the lengths alone: with unit vectors none is above 1, and nothing need be searched.
        """
        new = self._matrix()[self._measured :]
        if len(new):
            wide = new.astype(np.float64)
            self._longest = max(self._longest, float(np.einsum("ij,ij->i", wide, wide).max()))
            self._measured = len(self._ids)
        own = vector.astype(np.float64)
        highest = float(np.sqrt(self._longest * np.einsum("i,i->", own, own)))
        return round(highest + _SUM_ERROR, SCORE_DECIMALS) > cosine

    def products(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inner products of all items with a vector ``(dimension,)``, shape ``(len(self),)``, oldest first.

        In single precision and one thread: 0.4 ms for 10,000 items of 384 components.
        """
        products = inner_products(self._matrix(), vector)
        return products[self._live()] if self._gaps else products

    def extremes(self, directions: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the greatest product of an item with each of some directions, ``(k,)`` each.

        Sought in single precision, within the bound of its error, and computed in double precision.

        Args:
            directions: unit vectors, ``(k, dimension)``; the index must not be empty.
        """
        matrix = self._matrix()[self._live()] if self._gaps else self._matrix()
        margin = (self._dimension + 8) * 2.0**-21
        ends = []
        for direction, products in zip(directions, (matrix @ directions.astype(np.float32).T).T, strict=True):
            near = (products >= products.max() - margin) | (products <= products.min() + margin)
            exact = np.einsum("ij,j->i", matrix[near].astype(np.float64), direction)
            ends.append((exact.min(), exact.max()))
        least, greatest = np.array(ends).T
        return least, greatest

    def state(self) -> Mapping[str, Any]:
        """Return the snapshot: ids and matrix."""
        return {"ids": list(self._row_of), "vectors": self._matrix()[self._live()]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot of :meth:`state`."""
        self._flat.reset()
        self._ids, self._row_of, self._gaps = [], {}, []
        self._measured = 0
        self._drop_copies()
        ids = list(state["ids"])
        self.add(ids, np.asarray(state["vectors"], dtype=np.float32).reshape(len(ids), self._dimension))

    def _reaching(self, query: NDArray[np.float32], least: float) -> NDArray[np.int64] | None:
        """Return the rows that may reach a cosine; ``None`` where another search finds them as fast."""
        count = len(self._ids)
        approximates = self._approximate is not None and self._approximate.searches(len(self))
        if least < LEAST_USEFUL or count < _FEW or approximates:
            return None
        self._bounds = self._bounds or SimilarityBounds(self._dimension)
        rows = self._bounds.at_least(self._matrix(), query, least - _MISSED)
        return None if len(rows) > count // 8 else rows[self._without_gaps(rows)]

    def _candidates(self, query: NDArray[np.float32], k: int, among: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Return the rows that may be among the first ``k``: the best ones, and every near-tie of the last place."""
        import faiss

        faiss.omp_set_num_threads(1)
        among = among if among is None or not self._gaps else self._live()[among]
        count = len(self._ids) if among is None else len(among)
        fetch = min(k + _SPARE_CANDIDATES, count)
        if self._approximate and among is None and self._approximate.searches(len(self)):
            return self._approximate.find(self._matrix(), self._gaps, query, fetch)
        index = self._gpu.of(self._flat) if self._gpu and among is None else self._flat
        chosen = {} if among is None else {"params": self._only(among)}
        scores, rows = index.search(query[None], fetch, **chosen)
        live = self._without_gaps(rows[0])
        if fetch == count or (live.sum() >= k and scores[0, -1] < scores[0][live][k - 1] - _MARGIN):
            return np.asarray(rows[0][live], dtype=np.int64)
        return self._with_ties(query, k, among)

    def _with_ties(self, query: NDArray[np.float32], k: int, among: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """Return the same from the products with all rows, when the last place has more near-ties than were fetched."""
        rows, matrix = self._live() if among is None else among, self._matrix()
        products = inner_products(matrix, query)[rows] if among is None else inner_products(matrix[rows], query)
        return rows[near_highest(products, k, _MARGIN)]

    def _without_gaps(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return of rows which of them hold an item."""
        if not self._gaps:
            return np.ones(len(rows), dtype=np.bool_)
        return np.array([self._row_of.get(self._ids[row]) == row for row in rows.tolist()], dtype=np.bool_)

    def _live(self) -> NDArray[np.int64]:
        """Return the rows that hold an item, oldest first."""
        held = np.ones(len(self._ids), dtype=np.bool_)
        held[self._gaps] = False
        return np.flatnonzero(held)

    def _only(self, among: NDArray[np.int64]) -> Any:
        """Search parameters that let only some rows be found."""
        import faiss

        library: Any = faiss  # its type information does not know the Python wrappers' arguments
        allowed = np.zeros(len(self._ids), dtype=bool)
        allowed[among] = True
        bits = np.packbits(allowed, bitorder="little")
        return library.SearchParameters(sel=library.IDSelectorBitmap(bits))

    def _exact(self, rows: NDArray[np.int64], query: NDArray[np.float32]) -> NDArray[np.float64]:
        # einsum rather than a product: BLAS would start threads for as few as 26 rows, with the cost described above
        found, sought = self._matrix()[rows].astype(np.float64), query.astype(np.float64)
        scores: NDArray[np.float64] = np.einsum("ij,j->i", found, sought)
        return scores

    def _matrix(self) -> Vectors:
        """Return all rows themselves, gaps among them, ``(rows, dimension)``; valid until the next addition."""
        import faiss

        if not self._ids:
            return np.zeros((0, self._dimension), dtype=np.float32)
        flat = faiss.rev_swig_ptr(self._flat.get_xb(), len(self._ids) * self._dimension)
        matrix: Vectors = flat.reshape(len(self._ids), self._dimension)
        return matrix

    def _rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        return np.array([self._row_of[item] for item in ids], dtype=np.int64)

    def _check_shape(self, ids: Sequence[str], vectors: Vectors) -> None:
        if vectors.shape != (len(ids), self._dimension):
            raise ValueError(f"{len(ids)} ids need vectors ({len(ids)}, {self._dimension}), not {vectors.shape}")

    def _drop_copies(self) -> None:
        for copy in (self._gpu, self._approximate, self._bounds):
            if copy:
                copy.drop()


class _GpuCopy:
    """The copy of a flat index on the first GPU; made with the first search, dropped when rows change."""

    def __init__(self) -> None:
        import faiss

        if not hasattr(faiss, "StandardGpuResources") or faiss.get_num_gpus() == 0:
            raise ConfigError(
                "index.device=cuda: this FAISS has no GPU support or sees no GPU; install the extra memsys[gpu] in "
                "place of faiss-cpu, or set index.device=cpu"
            )
        self._resources: Any = faiss.StandardGpuResources()
        self._index: Any = None

    def of(self, flat: Any) -> Any:
        """Return the copy, made now if there is none."""
        import faiss

        if self._index is None:
            self._index = faiss.index_cpu_to_gpu(self._resources, 0, flat)
        return self._index

    def append(self, block: Vectors) -> None:
        """Add rows to the copy, if there is one."""
        if self._index is not None:
            self._index.add(block)

    def drop(self) -> None:
        """Forget the copy."""
        self._index = None
