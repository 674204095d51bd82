"""Tiers: systems that the declared test does not confirm to be below the best of them."""

from collections.abc import Sequence

from eval.results.compare.pairs import tests
from eval.results.compare.rows import SystemRow
from eval.scoring.protocols import Protocol


def tiers(rows: Sequence[SystemRow], column: str, metric: str, rule: Protocol) -> dict[str, int]:
    """Return the tier of each system, from 1, by the tests of every comparison.

    The best system and all that are not confirmed to be below it are a tier, and so on with the others. Each tier's
    tests are one family in Holm's correction.

    Args:
        rows: systems that are ranked, with this column where they have a score.
        column: heading of the score.
        metric: its name.
        rule: protocol of the test, which declares it.

    Returns:
        Nothing where one conversation was asked about: no test can order systems there.
    """
    left = sorted((row for row in rows if column in row.estimates), key=lambda row: -row.estimates[column].value)
    found: dict[str, int] = {}
    tier = 0
    while left:
        tier += 1
        pairs = tests(left[0], left, column, metric, rule)
        if not all(pair.verdict for pair in pairs):
            return {}
        below = {pair.system for pair in pairs if pair.verdict == "below"}
        found |= {row.label: tier for row in left if row.label not in below}
        left = [row for row in left if row.label in below]
    return found
