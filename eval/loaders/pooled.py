"""Question-answering sets turned into memories, as CLAG does it: passages become turns of one session.

A pool is one memory: the passages of several questions, each question's passages acting as the others' distractors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eval.loaders.selection import Selection, check_positive
from memsys.errors import ConfigError, DataError
from memsys.vocabulary import Conversation, Json, Question, Reference, Sample, Turn

SPEAKER = "System"
SESSION = "session_0"


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """One question with its gold passages, given as positions in the pool's texts."""

    source_id: str
    text: str
    answer: str
    category: int
    gold: Sequence[int]
    kind: str = ""
    extra: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PooledSelection(Selection):
    """Settings of both pooled sets; see :class:`eval.loaders.selection.Selection` for the rest.

    Attributes:
        date_time: of every turn; ``None`` for none. Passages have no date; CLAG's builders stamp a constant on them,
            which its notes and contexts then show.
        pools: number of pools, where they are built; a sample gives as many as it has questions for.
        pool_questions: questions per pool, likewise.
    """

    date_time: str | None = None
    pools: int = 10
    pool_questions: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.date_time is not None and not isinstance(self.date_time, str):
            raise ConfigError(f"dataset.date_time={self.date_time!r} must be text (in quotes), or null for none")
        for name in ("pools", "pool_questions"):
            check_positive(name, getattr(self, name))

    def pool_sizes(self, usable: int) -> tuple[int, int]:
        """Return pools and questions per pool; a sample's are cut to what it has.

        Args:
            usable: questions there are.

        Raises:
            ConfigError: the published files have fewer questions than are wanted.
            DataError: there is none at all.
        """
        if not usable:
            raise DataError("the data set holds no question that can be used")
        if self.sample:
            each = min(self.pool_questions, usable)
            return min(self.pools, usable // each), each
        if self.pools * self.pool_questions > usable:
            raise ConfigError(
                f"dataset.pools={self.pools} of dataset.pool_questions={self.pool_questions} need "
                f"{self.pools * self.pool_questions} questions, the source has {usable} usable ones"
            )
        return self.pools, self.pool_questions


@dataclass(frozen=True, slots=True)
class PooledText:
    """One text of a pool, and the record (article, snippet) that it is a part of."""

    text: str
    record: str


def make_pool(
    prefix: str, number: int, texts: Sequence[PooledText], questions: Sequence[PooledQuestion], date_time: str | None
) -> Sample:
    """Make the sample of one pool; turn ids are ``<number>:<position>``, as in CLAG's files."""
    conversation_id = f"{prefix}-{number}"
    turns = tuple(
        Turn(f"{number}:{n}", SESSION, SPEAKER, text.text, date_time or "", extra={"record": text.record})
        for n, text in enumerate(texts)
    )
    asked = tuple(
        Question(
            f"{conversation_id}:{question.source_id}", conversation_id, question.text, question.category, question.kind
        )
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
