"""Helpers of the workers that run authors' files: the search that replaces vector stores."""

import math

import pytest

from memsys.workers.released_code import nearest


def test_cosines_that_agree_to_six_decimals_are_ties_and_go_to_the_older_row() -> None:
    near = [[math.cos(angle), math.sin(angle)] for angle in (0.5, 0.5 - 4e-7, 0.1)]
    assert [place for place, _ in nearest(near, [1.0, 0.0], 3)] == [2, 0, 1]


def test_a_cosine_has_six_decimals() -> None:
    assert nearest([[1.0, 0.0], [0.6, 0.8]], [0.0, 1.0], 1) == [(1, pytest.approx(0.8))]
    assert round(nearest([[0.6, 0.8]], [0.0, 1.0], 1)[0][1], 6) == nearest([[0.6, 0.8]], [0.0, 1.0], 1)[0][1]


def test_an_empty_store_has_no_row() -> None:
    assert nearest([], [1.0], 3) == []
