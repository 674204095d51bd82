"""Density of the answer's words in retrieved blocks (xMemory, section 5.2, figure 4 and table 3).

A block is one hit: a chunk, a fact, or an episode with the messages it brought. Pure functions over texts.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from eval.scoring.means import mean_if_known, mean_or_none
from memsys.index.words import STOP_WORDS

_WORD = re.compile(r"[a-z0-9]+")

#: From this many distinct answer words on, a block is a multi-hit.
MULTI = 3


@lru_cache(maxsize=1 << 16)  # a block is retrieved for many questions
def content_words(text: str) -> frozenset[str]:
    """Return the distinct words of a text: lower-case runs of letters and digits, without stop words.

    The paper does not name its list of stop words; this one is the harness's.
    """
    return frozenset(word for word in _WORD.findall(text.lower()) if word not in STOP_WORDS)


def hits_of(answer: frozenset[str], blocks: Sequence[str]) -> list[int]:
    """Count, for each block, the distinct answer words in it."""
    return [len(answer & content_words(block)) for block in blocks]


def hit_shares(hits: Sequence[int]) -> dict[str, float | None]:
    """Return the shares of 1-hit, 2-hit and multi-hit blocks among all blocks, also those without a hit."""
    count = len(hits)
    if not count:
        return {"1": None, "2": None, "multi": None}
    return {
        "1": sum(hit == 1 for hit in hits) / count,
        "2": sum(hit == 2 for hit in hits) / count,
        "multi": sum(hit >= MULTI for hit in hits) / count,
    }


def prefix_cover(answer: frozenset[str], blocks: Sequence[str]) -> int | None:
    """Return how many blocks, from the first, hold all answer words together; ``None`` if all blocks do not."""
    missing = set(answer)
    for number, block in enumerate(blocks, start=1):
        missing -= content_words(block)
        if not missing:
            return number
    return None


def greedy_cover(answer: frozenset[str], blocks: Sequence[str]) -> list[int] | None:
    """Return the places of few blocks that hold all answer words, the one with most new words first each time."""
    words = [content_words(block) for block in blocks]
    missing, chosen = set(answer), []
    while missing:
        gains = [len(missing & held) for held in words]
        if not gains or not max(gains):
            return None
        chosen.append(gains.index(max(gains)))
        missing -= words[chosen[-1]]
    return chosen


@dataclass(frozen=True, slots=True)
class Retrieved:
    """One question: its answer's words, the blocks in rank order, and how many tokens each has, where that is known."""

    answer: frozenset[str]
    blocks: Sequence[str]
    tokens: Sequence[float] | None


def coverage(questions: Sequence[Retrieved]) -> dict[str, float | int | None]:
    """Average the cost of covering the answer over questions whose answers have content words.

    ``blocks`` and ``tokens``: counted from the first block, a question that stays uncovered costs all its blocks (the
    only reading under which the printed averages exceed the number of answer words). ``blocks_covered`` and
    ``tokens_covered``: covered questions alone. ``blocks_greedy``: a small covering set. ``covered``: their share.
    Tokens are ``None`` where those of a question's blocks are not known.
    """
    asked = [question for question in questions if question.answer]
    ends = [prefix_cover(question.answer, question.blocks) for question in asked]
    spent = [len(question.blocks) if end is None else end for question, end in zip(asked, ends, strict=True)]
    tokens = [
        None if question.tokens is None else sum(question.tokens[:end])
        for question, end in zip(asked, spent, strict=True)
    ]
    covered = [place for place, end in enumerate(ends) if end is not None]
    sets = [greedy_cover(asked[place].answer, asked[place].blocks) or [] for place in covered]
    return {
        "questions": len(asked),
        "covered": mean_or_none([float(end is not None) for end in ends]),
        "blocks": mean_or_none(spent),
        "tokens": mean_if_known(tokens),
        "blocks_covered": mean_or_none([spent[place] for place in covered]),
        "tokens_covered": mean_if_known([tokens[place] for place in covered]),
        "blocks_greedy": mean_or_none([len(chosen) for chosen in sets]),
    }
