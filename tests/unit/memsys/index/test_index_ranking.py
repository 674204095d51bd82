"""The highest of many values, against a plain sort."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memsys.index.ranking import best_rows, near_highest


@settings(deadline=None, max_examples=200)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 3_000),
    values=st.integers(1, 400),
    zeros=st.sampled_from([0.0, 0.9, 0.999, 1.0]),
    count=st.integers(-1, 40),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rows_are_those_of_a_stable_sort(
    seed: int, size: int, values: int, zeros: float, count: int, dtype: type[np.floating[Any]]
) -> None:
    generator = np.random.default_rng(seed)
    scores = generator.integers(-values // 4, values, size).astype(dtype) / 7
    scores[generator.random(size) < zeros] = 0
    wanted = np.argsort(-scores, kind="stable")[: max(count, 0)]
    assert best_rows(scores, count).tolist() == wanted.tolist()
    last = scores[wanted[-1]] if 1 <= count < size else scores.min()
    assert near_highest(scores, count).tolist() == np.flatnonzero(scores >= last).tolist()
    if 1 <= count < size:
        assert near_highest(scores, count, 0.5).tolist() == np.flatnonzero(scores >= last - 0.5).tolist()


def test_ties_go_to_the_earlier_row() -> None:
    assert best_rows(np.array([1.0, 3.0, 2.0, 3.0, 2.0, 2.0]), 4).tolist() == [1, 3, 2, 4]


def test_many_documents_without_a_match_come_oldest_first() -> None:
    scores = np.zeros(10_000)
    scores[7_000] = 2.0
    assert best_rows(scores, 3).tolist() == [7_000, 0, 1]
