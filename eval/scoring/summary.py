"""The summary of one run: ``summary.json``, small enough to be committed and complete enough to print every table.

Keys: ``counts``; ``protocols`` (means as each paper took them); ``metrics`` (every score described overall and per
category, as A-Mem does); ``adversarial``; ``evidence`` (means over questions with gold, with and without category 5);
``audited`` (both again without the questions whose gold is in doubt, null where none is); ``echo`` (what the questions
themselves would score as answers); ``latency`` (measured questions alone, else null); ``calls`` (by phase and role);
``cost``; ``context``; ``analysis`` (how many blocks and tokens cover the answers' words, and how many of these words
blocks hold); ``memory`` (sizes and statistics over conversations); ``storage`` (entries of the memories, counted from
their snapshots, see :func:`eval.scoring.storage.storage`); ``trace`` (retrieval diagnostics over questions);
``judges`` (what judges said, and how they did on answers whose grade is known). ``calls``, ``cost`` and ``memory`` are
null for answers that were recorded elsewhere (:mod:`eval.recorded`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import Any

from eval.analysis.evidence_density import evidence_density
from eval.judge.report import judge_summary
from eval.judge.store import load_judged
from eval.loaders.kinds import ADVERSARIAL
from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE
from eval.metrics.evidence import EVIDENCE_METRICS, POOL_METRICS
from eval.metrics.registry import find_metric
from eval.metrics.updates import UPDATE_METRICS
from eval.runs.files import write_json
from eval.runs.records import SCHEMA_VERSION, AnswerRecord, ConversationRecord, RetrievalRecord
from eval.runs.stored import (
    is_recorded,
    load_answers,
    load_calls,
    load_conversations,
    load_json,
    load_references,
    load_retrievals,
)
from eval.scoring.aggregate import aggregate, aggregate_metrics, describe, mean_of, undoubted
from eval.scoring.answers import gold_answers, score_answer
from eval.scoring.protocols import load_protocol, protocol_names
from eval.scoring.rows import DIGITS, SCORES_META, ScoreRow, load_scores
from eval.scoring.storage import storage
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Json

SUMMARY = "summary.json"
#: Phases whose tokens are the price of a question; the others are the price of a memory.
READ_PHASES = ("retrieve", "answer")
#: The span that CLAG's retrieval clock leaves out: the query's keywords are made before it starts.
UNTIMED_SPAN = "keywords"
#: A text value of a trace is counted only while it takes few values (search mode, reason), not if it is free text.
MOST_VALUES = 12
#: Metrics of the echo: they need no corpus.
_ECHO_METRICS = ("f1_set", "rougeL")
_CONTEXT_METRICS = ("context_chars", "context_tokens", "hit_chars", "hits")


def summarise(run_dir: Path) -> Json:
    """Summarise a scored run and write ``summary.json``.

    Args:
        run_dir: directory of the run.

    Returns:
        What was written.

    Raises:
        ScoringError: the run has no scores, or older ones than its answers.
    """
    rows = load_scores(run_dir)
    answers, retrievals = load_answers(run_dir), load_retrievals(run_dir)
    calls, conversations = load_calls(run_dir), load_conversations(run_dir)
    meta, recorded = load_json(run_dir / SCORES_META), is_recorded(run_dir)
    summary = {
        "schema_version": SCHEMA_VERSION,
        "scoring": {key: meta[key] for key in ("config", "models", "packages")},
        "counts": _counts(run_dir, rows, answers.values(), meta["counts"]),
        "protocols": {name: aggregate(rows, load_protocol(name)).as_json() for name in protocol_names()},
        "metrics": aggregate_metrics(rows),
        "adversarial": _adversarial(rows),
        "evidence": _evidence(rows),
        "audited": _audited(rows),
        "echo": _echo(run_dir, answers.values()),
        "latency": latency(answers.values(), retrievals),
        "calls": None if recorded else _calls(calls),
        "cost": None if recorded else _cost(calls, len(answers) or len(retrievals), len(conversations)),
        "context": {name: _described(row.metrics.get(name) for row in rows) for name in _CONTEXT_METRICS},
        "analysis": _analysis(run_dir, retrievals),
        "memory": None if recorded else _memory(conversations),
        "storage": None if recorded else storage(run_dir),
        "trace": _trace(retrievals.values()),
        "judges": {judged.column: judge_summary(judged, rows) for judged in load_judged(run_dir)},
    }
    rounded = _rounded(summary)
    write_json(run_dir / SUMMARY, rounded)
    return rounded


def with_means(summary: Json, rows: Sequence[ScoreRow]) -> Json:
    """A summary whose means are over other rows: those of a view of disputed labels."""
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
        return round(value, DIGITS)
    if isinstance(value, Mapping):
        return {key: _rounded(item) for key, item in value.items()}
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _described(values: Iterable[float | None]) -> Json:
    """Describe with population deviation; ``None`` when there is no value."""
    known = [float(value) for value in values if value is not None]
    return describe(known, population=True) if known else None


def _counts(run_dir: Path, rows: Sequence[ScoreRow], answers: Iterable[AnswerRecord], counts: Json) -> Json:
    asked = Counter(reference.category for reference in load_references(run_dir).values())
    present = Counter(row.category for row in rows)
    malformed = Counter(answer.category for answer in answers if answer.malformed)
    by_category = {
        str(category): {"questions": asked[category], "rows": present[category], "malformed": malformed[category]}
        for category in sorted(asked)
    }
    return {**counts, "by_category": by_category}


def _adversarial(rows: Sequence[ScoreRow]) -> Json:
    """Category 5 read both ways, and how often answerable questions were declined."""
    traps = [row for row in rows if row.kind == ADVERSARIAL]
    others = [row for row in rows if row.kind != ADVERSARIAL]
    return {
        "questions": len(traps),
        "abstained": mean_of(row.metrics.get("abstained") for row in traps).value,
        "trapped": mean_of(row.metrics.get("trapped") for row in traps).value,
        "declined_answerable": mean_of(row.metrics.get("abstained") for row in others).value,
    }


def _echo(run_dir: Path, answers: Iterable[AnswerRecord]) -> Json:
    """Means of repeating the question, the floor of a set whose answers are sentences; without category 5."""
    references = load_references(run_dir)
    scored: dict[str, list[float | None]] = {name: [] for name in _ECHO_METRICS}
    for answer in answers:
        gold = gold_answers(references[answer.question_id])
        if gold and references[answer.question_id].kind != ADVERSARIAL:
            for name, values in scored.items():
                values.append(score_answer(find_metric(name), answer.question, gold, answer.category))
    return {name: mean_of(values).value for name, values in scored.items()}


def _audited(rows: Sequence[ScoreRow]) -> Json:
    """Means over the questions whose gold is not in doubt; see :mod:`eval.loaders.label_problems`."""
    answers, evidence = (undoubted(rows, mark) for mark in (DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE))
    if len(evidence) == len(rows):
        return None
    return {
        "answers_left_out": len(rows) - len(answers),
        "evidence_left_out": len(rows) - len(evidence),
        "protocols": {name: aggregate(answers, load_protocol(name)).as_json()["overall"] for name in protocol_names()},
        "evidence": _evidence(evidence),
    }


def _evidence(rows: Sequence[ScoreRow]) -> Json:
    names = [name + suffix for suffix in ("", "_substring") for name in (*EVIDENCE_METRICS, *POOL_METRICS)]
    names += [name for name in UPDATE_METRICS if any(row.metrics.get(name) is not None for row in rows)]
    populations = {"all": rows, "without_adversarial": [row for row in rows if row.kind != ADVERSARIAL]}
    found: dict[str, Json] = {}
    for population, chosen in populations.items():
        means = {name: mean_of(row.metrics.get(name) for row in chosen) for name in names}
        found[population] = {
            name: {"mean": mean.value, "scored": mean.scored, "unscored": mean.unscored} for name, mean in means.items()
        }
    return found


def latency(answers: Iterable[AnswerRecord], retrievals: Mapping[str, RetrievalRecord]) -> Json:
    """Milliseconds per question, population deviation (CLAG, Table 2); ``None`` unless timed in latency mode.

    ``retrieval_ms`` leaves out the making of the query's keywords, ``end_to_end_ms`` has it in.
    """
    measured = [answer for answer in answers if answer.measured]
    spans: dict[str, list[float]] = defaultdict(list)
    retrieval_ms = []
    for answer in measured:
        own: Mapping[str, float] = retrievals[answer.question_id].trace.get("spans", {})
        for name, seconds in own.items():
            spans[name].append(1000 * seconds)
        retrieval_ms.append(1000 * (answer.measured_seconds[0] - own.get(UNTIMED_SPAN, 0.0)))
    if not measured:
        return None
    return {
        "retrieval_ms": _described(retrieval_ms),
        "end_to_end_ms": _described(1000 * sum(answer.measured_seconds) for answer in measured),
        "answer_ms": _described(1000 * answer.measured_seconds[1] for answer in measured),
        "spans_ms": {name: _described(values) for name, values in sorted(spans.items())},
    }


def _call_totals(calls: Sequence[CallRecord]) -> Json:
    fresh = [call for call in calls if not call.cache_hit]
    return {
        "calls": len(calls),
        "cache_hits": len(calls) - len(fresh),
        "prompt_tokens": sum(call.prompt_tokens for call in calls),
        "completion_tokens": sum(call.completion_tokens for call in calls),
        "malformed": sum(call.malformed for call in calls),
        "repaired": sum(call.repaired for call in calls),
        "second_attempts": sum(call.attempt > 0 for call in calls),
        "transport_retries": sum(call.transport_retries for call in calls),
        "fresh_seconds": fsum(call.seconds for call in fresh),
        "cut_short": sum(call.finish_reason == "length" for call in calls),
        **_prefixes(fresh),
    }


def _prefixes(fresh: Sequence[CallRecord]) -> dict[str, Json]:
    """Prompt tokens that the server had already computed, and their share; null where no call says so.

    The share is over the calls that report it: replies from our own cache asked no server.
    """
    known = [(call.cached_tokens, call.prompt_tokens) for call in fresh if call.cached_tokens is not None]
    cached, prompts = sum(tokens for tokens, _ in known), sum(prompt for _, prompt in known)
    return {"cached_tokens": cached if known else None, "cached_share": cached / prompts if prompts else None}


def _calls(calls: Sequence[CallRecord]) -> Json:
    by_phase: dict[str, dict[str, list[CallRecord]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        by_phase[call.phase][call.role].append(call)
    return {
        # A judge's calls are no part of what the method costs.
        "total": _call_totals([call for call in calls if call.phase != "judge"]),
        "by_phase": {
            phase: {
                "total": _call_totals([call for group in roles.values() for call in group]),
                "by_role": {role: _call_totals(group) for role, group in roles.items()},
            }
            for phase, roles in by_phase.items()
        },
    }


def _cost(calls: Sequence[CallRecord], questions: int, conversations: int) -> Json:
    """Tokens and calls per unit. Cached calls count: they are what the method costs, whoever paid for them first."""

    def per(chosen: Sequence[CallRecord], units: int) -> Json:
        if not units:
            return None
        return {
            "calls": len(chosen) / units,
            "prompt_tokens": sum(call.prompt_tokens for call in chosen) / units,
            "completion_tokens": sum(call.completion_tokens for call in chosen) / units,
        }

    read = [call for call in calls if call.phase in READ_PHASES]
    write = [call for call in calls if call.phase not in (*READ_PHASES, "judge")]
    return {"read_per_question": per(read, questions), "write_per_conversation": per(write, conversations)}


def _analysis(run_dir: Path, retrievals: Mapping[str, RetrievalRecord]) -> Json:
    """Figures of xMemory's tables 3 and 5; ``eval.analysis.xmemory_structure`` has more."""
    density = evidence_density(load_references(run_dir), retrievals)
    cover = density["coverage"]
    return {
        "blocks_to_cover": cover["blocks"],
        "tokens_to_cover": cover["tokens"],
        "answers_covered": cover["covered"],
        "hit_shares": density["hits"],
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a JSON tree; the elements of a list share one path ending in ``[]``."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item, f"{path}[]")
    else:
        yield path, value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(trees: Iterable[Any]) -> dict[str, list[float]]:
    """Collect the numeric leaves of JSON trees by path."""
    found: dict[str, list[float]] = defaultdict(list)
    for tree in trees:
        for path, value in _leaves(tree):
            if _is_number(value):
                found[path].append(float(value))
    return found


def _described_with_sum(values: Sequence[float]) -> Json:
    return {**describe(values, population=True), "sum": fsum(values)}


def _memory(conversations: Sequence[ConversationRecord]) -> Json:
    """Sizes and statistics over conversations: sum, mean and population deviation (CLAG, Table 12)."""
    sizes = [
        {
            "turns": record.turns,
            "units": record.units,
            "ingest_seconds": record.ingest_seconds,
            "prepare_seconds": fsum(record.prepare_seconds),
            "write_seconds": fsum(record.write_seconds),
            "consolidate_seconds": record.consolidate_seconds,
        }
        for record in conversations
    ]
    return {
        "conversations": len(conversations),
        "sizes": {path: _described_with_sum(values) for path, values in _numbers(sizes).items()},
        "statistics": {
            path: _described_with_sum(values)
            for path, values in _numbers(record.statistics for record in conversations).items()
        },
    }


def _trace(retrievals: Iterable[RetrievalRecord]) -> Json:
    """Describe numbers of the traces (spans apart, they are latency) and count their few-valued words and flags."""
    traces = [{key: value for key, value in record.trace.items() if key != "spans"} for record in retrievals]
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for trace in traces:
        for path, value in _leaves(trace):
            if isinstance(value, str | bool) and "[]" not in path:
                words[path][str(value)] += 1
    return {
        "numbers": {path: describe(values, population=True) for path, values in _numbers(traces).items()},
        "values": {path: dict(counts) for path, counts in words.items() if len(counts) <= MOST_VALUES},
    }
