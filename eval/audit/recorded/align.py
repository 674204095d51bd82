"""Rows next to the questions of a data set: by id, by text, then by order. What does not fit is listed."""

from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eval.audit.recorded.folding import COMPARISONS, normal
from eval.audit.recorded.questions import RecordedQuestion
from eval.audit.recorded.rows import Recorded
from memsys.errors import DataError, quoted


@dataclass(slots=True)
class Alignment:
    """Assignment of rows to questions.

    Attributes:
        rows: question id -> its row.
        by_order: ids of questions that were found by their place alone: their text in the file is another, or is not
            there.
        ambiguous: rows whose text several questions have, of which nothing else in the row decides.
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
    ambiguous: list[Recorded] = field(default_factory=list)


def shares_gold(one: RecordedQuestion, row: Recorded) -> bool:
    """Return whether an alternative of a row's gold is one of the data set's."""
    known = {normal(answer) for answer in one.answers}
    return any(normal(answer) in known for answer in row.gold or ())


def gold_differs(one: RecordedQuestion, row: Recorded) -> bool:
    """Return whether a row and the data set both have a gold answer, and share none."""
    return row.gold is not None and bool(one.answers) and not shares_gold(one, row)


def _may_have_gold(one: RecordedQuestion, row: Recorded) -> bool:
    """Return whether a row's gold is that of a question, or the false answer of one without an answer."""
    false_answer = one.reference.adversarial_answer
    given = map(normal, row.gold or ())
    return shares_gold(one, row) or (false_answer is not None and normal(false_answer) in given)


def align(
    rows: Iterable[Recorded],
    questions: Sequence[RecordedQuestion],
    conversations: Mapping[str, str],
    by_order: bool = False,
) -> Alignment:
    """Find the question of each row.

    Args:
        rows: in the order of the file.
        questions: of the data set, in its order.
        conversations: the rows' name of a conversation -> its id; a name that is not here is taken as an id.
        by_order: take a row's place in the file for what neither its id nor its text decides.

    Raises:
        DataError: the place of a row alone would decide, and ``by_order`` is not set.
    """
    found = Alignment()
    answered: list[Recorded] = []
    for row in rows:
        (found.unanswered if row.prediction is None else answered).append(row)
    index = _Index(questions, conversations)
    places = _by_id_and_text(answered, index, found)
    if found.ambiguous and by_order:
        _first_free(answered, index, found, places)
    for number, place in places.items():
        found.rows[questions[place].question_id] = answered[number]
    settled = {id(row) for row in (*found.repeated, *found.ambiguous)}
    left = [(number, row) for number, row in enumerate(answered) if number not in places and id(row) not in settled]
    _by_order(found, left, places, questions, index)
    if not by_order:
        _refuse_order(found)
    covered = {(one.conversation_id, one.category) for one in _answered(found, questions)}
    found.missing = [
        one.question_id
        for one in questions
        if (one.conversation_id, one.category) in covered and one.question_id not in found.rows
    ]
    return found


def _by_id_and_text(answered: Sequence[Recorded], index: "_Index", found: Alignment) -> dict[int, int]:
    """Give rows the questions that id, text, conversation, gold and category single out; return number -> place.

    Rows for which several questions remain are asked again once others have taken theirs.
    """
    places: dict[int, int] = {}
    waiting: Sequence[int] = range(len(answered))
    while True:
        undecided = [number for number in waiting if not _settle(number, answered[number], index, found, places)]
        if not undecided or len(undecided) == len(waiting):
            found.ambiguous = [answered[number] for number in undecided]
            return places
        waiting = undecided


def _settle(number: int, row: Recorded, index: "_Index", found: Alignment, places: dict[int, int]) -> bool:
    """Return whether it is decided what a row answers, be it nothing."""
    if index.contradicts(row):
        found.contradicting.append(row)
        return True
    candidates = index.candidates(row)
    free = index.narrowed(row, candidates)
    if len(free) == 1 or (free and index.alike(free)):
        places[number] = index.take(free[0])
        return True
    if candidates and not free:
        found.repeated.append(row)
        if index.has_other_gold(row, candidates):
            found.repeated_with_other_gold.append(row)
    return not free


def _first_free(answered: Sequence[Recorded], index: "_Index", found: Alignment, places: dict[int, int]) -> None:
    """Give ambiguous rows questions of their text: the first one between those of their neighbours, or of all."""
    ambiguous = {id(row) for row in found.ambiguous}
    for number, row in enumerate(answered):
        if id(row) not in ambiguous:
            continue
        free = index.narrowed(row, index.candidates(row))
        before, after = _neighbours(number, places)
        between = [place for place in free if before < place and (after is None or place < after)]
        if free:
            places[number] = index.take((between or free)[0])
        else:
            found.repeated.append(row)
    found.ambiguous = []


def _neighbours(number: int, places: Mapping[int, int]) -> tuple[int, int | None]:
    """Return the places of the nearest aligned rows before and behind a row; -1 and ``None`` if there is none."""
    taken = sorted(places)
    at = bisect(taken, number)
    return places[taken[at - 1]] if at else -1, places[taken[at]] if at < len(taken) else None


