"""Scoring of one run: every stored answer and retrieval in every chosen way, one row per question.

Reads what the run wrote, needs no data set and, but for the neural metrics, no model. A value that cannot be computed
is null; a metric whose corpus or model is missing stops the scoring.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path

from eval.loaders.label_problems import marks
from eval.loaders.locomo import LOCOMO
from eval.loaders.locomo_corrections import corrected_answers
from eval.metrics.metric import Metric
from eval.metrics.registry import select_metrics
from eval.runs.files import write_json, write_rows
from eval.runs.load import (
    SCORES,
    SCORES_META,
    SUMMARY,
    check_joined,
    checksums,
    data_sha256,
    is_recorded,
    load_settled,
    load_updates,
    missing,
)
from eval.runs.records import SCHEMA_VERSION, AnswerRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.runs.signing import sign_files
from eval.scoring.answers import answer_scores, corrected_scores, gold_answers
from eval.scoring.combination import combination
from eval.scoring.config import STORED_DECIMALS, Scores, ScoringConfig
from eval.scoring.kept import kept_scores
from eval.scoring.neural import BERTSCORE_CUT, neural_scores
from eval.scoring.retrievals import attack_metrics, memory_scores, retrieval_scores
from eval.scoring.run_files import RunFiles
from eval.scoring.splitting import advice, unsplit_answers, with_mixed
from eval.scoring.stored_turns import StoredTurns
from eval.scoring.unanswered import without_answer
from memsys.errors import ScoringError
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Item:
    """One question with what the run stored about it. ``outcome``: what became of it; empty if no model was asked."""

    reference: ReferenceRecord
    answer: AnswerRecord | None
    retrieval: RetrievalRecord | None
    outcome: str = ""

    @property
    def text(self) -> AnswerRecord:
        """The answer; of a question without one, which counts with 0 or not at all, a blank one."""
        gold = self.reference
        blank = AnswerRecord(
            gold.question_id, gold.conversation_id, gold.category, "", "", "", False, [], None, None, False, None, None
        )
        return self.answer or blank


def score_run(run_dir: Path, config: ScoringConfig | None = None, files: RunFiles | None = None) -> list[ScoreRow]:
    """Score a run and write ``scores.jsonl`` and ``scores_meta.json``.

    Scores by other metrics that an earlier scoring of the same answers made are kept.

    Args:
        run_dir: directory of the run; it may be incomplete. Unanswered questions get no row and are counted.
        config: what to compute; ``None`` computes all lexical metrics.
        files: of the run, for who needs them again; ``None`` reads them.

    Returns:
        The rows, in the order of ``references.jsonl``.

    Raises:
        ScoringError: files missing or not of one run; a corpus or model missing.
    """
    config = config or ScoringConfig()
    metrics = select_metrics(config.metrics)
    before = checksums(run_dir)
    files = files or RunFiles(run_dir)
    items, counts = _load(files)
    if not items:
        raise ScoringError(f"{run_dir} holds neither answers nor retrievals yet; run or resume the experiment first")
    unsplit = _unsplit(items, metrics, run_dir.name)
    metrics = with_mixed(metrics) if unsplit else metrics
    answered = [(item.text, item.reference) for item in items if item.outcome and _counting(config, item) != "left_out"]
    neural, models = neural_scores(answered, metrics, config) if answered else ({}, {})
    cut = {BERTSCORE_CUT: count} if (count := models.pop(BERTSCORE_CUT, 0)) else {}
    scoring = _scoring(files, metrics, config, neural)
    rows = [scoring.row(item) for item in items]
    kept = kept_scores(run_dir, before, {name for row in rows for name in row.metrics}, config, models)
    rows = [
        replace(row, metrics={**scoring.counted(kept.of(row.question_id), item), **row.metrics})
        for row, item in zip(rows, items, strict=True)
    ]
    meta = {
        "schema_version": SCHEMA_VERSION,
        "config": {**asdict(config), **kept.config},
        "metrics": sorted({name for row in rows for name in row.metrics}),
        "sources": kept.sources | {metric.name: metric.source for metric in metrics},
        "models": {**kept.models, **models},
        "packages": {name: version(name) for name in ("nltk", "rouge-score")},
        "counts": counts,
        "inputs": before,
        **({"unsplit": unsplit} if unsplit else {}),
        **cut,
    }
    write_rows(run_dir / SCORES, map(_sorted, rows))
    write_json(run_dir / SCORES_META, meta)
    sign_files(run_dir, (SCORES, SCORES_META), dropped=[SUMMARY])
    return rows


def _sorted(row: ScoreRow) -> dict[str, Json]:
    """Return a row as it is written: its fields by name, its metrics too."""
    found = {field.name: getattr(row, field.name) for field in fields(row)}
    return {**dict(sorted(found.items())), "metrics": dict(sorted(row.metrics.items()))}


def lexical_scores(run_dir: Path) -> list[ScoreRow]:
    """Score what a run has answered so far with all lexical metrics, and write nothing: it may be going on.

    Args:
        run_dir: directory of the run.

    Returns:
        The rows, in the order of ``references.jsonl``.

    Raises:
        ScoringError: files missing or not of one run.
    """
    config, files = ScoringConfig(), RunFiles(run_dir)
    items = _load(files)[0]
    metrics = select_metrics(config.metrics)
    unsplit = _unsplit(items, metrics, run_dir.name)
    scoring = _scoring(files, with_mixed(metrics) if unsplit else metrics, config, {})
    return [scoring.row(item) for item in items]


def _unsplit(items: Sequence[_Item], metrics: Sequence[Metric], name: str) -> Mapping[str, int]:
    """Find answers in a language that the metrics do not split into words; a warning says what to do."""
    golds = [gold_answers(item.reference) for item in items if item.answer is not None]
    unsplit = unsplit_answers(golds, metrics)
    if unsplit:
        logger.warning("%s: %s", name, advice(unsplit, len(golds)))
    return unsplit


def _scoring(
    files: RunFiles, metrics: Sequence[Metric], config: ScoringConfig, neural: Mapping[str, Scores]
) -> "_Scoring":
    turns = {record.conversation_id: record.turns for record in files.conversations}
    updates, corrections = load_updates(files.path), _corrections(files.path)
    return _Scoring(metrics, config, neural, files.stored, updates, corrections, turns)


@dataclass(frozen=True, slots=True)
class _Scoring:
    """Inputs of the score rows of one run."""

    metrics: Sequence[Metric]
    config: ScoringConfig
    neural: Mapping[str, Scores]
    stored: StoredTurns
    updates: Mapping[str, Mapping[str, str]]
    corrections: Mapping[str, str]
    turns: Mapping[str, int]

    def row(self, item: _Item) -> ScoreRow:
        """Score one question."""
        reference, retrieval = item.reference, item.retrieval
        scores: Scores = {}
        if item.outcome:
            scores |= self.counted(self._answer(item.text, reference), item)
        if retrieval is not None:
            turns = self.turns.get(reference.conversation_id, 0)
            scores |= retrieval_scores(retrieval, reference, self.config, turns)
            successors = self.updates.get(reference.conversation_id)
            scores |= memory_scores(retrieval, reference, self.stored, successors)
            answer = item.answer.prediction if item.answer is not None else None
            scores |= attack_metrics(retrieval, reference, self.stored, answer)
        scores |= combination(reference) | marks(reference.extra)
        return ScoreRow(
            reference.question_id,
            reference.conversation_id,
            reference.category,
            {name: None if value is None else round(value, STORED_DECIMALS) for name, value in scores.items()},
            reference.kind,
        )

    def counted(self, scores: Scores, item: _Item) -> Scores:
        """Return an answer's scores according to its outcome: unchanged, those of a wrong answer, or none."""
        how = _counting(self.config, item)
        if how == "text":
            return scores
        return {name: 0.0 if how == "wrong" and value is not None else None for name, value in scores.items()}

    def _answer(self, answer: AnswerRecord, reference: ReferenceRecord) -> Scores:
        scores = answer_scores(answer, reference, self.metrics)
        scores |= {metric.name: None for metric in self.metrics if metric.neural}
        scores |= self.neural.get(reference.question_id, {})
        correction = self.corrections.get(reference.question_id)
        return scores if correction is None else scores | corrected_scores(answer, correction, self.metrics)


