"""Okapi BM25 with the conventions of rank-bm25's ``BM25Okapi``, incremental.

score(q, d) = sum over the words t of q, with repeats, of idf(t) f (k1 + 1) / (f + k1 (1 - b + b |d| / avgdl)), where f
is the count of t in d and idf(t) = ln((N - n + 0.5) / (n + 0.5)); a negative idf becomes epsilon times the mean idf
over the vocabulary. Robertson and Zaragoza 2009; rank-bm25 0.2.2.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.index.ranking import best_rows, near_highest
from memsys.index.vector import SCORE_DECIMALS
from memsys.index.words import words


class BM25Index:
    """Documents, their words, and Okapi scores. Statistics are brought up to date by the first query after a change.

    Args:
        k1: how fast repeats of a word saturate.
        b: how much long documents are discounted.
        epsilon: share of the mean idf that words in more than half of the documents get.
        tokenise: splits documents and queries into their words.
    """

    def __init__(
        self, k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25, tokenise: Callable[[str], list[str]] = words
    ) -> None:
        self._k1 = k1
        self._b = b
        self._epsilon = epsilon
        self._words = tokenise
        self._ids: list[str] = []
        self._row_of: dict[str, int] = {}
        self._texts: list[str] = []
        self._lengths = array("q")
        #: per word: rows of the documents that hold it, ascending, and how often
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        #: document frequency -> number of words that have it (of 0: words that were replaced away)
        self._words_of_frequency: Counter[int] = Counter()
        self._mean_idf: float | None = None
        self._total_length = 0

    @property
    def ids(self) -> Sequence[str]:
        """The ids, oldest first."""
        return tuple(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Append documents."""
        for item, text in zip(ids, texts, strict=True):
            self._add_document(item, text)
        self._mean_idf = None

    def replace(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Give documents new texts; they keep their place in the order.

        Raises:
            KeyError: an id is not there.
        """
        for item, text in zip(ids, texts, strict=True):
            self._replace_document(self._row_of[item], text)
        self._mean_idf = None

    def scores(self, query: str) -> NDArray[np.float64]:
        """Score every document, shape ``(len(self),)``, in insertion order."""
        totals = np.zeros(len(self._ids))
        if not len(totals):
            return totals
        self._refresh()
        for word, repeats in Counter(self._words(query)).items():
            if word in self._rows:
                rows = np.frombuffer(self._rows[word], dtype=np.int64)
                np.add.at(totals, rows, self._worth(word, rows, repeats * self._idf(word)))
        return totals

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        """Find the ``k`` best documents, best first; ties (six decimals) and documents without a match oldest first."""
        scores = self.scores(query)
        rows = near_highest(scores, k, margin=2 * 10**-SCORE_DECIMALS)  # all that rounding can put among them
        order = rows[best_rows(np.round(scores[rows], SCORE_DECIMALS), k)]
        return [(self._ids[row], float(scores[row])) for row in order]

    def holding(self, query: str) -> list[str]:
        """Return the documents that hold a word of the query, oldest first; in small collections some score 0."""
        rows = {row for word in set(self._words(query)) for row in self._rows.get(word, ())}
        return [self._ids[row] for row in sorted(rows)]

    def state(self) -> Mapping[str, Any]:
        """Return the snapshot: ids and texts; the postings follow from them."""
        return {"ids": list(self._ids), "texts": list(self._texts)}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot of :meth:`state`."""
        self._ids, self._row_of, self._texts, self._lengths = [], {}, [], array("q")
        self._total_length = 0
        self._rows, self._counts, self._words_of_frequency = {}, {}, Counter()
        self.add(state["ids"], state["texts"])

    def _add_document(self, item: str, text: str) -> None:
        self._row_of[item] = len(self._ids)
        self._ids.append(item)
        self._texts.append(text)
        self._lengths.append(0)
        self._enter(len(self._ids) - 1, text)

    def _replace_document(self, row: int, text: str) -> None:
        for word in set(self._words(self._texts[row])):
            place = bisect_left(self._rows[word], row)
            self._recount(len(self._rows[word]), -1)
            del self._rows[word][place], self._counts[word][place]
            if not self._rows[word]:
                del self._rows[word], self._counts[word]
        self._enter(row, text)

    def _enter(self, row: int, text: str) -> None:
        document = self._words(text)
        for word, count in Counter(document).items():
            rows = self._rows.setdefault(word, array("q"))
            self._recount(len(rows), 1)
            place = bisect_left(rows, row)
            rows.insert(place, row)
            self._counts.setdefault(word, array("q")).insert(place, count)
        self._texts[row] = text
        self._total_length += len(document) - self._lengths[row]
        self._lengths[row] = len(document)

    def _recount(self, frequency: int, step: int) -> None:
        """Update the idf of a word whose document frequency changed by one."""
        words_of = self._words_of_frequency
        words_of[frequency + step] += 1
        words_of[frequency] -= 1
        if words_of[frequency] <= 0:
            del words_of[frequency]

    def _refresh(self) -> None:
        if self._mean_idf is not None:
            return
        # By frequency: few terms, and a sum that the order in which words came, or were replaced, cannot touch.
        held = sorted(self._words_of_frequency.keys() - {0})
        frequencies = np.array(held, dtype=np.float64)
        counts = np.array([self._words_of_frequency[frequency] for frequency in held], dtype=np.float64)
        idf = np.log(len(self._ids) - frequencies + 0.5) - np.log(frequencies + 0.5)
        self._mean_idf = float((counts * idf).sum() / counts.sum()) if held else 0.0

    def _worth(self, word: str, rows: NDArray[np.int64], weight: float) -> NDArray[np.float64]:
        """Return the contribution of a word to the score of each document that contains it.

        That depends on two small numbers, how often and among how many words: where there are more documents than pairs
        of them, each pair is worked out once.
        """
        counts = np.frombuffer(self._counts[word], dtype=np.int64)
        lengths = np.frombuffer(self._lengths, dtype=np.int64).take(rows)
        most, longest = int(counts.max()), int(lengths.max())
        norms = self._norms(longest)
        if most * len(norms) > len(rows):
            return self._saturated(counts, norms.take(lengths)) * weight
        pairs = np.zeros((most + 1, len(norms)))
        pairs[1:] = self._saturated(np.arange(1, most + 1)[:, None], norms) * weight
        places = counts * len(norms)
        places += lengths
        return pairs.ravel().take(places)

    def _saturated(self, counts: NDArray[np.int64], norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the saturated term frequency, before the idf."""
        worth: NDArray[np.float64] = counts * (self._k1 + 1) / (counts + norms)
        return worth

    def _norms(self, longest: int) -> NDArray[np.float64]:
        """Return the length normalisation of documents of 0, 1, ... ``longest`` words, shape ``(longest + 1,)``."""
        mean_length = self._total_length / len(self._ids)
        norms: NDArray[np.float64] = self._k1 * (1 - self._b + self._b * self._counted_lengths(longest) / mean_length)
        return norms

    def _counted_lengths(self, longest: int) -> NDArray[np.float64]:
        """Return the encoded length of documents of 0, 1, ... ``longest`` words, shape ``(longest + 1,)``."""
        return np.arange(longest + 1, dtype=np.float64)

    def _idf(self, word: str) -> float:
        frequency = len(self._rows[word])
        idf = float(np.log(len(self._ids) - frequency + 0.5) - np.log(frequency + 0.5))
        return idf if idf >= 0 else self._epsilon * (self._mean_idf or 0.0)
