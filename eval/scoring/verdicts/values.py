"""Verdicts of judges, and the value of each."""

from collections.abc import Mapping

#: What a judge may say of an answer.
CORRECT, WRONG = "CORRECT", "WRONG"
#: What a judge of a rubric may say besides, and what each verdict counts.
PARTIAL = "PARTIAL"
WORTH: Mapping[str, float] = {CORRECT: 1.0, PARTIAL: 0.5, WRONG: 0.0}
#: What a judge may say of two events.
SAME, DIFFERENT = "SAME", "DIFFERENT"
