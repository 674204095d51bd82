"""Does a measured cell give the printed number again? Margins of ``conf/verdicts.yaml``."""

from dataclasses import dataclass
from functools import cache

from eval.config.presets import CONF, make_preset
from eval.results.papers.printed import PrintedNumber
from eval.results.tables.measure import Measured
from eval.scoring.equivalence import Equivalence, compare_with_printed

SETTINGS = CONF / "verdicts.yaml"


@dataclass(frozen=True, slots=True)
class Margins:
    """Criteria by which two numbers count as the same.

    Attributes:
        margin: of shares, percentage points.
        relative_margin: of figures that are no share, as a part of the printed number.
    """

    margin: float
    relative_margin: float

    def margin_for(self, printed: PrintedNumber, share: bool) -> float:
        """Return the largest difference that counts as none, in the table's unit; its rounding, if that is coarser."""
        stated = self.margin if share else self.relative_margin * abs(printed.value)
        return max(stated, printed.half_unit)


@cache
def load_margins() -> Margins:
    """Read the margins.

    Raises:
        ConfigError: a setting is missing, unknown or wrong.
    """
    return make_preset(Margins, SETTINGS)


def compare_cell(
    printed: PrintedNumber | None, measured: Measured | None, share: bool, margins: Margins
) -> Equivalence | None:
    """Hold a measured cell against the printed one; ``None`` where they may not be compared.

    Args:
        printed: the paper's number.
        measured: ours, in the table's unit.
        share: whether the metric is a share, shown in percent.
        margins: what counts as the same number.
    """
    if printed is None or measured is None or measured.caveats:
        return None
    return compare_with_printed(
        measured.by_run,
        printed.value,
        margins.margin_for(printed, share),
        deterministic=bool(measured.repeats_exactly),
    )
