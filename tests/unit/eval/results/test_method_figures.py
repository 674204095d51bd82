"""Figures of the tables of methods' own counts."""

import pytest

from eval.results.own.methods import number


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (3.0, "3"), (12345.0, "12,345"), (0.03333, "0.0333"), (999.4, "999"), (999.6, "1,000"),
     (-999.6, "-1,000"), (1234.5, "1,234")],
)  # fmt: skip
def test_a_figure_has_three_digits_and_no_exponent(value: float | None, text: str) -> None:
    assert number(value) == text
