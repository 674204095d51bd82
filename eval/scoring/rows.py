"""Scoring of one run: every stored answer and retrieval in every chosen way, one row per question.

Reads what the run wrote, needs no data set and, but for the neural metrics, no model. A value that cannot be computed
is null; a metric whose corpus or model is missing stops the scoring.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from eval.loaders.kinds import ADVERSARIAL, kind_of
from eval.loaders.label_problems import marks
from eval.metrics.evidence import (
    STORED_RECALL,
    SubstringMatching,
    evidence_scores,
    pool_scores,
    rank_by_lineage,
    rank_by_substring,
)
from eval.metrics.locomo import ADVERSARIAL as LOCOMO_ADVERSARIAL
from eval.metrics.locomo import abstains, chosen_option, is_trapped
from eval.metrics.metric import Metric
from eval.metrics.neural import BertScorer, SentenceScorer
from eval.metrics.ordering import ORDERED_ITEMS, order_scores
from eval.metrics.registry import select_metrics
from eval.metrics.sessions import EVIDENCE_SESSIONS, session_scores
from eval.metrics.updates import Update, update_scores
from eval.runs.files import write_atomic, write_json
from eval.runs.records import SCHEMA_VERSION, AnswerRecord, ReferenceRecord, RetrievalRecord
from eval.runs.rows import read_rows
from eval.runs.stored import (
    check_joined,
    is_recorded,
    load_answers,
    load_json,
    load_references,
    load_retrievals,
    missing,
)
from eval.scoring.kept import kept_scores
from eval.scoring.stored_turns import StoredTurns, stored_share
from memsys.errors import ConfigError, ScoringError
from memsys.vocabulary import OVERRULED

SCORES, SCORES_META = "scores.jsonl", "scores_meta.json"
#: What the scores depend on; their checksums tell stale scores from fresh ones.
INPUTS = ("answers.jsonl", "retrievals.jsonl", "references.jsonl")
#: Joins reference answers for metrics that take one text, as the BioASQ references of CLAG are joined.
JOINER = " ; "
DIGITS = 6
#: Ends the name of a score against a corrected gold answer (:mod:`eval.scoring.labels`).
CORRECTED = "@corrected"

Scores = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class ScoringConfig:
    """What is computed (``conf/scoring``).

    Attributes:
        name: name of the preset.
        metrics: names or groups of :mod:`eval.metrics.registry`; evidence metrics are computed in any case.
        bertscore_model: hub name or local folder of the encoder behind ``bert_*``.
        bertscore_layers: layers of it to use; ``None`` takes the tuned layer, else all.
        bertscore_rescaled: subtract the published baseline.
        sbert_model: sentence encoder behind ``sbert``.
        batch_size: texts per forward pass.
        evidence_nfkc: see :class:`eval.metrics.evidence.SubstringMatching`.
        evidence_deduplicated: see :class:`eval.metrics.evidence.SubstringMatching`.
    """

    name: str = "default"
    metrics: Sequence[str] = ("lexical",)
    bertscore_model: str = "roberta-large"
    bertscore_layers: int | None = None
    bertscore_rescaled: bool = False
    sbert_model: str = "all-MiniLM-L6-v2"
    batch_size: int = 64
    evidence_nfkc: bool = True
    evidence_deduplicated: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.metrics, str):
            raise ConfigError(f"scoring.metrics={self.metrics} must be a list, e.g. scoring.metrics=[{self.metrics}]")
        select_metrics(self.metrics)
        if self.batch_size < 1:
            raise ConfigError(f"scoring.batch_size={self.batch_size}; it must be at least 1")

    @property
    def matching(self) -> SubstringMatching:
        """Options of the substring matching."""
        return SubstringMatching(nfkc=self.evidence_nfkc, deduplicate=self.evidence_deduplicated)


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """All scores of one question; ``None`` where there is nothing to score.

    ``kind`` is what is asked (:mod:`eval.loaders.kinds`); in rows of older versions it is derived from the category.
    """

    question_id: str
    conversation_id: str
    category: int
    metrics: Mapping[str, float | None]
    kind: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", kind_of(self.kind, self.category))


@dataclass(frozen=True, slots=True)
class _Item:
    """One question with what the run stored about it."""

    reference: ReferenceRecord
    answer: AnswerRecord | None
    retrieval: RetrievalRecord | None


def gold_answers(reference: ReferenceRecord) -> tuple[str, ...]:
    """Texts that count as the answer; empty where the question cannot be scored.

    In category 5 this is the data set's *false* answer, as in the code of A-Mem and CLAG. A protocol decides whether
    these values enter its means.
    """
    if reference.kind == ADVERSARIAL and reference.adversarial_answer is not None:
        return (reference.adversarial_answer,)
    return tuple(reference.answers)


def score_answer(metric: Metric, prediction: str, answers: Sequence[str], category: int) -> float | None:
    """Score one prediction by one lexical metric.

    Args:
        metric: from the registry, with a function or a rule.
        prediction: the reader's answer.
        answers: reference answers, alternatives of each other; not empty.
        category: the question's category.

    Raises:
        ScoringError: the metric gives what is no score.
    """
    if metric.rule is not None:
        found = metric.rule(prediction, JOINER.join(answers), category)
        return None if found is None else metric.checked(found)
    if metric.function is None:
        raise ValueError(f"{metric.name} is no lexical metric")
    function = metric.function
    texts = [JOINER.join(answers)] if metric.references == "joined" else answers
    return max(metric.checked(function(prediction, text)) for text in texts)


def _answer_scores(answer: AnswerRecord, reference: ReferenceRecord, metrics: Sequence[Metric]) -> Scores:
    answers = gold_answers(reference)
    scores: Scores = {}
    adversarial = reference.kind == ADVERSARIAL
    # A bare letter names an option; the official rule maps it back before it looks for the abstention.
    reply = chosen_option(answer.prediction, answer.options)
    # LoCoMo's rules go by its own numbers: a 5 that is not adversarial, or the reverse, is another data set's.
    category = answer.category if (answer.category == LOCOMO_ADVERSARIAL) == adversarial else 0
    for metric in metrics:
        if metric.lexical:
            prediction = reply if metric.rule is not None else answer.prediction
            scores[metric.name] = score_answer(metric, prediction, answers, category) if answers else None
    false_answer = reference.adversarial_answer if adversarial else None
    scores |= order_scores(answer.prediction, reference.extra.get(ORDERED_ITEMS, ()))
    scores["abstained"] = float(abstains(reply))
    scores["trapped"] = None if false_answer is None else float(is_trapped(reply, false_answer))
    return scores


def _corrected_scores(answer: AnswerRecord, correction: str, metrics: Sequence[Metric]) -> Scores:
    """Lexical scores against the gold answer of a label audit."""
    return {
        metric.name + CORRECTED: score_answer(metric, answer.prediction, (correction,), answer.category)
        for metric in metrics
        if metric.lexical
    }


def _corrections(run_dir: Path) -> Mapping[str, str]:
    """Corrected gold answers by question id, for runs on the published LoCoMo where the file with them is at hand."""
    from eval.loaders.locomo import LOCOMO
    from eval.recorded.labels import corrected_answers

    return (corrected_answers() or {}) if data_sha256(run_dir) == LOCOMO.files[0].sha256 else {}


def data_sha256(run_dir: Path) -> str:
    """Checksum of the data that a run asked; empty where it names none."""
    path = run_dir / "run.json"
    data = load_json(path).get("data") if path.is_file() else None
    return str(data.get("sha256", "")) if isinstance(data, Mapping) else ""


def _retrieval_scores(retrieval: RetrievalRecord, reference: ReferenceRecord, config: ScoringConfig) -> Scores:
    texts = [hit.text for hit in retrieval.hits]
    origins = [hit.turn_ids for hit in retrieval.hits]
    gold, gold_texts, whole = reference.evidence, reference.evidence_texts, len(texts)
    tokens, ranked, traced = retrieval.context_tokens, retrieval.ranked, retrieval.traced
    size: Scores = {
        "context_chars": float(retrieval.context_chars),
        "context_tokens": None if tokens is None else float(tokens),
    }
    if not whole and not ranked:
        return size  # a context that was recorded elsewhere: nothing says which memories it was made of
    by_session = (
        session_scores(origins, gold, reference.extra[EVIDENCE_SESSIONS], ranked=ranked)
        if EVIDENCE_SESSIONS in reference.extra and traced
        else {}
    )
    return {
        **by_session,
        **evidence_scores(rank_by_lineage(origins, gold) if ranked and traced else None),
        **evidence_scores(rank_by_substring(texts, gold_texts, config.matching) if ranked else None, "_substring"),
        **pool_scores(rank_by_lineage(origins, gold, depth=whole) if traced else None),
        **pool_scores(
            rank_by_substring(texts, gold_texts, config.matching, depth=whole) if ranked else None, "_substring"
        ),
        **size,
        "hit_chars": float(sum(map(len, texts))),
        "hits": float(len(texts)),
    }


def _memory_scores(item: _Item, stored: StoredTurns) -> Scores:
    """What a question's memory still holds: of its evidence, and of what its reference says is overruled."""
    if item.retrieval is None or not item.reference.evidence:
        return {}
    turns = stored.of(item.reference.conversation_id)
    shown = [turn for hit in item.retrieval.hits for turn in hit.turn_ids]
    share = stored_share(item.reference.evidence, turns, shown)
    return {**({} if share is None else {STORED_RECALL: share}), **_update_scores(item, stored)}


