"""Lucene's keyword search as Pyserini sets it up, without Java: its words, stems, lengths and scores.

score(q, d) = sum over the words t of q, with repeats, of ln(1 + (N - n + 0.5) / (n + 0.5)) f / (f + k1 (1 - b + b |d|
/ avgdl)), where |d| is the length as Lucene keeps it, in one byte. Words are those of Unicode's rules without the
possessive, in small letters, without Lucene's stop words, stemmed as Porter's own program does. Lucene 9
(``BM25Similarity``, ``SmallFloat``), Anserini (``DefaultEnglishAnalyzer``, ``BagOfWordsQueryGenerator``). Chinese and
Japanese are cut into single characters, but for katakana; Thai, Lao, Khmer and Burmese are not cut at all.
"""

import re
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.gam.stems import STOP_WORDS
from memsys.index.bm25 import BM25Index
from memsys.index.words import warn_of_joined_words

#: Letters and digits; between letters also colons, full stops and apostrophes, between digits what numbers contain.
_WORD = re.compile(r"\w+(?:(?:(?<=[^\W\d_])[:.·'‘’](?=[^\W\d_])|(?<=\d)[.,;'‘’](?=\d))\w+)*")
#: Han and hiragana, of which each character is a word.
_IDEOGRAPH = re.compile("[\u3005-\u3007\u3041-\u309f\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_POSSESSIVE = re.compile(r"['’]s$")
#: Lengths below are kept as they are; of the rest above it, four binary digits.
_EXACT_LENGTHS = 24
_DIGITS = 4


class LuceneIndex(BM25Index):
    """Documents, their words, and Lucene's scores."""

    def __init__(self, k1: float, b: float) -> None:
        super().__init__(k1=k1, b=b, tokenise=lucene_words)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Score every document, shape ``(len(self),)``, in insertion order."""
        return super().scores(query) / (self._k1 + 1)

    def _refresh(self) -> None:
        self._mean_idf = 0.0  # no idf is below 0, so that none is replaced by it

    def _counted_lengths(self, longest: int) -> NDArray[np.float64]:
        return np.array([kept_length(length) for length in range(longest + 1)], dtype=np.float64)

    def _idf(self, word: str) -> float:
        frequency = len(self._rows[word])
        return float(np.log1p((len(self._ids) - frequency + 0.5) / (frequency + 0.5)))


def kept_length(length: int) -> int:
    """Return a document's length as Lucene's byte keeps it, which is at most the length."""
    over = length - _EXACT_LENGTHS
    if over < 0:
        return length
    dropped = max(over.bit_length() - _DIGITS, 0)
    return _EXACT_LENGTHS + (over >> dropped << dropped)


def lucene_words(text: str) -> list[str]:
    """Split a text into lower-case stems, in order, with repeats."""
    warn_of_joined_words("Lucene's English analyzer, which memory.research.keywords=lucene takes over", text)
    if not text.isascii():
        text = _IDEOGRAPH.sub(r" \g<0> ", text)
    words = (_POSSESSIVE.sub("", word.lower()) for word in _WORD.findall(text))
    return [_stem(word) for word in words if word and word not in STOP_WORDS]


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer(PorterStemmer.MARTIN_EXTENSIONS)


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))
