"""Heuristics for metadata that a staged reply does not give, from the content alone.

Source: WujiangXu/A-mem, March 2026: which words count, how many are taken, and what a first sentence is.
"""

import re
from dataclasses import dataclass

from memsys.index.words import STOP_WORDS
from memsys.settings import check_minimum

_ALSO_STOPPED = """
dare need ought said says speaker used
above after again all because before below between both during each few further just more most nor not off once only
other out over own same some such through too under very while
"""
_NOT_STOPPED = "having her hers him his mine must our ours their theirs them whose yours"
_STOPPED = (STOP_WORDS | set(_ALSO_STOPPED.split())) - set(_NOT_STOPPED.split())


@dataclass(frozen=True, slots=True)
class HeuristicRules:
    """Settings of the heuristics (``memory.heuristics``; read by the staged calls alone).

    Attributes:
        keywords: words of the content.
        shortest_word: letters of such a word at least.
        tags: the first so many keywords.
        context_chars: of the content, where it has no first sentence.
    """

    keywords: int
    shortest_word: int
    tags: int
    context_chars: int

    def __post_init__(self) -> None:
        check_minimum(self, "memory.heuristics", keywords=0, shortest_word=1, tags=0, context_chars=1)


def salient_words(content: str, rules: HeuristicRules) -> list[str]:
    """Return distinct words in lower case, those first that are capitalised where they begin.

    Function words are left out, and what the line of a turn adds to its speaker's name.
    """
    capitalised: dict[str, bool] = {}
    for word in re.findall(rf"\b[a-zA-Z]{{{rules.shortest_word},}}\b", content):
        if word.lower() not in _STOPPED:
            capitalised.setdefault(word.lower(), word[0].isupper())
    return sorted(capitalised, key=lambda word: not capitalised[word])[: rules.keywords]


def first_sentence(content: str, rules: HeuristicRules) -> str:
    """Return the first line's first sentence, if text follows it; else the beginning of the content."""
    found = re.match(r"(.+?[.!?])\s", content)
    return (found.group(1) if found else content[: rules.context_chars]).strip()
