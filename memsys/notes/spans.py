"""Seconds that the phases of a retrieval took."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


@contextmanager
def timed(spans: dict[str, float], phase: str) -> Iterator[None]:
    """Add the seconds spent inside to ``spans[phase]``."""
    start = perf_counter()
    try:
        yield
    finally:
        spans[phase] = spans.get(phase, 0.0) + perf_counter() - start