def _update_scores(item: _Item, stored: StoredTurns) -> Scores:
    """Update metrics of a question whose reference names what is overruled; none for any other."""
    overruled = item.reference.extra.get(OVERRULED)
    if item.retrieval is None or not item.retrieval.traced or not overruled or not item.reference.evidence:
        return {}
    update = Update(
        newest=frozenset(item.reference.evidence),
        overruled=frozenset(overruled),
        retrieved=[hit.turn_ids for hit in item.retrieval.hits],
        stored=stored.of(item.reference.conversation_id),
        ranked=item.retrieval.ranked,
    )
    return update_scores(update)


def _neural_scores(items: Sequence[_Item], metrics: Sequence[Metric], config: ScoringConfig) -> tuple[Any, Any]:
    """Scores by question id of the metrics that run a model, and what they ran."""
    names = {metric.name for metric in metrics}
    pairs = [
        (item.reference.question_id, item.answer.prediction, JOINER.join(gold_answers(item.reference)))
        for item in items
        if item.answer is not None and gold_answers(item.reference)
    ]
    found: dict[str, Scores] = {question_id: {} for question_id, _, _ in pairs}
    models: dict[str, Any] = {}
    if any(name.startswith("bert_") for name in names):
        scorer = BertScorer(
            config.bertscore_model, config.bertscore_layers, config.bertscore_rescaled, config.batch_size
        )
        models["bertscore"] = scorer.fingerprint()
        for question_id, scores in _bert_scores(scorer, pairs).items():
            found[question_id] |= {name: value for name, value in scores.items() if name in names}
    if "sbert" in names:
        sentences = SentenceScorer(config.sbert_model, config.batch_size)
        models["sbert"] = sentences.fingerprint()
        values = sentences.score([pair[1] for pair in pairs], [pair[2] for pair in pairs])
        for (question_id, _, _), value in zip(pairs, values, strict=True):
            found[question_id]["sbert"] = value
    return found, models


