"""Text in any script: which words spaces do not separate, and the parts that a text is compared by.

Chinese, Japanese, Thai, Lao, Khmer and Burmese have no spaces between words; Korean writes particles onto its words.
Their text is taken character by character, a character with the marks that belong to it, as CMRC 2018, MLQA and
KorQuAD score it; all other text is taken word by word. Marks of vowels and tones are parts of words (Unicode annex 29),
which the word characters of Python's ``re`` do not include.
"""

import re
import unicodedata
from itertools import pairwise

import regex

#: Letters of the scripts whose words no space separates, and of Korean.
_JOINED = (
    r"[[\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\u3005-\u3007\u30fc]"
    r"&&[\p{L}\p{Nl}]]"
)
_CHARACTER = rf"{_JOINED}\p{{M}}*+"
_WORD = rf"[[\p{{L}}\p{{N}}_]--{_JOINED}][[\p{{L}}\p{{N}}\p{{Mn}}\p{{Mc}}_]--{_JOINED}]*+"
#: A letter with a mark, variants of emoji apart, or with a joiner.
_MARKED = r"\p{L}[\p{M}--[\ufe00-\ufe0f]]|[\p{L}--\p{Latin}][\u200c\u200d]"
#: Emoji and flags.
_PICTURE = r"[\p{Extended_Pictographic}--[\p{L}\p{N}©®™]]|\p{Regional_Indicator}{2}"

#: Whatever text with other characters alone, such as Latin, Greek and Cyrillic, is not looked at further: for speed.
_MAY_NEED_CARE = re.compile(
    "[\u0130\u0131\u0300-\u036f\u0483-\u0489\u0530-\u1dff\u200c\u200d\u20d0-\u20ff\u2c00-\U0010ffff]"
)
_HAS_JOINED = regex.compile(_JOINED, regex.V1)
_HAS_MARKS = regex.compile(_MARKED, regex.V1)
#: What runs of word characters of ``re`` cut wrongly: the above, full-width letters and digits, and Turkish i.
_NEEDS_CARE = regex.compile(rf"{_JOINED}|{_MARKED}|[\uff10-\uff19\uff21-\uff3a\uff41-\uff5aİı\u0640]", regex.V1)
#: What takes about as many tokens as four Latin characters: characters of scripts without spaces and of Korean, their
#: punctuation, emoji. And as two: letters of other scripts and their marks. Characters per token of article 1 of the
#: Declaration of Human Rights by cl100k, o200k (OpenAI) and DeepSeek's vocabulary: 0.8, 1.2 and 1.6 in Chinese, 1.0,
#: 2.1 and 2.5 in Thai, 2.2, 3.9 and 3.5 in Russian, 1.0, 3.5 and 2.0 in Hindi, 5.2 in English.
_LIKE_FOUR = regex.compile(rf"{_JOINED}|{_PICTURE}|[\u3001-\u303f\uff01-\uff65]", regex.V1)
_LIKE_TWO = regex.compile(rf"[[\p{{L}}\p{{M}}]--\p{{Latin}}--{_JOINED}]", regex.V1)
_CHARACTERS_PER_TOKEN = 4
_RUNS = regex.compile(rf"((?:{_CHARACTER})++)|({_WORD})", regex.V1)
_CHARACTERS = regex.compile(_CHARACTER, regex.V1)
_PARTS = regex.compile(rf"{_CHARACTER}|{_WORD}|{_PICTURE}", regex.V1)
#: Pattern of what lies between two sentences: white space, or nothing after the marks of scripts that set none.
SENTENCE_END = r"(?<=[.!?])\s+|(?<=[。！？।؟])\s*(?=\S)"

