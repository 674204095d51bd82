"""Matching of differences with documented deviations."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from eval.parity.compare import FoundDifference
from eval.parity.rules import passes
from memsys.deviations import Deviation, Match


@dataclass(frozen=True, slots=True)
class Explained:
    """A difference and the deviation that explains it; ``None`` where none does."""

    difference: FoundDifference
    deviation: Deviation | None


def explain(
    differences: Sequence[FoundDifference], deviations: Sequence[Deviation], preset: str, prompts: str
) -> list[Explained]:
    """Find the first deviation that explains each difference.

    Args:
        differences: of a parity run.
        deviations: of the system.
        preset: of ``conf/memory`` that was run.
        prompts: ``ours`` or ``authors``.

    Raises:
        ConfigError: a match names a rule that is not there.
    """
    known = [deviation for deviation in deviations if deviation.applies_to(preset) and deviation.match]
    return [Explained(each, _first(each, known, prompts)) for each in differences]


def _first(difference: FoundDifference, deviations: Sequence[Deviation], prompts: str) -> Deviation | None:
    for deviation in deviations:
        if any(fits(match, difference, prompts) for match in deviation.match):
            return deviation
    return None


def fits(match: Match, difference: FoundDifference, prompts: str) -> bool:
    """Return whether a match covers a difference."""
    return (
        match.kind == difference.kind
        and match.extent == difference.extent
        and (not match.roles or difference.role in match.roles)
        and match.prompts in (None, prompts)
        and fnmatchcase(difference.place, match.place)
        and passes(match.rule, difference.place, difference.ours, difference.theirs)
    )