def _counting(config: ScoringConfig, item: _Item) -> str:
    """Return how a question counts: by its answer, or as ``scoring.unanswered`` says."""
    return config.unanswered.get(item.outcome, "text")


def _load(files: RunFiles) -> tuple[list[_Item], dict[str, Json]]:
    """Join the run's files: answered and settled questions, or retrieved ones where the run answered none."""
    run_dir = files.path
    references, settled = files.references, load_settled(run_dir)
    answers, retrievals = files.answers, files.retrievals
    check_joined(settled, references, run_dir / "settled.jsonl")
    check_joined(answers, references, run_dir / "answers.jsonl")
    check_joined(retrievals, references, run_dir / "retrievals.jsonl")
    lost = [] if is_recorded(run_dir) else missing(list(answers), retrievals)
    if lost:
        raise ScoringError(
            f"{run_dir}: {len(lost)} answered questions have no retrieval (first: {lost[0]}); "
            "delete their rows in answers.jsonl and resume the run"
        )
    outcomes = {name: record.outcome for records in (settled, answers) for name, record in records.items()}
    present: Mapping[str, object] = outcomes or retrievals
    items = [
        _Item(reference, answers.get(name), retrievals.get(name), outcomes.get(name, ""))
        for name, reference in references.items()
        if name in present
    ]
    counts: dict[str, Json] = {
        "questions": len(references),
        "answered": len(answers),
        "retrieved": len(retrievals),
        "unanswered": len(references) - len(answers),
        "malformed": sum(answer.malformed for answer in answers.values()),
        "rows": len(items),
        **without_answer(outcomes.values()),
    }
    return items, counts


def _corrections(run_dir: Path) -> Mapping[str, str]:
    """Return corrected gold answers by question id for runs on the published LoCoMo, if their file is present."""
    return (corrected_answers() or {}) if data_sha256(run_dir) == LOCOMO.files[0].sha256 else {}
