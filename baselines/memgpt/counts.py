"""Counts of an agent's work, for statistics."""

from collections import Counter

from baselines.memgpt.functions import CallChain
from memsys.counting import counts_with

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "steps",
    "calls.core_memory_append",
    "calls.core_memory_replace",
    "calls.archival_memory_insert",
    "failed",
    "alerts",
    "evictions",
    "evicted_messages",
    "summaries",
    "fallback.summarise",
    "ended.steps",
    "ended.failures",
)


def add_calls(counts: Counter[str], chain: CallChain) -> None:
    """Count the functions that ran for an event, and those that failed."""
    counts.update(f"calls.{name}" for name in chain.calls)
    counts.update(f"failed.{reason}" for reason in chain.failures)


def shown_counts(counts: Counter[str]) -> dict[str, int]:
    """Return the counts with the sum of all failed calls."""
    failed = sum(count for name, count in counts.items() if name.startswith("failed."))
    return counts_with(_ALWAYS, counts | Counter(failed=failed))
