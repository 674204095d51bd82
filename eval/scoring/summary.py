"""The summary of one run: ``summary.json``, small enough to be committed and complete enough to print every table.

Keys: ``counts``; ``protocols`` (means as each paper took them); ``metrics`` (every score described overall and per
category, as A-Mem does); ``adversarial``; ``evidence`` (means over questions with gold, with and without category 5);
``audited`` (both again without the questions whose gold is in doubt, null where none is); ``echo`` (what the questions
themselves would score as answers); ``latency`` (measured questions alone, else null); ``calls`` (by phase and role);
``cost``; ``context``; ``analysis`` (how many blocks and tokens cover the answers' words, and how many of these words
blocks hold); ``memory`` (sizes and statistics over conversations); ``storage`` (entries of the memories, counted from
their snapshots, see :func:`eval.scoring.storage.storage`); ``trace`` (retrieval diagnostics over questions);
``cut_texts`` (texts that an embedder or BERTScore's model read in part, where there are any);
``judges`` (what judges said, and how they did on answers whose grade is known). ``calls``, ``cost`` and ``memory`` are
null for answers that were recorded elsewhere (:mod:`eval.audit.recorded`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE
from eval.loaders.question_types import ADVERSARIAL
from eval.metrics.evidence import EVIDENCE_METRICS, POOL_METRICS, SUBSTRING
from eval.metrics.registry import find_metric
from eval.metrics.updates import UPDATE_METRICS
from eval.runs.files import write_json
from eval.runs.load import (
    SCORES_META,
    SUMMARY,
    find_record,
    is_recorded,
    load_calls,
    load_embeddings,
    load_json,
    load_scores,
)
from eval.runs.records import SCHEMA_VERSION, AnswerRecord, ReferenceRecord, RetrievalRecord, ScoreRow
from eval.runs.signing import sign_files
from eval.scoring.aggregate import aggregate, aggregate_metrics, described, mean_of, without_flagged
from eval.scoring.answers import gold_answers, score_answer
from eval.scoring.call_costs import calls_by_role, cost_per_unit, embedded_tokens
from eval.scoring.config import STORED_DECIMALS
from eval.scoring.evidence_density import evidence_density
from eval.scoring.latency import latency
from eval.scoring.memory_statistics import memory_statistics, trace_statistics
from eval.scoring.neural import BERTSCORE_CUT
from eval.scoring.protocols import load_protocol, protocol_names
from eval.scoring.run_files import RunFiles
from eval.scoring.shown import SHOWN_CHARS
from eval.scoring.storage import storage
from eval.scoring.verdicts.store import load_judged
from eval.scoring.verdicts.summary import judge_summary
from memsys.vocabulary import Json

#: Metrics of the echo: they need no corpus.
_ECHO_METRICS = ("f1_set", "rougeL")
_CONTEXT_METRICS = ("context_chars", "context_tokens", "hit_chars", SHOWN_CHARS, "hits")


def summarise(run_dir: Path, files: RunFiles | None = None) -> Json:
    """Summarise a scored run and write ``summary.json``.

    Args:
        run_dir: directory of the run.
        files: of the run, as it was scored; ``None`` reads them.

    Returns:
        What was written.

    Raises:
        ScoringError: the run has no scores, or older ones than its answers.
    """
    rows = load_scores(run_dir)
    files = files or RunFiles(run_dir)
    references, answers, retrievals = files.references, files.answers, files.retrievals
    calls, conversations = load_calls(run_dir), files.conversations
    meta, recorded = load_json(run_dir / SCORES_META), is_recorded(run_dir)
    summary = {
        "schema_version": SCHEMA_VERSION,
        "scoring": {key: meta[key] for key in ("config", "models", "packages")},
        "counts": _counts(references, rows, answers.values(), meta["counts"]),
        "protocols": {name: aggregate(rows, load_protocol(name)).as_json() for name in protocol_names()},
        "metrics": aggregate_metrics(rows),
        "adversarial": _adversarial(rows),
        "evidence": _evidence(rows),
        "audited": _audited(rows),
        "echo": _echo(references, answers.values()),
        "latency": latency(answers.values(), retrievals),
        "calls": None if recorded else calls_by_role(calls),
        "cost": None if recorded else cost_per_unit(calls, len(answers) or len(retrievals), len(conversations)),
        **_embeddings(run_dir),
        **_cut_texts(run_dir, meta),
        "context": {name: described(row.metrics.get(name) for row in rows) for name in _CONTEXT_METRICS},
        "analysis": _analysis(references, retrievals),
        "memory": None if recorded else memory_statistics(conversations),
        "storage": None if recorded else storage(run_dir, conversations, retrievals.values(), files.stored.entries),
        "trace": trace_statistics(retrievals.values()),
        "judges": {judged.column: judge_summary(judged, rows) for judged in load_judged(run_dir)},
    }
    rounded = _rounded(summary)
    write_json(run_dir / SUMMARY, rounded)
    sign_files(run_dir, [SUMMARY])
    return rounded


def with_means(summary: Json, rows: Sequence[ScoreRow]) -> Json:
    """Return a summary with the means of other rows, those of a view of disputed labels."""
    means = {
        "protocols": {name: aggregate(rows, load_protocol(name)).as_json() for name in protocol_names()},
        "metrics": aggregate_metrics(rows),
        "adversarial": _adversarial(rows),
        "evidence": _evidence(rows),
        "audited": None,
    }
    return {**summary, **_rounded(means)}


def _rounded(value: Any) -> Any:
    """Round every float: the last digits of a mean say nothing and make files differ."""
    if isinstance(value, float):
        return round(value, STORED_DECIMALS)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _embeddings(run_dir: Path) -> dict[str, Json]:
    """Return the paid tokens of the embedder by phase; nothing for an embedder without a price per token."""
    paid = load_embeddings(run_dir)
    return {} if paid is None else {"embeddings": embedded_tokens(paid)}


def _cut_texts(run_dir: Path, meta: Json) -> dict[str, Json]:
    """Return the numbers of texts truncated by the embedder or by BERTScore's model; nothing where none were."""
    counts = {"embedded": (find_record(run_dir) or {}).get("cut_texts"), "bertscore": meta.get(BERTSCORE_CUT)}
    found = {name: count for name, count in counts.items() if count}
    return {"cut_texts": found} if found else {}


