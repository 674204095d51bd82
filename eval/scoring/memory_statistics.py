"""Statistics that memories report, over conversations, and the traces of their retrievals."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any

from eval.runs.records import ConversationRecord, RetrievalRecord
from eval.scoring.aggregate import describe
from memsys.vocabulary import Json

#: A text value of a trace is counted only while it takes few values (search mode, reason), not if it is free text.
MOST_VALUES = 12


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


def numbers_by_path(trees: Iterable[Any]) -> dict[str, list[float]]:
    """Collect the numeric leaves of JSON trees by path."""
    found: dict[str, list[float]] = defaultdict(list)
    for tree in trees:
        for path, value in _leaves(tree):
            if _is_number(value):
                found[path].append(float(value))
    return found


def _described_with_sum(values: Sequence[float]) -> Json:
    return {**describe(values, population=True), "sum": fsum(values)}


def memory_statistics(conversations: Sequence[ConversationRecord]) -> Json:
    """Return the sizes and statistics over conversations: sum, mean and population deviation (CLAG, Table 12)."""
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
        "sizes": {path: _described_with_sum(values) for path, values in numbers_by_path(sizes).items()},
        "statistics": {
            path: _described_with_sum(values)
            for path, values in numbers_by_path(record.statistics for record in conversations).items()
        },
    }


def trace_statistics(retrievals: Iterable[RetrievalRecord]) -> Json:
    """Describe numbers of the traces (spans apart, they are latency) and count their few-valued words and flags."""
    traces = [{key: value for key, value in record.trace.items() if key != "spans"} for record in retrievals]
    words: dict[str, Counter[str]] = defaultdict(Counter)
    for trace in traces:
        for path, value in _leaves(trace):
            if isinstance(value, str | bool) and "[]" not in path:
                words[path][str(value)] += 1
    return {
        "numbers": {path: describe(values, population=True) for path, values in numbers_by_path(traces).items()},
        "values": {path: dict(counts) for path, counts in words.items() if len(counts) <= MOST_VALUES},
    }
