"""Does a measured cell give the printed number again? Margins and recorded spreads of ``conf/verdicts.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from eval.config.presets import CONF, make_preset
from eval.results.papers.printed import PrintedNumber
from eval.results.tables.measure import Measured
from eval.scoring.equivalence import Equivalence, Spread, compare_with_printed, margin_of
from memsys.errors import ConfigError

SETTINGS = CONF / "verdicts.yaml"
_SPREAD = ("deviation", "runs", "source")
_WHERE = ("paper", "metric", "backbone", "dataset", "system")


@dataclass(frozen=True, slots=True)
class Margins:
    """Criteria by which two numbers count as the same.

    Attributes:
        margin: of shares, percentage points.
        relative_margin: of figures that are no share, as a part of the printed number.
        margins: of single metrics, in the table's unit.
        spreads: recorded run-to-run standard deviations, with the cells that they hold for.
    """

    margin: float
    relative_margin: float
    margins: Mapping[str, float] = field(default_factory=dict)
    spreads: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for entry in self.spreads:
            missing = [key for key in _SPREAD if key not in entry]
            unknown = sorted(entry.keys() - {*_SPREAD, *_WHERE})
            if missing or unknown:
                raise ConfigError(f"spreads: {dict(entry)} lacks {missing} or has unknown {unknown}")

    def margin_for(self, printed: PrintedNumber, share: bool) -> float:
        """Return the largest difference that counts as none, in the table's unit."""
        own = self.margins.get(printed.metric)
        stated = self.margin if share else self.relative_margin * abs(printed.value)
        return margin_of(stated if own is None else own, printed.half_unit)

    def spread_for(self, printed: PrintedNumber) -> Spread | None:
        """Return the recorded spread of a cell, ``None`` where there is none."""
        for entry in self.spreads:
            if all(getattr(printed, key) == entry[key] for key in _WHERE if key in entry):
                return Spread(float(entry["deviation"]), int(entry["runs"]), str(entry["source"]))
        return None


@cache
def load_margins(path: Path = SETTINGS) -> Margins:
    """Read the margins.

    Raises:
        ConfigError: a setting is missing, unknown or wrong.
    """
    return make_preset(Margins, path)


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
        spread=margins.spread_for(printed),
    )
