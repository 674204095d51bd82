"""Question-answering sets turned into memories, as CLAG does it: passages become turns of one session.

A pool is one memory: the passages of several questions, each question's passages acting as the others' distractors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memsys.vocabulary import Conversation, Json, Question, Reference, Sample, Turn

SPEAKER = "System"
SESSION = "session_0"
#: The constant time stamp that CLAG's builders give to every passage.
DATE_TIME = "2020-01-01 00:00:00"


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """One question with its gold passages, given as positions in the pool's texts."""

    source_id: str
    text: str
    answer: str
    category: int
    gold: Sequence[int]
    extra: Mapping[str, Json] = field(default_factory=dict)


def make_pool(prefix: str, number: int, texts: Sequence[str], questions: Sequence[PooledQuestion]) -> Sample:
    """Make the sample of one pool; turn ids are ``<number>:<position>``, as in CLAG's files."""
    conversation_id = f"{prefix}-{number}"
    turns = tuple(
        Turn(turn_id=f"{number}:{n}", session_id=SESSION, speaker=SPEAKER, text=text, date_time=DATE_TIME)
        for n, text in enumerate(texts)
    )
    asked = tuple(
        Question(f"{conversation_id}:{question.source_id}", conversation_id, question.text, question.category)
        for question in questions
    )
    references = {
        ask.question_id: Reference(
            question_id=ask.question_id,
            answers=(question.answer,),
            evidence=tuple(turns[position].turn_id for position in question.gold),
            extra=dict(question.extra),
        )
        for ask, question in zip(asked, questions, strict=True)
    }
    conversation = Conversation(conversation_id, turns, speakers=(SPEAKER, "User"))
    return Sample(conversation=conversation, questions=asked, references=references)
