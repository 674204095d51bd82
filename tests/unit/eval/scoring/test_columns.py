"""Columns of rows: those that are there already, and those of some of the rows."""

import numpy as np

from eval.runs.records import ScoreRow
from eval.scoring.columns import columns_of

ROWS = [
    ScoreRow("q0", "one", 1, {"f1": 0.5, "judge": None}),
    ScoreRow("q1", "one", 1, {"f1": 1.0}),
    ScoreRow("q2", "two", 4, {"f1": None, "recall": 0.25}),
]


def test_names_are_of_all_columns_and_scored_are_those_with_a_value() -> None:
    columns = columns_of(ROWS)
    assert columns.names == {"f1", "judge", "recall"}
    assert columns.scored == {"f1", "recall"}
    assert columns.of_questions({"q0", "q1"}).scored == {"f1"}


def test_columns_that_were_read_are_not_made_again() -> None:
    """A metric that no row has is missing everywhere, and no row is asked for it."""
    read = {"f1": np.array([0.5, 1.0, np.nan])}
    columns = columns_of([ScoreRow(row.question_id, row.conversation_id, row.category, {}) for row in ROWS], read)
    assert columns.names == {"f1"}
    np.testing.assert_array_equal(columns.column("f1"), read["f1"])
    assert np.isnan(columns.column("recall")).all()


def test_all_questions_are_the_columns_themselves_and_some_keep_their_order() -> None:
    columns = columns_of(ROWS)
    assert columns.of_questions({"q0", "q1", "q2", "q9"}) is columns
    assert [row.question_id for row in columns.of_questions({"q2", "q0"})] == ["q0", "q2"]
    assert columns.of_questions({"q9"}).column("f1").shape == (0,)
