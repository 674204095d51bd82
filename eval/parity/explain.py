"""Matching of differences with documented deviations."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from eval.parity.compare import FoundDifference
from eval.parity.rules import passes
from memsys.departures import Departure, Match


@dataclass(frozen=True, slots=True)
class Explained:
    """A difference and the departure that explains it; ``None`` where none does."""

    difference: FoundDifference
    departure: Departure | None


def explain(
    differences: Sequence[FoundDifference], departures: Sequence[Departure], preset: str, prompts: str
) -> list[Explained]:
    """Find the first departure that explains each difference.

    Args:
        differences: of a parity run.
        departures: of the system.
        preset: of ``conf/memory`` that was run.
        prompts: ``ours`` or ``authors``.

    Raises:
        ConfigError: a match names a rule that is not there.
    """
    known = [departure for departure in departures if departure.applies_to(preset) and departure.match]
    return [Explained(each, _first(each, known, prompts)) for each in differences]


def _first(difference: FoundDifference, departures: Sequence[Departure], prompts: str) -> Departure | None:
    for departure in departures:
        if any(fits(match, difference, prompts) for match in departure.match):
            return departure
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