def _refuse_order(found: Alignment) -> None:
    """Raise one error for the rows that nothing but their place would give a question."""
    unknown = [found.rows[name] for name in sorted(found.by_order)]
    problems = [
        (unknown, "rows that match no question of the data set"),
        (found.ambiguous, "rows that match several questions, also by conversation, gold and category"),
    ]
    said = [
        f"{why}: {len(rows)} (the first is {rows[0].where}, {quoted(rows[0].question or '', 60)})"
        for rows, why in problems
        if rows
    ]
    if said:
        raise DataError(
            f"some rows could be matched only by their order in the file; {'; '.join(said)}; give the rows question_id "
            "or the question texts of the data set, or match them by order with --by-order"
        )


def _answered(found: Alignment, questions: Sequence[RecordedQuestion]) -> list[RecordedQuestion]:
    """Return the questions in the conversations and categories that the file covers.

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
    """Questions by id and by text, and which of them are taken."""

    def __init__(self, questions: Sequence[RecordedQuestion], conversations: Mapping[str, str]) -> None:
        self._questions, self._conversations = questions, conversations
        self._ids = {one.question_id: place for place, one in enumerate(questions)}
        self._texts: list[dict[str, list[int]]] = [defaultdict(list) for _ in COMPARISONS]
        for place, one in enumerate(questions):
            for compare, texts in zip(COMPARISONS, self._texts, strict=True):
                texts[compare(one.text)].append(place)
        self._taken: set[int] = set()

    def contradicts(self, row: Recorded) -> bool:
        """Return whether a row has the id of one question and the text of another."""
        if not row.question or row.question_id not in self._ids:
            return False
        places = next(self._of_text(row.question), [])
        return bool(places) and self._ids[row.question_id] not in places

    def candidates(self, row: Recorded) -> list[int]:
        """Return the questions that a row may answer, by its id, else by its text and conversation."""
        if row.question_id in self._ids:
            return [self._ids[row.question_id]]
        own = self._conversations.get(row.conversation or "", row.conversation)
        for places in self._of_text(row.question or ""):
            asked = [p for p in places if own is None or self._questions[p].conversation_id == own]
            if asked:
                return asked
        return []

    def narrowed(self, row: Recorded, places: Sequence[int]) -> list[int]:
        """Return the free ones of the questions with the row's gold, or of all where none has it; then by category."""
        with_gold = [place for place in places if _may_have_gold(self._questions[place], row)]
        free = [place for place in with_gold or places if place not in self._taken]
        return [place for place in free if str(self._questions[place].category) == row.category] or free

    def alike(self, places: Sequence[int]) -> bool:
        """Return whether questions differ only in their ids."""
        asked = [self._questions[place] for place in places]
        return len({(one.conversation_id, one.category, *map(normal, one.answers)) for one in asked}) == 1

    def take(self, place: int) -> int:
        """Mark a question as answered."""
        self._taken.add(place)
        return place

    def has_other_gold(self, row: Recorded, places: Iterable[int]) -> bool:
        """Return whether a row's gold answer matches none of some questions."""
        return all(gold_differs(self._questions[place], row) for place in places)

    def asks(self, text: str) -> bool:
        """Return whether a text is a question of any conversation."""
        return any(self._of_text(text))

    def _of_text(self, text: str) -> Iterator[list[int]]:
        """Yield the questions that have a text, by each comparison by which some do."""
        for compare, texts in zip(COMPARISONS, self._texts, strict=True):
            if (key := compare(text)) and key in texts:
                yield texts[key]


def _by_order(
    found: Alignment,
    left: Sequence[tuple[int, Recorded]],
    places: Mapping[int, int],
    questions: Sequence[RecordedQuestion],
    index: _Index,
) -> None:
    """Assign rows with unknown texts to the gap between their aligned neighbours.

    A gap is filled where it has as many free questions of the rows' categories as rows: their order then says which is
    which. Otherwise its rows stay unaligned, as they do where the text of one is that of a question elsewhere, or where
    one has only an id that is not in the data set.
    """
    contradicting = {id(row) for row in found.contradicting}  # the text of each is that of a question elsewhere
    gaps: dict[tuple[int, int | None], list[Recorded]] = defaultdict(list)
    for number, row in left:
        gaps[_neighbours(number, places)].append(row)
    for (before, after), rows in gaps.items():
        wanted = [row.category for row in rows]
        free = [one for one in questions[before + 1 : after] if one.question_id not in found.rows]
        if None not in wanted:
            free = [one for one in free if str(one.category) in set(wanted)]
        fits = len(free) == len(rows) and (None in wanted or [str(one.category) for one in free] == wanted)
        named = any(row.question_id and not row.question for row in rows)
        if not fits or named or any(row.question is not None and index.asks(row.question) for row in rows):
            found.unaligned += [row for row in rows if id(row) not in contradicting]
            continue
        for one, row in zip(free, rows, strict=True):
            found.rows[one.question_id] = row
            found.by_order.add(one.question_id)