_WORD_CHARACTERS = re.compile(r"\w+")
_NO_WORD = re.compile(r"[^\w\s]")
_NO_WORD_OR_MARK = regex.compile(r"(?<!\p{L}[\p{M}\u200c\u200d]*)\p{M}|[^\p{L}\p{N}\p{M}_\s\u200c\u200d]", regex.V1)
_OTHER_LETTERS = regex.compile(r"[\p{L}--\p{Latin}]", regex.V1)
_LATIN_LETTERS = regex.compile(r"\p{Latin}")
#: Joiners, and what Arabic and Hebrew write or leave out: lengthening, vowel points, accents.
_OPTIONAL = regex.compile(
    r"[\u200c\u200d\u0640\u064b-\u065f\u0670\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\ufe00-\ufe0f]"
)
_TURKISH_I = str.maketrans("İı", "Ii")


def needs_care(text: str) -> bool:
    """Return whether runs of word characters of ``re`` are other words of a text in small letters than :func:`runs`."""
    return _may_need_care(text) and _NEEDS_CARE.search(text) is not None


def has_joined_words(text: str) -> bool:
    """Return whether a text has words that no space separates, or Korean ones."""
    return _may_need_care(text) and _HAS_JOINED.search(text) is not None


def has_marks(text: str) -> bool:
    """Return whether a letter of a text is followed by a combining mark, at which ``re`` ends a word."""
    return _may_need_care(text) and _HAS_MARKS.search(text) is not None


def is_mostly_latin(text: str) -> bool:
    """Return whether at least half of a text's letters are Latin; true for a text without letters."""
    return text.isascii() or len(_OTHER_LETTERS.findall(text)) <= len(_LATIN_LETTERS.findall(text))


def fold(text: str) -> str:
    """Return a text as it is compared: NFKC, small letters, all forms of i one, without optional marks."""
    return str(_OPTIONAL.sub("", unicodedata.normalize("NFKC", text).translate(_TURKISH_I).lower()))


def parts(text: str) -> list[str]:
    """Split a text into characters of scripts without spaces, words of others, and emoji, all folded."""
    return list(_PARTS.findall(fold(text)))


def runs(text: str) -> list[list[str]]:
    """Split a text into its words, each a list of one, and into runs of characters between which no space is."""
    return [list(_CHARACTERS.findall(joined)) if joined else [word] for joined, word in _RUNS.findall(fold(text))]


def all_words(text: str) -> list[str]:
    """Split a text into lower-case words, in order, with repeats.

    Where no space separates words, pairs of neighbouring characters replace them, and a character alone between
    others for itself: what Lucene's ``CJKBigramFilter`` makes of Chinese, Japanese and Korean.
    """
    if needs_care(text):
        return [word for run in runs(text) for word in _bigrams(run)]
    return _WORD_CHARACTERS.findall(text.lower())


def count_words(text: str) -> int:
    """Count what is between white space; where no space separates words, characters of such scripts and words."""
    return sum(1 for _ in _PARTS.finditer(text)) if has_joined_words(text) else len(text.split())


def first_words(text: str, count: int) -> str:
    """Return the first N words of a text, as :func:`count_words` counts them."""
    if not has_joined_words(text):
        return " ".join(text.split()[:count])
    ends = [part.end() for part in _PARTS.finditer(text)][:count]
    return text[: ends[-1]] if ends else ""


def latin_length(text: str) -> int:
    """Return how many Latin characters take about as many tokens as a text; of a text of these alone, its length."""
    if text.isascii():
        return len(text)
    return len(text) + 3 * len(_LIKE_FOUR.findall(text)) + len(_LIKE_TWO.findall(text))


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text by its characters, by script; see :func:`latin_length`."""
    return -(-latin_length(text) // _CHARACTERS_PER_TOKEN)


def without_punctuation(text: str) -> str:
    """Put blanks for whatever is not a letter with its marks, no digit, no underscore and no white space."""
    return str((_NO_WORD_OR_MARK if has_marks(text) else _NO_WORD).sub(" ", text))


def _may_need_care(text: str) -> bool:
    return not text.isascii() and _MAY_NEED_CARE.search(text) is not None


def _bigrams(run: list[str]) -> list[str]:
    return run if len(run) == 1 else [first + second for first, second in pairwise(run)]
