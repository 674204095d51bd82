"""How long the questions of a run took."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eval.runs.records import AnswerRecord, RetrievalRecord
from eval.runs.rows import answers as read_answers
from eval.runs.rows import read_rows
from eval.scoring.aggregate import described
from memsys.vocabulary import Json

#: The span that CLAG's retrieval clock leaves out: the query's keywords are made before it starts.
UNTIMED_SPAN = "keywords"


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
        "retrieval_ms": described(retrieval_ms),
        "end_to_end_ms": described(1000 * sum(answer.measured_seconds) for answer in measured),
        "answer_ms": described(1000 * answer.measured_seconds[1] for answer in measured),
        "spans_ms": {name: described(values) for name, values in sorted(spans.items())},
    }


def measured_latencies(path: Path) -> dict[str, dict[str, float]]:
    """Milliseconds by question, of the answers that were timed one at a time with fresh replies.

    CLAG's clocks: retrieval starts after the keywords of the question were generated, end-to-end before.
    """
    keywords = {
        row.question_id: _keyword_seconds(row.trace) for row in read_rows(path / "retrievals.jsonl", RetrievalRecord)
    }
    found = {}
    for row in read_answers(path / "answers.jsonl"):
        if row.measured:
            retrieve, answer = row.measured_seconds
            found[row.question_id] = {
                "retrieval_ms": round(1000 * (retrieve - keywords.get(row.question_id, 0.0)), 6),
                "end_to_end_ms": round(1000 * (retrieve + answer), 6),
            }
    return found


def _keyword_seconds(trace: Mapping[str, Any]) -> float:
    spans = trace.get("spans")
    seconds = spans.get(UNTIMED_SPAN, 0.0) if isinstance(spans, Mapping) else 0.0
    return float(seconds) if isinstance(seconds, int | float) else 0.0
