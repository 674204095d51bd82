"""Questions without an answer: which are closed, with their reason, and when the server is what fails."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.runs.records import SettledRecord
from eval.runs.rundir import RunDirectory
from memsys.errors import BackboneError
from memsys.llm.outcomes import Outcome
from memsys.llm.refusals import ContextLengthError, RepeatedFailureError, RequestRefusedError
from memsys.vocabulary import Question

#: Errors of one request, of a server that may answer others.
OF_ONE_QUESTION = (RequestRefusedError, ContextLengthError, RepeatedFailureError)


@dataclass(frozen=True, slots=True)
class _Failed:
    """A question that failed: with which error, and how many others had been answered by then."""

    question: Question
    error: BackboneError
    answered: int


class Settling:
    """Closes the questions of a run that cannot be answered, unless the server is the reason.

    A question that failed is closed at the end of the run. Where no other was answered, or more than ``most_in_a_row``
    failed after all resends with no answer between them, the server is the reason, and they stay open. A server that
    says what is wrong with a request is there: such refusals count in no row, and answers of earlier parts of the run
    show that it takes others.

    Args:
        directory: of the run.
        most_in_a_row: failures in a row that may be those of the questions.
        answered_before: questions that earlier parts of the run answered.
    """

    def __init__(self, directory: RunDirectory, most_in_a_row: int, answered_before: int) -> None:
        self._directory, self._most, self._before = directory, most_in_a_row, answered_before
        self._answered = 0
        self._failed: list[_Failed] = []

    def answered(self) -> None:
        """Count a question that the server answered."""
        self._answered += 1

    def withheld(self, question: Question, outcome: Outcome, reason: str) -> None:
        """Close a question whose answer was withheld: the server is there."""
        self._answered += 1
        self._settle(question, outcome, reason)

    def failed(self, question: Question, error: BackboneError) -> None:
        """Keep a failure until the run has ended.

        Raises:
            BackboneError: the error, where too many questions have failed in a row.
        """
        self._failed.append(_Failed(question, error, self._answered))
        if len(self._in_a_row()) > self._most:
            raise error

    def close(self) -> dict[str, str]:
        """Close the questions that failed, but those which the server may have.

        Returns:
            Of each conversation with questions that stay open, what they failed with.
        """
        last = self._in_a_row()
        of_server = last if len(last) > self._most else []
        still_open = [one for one in self._failed if one in of_server or not self._takes_others(one)]
        for failed in self._failed:
            if failed not in still_open:
                self._settle(failed.question, "failed", str(failed.error))
        return _messages(still_open)

    def _takes_others(self, failed: _Failed) -> bool:
        before = 0 if isinstance(failed.error, RepeatedFailureError) else self._before
        return bool(self._answered or before)

    def _in_a_row(self) -> list[_Failed]:
        """Return the errors, after all retries, since the last answer."""
        repeated = [failed for failed in self._failed if isinstance(failed.error, RepeatedFailureError)]
        return [failed for failed in repeated if failed.answered == self._answered]

    def _settle(self, question: Question, outcome: Outcome, reason: str) -> None:
        record = SettledRecord(question.question_id, question.conversation_id, question.category, outcome, reason)
        self._directory.settle(record)


def _messages(failed: Sequence[_Failed]) -> dict[str, str]:
    """Return one message per conversation: the first error, and which questions failed."""
    found: dict[str, list[_Failed]] = {}
    for one in failed:
        found.setdefault(one.question.conversation_id, []).append(one)
    return {name: _message(ones) for name, ones in found.items()}


def _message(failed: Sequence[_Failed]) -> str:
    names = ", ".join(one.question.question_id for one in failed)
    others = f" ({len(failed)} questions failed: {names})" if len(failed) > 1 else ""
    return f"question {failed[0].question.question_id}: {failed[0].error}{others}"
