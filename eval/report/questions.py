"""Every question with gold, evidence, and what each system retrieved and answered: for runs whose directory is here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.loaders.question_types import ADVERSARIAL
from eval.report.calls import Ledger, read_ledger
from eval.report.scores import PAGE_DECIMALS
from eval.results.stored_run import StoredRun
from eval.runs.load import load_answers, load_references, load_retrievals
from eval.runs.memories import Memories
from eval.runs.records import AnswerRecord, ReferenceRecord, RetrievalRecord, ScoreRow, question_text
from eval.scoring.means import mean_or_none
from eval.scoring.verdicts.store import StoredVerdicts, load_judged
from memsys.vocabulary import Json


@dataclass
class Texts:
    """Texts by number: the same turn is retrieved for many questions by many systems."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """Number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))

    @property
    def all(self) -> list[str]:
        """Texts in the order of their numbers."""
        return list(self.numbers)


@dataclass(frozen=True, slots=True)
class Read:
    """Files of a run directory, read once for all views."""

    references: Mapping[str, ReferenceRecord]
    answers: Mapping[str, AnswerRecord]
    retrievals: Mapping[str, RetrievalRecord]
    judged: Sequence[StoredVerdicts]
    ledger: Ledger
    memories: Memories

    @classmethod
    def of(cls, folder: Path) -> "Read":
        """Read a run directory.

        Raises:
            ScoringError: a file is missing or broken.
            RunDirectoryError: a snapshot or a verdict is.
        """
        references = load_references(folder)
        return cls(
            references,
            load_answers(folder),
            load_retrievals(folder),
            load_judged(folder),
            read_ledger(folder, list(references)),
            Memories(folder),
        )

    @property
    def seconds(self) -> float | None:
        """Mean wall time of a question as it was run, waiting for other questions included; ``None`` if not timed."""
        return mean_or_none(
            answer.retrieve_seconds + answer.answer_seconds
            for answer in self.answers.values()
            if answer.retrieve_seconds is not None and answer.answer_seconds is not None
        )


@dataclass
class _Conversation:
    """Questions of one conversation in full, and the texts that they name by number."""

    texts: Texts = field(default_factory=Texts)
    questions: dict[str, Any] = field(default_factory=dict)


@dataclass
class Browser:
    """Collects the questions of the runs of a group: a list to choose from, and a part for each conversation.

    Args:
        scores: names of the scores shown with each answer.
    """

    scores: Sequence[str]
    _list: dict[str, Any] = field(default_factory=dict)
    _conversations: dict[str, _Conversation] = field(default_factory=dict)

    def add(self, number: int, run: StoredRun, read: Read) -> None:
        """Add one run's answers and retrievals.

        Args:
            number: of the run on the page.
            run: its scores.
            read: what its directory holds.
        """
        judged = [one for one in read.judged if one.column in (run.summary.get("judges") or {})]
        scores = {row.question_id: row for row in run.rows}
        verdicts = _verdicts(judged)
        for question_id, reference in read.references.items():
            if question_id not in scores:
                continue
            answer, retrieval = read.answers.get(question_id), read.retrievals.get(question_id)
            conversation = self._conversations.setdefault(reference.conversation_id, _Conversation())
            texts = conversation.texts
            entry = self._entry(reference, question_text(answer, retrieval))
            whole = conversation.questions.setdefault(question_id, _whole(reference, texts))
            hits = _hits(retrieval, reference, texts)
            own = verdicts.get(question_id, {})
            entry["runs"][str(number)] = [
                self._scores(scores[question_id], judged),
                next((rank for rank, (_, gold) in enumerate(hits, start=1) if gold), 0),
                bool(answer and answer.malformed),
                len({verdict for given in own.values() for verdict, _ in given}) > 1,
                None if answer is None else answer.prediction,
            ]
            whole["answers"][str(number)] = {
                **_answer(answer),
                "judges": own,
                "hits": hits,
                "context": texts.number(retrieval.context) if retrieval else None,
                "calls": read.ledger.question(question_id),
                "stored": _stored(read.memories, reference, texts),
            }

    def _entry(self, reference: ReferenceRecord, question: str) -> dict[str, Any]:
        """Return A line of the list; ``runs``: scores, rank of the evidence, malformed, judges differ, answer."""
        entry: dict[str, Any] = self._list.setdefault(
            reference.question_id,
            {
                "id": reference.question_id,
                "conversation": reference.conversation_id,
                "category": reference.category,
                "unanswerable": reference.kind == ADVERSARIAL,
                "question": "",
                "gold": list(reference.answers),
                "evidence": len(reference.evidence),
                "runs": {},
            },
        )
        entry["question"] = entry["question"] or question
        return entry

    def _scores(self, row: ScoreRow, judged: Sequence[StoredVerdicts]) -> dict[str, float]:
        names = (*self.scores, *(one.column for one in judged))
        found = {name: row.metrics.get(name) for name in names}
        return {name: round(value, PAGE_DECIMALS) for name, value in found.items() if value is not None}

    @property
    def score_names(self) -> list[str]:
        """Scores that at least one answer has: in the order of the configuration, judges last."""
        held = {name for entry in self._list.values() for own in entry["runs"].values() for name in own[0]}
        return [*(name for name in self.scores if name in held), *sorted(held - set(self.scores))]

    @property
    def overview(self) -> list[Json]:
        """All questions, in the order they were met."""
        return list(self._list.values())

    @property
    def conversations(self) -> dict[str, Json]:
        """By conversation: its texts, and its questions with what each run stored, retrieved and answered."""
        return {name: {"texts": one.texts.all, "questions": one.questions} for name, one in self._conversations.items()}


def _whole(reference: ReferenceRecord, texts: Texts) -> dict[str, Any]:
    return {
        "trap": reference.adversarial_answer if reference.kind == ADVERSARIAL else None,
        "evidence": [
            [turn_id, texts.number(text)]
            for turn_id, text in zip(reference.evidence, reference.evidence_texts, strict=True)
        ],
        "answers": {},
    }


def _stored(memories: Memories, reference: ReferenceRecord, texts: Texts) -> Json:
    """Return by gold turn: numbers of the texts of the memories that name it, and how many more there are."""
    if not memories.known(reference.conversation_id):
        return None
    found = {turn: memories.of(reference.conversation_id, turn) for turn in reference.evidence}
    return {turn: [[texts.number(text) for text in own], more] for turn, (own, more) in found.items()}


def _hits(retrieval: RetrievalRecord | None, reference: ReferenceRecord, texts: Texts) -> list[Json]:
    """Return text number, and the gold turns that the memory comes from, best first."""
    gold = set(reference.evidence)
    return [
        [texts.number(hit.text), [turn for turn in hit.turn_ids if turn in gold]]
        for hit in (retrieval.hits if retrieval else ())
    ]


def _answer(answer: AnswerRecord | None) -> Json:
    if answer is None:
        return {"answer": None}
    return {
        "answer": answer.prediction,
        "raw": answer.raw,
        "malformed": answer.malformed,
        "options": list(answer.options),
    }


def _verdicts(judged: Sequence[StoredVerdicts]) -> Mapping[str, Mapping[str, list[Json]]]:
    """Return verdicts and reasons by question and judge."""
    found: dict[str, dict[str, list[Json]]] = {}
    for one in judged:
        for verdict in one.verdicts:
            own = found.setdefault(verdict.question_id, {})
            own.setdefault(one.column, []).append([verdict.verdict, verdict.reason])
    return found
