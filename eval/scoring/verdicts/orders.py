"""Orders of events that a judge aligned: its verdicts on pairs of a line and an event, and the scores that follow.

Source: github.com/mohammadtavakoli78/BEAM, ``align_with_llm`` and ``event_ordering_score`` in
``src/evaluation/compute_metrics.py``. Verdicts are in ``judgements/<judge>-<backbone>.order.jsonl``, a row each. What
was asked follows from the verdicts (:func:`eval.metrics.ordering.aligning`), so that scores need no model. An
unreadable verdict is none of ``SAME``, as a reply without a "yes" is in the authors' code; it is counted, and a
question all of whose verdicts are unreadable has no score.
"""

from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from json import dumps
from pathlib import Path

from eval.metrics.ordering import MODEL_ORDER_METRICS, ORDERED_ITEMS, aligned_order_scores, aligning, lines_of
from eval.runs.records import AnswerRecord, ReferenceRecord
from eval.runs.rows import read_rows
from eval.scoring.aggregate import mean_of
from eval.scoring.config import Scores
from eval.scoring.verdicts.values import DIFFERENT, SAME

#: What names a verdict: question, repeat, and checksum of the pair.
PairKey = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """Verdict of a judge on an event of the reference and a line of the answer.

    Attributes:
        question_id: whose order it is.
        repeat: which of the judge's repetitions, from 0.
        line: place of the line among those of the answer, from 0; of equal lines the first.
        item: place of the event in the order, from 0.
        verdict: ``SAME``, ``DIFFERENT``, or ``None`` when the reply was neither.
        reply: the raw reply where it was neither, else empty.
        input_sha256: of both texts as the judge saw them.
    """

    question_id: str
    repeat: int
    line: int
    item: int
    verdict: str | None
    reply: str
    input_sha256: str

    def __post_init__(self) -> None:
        if self.verdict not in (SAME, DIFFERENT, None):
            raise ValueError(f"{self.verdict!r} is not a verdict on a pair")

    @property
    def key(self) -> PairKey:
        """The pair that it is a verdict on."""
        return self.question_id, self.repeat, self.input_sha256


@dataclass(frozen=True, slots=True)
class OrderedAnswer:
    """An answer's lines and the events of its question's order."""

    question_id: str
    conversation_id: str
    items: tuple[str, ...]
    lines: tuple[str, ...]

    def digest(self, item: int, line: int) -> str:
        """Return the checksum of a pair as the judge sees it."""
        return sha256(dumps([self.items[item], self.lines[line]]).encode()).hexdigest()

    def key(self, item: int, line: int, repeat: int) -> PairKey:
        """Return the key of the verdict on a pair."""
        return self.question_id, repeat, self.digest(item, line)


def ordered_answers(references: Iterable[ReferenceRecord], answers: Iterable[AnswerRecord]) -> list[OrderedAnswer]:
    """Return the answers to questions that ask for an order, in the order of the references."""
    given = {answer.question_id: answer for answer in answers}
    return [
        OrderedAnswer(
            reference.question_id,
            reference.conversation_id,
            tuple(str(item) for item in reference.extra[ORDERED_ITEMS]),
            tuple(lines_of(given[reference.question_id].prediction)),
        )
        for reference in references
        if reference.extra.get(ORDERED_ITEMS) and reference.question_id in given
    ]


@dataclass(frozen=True, slots=True)
class ReadOrder:
    """An answer's order as far as verdicts are there.

    Attributes:
        aligned: its lines, those that represent an event replaced by it; ``None`` while a verdict is missing.
        verdicts: those that it rests on, in the order in which they were asked for.
    """

    aligned: list[str] | None
    verdicts: tuple[PairVerdict, ...]

    @property
    def readable(self) -> bool:
        """Whether there is an alignment from a judge's verdicts, or there are no lines."""
        said = [one.verdict for one in self.verdicts]
        return self.aligned is not None and (not said or any(verdict is not None for verdict in said))


def read_order(answer: OrderedAnswer, repeat: int, known: Mapping[PairKey, PairVerdict]) -> ReadOrder:
    """Follow the verdicts of one repeat through an answer."""
    walk = aligning(answer.items, answer.lines)
    met: dict[PairKey, PairVerdict] = {}
    pair = begin(walk)
    while isinstance(pair, tuple):
        found = known.get(answer.key(*pair, repeat))
        if found is None:
            return ReadOrder(None, tuple(met.values()))
        met[found.key] = found
        pair = advance(walk, same=found.verdict == SAME)
    return ReadOrder(pair, tuple(met.values()))


_Walk = Generator[tuple[int, int], bool, list[str]]


def begin(walk: _Walk) -> tuple[int, int] | list[str]:
    """Return the first pair of an alignment to ask about, or the alignment where none is needed."""
    try:
        return next(walk)
    except StopIteration as end:
        return list(end.value)


def advance(walk: _Walk, *, same: bool) -> tuple[int, int] | list[str]:
    """Say whether the last pair was the same event: the next pair, or what is aligned in the end."""
    try:
        return walk.send(same)
    except StopIteration as end:
        return list(end.value)


@dataclass(frozen=True, slots=True)
class JudgedOrders:
    """Orders of a run's answers by a judge.

    Attributes:
        scores: question id -> :data:`eval.metrics.ordering.MODEL_ORDER_METRICS`, means over the repeats.
        verdicts: all that they rest on.
    """

    scores: Mapping[str, Scores]
    verdicts: tuple[PairVerdict, ...]

    @property
    def unreadable(self) -> int:
        """Replies that said neither."""
        return sum(one.verdict is None for one in self.verdicts)


def judged_orders(answers: Sequence[OrderedAnswer], repeats: int, verdicts: Sequence[PairVerdict]) -> JudgedOrders:
    """Score answers by the verdicts on their pairs; verdicts on other texts are ignored."""
    known = {one.key: one for one in verdicts}
    scores: dict[str, Scores] = {}
    kept: list[PairVerdict] = []
    for answer in answers:
        read = [read_order(answer, repeat, known) for repeat in range(repeats)]
        scores[answer.question_id] = _means(answer, read)
        kept += [verdict for order in read for verdict in order.verdicts]
    return JudgedOrders(scores, tuple(kept))


def _means(answer: OrderedAnswer, read: Sequence[ReadOrder]) -> Scores:
    values: dict[str, list[float | None]] = defaultdict(list)
    for order in read:
        scored = aligned_order_scores(answer.items, order.aligned or ()) if order.readable else {}
        for name in MODEL_ORDER_METRICS:
            values[name].append(scored.get(name))
    return {name: mean_of(own).value for name, own in values.items()}


def order_path(verdicts: Path) -> Path:
    """Return the file of the verdicts on pairs, next to that of a judge's other verdicts or of what made them."""
    return verdicts.with_name(f"{verdicts.stem}.order.jsonl")


def read_pairs(path: Path) -> list[PairVerdict]:
    """Read verdicts on pairs as stored, complete or not.

    Raises:
        RunDirectoryError: a row is of another version.
    """
    return list(read_rows(path, PairVerdict, advice="delete the file and judge again"))
