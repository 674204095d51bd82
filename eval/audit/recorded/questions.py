"""Questions and gold that recorded answers are aligned with: a data set's, or the file's own."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import count

from eval.audit.recorded.rows import Recorded
from eval.inspect_data import read_config
from eval.loaders.question_types import ADVERSARIAL
from eval.loaders.registry import OWN
from eval.metrics.locomo import CATEGORY_5
from eval.runs.records import ReferenceRecord
from memsys.errors import DataError, quoted
from memsys.vocabulary import Json, Sample

#: A category that is a number as a data set writes it; longer ones are no numbers of categories.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
#: Kind of questions whose file names no category.
UNCATEGORISED = "without_category"
#: First number of a category that has a name alone.
_FIRST_OWN = 101


@dataclass(frozen=True, slots=True)
class RecordedQuestion:
    """One question with its gold, as a run's references hold it."""

    text: str
    reference: ReferenceRecord

    @property
    def question_id(self) -> str:
        """Unique in the data set."""
        return self.reference.question_id

    @property
    def conversation_id(self) -> str:
        """Conversation that it is asked of."""
        return self.reference.conversation_id

    @property
    def category(self) -> int:
        """The data set's category number."""
        return self.reference.category

    @property
    def answers(self) -> Sequence[str]:
        """Gold answers."""
        return self.reference.answers


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """All questions of a data set, in its order.

    Attributes:
        name: of the preset, or :data:`OWN`.
        sha256: of the data set's file; of the questions alone where the answers bring them, see :func:`own_questions`.
        questions: in the order of the file.
        conversations: ids, in the order of the file; answers often name conversations by position.
        data: what ``run.json`` says of the data.
        settings: of the data set that are not its preset's, without those of this machine.
    """

    name: str
    sha256: str
    questions: tuple[RecordedQuestion, ...]
    conversations: tuple[str, ...]
    data: Mapping[str, Json] = field(default_factory=dict)
    settings: Mapping[str, Json] = field(default_factory=dict)

    @property
    def positions(self) -> dict[str, str]:
        """Position, as text, -> id of the conversation."""
        return {str(number): name for number, name in enumerate(self.conversations)}


def load_questions(name: str, overrides: Mapping[str, Json] | None = None) -> QuestionSet:
    """Load the questions of a data set.

    Args:
        name: of its preset in ``conf/dataset``.
        overrides: settings that replace the preset's.

    Raises:
        ConfigError: there is no such preset, or it has no such setting.
        DataError: the data set's file is not there.
    """
    overrides = overrides or {}
    loaded = read_config(name, overrides).load()
    return QuestionSet(
        name=name,
        sha256=loaded.sha256,
        questions=tuple(one for sample in loaded.samples for one in _asked(sample)),
        conversations=tuple(sample.conversation.conversation_id for sample in loaded.samples),
        data={"source": loaded.source_name, **loaded.counts, "notes": dict(loaded.notes)},
        settings={key: value for key, value in overrides.items() if key not in ("path", "data_dir")},
    )


def _asked(sample: Sample) -> list[RecordedQuestion]:
    from eval.running.recording import reference_records

    records = reference_records([sample])
    return [RecordedQuestion(question.text, record) for question, record in zip(sample.questions, records, strict=True)]