def _bert_scores(scorer: BertScorer, pairs: Sequence[tuple[str, str, str]]) -> dict[str, Scores]:
    """BERTScore by question id. A-Mem's rule for an empty side: F1 counts as 0, precision and recall do not exist."""
    empty: Scores = {"bert_f1": 0.0, "bert_precision": None, "bert_recall": None}
    full = [pair for pair in pairs if pair[1] and pair[2]]
    values = scorer.score([pair[1] for pair in full], [pair[2] for pair in full])
    found: dict[str, Scores] = {question_id: dict(empty) for question_id, _, _ in pairs}
    for (question_id, _, _), value in zip(full, values, strict=True):
        found[question_id] = {
            "bert_f1": value.f1,
            "bert_precision": value.precision,
            "bert_recall": value.recall,
        }
    return found


def _load(run_dir: Path) -> tuple[list[_Item], dict[str, int]]:
    """Join the run's files: answered questions, or retrieved ones where the run answered none."""
    references = load_references(run_dir)
    answers, retrievals = load_answers(run_dir), load_retrievals(run_dir)
    check_joined(answers, references, run_dir / "answers.jsonl")
    check_joined(retrievals, references, run_dir / "retrievals.jsonl")
    lost = [] if is_recorded(run_dir) else missing(list(answers), retrievals)
    if lost:
        raise ScoringError(
            f"{run_dir}: {len(lost)} answered questions have no retrieval (first: {lost[0]}); "
            "delete their rows in answers.jsonl and resume the run"
        )
    present: Mapping[str, object] = answers or retrievals
    items = [
        _Item(reference, answers.get(question_id), retrievals.get(question_id))
        for question_id, reference in references.items()
        if question_id in present
    ]
    counts = {
        "questions": len(references),
        "answered": len(answers),
        "retrieved": len(retrievals),
        "unanswered": len(references) - len(answers),
        "malformed": sum(answer.malformed for answer in answers.values()),
        "rows": len(items),
    }
    return items, counts


