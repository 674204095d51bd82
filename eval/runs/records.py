"""Records of a run directory: one type per file.

``run.json``            :class:`eval.runs.run_json.RunRecord` (see there)
``conversations.jsonl`` one :class:`ConversationRecord` per ingested conversation
``answers.jsonl``       one :class:`AnswerRecord` per answered question, in the order they finished
``retrievals.jsonl``    one :class:`RetrievalRecord` per answered question
``settled.jsonl``       one :class:`SettledRecord` per question closed without an answer, where there is one
``calls.jsonl``         one :class:`memsys.llm.ledger.CallRecord` per request to the backbone, cached ones too
``repeated_calls.jsonl``  the same for calls that were paid and are no part of the method's cost: of a warm-up, made
                        again by a resumed run without a reply cache, or with a reply that was no completion
``references.jsonl``    one :class:`ReferenceRecord` per question of the run: scoring needs no data set
``updates.jsonl``       one :class:`UpdatesRecord` per conversation, where the data set says which turns are overruled
``judgements/``         verdicts of judges, see :mod:`eval.scoring.verdicts.store`
``scores.jsonl``        one :class:`ScoreRow` per question
``summary.json``        see :mod:`eval.scoring.summary`

Records are joined by ``question_id`` (unique within a run), never by position.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from eval.loaders.question_types import kind_of
from memsys.llm.outcomes import Outcome, outcome_of
from memsys.rows import RowError
from memsys.vocabulary import Json, RankingName, check_rankings, check_shown

#: Version of the files above; raised whenever a reader of old files would misread new ones.
SCHEMA_VERSION = 1
#: Phase of the calls that a judge made.
JUDGING: Final = "judge"


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """One ingested conversation: sizes, seconds, the system's statistics."""

    conversation_id: str
    turns: int
    units: int
    ingest_seconds: float
    prepare_seconds: Sequence[float]
    write_seconds: Sequence[float]
    consolidate_seconds: float
    statistics: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One answered question.

    ``raw`` is the reader's reply, ``prediction`` what is scored; ``malformed`` says that the reply did not parse and
    the raw text was taken. ``options`` are the two choices of category 5 in the order shown, else empty.
    ``retrieve_seconds`` and ``answer_seconds`` are wall time of the two steps; ``measured`` is true when both were
    timed one at a time without the cache (latency mode, after warm-up), so that tables may use them. Times and tokens
    are ``None`` in externally recorded answers (:mod:`eval.audit.recorded`), which were not timed. ``reason`` says
    why the reply is none where it is empty or malformed.
    """

    question_id: str
    conversation_id: str
    category: int
    question: str
    prediction: str
    raw: str
    malformed: bool
    options: Sequence[str]
    retrieve_seconds: float | None
    answer_seconds: float | None
    measured: bool
    prompt_tokens: int | None
    completion_tokens: int | None
    reason: str = ""

    @property
    def outcome(self) -> Outcome:
        """Outcome of the question; see :mod:`memsys.llm.outcomes`."""
        return outcome_of(self.prediction, malformed=self.malformed)

    @property
    def measured_seconds(self) -> tuple[float, float]:
        """Seconds of retrieval and answer of an answer that was measured.

        Raises:
            ValueError: it was not timed.
        """
        if self.retrieve_seconds is None or self.answer_seconds is None:
            raise ValueError(f"the answer to {self.question_id} was not timed")
        return self.retrieve_seconds, self.answer_seconds


@dataclass(frozen=True, slots=True)
class SettledRecord:
    """One question that is closed without an answer: ``outcome`` is ``withheld`` or ``failed``, ``reason`` says why."""

    question_id: str
    conversation_id: str
    category: int
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class HitRecord:
    """One retrieved memory, best first; see :class:`memsys.vocabulary.Hit`."""

    memory_id: str
    text: str
    score: float
    turn_ids: Sequence[str]


@contextmanager
def _refused_in(name: str) -> Iterator[None]:
    """Turn what a check of a field raises into the error of a row, which names the field."""
    try:
        yield
    except ValueError as error:
        raise RowError(str(error), name) from error


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """Retrieval of one question. ``context_tokens`` counts with the backbone's tokenizer, ``None`` where unknown.

    ``ranked`` to ``also_shown``: see :class:`memsys.vocabulary.Retrieval`. In rows of versions without ``shown`` or
    ``also_shown`` they are ``None``, whatever the context left out or shows besides; :mod:`eval.scoring.shown` tells.
    """

    question_id: str
    conversation_id: str
    category: int
    hits: Sequence[HitRecord]
    context: str
    context_chars: int
    context_tokens: int | None
    trace: Mapping[str, Json] = field(default_factory=dict)
    ranked: bool = True
    traced: bool = True
    shown: Sequence[int] | None = None
    rankings: Mapping[RankingName, Sequence[int]] = field(default_factory=dict)
    also_shown: Sequence[HitRecord] | None = None

    def __post_init__(self) -> None:
        with _refused_in("shown"):
            check_shown(self.shown, len(self.hits))
        with _refused_in("rankings"):
            check_rankings(self.rankings, len(self.hits))


@dataclass(frozen=True, slots=True)
class ReferenceRecord:
    """Gold of one question, copied into the run so that scoring needs neither data set nor model.

    ``evidence_texts`` are the gold turns' plain texts, for substring matching; ``kind`` is what is asked
    (:mod:`eval.loaders.question_types`), in rows of older versions derived from the category. ``evidence_sessions``
    counts the sessions that the gold turns lie in; ``None`` in rows of older versions.
    """

    question_id: str
    conversation_id: str
    category: int
    answers: Sequence[str]
    adversarial_answer: str | None
    evidence: Sequence[str]
    unresolved_evidence: Sequence[str]
    evidence_texts: Sequence[str]
    extra: Mapping[str, Json] = field(default_factory=dict)
    kind: str = ""
    evidence_sessions: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.kind, self.category))


@dataclass(frozen=True, slots=True)
class UpdatesRecord:
    """Gold of one conversation: turns that state the same thing again; see :class:`memsys.vocabulary.Sample`."""

    conversation_id: str
    updates: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """All scores of one question; ``None`` where there is nothing to score. ``kind``: see :class:`ReferenceRecord`."""

    question_id: str
    conversation_id: str
    category: int
    metrics: Mapping[str, float | None]
    kind: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.kind, self.category))


def question_text(answer: AnswerRecord | None, retrieval: RetrievalRecord | None) -> str:
    """Return the text of a question; a run without a reader keeps it as the query, or not at all."""
    if answer is not None:
        return answer.question
    return str(retrieval.trace.get("query", "")) if retrieval else ""
