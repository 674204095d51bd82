"""Every question with gold, evidence, and what each system retrieved and answered: for runs whose directory is here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval.loaders.question_types import ADVERSARIAL
from eval.report.calls import Ledger, read_ledger
from eval.report.scores import PAGE_DECIMALS
from eval.results.stored_run import StoredRun
from eval.runs.load import load_answers, load_references, load_retrievals
from eval.runs.memories import Memories
from eval.runs.records import AnswerRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.scoring.verdicts.store import StoredVerdicts, load_judged
from memsys.vocabulary import Json


@dataclass
class Texts:
    """Texts by number: the same turn is retrieved for many questions by many systems."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """Return the number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))

    @property
    def all(self) -> list[str]:
        """Texts in the order of their numbers."""
        return list(self.numbers)


@dataclass(frozen=True, slots=True)
class Read:
    """Content of a run directory, read once for all views."""

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
        times = [
            answer.retrieve_seconds + answer.answer_seconds
            for answer in self.answers.values()
            if answer.retrieve_seconds is not None and answer.answer_seconds is not None
        ]
        return sum(times) / len(times) if times else None


@dataclass
class Browser:
    """Collects the questions of runs.

    Args:
        scores: names of the scores shown with each answer.
    """

    scores: Sequence[str]
    texts: Texts = field(default_factory=Texts)
    _questions: dict[tuple[str, str], Json] = field(default_factory=dict)

    def add(self, number: int, dataset: str, run: StoredRun, read: "Read") -> None:
        """Add one run's answers and retrievals.

        Args:
            number: of the run on the page.
            dataset: name of its data set on the page.
            run: its scores.
            read: what its directory holds.
        """
        references, answers, retrievals = read.references, read.answers, read.retrievals
        judged = [one for one in read.judged if one.column in (run.summary.get("judges") or {})]
        scores = {row.question_id: row for row in run.rows}
        verdicts = _verdicts(judged)
        for question_id, reference in references.items():
            if question_id not in scores:
                continue
            answer, retrieval = answers.get(question_id), retrievals.get(question_id)
            entry = self._entry(dataset, reference)
            entry["question"] = entry["question"] or _question(answer, retrieval)
            entry["answers"][str(number)] = {
                **_answer(answer),
                "scores": self._scores(scores[question_id], judged),
                "judges": verdicts.get(question_id, {}),
                "hits": self._hits(retrieval, reference),
                "context": self.texts.number(retrieval.context) if retrieval else None,
                "calls": read.ledger.question(question_id),
                "stored": self._stored(read.memories, reference),
            }

    def _entry(self, dataset: str, reference: ReferenceRecord) -> Json:
        key = dataset, reference.question_id
        if key not in self._questions:
            trap = reference.kind == ADVERSARIAL
            self._questions[key] = {
                "id": reference.question_id,
                "dataset": dataset,
                "category": reference.category,
                "question": "",
                "gold": list(reference.answers),
                "trap": reference.adversarial_answer if trap else None,
                "evidence": [
                    [turn_id, self.texts.number(text)]
                    for turn_id, text in zip(reference.evidence, reference.evidence_texts, strict=True)
                ],
                "answers": {},
            }
        return self._questions[key]

    def _scores(self, row: ScoreRow, judged: Sequence[StoredVerdicts]) -> dict[str, float]:
        names = (*self.scores, *(one.column for one in judged))
        found = {name: row.metrics.get(name) for name in names}
        return {name: round(value, PAGE_DECIMALS) for name, value in found.items() if value is not None}

    def _stored(self, memories: Memories, reference: ReferenceRecord) -> Json:
        """Return, by gold turn, the numbers of the texts that name it, and how many more there are."""
        if not memories.known(reference.conversation_id):
            return None
        found = {turn: memories.of(reference.conversation_id, turn) for turn in reference.evidence}
        return {turn: [[self.texts.number(text) for text in texts], more] for turn, (texts, more) in found.items()}

    def _hits(self, retrieval: RetrievalRecord | None, reference: ReferenceRecord) -> list[Json]:
        """Return the text number, and the gold turns that the memory comes from, best first."""
        gold = set(reference.evidence)
        return [
            [self.texts.number(hit.text), [turn for turn in hit.turn_ids if turn in gold]]
            for hit in (retrieval.hits if retrieval else ())
        ]

    @property
    def score_names(self) -> list[str]:
        """Scores that at least one answer has: in the order of the configuration, judges last."""
        held = {
            name for entry in self._questions.values() for own in entry["answers"].values() for name in own["scores"]
        }
        return [*(name for name in self.scores if name in held), *sorted(held - set(self.scores))]

    @property
    def questions(self) -> list[Json]:
        """All questions, in the order they were met."""
        return list(self._questions.values())


def _question(answer: AnswerRecord | None, retrieval: RetrievalRecord | None) -> str:
    """Return the text of the question; a run without a reader keeps it as the query."""
    if answer is not None:
        return answer.question
    return str(retrieval.trace.get("query", "")) if retrieval else ""


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
    """Return the verdicts and reasons by question and judge."""
    found: dict[str, dict[str, list[Json]]] = {}
    for one in judged:
        for verdict in one.verdicts:
            own = found.setdefault(verdict.question_id, {})
            own.setdefault(one.column, []).append([verdict.verdict, verdict.reason])
    return found
