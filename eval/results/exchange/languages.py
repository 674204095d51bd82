"""Language and script of texts, as MTEB names them: ISO 639-3 and ISO 15924."""

from collections.abc import Iterable

import regex

#: Scripts as Unicode names them -> language and script; ``und`` where several languages share the script.
_SCRIPTS = {
    "Latin": "und-Latn", "Cyrillic": "und-Cyrl", "Arabic": "und-Arab", "Devanagari": "und-Deva", "Bengali": "und-Beng",
    "Greek": "ell-Grek", "Hebrew": "heb-Hebr", "Thai": "tha-Thai", "Hangul": "kor-Kore", "Armenian": "hye-Armn",
    "Georgian": "kat-Geor", "Tamil": "tam-Taml", "Telugu": "tel-Telu", "Hiragana": "jpn-Jpan", "Katakana": "jpn-Jpan",
    "Han": "zho-Hani",
}  # fmt: skip
_OTHER = "und-Zyyy"
#: Share of kana among the characters of a text from which on it is Japanese; Chinese has none but in names.
_JAPANESE = 0.1
_LETTERS = regex.compile("|".join(f"(?P<{name}>\\p{{{name}}}+)" for name in _SCRIPTS))


def language_of(texts: Iterable[str], latin: str) -> str:
    """Return language and script of texts by the letters that most of them are.

    Args:
        texts: what was said.
        latin: ISO 639-3 code of the language where the letters are Latin.
    """
    counts: dict[str, int] = {}
    for text in texts:
        for run in _LETTERS.finditer(text):
            code = _SCRIPTS[str(run.lastgroup)]
            counts[code] = counts.get(code, 0) + len(run.group())
    kana = counts.get("jpn-Jpan", 0)
    if kana and kana >= _JAPANESE * (kana + counts.get("zho-Hani", 0)):
        counts["jpn-Jpan"] += counts.pop("zho-Hani", 0)
    found = max(counts, key=counts.__getitem__, default=_OTHER)
    return f"{latin}-Latn" if found == "und-Latn" else found