def score_run(run_dir: Path, config: ScoringConfig | None = None) -> list[ScoreRow]:
    """Score a run and write ``scores.jsonl`` and ``scores_meta.json``.

    Scores by other metrics that an earlier scoring of the same answers made are kept.

    Args:
        run_dir: directory of the run; it may be incomplete. Unanswered questions get no row and are counted.
        config: what to compute; ``None`` computes all lexical metrics.

    Returns:
        The rows, in the order of ``references.jsonl``.

    Raises:
        ScoringError: files missing or not of one run; a corpus or model missing.
    """
    config = config or ScoringConfig()
    metrics = select_metrics(config.metrics)
    before = checksums(run_dir)
    items, counts = _load(run_dir)
    if not items:
        raise ScoringError(f"{run_dir} holds neither answers nor retrievals yet; run or resume the experiment first")
    answered = [item for item in items if item.answer is not None]
    neural, models = _neural_scores(answered, metrics, config) if answered else ({}, {})
    stored = StoredTurns(run_dir)
    rows = [
        _row(item, metrics, config, neural.get(item.reference.question_id), _memory_scores(item, stored))
        for item in items
    ]
    rows = _with_corrections(rows, items, _corrections(run_dir), metrics)
    kept = kept_scores(run_dir, before, {name for row in rows for name in row.metrics})
    rows = [replace(row, metrics={**kept.of(row.question_id), **row.metrics}) for row in rows]
    meta = {
        "schema_version": SCHEMA_VERSION,
        "config": {**asdict(config), **kept.config},
        "metrics": sorted({name for row in rows for name in row.metrics}),
        "sources": kept.sources | {metric.name: metric.source for metric in metrics},
        "models": {**kept.models, **models},
        "packages": {name: version(name) for name in ("nltk", "rouge-score")},
        "counts": counts,
        "inputs": before,
    }
    lines = [json.dumps(asdict(row), ensure_ascii=False, sort_keys=True).encode() + b"\n" for row in rows]
    write_atomic(run_dir / SCORES, b"".join(lines))
    write_json(run_dir / SCORES_META, meta)
    return rows


def _with_corrections(
    rows: Sequence[ScoreRow], items: Sequence[_Item], corrections: Mapping[str, str], metrics: Sequence[Metric]
) -> list[ScoreRow]:
    """Add scores against corrected gold answers, under names of their own."""
    found = []
    for row, item in zip(rows, items, strict=True):
        if item.answer is not None and row.question_id in corrections:
            own = _corrected_scores(item.answer, corrections[row.question_id], metrics)
            rounded = {name: None if value is None else round(value, DIGITS) for name, value in own.items()}
            row = replace(row, metrics={**row.metrics, **rounded})
        found.append(row)
    return found


def _row(
    item: _Item, metrics: Sequence[Metric], config: ScoringConfig, neural: Scores | None, memory: Scores
) -> ScoreRow:
    scores: Scores = {}
    if item.answer is not None:
        scores |= _answer_scores(item.answer, item.reference, metrics)
        scores |= {metric.name: None for metric in metrics if metric.neural}
        scores |= neural or {}
    if item.retrieval is not None:
        scores |= _retrieval_scores(item.retrieval, item.reference, config)
    scores |= memory
    scores |= marks(item.reference.extra)
    return ScoreRow(
        item.reference.question_id,
        item.reference.conversation_id,
        item.reference.category,
        {name: None if value is None else round(value, DIGITS) for name, value in scores.items()},
        item.reference.kind,
    )


def checksums(run_dir: Path) -> dict[str, str | None]:
    """Return sha256 of the files that scores depend on, ``None`` for one that does not exist."""
    return {name: _sha256(run_dir / name) for name in INPUTS}


#: Checksum of a file without rows.
_NO_ROWS = hashlib.sha256(b"").hexdigest()


def _sha256(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _same_rows(one: str | None, other: str | None) -> bool:
    """Whether two checksums are of the same rows: opening a run, as judging does, makes the files that it lacks."""
    return one == other or {one, other} == {None, _NO_ROWS}


def load_scores(run_dir: Path) -> list[ScoreRow]:
    """Read the stored scores of a run.

    Raises:
        ScoringError: there are none, or answers were added since.
    """
    if not ((run_dir / SCORES_META).is_file() and (run_dir / SCORES).is_file()):
        raise ScoringError(f"{run_dir} has no scores; run `python -m eval.score {run_dir}`")
    meta = load_json(run_dir / SCORES_META)
    inputs = meta.get("inputs") if isinstance(meta, dict) else None
    if not isinstance(inputs, dict):
        raise ScoringError(f"{run_dir / SCORES_META} names no inputs; run `python -m eval.score {run_dir}`")
    changed = [name for name, digest in checksums(run_dir).items() if not _same_rows(digest, inputs.get(name))]
    if changed:
        raise ScoringError(
            f"{run_dir}: {', '.join(changed)} changed since the scores were made; run `python -m eval.score {run_dir}`"
        )
    advice = f"run `python -m eval.score {run_dir}`"
    return list(read_rows(run_dir / SCORES, ScoreRow, error=ScoringError, advice=advice, unique="question_id"))
