"""Normalisations and tokenisers, each named after the code that defined it. Cached: gold texts come back often."""

import re
import string
from functools import lru_cache
from typing import Literal

#: How code turns a value that is not a string into text: ``amem`` blanks whatever is falsy, ``mem0`` writes ``None`` as
#: a word, ``gam`` blanks ``None`` alone.
ValueRule = Literal["amem", "mem0", "gam"]

CACHE_SIZE = 1 << 16

_AMEM_BLANKS = str.maketrans(".,!?", "    ")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_WORDS = re.compile(r"\b\w+\b")
_NO_WORD = re.compile(r"[^\w\s]")
# One pass over overlapping blanks: of two adjacent articles the second survives, as in GAM's code.
_GAM_ARTICLES = re.compile(r"(^|\s)(a|an|the)(\s|$)")
_SQUAD_ARTICLES = re.compile(r"\b(a|an|the)\b")
_LOCOMO_ARTICLES = re.compile(r"\b(a|an|the|and)\b")


def as_text(value: object, rule: ValueRule = "gam") -> str:
    """Turn any value into the text that a code base scores."""
    if isinstance(value, str):
        return value
    if value is None:
        return "None" if rule == "mem0" else ""
    return "" if rule == "amem" and not value else str(value)


@lru_cache(maxsize=CACHE_SIZE)
def amem_tokens(text: str) -> tuple[str, ...]:
    """Split lower-cased text at white space and at ``. , ! ?``.

    Source: A-Mem and CLAG ``utils.py``, mem0 ``metrics/utils.py``.
    """
    return tuple(text.lower().translate(_AMEM_BLANKS).split())


@lru_cache(maxsize=CACHE_SIZE)
def word_tokens(text: str) -> tuple[str, ...]:
    """Return the lower-cased runs of word characters. Source: MemoryOS ``eval/evalution_loco.py``."""
    return tuple(_WORDS.findall(text.lower()))


@lru_cache(maxsize=CACHE_SIZE)
def gam_tokens(text: str) -> tuple[str, ...]:
    """Return the lower-cased tokens without punctuation and (one pass of) articles. Source: GAM ``locomo_test.py``."""
    return tuple(_GAM_ARTICLES.sub(" ", _NO_WORD.sub(" ", text.lower())).split())


@lru_cache(maxsize=CACHE_SIZE)
def squad_tokens(text: str) -> tuple[str, ...]:
    """Return lower-cased tokens without ASCII punctuation (words join) and articles. Source: SQuAD, HotpotQA."""
    return tuple(_SQUAD_ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())


@lru_cache(maxsize=CACHE_SIZE)
def locomo_tokens(text: str) -> tuple[str, ...]:
    """Return tokens as :func:`squad_tokens`, without the word "and". Source: LoCoMo ``task_eval/evaluation.py``."""
    return tuple(_LOCOMO_ARTICLES.sub(" ", text.lower().translate(_DELETE_PUNCTUATION)).split())
