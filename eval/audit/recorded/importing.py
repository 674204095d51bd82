"""Recorded answers next to the questions that they answer: read, aligned, and counted by how they fit."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from eval.audit.recorded.align import Alignment, align, gold_differs
from eval.audit.recorded.questions import QuestionSet, RecordedQuestion, own_questions, with_own_ids
from eval.audit.recorded.rows import Recorded, read_rows
from eval.audit.recorded.shapes import Shape
from eval.runs.records import ReferenceRecord
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class Imported:
    """Recorded answers next to their questions.

    Attributes:
        question_set: what they were aligned with.
        alignment: which row answers which question.
        questions: those that the file covers, in the order of the data set: answered or missing.
        rows: all rows of the files.
    """

    question_set: QuestionSet
    alignment: Alignment
    questions: tuple[RecordedQuestion, ...]
    rows: tuple[Recorded, ...]

    def references(self) -> list[ReferenceRecord]:
        """Return the gold of the run's questions; a question altered in the file keeps the file's gold."""
        return [self._reference(one) for one in self.questions]

    def _reference(self, one: RecordedQuestion) -> ReferenceRecord:
        row = self.alignment.rows.get(one.question_id)
        if row is None or row.gold is None or one.question_id not in self.alignment.by_order:
            return one.reference
        return replace(one.reference, answers=list(row.gold), extra={**one.reference.extra, "altered": True})

    def counts(self) -> dict[str, Json]:
        """Return how the rows fit: their numbers, and the sizes of :meth:`lists`."""
        return {
            "rows": len(self.rows),
            "data_set_questions": len(self.question_set.questions),
            "aligned": len(self.alignment.rows),
            **{name: len(places) for name, places in self.lists().items()},
        }

    def lists(self) -> dict[str, list[str]]:
        """Return the places of everything that did not fit: rows by file and number, questions by id."""
        found = self.alignment
        pairs = [(one, found.rows[one.question_id]) for one in self.questions if one.question_id in found.rows]
        return {
            "aligned_by_order_alone": sorted(found.by_order),
            "repeated": [_place(row) for row in found.repeated],
            "repeated_with_other_gold": [_place(row) for row in found.repeated_with_other_gold],
            "repeated_with_other_answer": [_place(row) for row in found.repeated if not _is_answered(row, found)],
            "unaligned": [_place(row) for row in found.unaligned],
            "id_and_text_of_two_questions": [_place(row) for row in found.contradicting],
            "without_prediction": [row.where for row in found.unanswered],
            "questions_missing": found.missing,
            "think_blocks_cut": [_answering(one, row) for one, row in pairs if row.thought],
            "empty_predictions": [_answering(one, row) for one, row in pairs if not (row.prediction or "").strip()],
            "gold_differs": [_answering(one, row) for one, row in pairs if gold_differs(one, row)],
            "category_differs": [_answering(one, row) for one, row in pairs if _category_differs(one, row)],
        }

    def category_labels(self) -> dict[str, dict[str, int]]:
        """Return the file's label of a category -> how many of its rows the data set has under each number."""
        table: dict[str, Counter[str]] = {}
        for one in self.questions:
            row = self.alignment.rows.get(one.question_id)
            if row is not None and row.category is not None:
                table.setdefault(row.category, Counter())[str(one.category)] += 1
        return {label: dict(sorted(counts.items())) for label, counts in sorted(table.items())}


def _is_answered(row: Recorded, found: Alignment) -> bool:
    """Return whether a row that was taken asks the same as another one and has its answer."""
    asked = row.conversation, row.question_id, row.question
    taken = (one for one in found.rows.values() if (one.conversation, one.question_id, one.question) == asked)
    return any(one.prediction == row.prediction for one in taken)


def _place(row: Recorded) -> str:
    """Return a row's place, with its id if any."""
    return f"{row.where} ({row.question_id})" if row.question_id else row.where


def _answering(one: RecordedQuestion, row: Recorded) -> str:
    """Return a row's place, with the question of the data set that it answers."""
    return f"{row.where} ({one.question_id})"


def _category_differs(one: RecordedQuestion, row: Recorded) -> bool:
    return row.category is not None and row.category.isdecimal() and int(row.category) != one.category


def import_rows(
    files: Sequence[Path],
    shape: Shape,
    question_set: QuestionSet | None,
    cutoff: str | None = None,
    by_order: bool = False,
) -> Imported:
    """Read recorded answers and align them.

    Args:
        files: of one run, in order.
        shape: where things are in them.
        question_set: of the data set; ``None`` takes questions and gold from the files.
        cutoff: see :func:`eval.audit.recorded.rows.read_rows`.
        by_order: see :func:`eval.audit.recorded.align.align`.

    Raises:
        DataError: a file is damaged, or does not fit the shape or the data set.
    """
    rows = read_rows(files, shape, cutoff)
    if question_set is None:
        rows = with_own_ids(rows)
        question_set = own_questions(rows, apart=shape.conversation_is == "question")
    positions = question_set.positions if shape.conversation_is != "id" else {}
    alignment = align(rows, question_set.questions, positions, by_order)
    wanted = {*alignment.rows, *alignment.missing}
    questions = tuple(one for one in question_set.questions if one.question_id in wanted)
    return Imported(question_set, alignment, questions, tuple(rows))


def checksum(files: Sequence[Path]) -> str:
    """Return the sha256 of a file; of the concatenation where there are several."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()
