"""Rows beside the questions of a data set: by id, by text, then by order. What does not fit is listed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eval.recorded.questions import RecordedQuestion
from eval.recorded.rows import Recorded


@dataclass(slots=True)
class Alignment:
    """Which row answers which question.

    Attributes:
        rows: question id -> its row.
        by_order: ids of questions that were found by their place alone: their text in the file is another, or is not
            there.
        contradicting: rows whose id is that of one question and whose text that of another; they answer none.
        repeated: rows whose question an earlier row answers.
        repeated_with_other_gold: those of them whose gold answer is none of their question's.
        unaligned: rows that no question of the data set fits.
        unanswered: rows without a prediction.
        missing: ids of questions, of the conversations and categories that the file covers, without a row.
    """

    rows: dict[str, Recorded] = field(default_factory=dict)
    by_order: set[str] = field(default_factory=set)
    repeated: list[Recorded] = field(default_factory=list)
    repeated_with_other_gold: list[Recorded] = field(default_factory=list)
    unaligned: list[Recorded] = field(default_factory=list)
    unanswered: list[Recorded] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    contradicting: list[Recorded] = field(default_factory=list)


def normal(text: str) -> str:
    """Text of a question without differences of case and blanks."""
    return " ".join(text.split()).casefold()


def shares_gold(one: RecordedQuestion, row: Recorded) -> bool:
    """Whether an alternative of a row's gold is one of the data set's."""
    known = {normal(answer) for answer in one.answers}
    return any(normal(answer) in known for answer in row.gold or ())


def gold_differs(one: RecordedQuestion, row: Recorded) -> bool:
    """Whether a row and the data set both have a gold answer, and share none."""
    return row.gold is not None and bool(one.answers) and not shares_gold(one, row)


def align(
    rows: Iterable[Recorded], questions: Sequence[RecordedQuestion], conversations: Mapping[str, str]
) -> Alignment:
    """Find the question of each row.

    Args:
        rows: in the order of the file.
        questions: of the data set, in its order.
        conversations: the rows' name of a conversation -> its id; a name that is not here is taken as an id.
    """
    found = Alignment()
    answered: list[Recorded] = []
    for row in rows:
        (found.unanswered if row.prediction is None else answered).append(row)
    index = _Index(questions, conversations)
    left: list[tuple[int, Recorded]] = []
    places: list[int | None] = []
    for number, row in enumerate(answered):
        if index.contradicts(row):
            places.append(None)
            found.contradicting.append(row)
            left.append((number, row))  # it stands in a gap as others do, and fills none
            continue
        place, repeated = index.take(row)
        places.append(place)
        if place is not None:
            found.rows[questions[place].question_id] = row
        elif repeated:
            found.repeated.append(row)
            if index.has_other_gold(row):
                found.repeated_with_other_gold.append(row)
        else:
            left.append((number, row))
    _by_order(found, left, places, questions)
    covered = {(one.conversation_id, one.category) for one in _answered(found, questions)}
    found.missing = [
        one.question_id
        for one in questions
        if (one.conversation_id, one.category) in covered and one.question_id not in found.rows
    ]
    return found


def _answered(found: Alignment, questions: Sequence[RecordedQuestion]) -> list[RecordedQuestion]:
    """Questions of conversations and categories that the file covers, by what it answers.

    A category of which fewer than one question in ten is answered was not part of the experiment: some files hold the
    two questions of LoCoMo's category 5 that have an answer.
    """
    own = [one for one in questions if one.question_id in found.rows]
    conversations = {one.conversation_id for one in own}
    asked = Counter(one.category for one in questions if one.conversation_id in conversations)
    given = Counter(one.category for one in own)
    kept = {category for category, count in given.items() if 10 * count >= asked[category]}
    return [one for one in questions if one.conversation_id in conversations and one.category in kept]


class _Index:
    """Questions that are still free, by id and by text."""

    def __init__(self, questions: Sequence[RecordedQuestion], conversations: Mapping[str, str]) -> None:
        self._questions, self._conversations = questions, conversations
        self._ids = {one.question_id: place for place, one in enumerate(questions)}
        self._texts: dict[str, list[int]] = defaultdict(list)
        for place, one in enumerate(questions):
            self._texts[normal(one.text)].append(place)
        self._taken: set[int] = set()

    def contradicts(self, row: Recorded) -> bool:
        """Whether a row has the id of one question and the text of another."""
        if not row.question or row.question_id not in self._ids:
            return False
        places = self._texts.get(normal(row.question), [])
        return bool(places) and self._ids[row.question_id] not in places

    def take(self, row: Recorded) -> tuple[int | None, bool]:
        """Take the question of a row; else say whether an earlier row has taken it."""
        places = self._candidates(row)
        free = [place for place in places if place not in self._taken]
        if not free:
            return None, bool(places)
        best = next((place for place in free if shares_gold(self._questions[place], row)), free[0])
        self._taken.add(best)
        return best, False

    def has_other_gold(self, row: Recorded) -> bool:
        """Whether the gold answer of a row is that of no question that it may ask."""
        return all(gold_differs(self._questions[place], row) for place in self._candidates(row))

    def _candidates(self, row: Recorded) -> list[int]:
        if row.question_id in self._ids:
            return [self._ids[row.question_id]]
        if row.question is None:
            return []
        places = self._texts.get(normal(row.question), [])
        if row.conversation is None:
            return places
        own = self._conversations.get(row.conversation, row.conversation)
        return [place for place in places if self._questions[place].conversation_id == own]


def _by_order(
    found: Alignment,
    left: Sequence[tuple[int, Recorded]],
    places: list[int | None],
    questions: Sequence[RecordedQuestion],
) -> None:
    """Fit rows with unknown texts into the gap between their aligned neighbours.

    A gap is filled where it has as many free questions of the rows' categories as rows: their order then says which is
    which. Otherwise its rows stay unaligned, as they do where the text of one is that of a question elsewhere, or where
    one has an id alone, which is none of the data set's.
    """
    texts = {normal(one.text) for one in questions}
    contradicting = {id(row) for row in found.contradicting}  # the text of each is that of a question elsewhere
    gaps: dict[tuple[int, int], list[Recorded]] = defaultdict(list)
    for number, row in left:
        before = next((place for place in reversed(places[:number]) if place is not None), -1)
        after = next((place for place in places[number:] if place is not None), len(questions))
        gaps[before, after].append(row)
    for (before, after), rows in gaps.items():
        wanted = [row.category for row in rows]
        free = [one for one in questions[before + 1 : after] if one.question_id not in found.rows]
        if None not in wanted:
            free = [one for one in free if str(one.category) in set(wanted)]
        fits = len(free) == len(rows) and (None in wanted or [str(one.category) for one in free] == wanted)
        named = any(row.question_id and not row.question for row in rows)
        if not fits or named or any(row.question is not None and normal(row.question) in texts for row in rows):
            found.unaligned += [row for row in rows if id(row) not in contradicting]
            continue
        for one, row in zip(free, rows, strict=True):
            found.rows[one.question_id] = row
            found.by_order.add(one.question_id)
