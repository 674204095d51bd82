"""Do two judges say the same? Raw agreement, and Cohen's kappa, which takes off what chance would give."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from eval.scoring.means import mean_or_none
from eval.scoring.verdicts.values import CORRECT, WRONG


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """Two judges on the answers that both gave a verdict on.

    Attributes:
        answers: how many.
        agree: share on which they agree; ``None`` without a common answer.
        kappa: Cohen (1960); ``None`` where it is not defined, because both say the same of everything.
    """

    answers: int
    agree: float | None
    kappa: float | None


def cohen_kappa(one: Sequence[Hashable], two: Sequence[Hashable]) -> float | None:
    """Return the agreement beyond chance: ``(observed - expected) / (1 - expected)``.

    Args:
        one: labels of the first judge.
        two: labels of the second, of the same answers.

    Returns:
        Kappa; ``None`` without labels, or when both judges always give the same one label (0/0).
    """
    if len(one) != len(two):
        raise ValueError(f"{len(one)} labels against {len(two)}")
    if not one:
        return None
    observed = sum(a == b for a, b in zip(one, two, strict=True)) / len(one)
    labels = set(one) | set(two)
    expected = sum(list(one).count(label) * list(two).count(label) for label in labels) / len(one) ** 2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def majority(shares: Mapping[str, float | None]) -> dict[str, str]:
    """Return the verdict of each question by the majority of its repeats; questions without one are left out.

    Args:
        shares: question id -> share of its readable verdicts that are ``CORRECT``, as stored in scores.
    """
    found = {}
    for name, value in shares.items():
        if value is not None and value != 0.5:
            found[name] = CORRECT if value > 0.5 else WRONG
    return found


def agreement(one: Mapping[str, str], two: Mapping[str, str]) -> JudgeAgreement:
    """Compare two judges on the questions that both decided."""
    common = sorted(one.keys() & two.keys())
    ours, theirs = [one[name] for name in common], [two[name] for name in common]
    agree = mean_or_none(a == b for a, b in zip(ours, theirs, strict=True))
    return JudgeAgreement(len(common), agree, cohen_kappa(ours, theirs))
