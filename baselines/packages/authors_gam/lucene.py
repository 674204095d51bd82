"""Replacement of Pyserini in the worker of GAM's released code: Lucene's words, stems, lengths and scores.

Written apart from :mod:`baselines.gam.lucene`, which it is compared with. Nothing but the standard library.
"""

import json
import math
import re
import types
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

#: File of an index's documents.
DOCUMENTS = "documents.jsonl"
K1, B = 0.9, 0.4  # Pyserini's; the worker is told them
_FUNCTION_WORDS = """
a an and are as at be but by for if in into is it no not of on or such
that the their then there these they this to was will with
"""
#: Lucene's ``EnglishAnalyzer``.
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
_BETWEEN_LETTERS, _BETWEEN_DIGITS = ":.·'‘’", ".,;'‘’"


def run(command: list[str], **named: Any) -> None:
    """Replace ``subprocess.run`` for indexing: keep the documents in the index's folder."""
    given = dict(pairwise(command))
    text = Path(given["--input"], DOCUMENTS).read_text(encoding="utf-8")
    Path(given["--index"], DOCUMENTS).write_text(text, encoding="utf-8")


class LuceneSearcher:
    """Documents of an index, found by BM25."""

    def __init__(self, folder: str) -> None:
        lines = Path(folder, DOCUMENTS).read_text(encoding="utf-8").split("\n")
        given = [json.loads(line) for line in lines if line]
        self._names = [document["id"] for document in given]
        self._counts = [Counter(analysed(document["contents"])) for document in given]
        self._holding = Counter(word for counts in self._counts for word in counts)
        lengths = [sum(counts.values()) for counts in self._counts]
        self._mean = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._kept = [byte_length(length) for length in lengths]

    def search(self, query: str, k: int) -> list[Any]:
        """Return the best documents that contain a word of the query, ties in the order of their names."""
        sought = Counter(analysed(query))
        found = [
            (round(score, 6), name, score)
            for place, name in enumerate(self._names)
            if (score := self._score(place, sought)) > 0
        ]
        found.sort(key=lambda entry: (-entry[0], entry[1]))
        return [types.SimpleNamespace(docid=name, score=score) for _, name, score in found[:k]]

    def _score(self, place: int, sought: Counter[str]) -> float:
        counts, norm = self._counts[place], K1 * (1 - B + B * self._kept[place] / self._mean)
        return math.fsum(
            repeats * self._idf(word) * counts[word] / (counts[word] + norm)
            for word, repeats in sought.items()
            if word in counts
        )

    def _idf(self, word: str) -> float:
        holding = self._holding[word]
        return math.log(1 + (len(self._names) - holding + 0.5) / (holding + 0.5))


def byte_length(length: int) -> int:
    """Return ``SmallFloat.byte4ToInt(SmallFloat.intToByte4(length))``, which keeps four bits above 24."""
    if length < 24:
        return length
    rest, shift = length - 24, 0
    while rest >> shift >= 16:
        shift += 1
    return 24 + ((rest >> shift) << shift)


def analysed(text: str) -> list[str]:
    """Analyse a text as Anserini's ``DefaultEnglishAnalyzer``."""
    found = []
    for token in tokens(text):
        word = token[:-2] if token[-2:] in ("'s", "’s", "'S", "’S") else token
        word = word.lower()
        if word and word not in STOP_WORDS:
            found.append(stemmed(word))
    return found


def tokens(text: str) -> list[str]:
    """Return the words by Unicode's rules, as far as LoCoMo's English needs them."""
    found: list[str] = []
    end = -1  # where the last word ends
    for match in re.finditer(r"\w+", text):
        start = match.start()
        if found and start == end + 1 and _joined(text[end - 1], text[end], text[start]):
            found[-1] += text[end] + match[0]
        else:
            found.append(match[0])
        end = match.end()
    return found


def _joined(before: str, sign: str, after: str) -> bool:
    if before.isalpha() and after.isalpha():
        return sign in _BETWEEN_LETTERS
    return before.isdigit() and after.isdigit() and sign in _BETWEEN_DIGITS


# Porter's algorithm (1980), with the two changes of his own program, which Lucene's has too

_STEP_2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("logi", "log"),
)  # fmt: skip
_STEP_3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


@cache
def stemmed(word: str) -> str:
    """Return the stem of a word in small letters."""
    if len(word) <= 2:
        return word
    word = _plural(word)
    word = _past(word)
    if word.endswith("y") and _has_vowel(word[:-1]):
        word = f"{word[:-1]}i"
    word = _replaced(_replaced(word, _STEP_2), _STEP_3)
    return _final(_stripped(word))


def _shape(word: str) -> str:
    """Return ``v`` and ``c`` for each letter."""
    shape = ""
    for place, letter in enumerate(word):
        vowel = letter in "aeiou" or (letter == "y" and place > 0 and shape[-1] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(stem: str) -> int:
    return len(re.findall(r"v+c+", _shape(stem)))


def _has_vowel(stem: str) -> bool:
    return "v" in _shape(stem)


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short(word: str) -> bool:
    """Return whether a word ends in consonant, vowel, consonant, the last not w, x or y."""
    return len(word) > 2 and _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _plural(word: str) -> str:
    for ending, other in (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", "")):
        if word.endswith(ending):
            return word[: len(word) - len(ending)] + other
    return word


def _past(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and _has_vowel(stem):
            return _mended(stem)
        if word.endswith(ending):
            return word
    return word


def _mended(stem: str) -> str:
    if stem.endswith(("at", "bl", "iz")):
        return f"{stem}e"
    if _doubled(stem):
        return stem if stem[-1] in "lsz" else stem[:-1]
    return f"{stem}e" if _measure(stem) == 1 and _short(stem) else stem


def _replaced(word: str, endings: tuple[tuple[str, str], ...]) -> str:
    """Replace the longest of these endings of a word, where enough letters precede it."""
    for ending, other in sorted(endings, key=lambda pair: -len(pair[0])):
        if word.endswith(ending):
            stem = word[: len(word) - len(ending)]
            return stem + other if _measure(stem) > 0 else word
    return word


def _stripped(word: str) -> str:
    for ending in sorted(_STEP_4, key=len, reverse=True):
        if word.endswith(ending):
            stem = word[: len(word) - len(ending)]
            taken = _measure(stem) > 1 and (ending != "ion" or stem.endswith(("s", "t")))
            return stem if taken else word
    return word


def _final(word: str) -> str:
    if word.endswith("e"):
        stem = word[:-1]
        if _measure(stem) > 1 or (_measure(stem) == 1 and not _short(stem)):
            word = stem
    if word.endswith("ll") and _measure(word) > 1:
        word = word[:-1]
    return word
