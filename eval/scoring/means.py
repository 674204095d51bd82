"""Means of values that may be missing."""

from collections.abc import Iterable, Sequence
from math import fsum


def mean_or_none(values: Iterable[float]) -> float | None:
    """Return the mean; ``None`` of nothing."""
    known = list(values)
    return fsum(known) / len(known) if known else None


def mean_if_known(values: Sequence[float | None]) -> float | None:
    """Return the mean; ``None`` of nothing, and where a value is not known."""
    return None if None in values else mean_or_none(value for value in values if value is not None)
