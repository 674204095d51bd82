"""Checks of loaded conversations from any loader, so that a run does not fail midway."""

from collections.abc import Collection, Iterable, Sequence

from memsys.counting import repeated
from memsys.errors import DataError
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn


def check_samples(samples: Sequence[Sample], categories: Collection[int] | None = None) -> None:
    """Refuse what a loader let through: a run of it would answer one question for another, or never be complete.

    Args:
        samples: conversations with their questions.
        categories: numbers that the data set has names for; ``None``: not checked.

    Raises:
        DataError: an id that must be unique is not, a conversation has no turn, a turn is not text, a question has no
            gold or is of another conversation or an unknown category, or evidence names no turn.
    """
    for sample in samples:
        conversation = sample.conversation
        _check_texts(f"the conversation {conversation.conversation_id!r}", conversation, "conversation_id")
        _check_turns(conversation)
        known = {turn.turn_id for turn in conversation.turns}
        for question in sample.questions:
            where = f"conversation {conversation.conversation_id!r}, question {question.question_id!r}"
            _check_question(question, sample, categories, where)
            _check_reference(sample.references[question.question_id], known, where)
    _check_unique("conversation", (sample.conversation.conversation_id for sample in samples), "the data set")
    _check_unique("question", (ask.question_id for sample in samples for ask in sample.questions), "the data set")


def _check_turns(conversation: Conversation) -> None:
    where = f"conversation {conversation.conversation_id!r}"
    if not conversation.turns:
        raise DataError(f"{where} has no turn; leave it out, or give its turns")
    for number, turn in enumerate(conversation.turns, 1):
        _check_texts(f"{where}: turn {number}", turn, "turn_id", "session_id", "speaker", "text")
    _check_unique("turn", (turn.turn_id for turn in conversation.turns), where)


def _check_question(question: Question, sample: Sample, categories: Collection[int] | None, where: str) -> None:
    _check_texts(where, question, "question_id", "conversation_id", "text")
    if question.question_id not in sample.references:
        raise DataError(f"{where}: has no reference; give one, without answers if there is no gold")
    if question.conversation_id != sample.conversation.conversation_id:
        raise DataError(f"{where}: says that it is of conversation {question.conversation_id!r}; correct it")
    if categories is not None and question.category not in categories:
        listed = ", ".join(map(str, categories))
        raise DataError(f"{where}: category {question.category!r} has no name; the data set names {listed}")


def _check_reference(reference: Reference, turns: Collection[str], where: str) -> None:
    for name in ("answers", "evidence", "unresolved_evidence"):
        value = getattr(reference, name)
        if not isinstance(value, tuple | list) or not all(isinstance(one, str) for one in value):
            raise DataError(f"{where}: {name} of its reference are {value!r}; they must be a tuple of texts")
    unknown = [turn_id for turn_id in reference.evidence if turn_id not in turns]
    if unknown:
        raise DataError(
            f"{where}: evidence {unknown[0]!r} names no turn of the conversation; correct it, or give it as "
            "unresolved_evidence"
        )


def _check_texts(where: str, of: Conversation | Turn | Question, *names: str) -> None:
    for name in names:
        if not isinstance(value := getattr(of, name), str):
            raise DataError(f"{where}: {name} is {value!r}; it must be a text")


def _check_unique(what: str, ids: Iterable[str], where: str) -> None:
    if duplicates := repeated(ids):
        raise DataError(f"{where}: duplicate {what} ids {duplicates[:3]!r}")
