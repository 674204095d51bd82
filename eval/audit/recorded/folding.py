"""Texts of questions without the differences that files bring: three ways of comparing, the strictest first."""

import re
import unicodedata
from collections.abc import Callable

#: What programs write for an apostrophe; inside a word it separates nothing.
_APOSTROPHES = re.compile("['`\u00b4\u02b9\u02bc\u2018\u2019\u201b\u2032\uff07]")
#: Accents on letters of Latin, Greek and Cyrillic; vowel signs and sound marks of other scripts are letters.
_ACCENTS = re.compile("[\u0300-\u036f]")


def normal(text: str) -> str:
    """Return a text without differences of case and white space."""
    return " ".join(text.split()).casefold()


def folded(text: str) -> str:
    """Return a text without differences of form (NFKC), case, white space and punctuation, and without format signs."""
    text = _APOSTROPHES.sub("", unicodedata.normalize("NFKC", text)).casefold()
    letters = (_without_punctuation(letter) for letter in unicodedata.normalize("NFKC", text))
    return " ".join("".join(letters).split())


def without_accents(text: str) -> str:
    """Return a folded text without accents."""
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", folded(text)))


#: Ways of comparing two texts; a looser one counts where no stricter one finds anything.
COMPARISONS: tuple[Callable[[str], str], ...] = (normal, folded, without_accents)


def _without_punctuation(letter: str) -> str:
    category = unicodedata.category(letter)
    if category.startswith("P"):
        return " "
    return "" if category == "Cf" else letter
