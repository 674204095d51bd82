"""Words for the keyword search: Porter stems without Lucene's stop words."""

from functools import lru_cache
from typing import Any

from memsys.scripts import all_words

_FUNCTION_WORDS = """
a an and are as at be but by for if in into is it no not of on or such
that the their then there these they this to was will with
"""

#: Lucene's English stop words.
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    from nltk.stem.porter import PorterStemmer

    return PorterStemmer()


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_stemmer().stem(word))


def stems(text: str) -> list[str]:
    """Split a text into lower-case stems, in order, with repeats."""
    return [_stem(word) for word in all_words(text) if word not in STOP_WORDS]
