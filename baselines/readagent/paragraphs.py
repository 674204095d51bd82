"""A text's smallest parts: a turn, or some sentences of a long one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from baselines.readagent.rules import PageRules
from memsys.scripts import SENTENCE_END, count_words
from memsys.turns import TurnFormat
from memsys.vocabulary import Turn

_SENTENCE_END = re.compile(SENTENCE_END)


@dataclass(frozen=True, slots=True)
class TranscriptParagraph:
    """Smallest part of a text. ``words``: see :func:`memsys.scripts.count_words`."""

    text: str
    turn_id: str
    date_time: str
    words: int


def paragraphs_of(turns: Sequence[Turn], turn_format: TurnFormat, rules: PageRules) -> list[TranscriptParagraph]:
    """Write turns as paragraphs, one each; a long turn becomes several."""
    found: list[TranscriptParagraph] = []
    session = None
    for turn in turns:
        text = turn_format.render(turn)
        if rules.dates == "inline" and turn.session_id != session and turn.date_time:
            text = f"[{turn.date_time}]\n{text}"
        session = turn.session_id
        parts = _split(text, rules.split_words)
        found += [TranscriptParagraph(part, turn.turn_id, turn.date_time, count_words(part)) for part in parts]
    return found


def _split(text: str, limit: int | None) -> list[str]:
    if limit is None or count_words(text) <= limit:
        return [text]
    return list(_packed(_SENTENCE_END.split(text), limit))


def _packed(sentences: Sequence[str], limit: int) -> Iterator[str]:
    """Join sentences while they have at most ``limit`` words; a longer sentence is a part of its own."""
    packed: list[str] = []
    words = 0
    for sentence in sentences:
        size = count_words(sentence)
        if packed and words + size > limit:
            yield " ".join(packed)
            packed, words = [], 0
        packed.append(sentence)
        words += size
    yield " ".join(packed)
