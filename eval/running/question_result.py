"""Retrieval and answer of one question, and the records that are stored of them."""

from dataclasses import dataclass

from eval.running.reader import Answer
from eval.runs.records import AnswerRecord, HitRecord, RetrievalRecord
from memsys.vocabulary import Question, Retrieval


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question's retrieval and answer with the wall time of both steps, in seconds.

    ``answer`` is ``None`` in a retrieval-only run.
    """

    retrieval: Retrieval
    answer: Answer | None
    retrieve_seconds: float
    answer_seconds: float


def retrieval_record(question: Question, retrieval: Retrieval, tokens: int | None) -> RetrievalRecord:
    """Make the stored form of a retrieval; ``tokens`` are those of its context, ``None`` where they are not counted."""
    hits, also_shown = (
        [HitRecord(hit.memory_id, hit.text, float(hit.score), list(hit.turn_ids)) for hit in memories]
        for memories in (retrieval.hits, retrieval.also_shown)
    )
    return RetrievalRecord(
        question_id=question.question_id,
        conversation_id=question.conversation_id,
        category=question.category,
        hits=hits,
        context=retrieval.context,
        context_chars=len(retrieval.context),
        context_tokens=tokens,
        trace=dict(retrieval.trace),
        ranked=retrieval.ranked,
        traced=retrieval.traced,
        shown=None if retrieval.shown is None else list(retrieval.shown),
        rankings={name: list(places) for name, places in retrieval.rankings.items()},
        also_shown=also_shown,
    )


def answer_record(question: Question, asked: QuestionResult, *, measured: bool) -> AnswerRecord:
    """Make the stored form of an answer.

    Args:
        question: that was asked.
        asked: what came of it.
        measured: whether it was timed alone, with fresh replies.

    Raises:
        ValueError: there is no answer.
    """
    answer = asked.answer
    if answer is None:
        raise ValueError("a retrieval-only question has no answer to store")
    return AnswerRecord(
        question_id=question.question_id,
        conversation_id=question.conversation_id,
        category=question.category,
        question=question.text,
        prediction=answer.prediction,
        raw=answer.raw,
        malformed=answer.malformed,
        options=list(answer.options),
        retrieve_seconds=asked.retrieve_seconds,
        answer_seconds=asked.answer_seconds,
        measured=measured,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        reason=answer.reason,
    )
