"""Words of the audit's page (``labels.yaml``): what its metrics are called, its terms, and what each table asks."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = Path(__file__).with_suffix(".yaml")


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the page.

    Attributes:
        title: heading.
        text: what the table asks, and how to read a row.
        columns: key of a row -> heading, in order; other keys are in the CSV alone.
        decimals: of its figures; ``None``: as many as they need.
        of: table whose rows it shows; empty: the one of its own name.
        only: column that must say something, where not all rows are shown.
    """

    title: str
    text: str
    columns: Mapping[str, str]
    decimals: int | None = None
    of: str = ""
    only: str = ""


_WORDS = yaml.safe_load(FILE.read_text(encoding="utf-8"))
#: Metric -> name on the page.
METRIC_NAMES: Mapping[str, str] = _WORDS["metrics"]
#: All definitions that their papers call F1.
F1_NAMES: tuple[str, ...] = tuple(_WORDS["f1"])
#: What a reader must know before the tables.
TERMS: tuple[str, ...] = tuple(_WORDS["terms"])
#: Table -> its section, in the order of the page; the leaderboards come before all of them.
SECTIONS: Mapping[str, Section] = {name: Section(**section) for name, section in _WORDS["sections"].items()}
