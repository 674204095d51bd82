"""Latency of a run's questions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval.runs.load import load_answers, load_retrievals
from eval.runs.records import AnswerRecord, RetrievalRecord
from eval.scoring.aggregate import described
from memsys.vocabulary import Json

#: The span that CLAG's retrieval clock leaves out: the query's keywords are made before it starts.
UNTIMED_SPAN = "keywords"


def latency(answers: Iterable[AnswerRecord], retrievals: Mapping[str, RetrievalRecord]) -> Json:
    """Return milliseconds per question with population deviation (CLAG, Table 2); ``None`` outside latency mode.

    ``retrieval_ms`` leaves out the making of the query's keywords, ``end_to_end_ms`` has it in.
    """
    clocks: dict[str, list[float]] = defaultdict(list)
    spans: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        if answer.measured:
            own = _spans(retrievals[answer.question_id].trace)
            for name, seconds in own.items():
                spans[name].append(1000 * seconds)
            for name, milliseconds in _clocks(answer, own).items():
                clocks[name].append(milliseconds)
    if not clocks:
        return None
    by_span = {name: described(values) for name, values in sorted(spans.items())}
    return {**{name: described(values) for name, values in clocks.items()}, "spans_ms": by_span}


def measured_latencies(path: Path) -> dict[str, dict[str, float]]:
    """Return the milliseconds by question, of the answers that were timed one at a time with fresh replies.

    Args:
        path: of the run.
    """
    spans = {name: _spans(row.trace) for name, row in load_retrievals(path).items()}
    return {
        row.question_id: {
            name: round(milliseconds, 6)
            for name, milliseconds in _clocks(row, spans.get(row.question_id, {})).items()
            if name != "answer_ms"
        }
        for row in load_answers(path).values()
        if row.measured
    }


def _clocks(answer: AnswerRecord, spans: Mapping[str, float]) -> dict[str, float]:
    """Return CLAG's latencies in milliseconds: retrieval starts after the keywords call, end-to-end before it."""
    retrieve, reply = answer.measured_seconds
    return {
        "retrieval_ms": 1000 * (retrieve - spans.get(UNTIMED_SPAN, 0.0)),
        "end_to_end_ms": 1000 * (retrieve + reply),
        "answer_ms": 1000 * reply,
    }


def _spans(trace: Mapping[str, Any]) -> dict[str, float]:
    """Return seconds by name of a span; values of a trace that are not numbers are ignored."""
    spans = trace.get("spans")
    if not isinstance(spans, Mapping):
        return {}
    return {name: float(seconds) for name, seconds in spans.items() if type(seconds) in (int, float)}