def _counts(
    references: Mapping[str, ReferenceRecord], rows: Sequence[ScoreRow], answers: Iterable[AnswerRecord], counts: Json
) -> Json:
    asked = Counter(reference.category for reference in references.values())
    present = Counter(row.category for row in rows)
    malformed = Counter(answer.category for answer in answers if answer.malformed)
    by_category = {
        str(category): {"questions": asked[category], "rows": present[category], "malformed": malformed[category]}
        for category in sorted(asked)
    }
    return {**counts, "by_category": by_category}


def _adversarial(rows: Sequence[ScoreRow]) -> Json:
    """Return category 5 under both readings, and the share of answerable questions that were declined."""
    traps = [row for row in rows if row.kind == ADVERSARIAL]
    others = [row for row in rows if row.kind != ADVERSARIAL]
    return {
        "questions": len(traps),
        "abstained": mean_of(row.metrics.get("abstained") for row in traps).value,
        "trapped": mean_of(row.metrics.get("trapped") for row in traps).value,
        "declined_answerable": mean_of(row.metrics.get("abstained") for row in others).value,
    }


def _echo(references: Mapping[str, ReferenceRecord], answers: Iterable[AnswerRecord]) -> Json:
    """Return the means of echoing the question, a trivial baseline for sentence answers; without category 5."""
    scored: dict[str, list[float | None]] = {name: [] for name in _ECHO_METRICS}
    for answer in answers:
        reference = references[answer.question_id]
        gold = gold_answers(reference)
        if gold and reference.kind != ADVERSARIAL:
            for name, values in scored.items():
                metric = find_metric(name)
                values.append(score_answer(metric, answer.question, gold, answer.category, reference.kind))
    return {name: mean_of(values).value for name, values in scored.items()}


def _audited(rows: Sequence[ScoreRow]) -> Json:
    """Return the means over the questions with undisputed gold; see :mod:`eval.loaders.label_problems`."""
    answers, evidence = (without_flagged(rows, mark) for mark in (DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE))
    if len(evidence) == len(rows):
        return None
    return {
        "answers_left_out": len(rows) - len(answers),
        "evidence_left_out": len(rows) - len(evidence),
        "protocols": {name: aggregate(answers, load_protocol(name)).as_json()["overall"] for name in protocol_names()},
        "evidence": _evidence(evidence),
    }


def _evidence(rows: Sequence[ScoreRow]) -> Json:
    names = [name + suffix for suffix in ("", SUBSTRING) for name in (*EVIDENCE_METRICS, *POOL_METRICS)]
    names += [name for name in UPDATE_METRICS if any(row.metrics.get(name) is not None for row in rows)]
    populations = {"all": rows, "without_adversarial": [row for row in rows if row.kind != ADVERSARIAL]}
    found: dict[str, Json] = {}
    for population, chosen in populations.items():
        means = {name: mean_of(row.metrics.get(name) for row in chosen) for name in names}
        found[population] = {
            name: {"mean": mean.value, "scored": mean.scored, "unscored": mean.unscored} for name, mean in means.items()
        }
    return found


def _analysis(references: Mapping[str, ReferenceRecord], retrievals: Mapping[str, RetrievalRecord]) -> Json:
    """Return the figures of xMemory's tables 3 and 5; ``eval.results.analysis.xmemory_structure`` has more."""
    density = evidence_density(references, retrievals)
    cover = density["coverage"]
    return {
        "blocks_to_cover": cover["blocks"],
        "tokens_to_cover": cover["tokens"],
        "answers_covered": cover["covered"],
        "hit_shares": density["hits"],
    }