def own_questions(rows: Sequence[Recorded], *, apart: bool = False) -> QuestionSet:
    """Make the question set of answers whose file holds questions and gold.

    Each conversation of the file is one; rows that name none are one together. Its checksum is that of the questions,
    not of the file, which holds a system's answers as well: two systems that were asked the same have the same data.
    That is why a question counts whose answer is missing. Questions of the category ``adversarial`` have no answer:
    their gold is empty, or the file's own words for a refusal.

    Args:
        rows: with ids that are unique in the file, see :func:`with_own_ids`.
        apart: each question that names no conversation has one of its own, as in LongMemEval.

    Raises:
        DataError: a row has no gold, or neither id nor text of a question; or two questions have one id.
    """
    answered = [row for row in rows if row.prediction is not None]
    asked = [*answered, *(row for row in rows if row.prediction is None and _asks(row))]
    numbers = number_categories({row.category or "" for row in asked})
    found: dict[str, RecordedQuestion] = {}
    for row in asked:  # the first one counts, and an answered one before others
        question_id = row.question_id or row.question
        if question_id is None or (row.gold is None and not _unanswerable(row)):
            raise DataError(
                f"{row.where}: without a data set (--dataset) a row needs a question and its gold answer; it lacks "
                f"{'the gold' if question_id else 'the question'}; write it, or leave the row out (one that has no "
                f"answer needs none where its category is {ADVERSARIAL})"
            )
        record = ReferenceRecord(
            question_id=question_id,
            conversation_id=row.conversation or (question_id if apart else OWN),
            category=numbers[row.category or ""],
            answers=list(row.gold or ()),
            adversarial_answer=None,
            evidence=[],
            unresolved_evidence=[],
            evidence_texts=[],
            extra={"category_name": row.category} if row.category else {},
            kind=_kind(row),
        )
        first = found.setdefault(question_id, RecordedQuestion(row.question or "", record))
        if _is_other(first.text, row.question or ""):
            raise DataError(
                f"{row.where}: id {question_id!r} is that of another question before it ({quoted(first.text, 60)}); "
                "give each question an id of its own, or leave the ids out"
            )
    conversations = tuple(dict.fromkeys(one.conversation_id for one in found.values()))
    digest = _checksum(found.values())
    return QuestionSet(OWN, digest, tuple(found.values()), conversations, {"source": OWN, "notes": {}})


def _unanswerable(row: Recorded) -> bool:
    return row.category == ADVERSARIAL


def _kind(row: Recorded) -> str:
    """Return a question's category by its name in the file, whose numbers may differ from LoCoMo's."""
    if _unanswerable(row):
        return ADVERSARIAL
    return f"category_{row.category}" if row.category else UNCATEGORISED


def _is_other(first: str, second: str) -> bool:
    """Return whether two texts are different questions; a row without a text asks what its id says."""
    return bool(first and second) and first.casefold().split() != second.casefold().split()


def _asks(row: Recorded) -> bool:
    return bool(row.question_id or row.question) and row.gold is not None


def _checksum(questions: Iterable[RecordedQuestion]) -> str:
    """Return the sha256 of questions and gold, independent of the file's order."""
    asked = [[one.question_id, one.conversation_id, one.reference.kind, one.text, *one.answers] for one in questions]
    return hashlib.sha256(json.dumps(sorted(asked)).encode()).hexdigest()


def with_own_ids(rows: Sequence[Recorded]) -> list[Recorded]:
    """Give questions ids that are unique in their file: their own, or else their text.

    Files often number the questions of each conversation from 1, or ask several conversations the same: such an id gets
    the conversation's in front of it.
    """
    asked_in: dict[str, set[str | None]] = {}
    for row in rows:
        asked_in.setdefault(row.question_id or row.question or "", set()).add(row.conversation)
    repeated = {name for name, conversations in asked_in.items() if len(conversations) > 1}
    found = []
    for row in rows:
        name = row.question_id or row.question
        if name in repeated and row.conversation is not None:
            name = f"{row.conversation}:{name}"
        found.append(replace(row, question_id=name))
    return found


def number_categories(names: Set[str]) -> dict[str, int]:
    """Number the categories of a file: a number as it is, names in alphabetical order beyond those of other data sets.

    ``adversarial`` has LoCoMo's number, by which its rules go, unless it is that of another category here. Two names
    never share a number.
    """
    numbers = {name: int(name) for name in names if _NUMBER.fullmatch(name)}
    taken = set(numbers.values())
    if ADVERSARIAL in names and CATEGORY_5 not in taken:
        numbers[ADVERSARIAL] = CATEGORY_5
        taken.add(CATEGORY_5)
    for place, name in enumerate(sorted(names)):
        if name not in numbers:
            numbers[name] = next(free for free in count(_FIRST_OWN + place) if free not in taken)
            taken.add(numbers[name])
    return numbers
