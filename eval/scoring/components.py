"""Variance components of runs x conversations x questions, and what a design of this many of each detects.

The model of a score is ``mean + run + conversation + question in it + run x conversation + rest``. Components are
estimated by equating mean squares with their expectations (Searle, Casella and McCulloch 1992, chapter 4), with the
unequal sizes of conversations in the coefficients; an estimate below zero is zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from eval.scoring.inference import Floats, detectable_difference


@dataclass(frozen=True, slots=True)
class Components:
    """Variances of one question's score (or of a paired difference).

    Attributes:
        conversation: between conversations.
        question: between questions of a conversation; with one run the rest is in it.
        run: between runs, alike for all questions.
        run_conversation: between runs, alike for the questions of a conversation.
        rest: from run to run and question to question.
    """

    conversation: float
    question: float
    run: float = 0.0
    run_conversation: float = 0.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class Design:
    """Size of a measurement: conversations, questions in each, runs of all of them."""

    conversations: int
    questions: int
    runs: int = 1


def estimate_components(values: Floats, conversations: Sequence[str]) -> Components:
    """Estimate the components.

    Args:
        values: shape (runs, questions); the same questions in each run, all scored.
        conversations: of each question.

    Raises:
        ValueError: fewer than two conversations, or no conversation with two questions.
    """
    _, number = np.unique(np.asarray(conversations), return_inverse=True)
    sizes = np.bincount(number).astype(np.float64)
    if len(sizes) < 2 or sizes.max() < 2:
        raise ValueError("components need two conversations, and two questions in one of them")
    conversation, question = _nested(values.mean(axis=0), number, sizes)
    runs = len(values)
    if runs < 2:
        return Components(conversation, question)
    run, crossed, rest = _crossed(values, number, sizes)
    # The mean over runs still holds a part of what varies from run to run.
    return Components(
        max(0.0, conversation - crossed / runs), max(0.0, question - rest / runs), run, crossed, rest
    )  # fmt: skip


def _nested(means: Floats, number: NDArray[np.intp], sizes: Floats) -> tuple[float, float]:
    """Return the variance components of questions within conversations, from one value per question."""
    groups, total = len(sizes), sizes.sum()
    centres = np.bincount(number, weights=means) / sizes
    within = float(((means - centres[number]) ** 2).sum() / (total - groups))
    between = float((sizes * (centres - means.mean()) ** 2).sum() / (groups - 1))
    typical = (total - (sizes**2).sum() / total) / (groups - 1)
    return max(0.0, (between - within) / typical), within


def _crossed(values: Floats, number: NDArray[np.intp], sizes: Floats) -> tuple[float, float, float]:
    """Return the components of run, run x conversation and residual, after subtracting each question's mean."""
    runs, left = len(values), values - values.mean(axis=0)
    centres = np.stack([np.bincount(number, weights=row) / sizes for row in left])
    rest = float(((left - centres[:, number]) ** 2).sum() / ((runs - 1) * (sizes.sum() - len(sizes))))
    grand = left.mean(axis=1)
    crossed_square = float((sizes * (centres - grand[:, None]) ** 2).sum() / ((runs - 1) * (len(sizes) - 1)))
    typical = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1)
    crossed = max(0.0, (crossed_square - rest) / typical)
    noise = crossed * float((sizes**2).sum()) / sizes.sum() ** 2 + rest / sizes.sum()
    return max(0.0, float((grand**2).sum() / (runs - 1)) - noise), crossed, rest


def variance_of_mean(parts: Components, design: Design) -> float:
    """Return the variance of the mean over a design, for other conversations, questions and runs."""
    questions = design.conversations * design.questions
    return (
        parts.conversation / design.conversations
        + parts.question / questions
        + parts.run / design.runs
        + parts.run_conversation / (design.runs * design.conversations)
        + parts.rest / (design.runs * questions)
    )


def detectable(parts: Components, design: Design) -> float:
    """Return the smallest true difference that a two-sided test over the conversations of a design finds.

    The degrees of freedom are those of the conversations; where there are several runs and they are fewer, those of
    the runs are not taken into account, so that with few runs of a large spread the figure is a lower bound.

    Raises:
        ValueError: the design has one conversation.
    """
    if design.conversations < 2:
        raise ValueError("one conversation says nothing about others: no design with one detects a difference")
    return detectable_difference(sqrt(variance_of_mean(parts, design)), design.conversations - 1)


def conversations_needed(
    parts: Components, difference: float, questions: int, runs: int, most: int = 1_000
) -> int | None:
    """Return the fewest conversations after which a difference is found; ``None`` where more than ``most`` are needed.

    Args:
        parts: of the paired difference.
        difference: true one, in the unit of the scores.
        questions: of each conversation.
        runs: of all conversations.
        most: conversations tried at most.
    """
    sizes = range(2, most + 1)
    return next((size for size in sizes if detectable(parts, Design(size, questions, runs)) <= difference), None)
