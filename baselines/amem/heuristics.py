"""What stands in for metadata that a staged reply does not give, from the content alone.

Source: WujiangXu/A-mem, March 2026: which words count, how many are taken, and what a first sentence is.
"""

import re

from memsys.index.words import STOP_WORDS

KEYWORDS = 5
TAGS = 3
#: Characters of a content that stand for its first sentence where it has none.
CONTEXT_CHARS = 200

_ALSO_STOPPED = """
dare need ought said says speaker used
above after again all because before below between both during each few further just more most nor not off once only
other out over own same some such through too under very while
"""
_NOT_STOPPED = "having her hers him his mine must our ours their theirs them whose yours"
_STOPPED = (STOP_WORDS | set(_ALSO_STOPPED.split())) - set(_NOT_STOPPED.split())


def salient_words(content: str, limit: int = KEYWORDS) -> list[str]:
    """Return distinct words of three letters or more in lower case, those first that are capitalised where they begin.

    Function words are left out, and what the line of a turn adds to its speaker's name.
    """
    capitalised: dict[str, bool] = {}
    for word in re.findall(r"\b[a-zA-Z]{3,}\b", content):
        if word.lower() not in _STOPPED:
            capitalised.setdefault(word.lower(), word[0].isupper())
    return sorted(capitalised, key=lambda word: not capitalised[word])[:limit]


def first_sentence(content: str) -> str:
    """Return the first line's first sentence, if text follows it; else the beginning of the content."""
    found = re.match(r"(.+?[.!?])\s", content)
    return (found.group(1) if found else content[:CONTEXT_CHARS]).strip()
