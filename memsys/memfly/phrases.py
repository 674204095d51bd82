"""From what a model calls keywords to phrases that can be compared: one normaliser for turns and for questions."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from memsys.index.words import STOP_WORDS, words
from memsys.scripts import has_joined_words, without_punctuation

_ARTICLES = re.compile(r"^(?:(?:a|an|the)\s+)+")
_DIGITS = re.compile(r"\d+")
_CAPITALISED = re.compile(r"\b[A-Z][\w'’-]*(?:[ ]+[A-Z][\w'’-]*)*")
_ROLE_WORDS = frozenset({"user", "assistant", "speaker"})


def normalised(phrase: str) -> str:
    """Return the canonical key of a phrase: NFKC, lower case, without punctuation and leading articles."""
    plain = without_punctuation(unicodedata.normalize("NFKC", phrase).casefold()).replace("_", " ")
    return _ARTICLES.sub("", " ".join(plain.split()))


def digits_differ(one: str, other: str) -> bool:
    """Return whether both phrases hold numbers, and not the same: such phrases name different things."""
    first, second = _DIGITS.findall(one), _DIGITS.findall(other)
    return bool(first and second) and first != second


def is_keyword(key: str, max_words: int) -> bool:
    """Return whether a canonical key can be a keyword: not empty, not too long, not only function words."""
    parts = key.split()
    return 0 < len(parts) <= max_words and key not in _ROLE_WORDS and not STOP_WORDS.issuperset(parts)


def turn_keywords(phrases: Iterable[str], speakers: Iterable[str], text: str, limits: tuple[int, int]) -> list[str]:
    """Choose the keywords of a turn from the phrases a model gave, in order, equal keys once.

    Args:
        phrases: as given.
        speakers: of the turn; a phrase that is only a speaker's name counts where the text itself names it.
        text: of the turn, without the speaker's label.
        limits: number of keywords, and words of one.
    """
    count, max_words = limits
    said = f" {normalised(text)} "
    names = {name for name in map(normalised, speakers) if f" {name} " not in said}
    chosen: dict[str, str] = {}
    for phrase in phrases:
        surface = " ".join(phrase.split())
        key = normalised(surface)
        if is_keyword(key, max_words) and key not in names:
            chosen.setdefault(key, surface)
    return list(chosen.values())[:count]


def fallback_phrases(text: str, letters: int) -> list[str]:
    """Find phrases without a model: runs of capitalised words; else content words of so many letters or more.

    Pairs of characters of a script without spaces count whatever their length.
    """
    spans = [span for span in _CAPITALISED.findall(text) if not STOP_WORDS.issuperset(normalised(span).split())]
    return spans or [word for word in words(text) if len(word) >= letters or has_joined_words(word)]


def question_keywords(phrases: Sequence[str], max_words: int) -> list[str]:
    """Choose the keywords of a question, in order, equal keys once; long ones are dropped as a turn's are."""
    chosen: dict[str, str] = {}
    for phrase in phrases:
        surface = " ".join(phrase.split())
        key = normalised(surface)
        if is_keyword(key, max_words):
            chosen.setdefault(key, surface)
    return list(chosen.values())
