"""Counters of what happened, as snapshots and statistics hold them, and what occurs more than once."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)


def counter_state(counts: Counter[str]) -> dict[str, int]:
    """Return the counts above zero, by name."""
    return dict(sorted((+counts).items()))


def counter_from(state: Mapping[str, Any]) -> Counter[str]:
    """Make the counter that :func:`counter_state` described."""
    return Counter({name: int(count) for name, count in state.items()})


def load_counts(counts: Counter[str], state: Mapping[str, Any]) -> None:
    """Restore a counter in place, because others add to it."""
    counts.clear()
    counts.update(counter_from(state))


def counts_with(always: Iterable[str], counts: Counter[str]) -> dict[str, int]:
    """Return the counts above zero, and those of ``always`` even at zero."""
    return {**dict.fromkeys(always, 0), **counter_state(counts)}


def repeated(values: Iterable[T]) -> list[T]:
    """Return the values that occur more than once, each once, in the order of their first occurrence."""
    return [value for value, times in Counter(values).items() if times > 1]
