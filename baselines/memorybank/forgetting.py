"""The forgetting curve: which pieces are kept, by the conversation's own clock."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Literal

from memsys.dates import parse_date
from memsys.seeding import generator
from memsys.settings import check_choices, check_flags, check_minimum

Mode = Literal["off", "paper", "scaled", "code_bug"]


@dataclass(frozen=True, slots=True)
class ForgettingRules:
    """Settings of the probability that a piece is kept.

    Attributes:
        mode: with t days since a piece was said, its strength S and the scale c: ``off`` keeps everything, ``paper``
            keeps with probability exp(-t/S), ``scaled`` with exp(-t/(c S)), ``code_bug`` with exp(-t S/c), which
            is what the released code computes: there, the stronger is forgotten the faster.
        strength: S of every piece. A memory that is recalled gains strength; no question changes what later ones see,
            so nothing is recalled here.
        scale: c.
        drop_bare_days: a day that has lost all its pieces loses its summaries too, as in the released code.
    """

    mode: Mode
    strength: float
    scale: float
    drop_bare_days: bool

    def __post_init__(self) -> None:
        check_choices(self, "memory.forgetting", mode=Mode)
        check_minimum(self, "memory.forgetting", strength=1e-6, scale=1e-6)
        check_flags(self, "memory.forgetting", "drop_bare_days")

    def retention(self, days: float) -> float:
        """Return the probability that a piece of so many days ago is kept."""
        if self.mode == "off":
            return 1.0
        if self.mode == "paper":
            return exp(-days / self.strength)
        if self.mode == "scaled":
            return exp(-days / (self.scale * self.strength))
        return exp(-days * self.strength / self.scale)


def days_ago(dates: Sequence[str]) -> list[int | None]:
    """Count the calendar days from each date to the latest of them; ``None`` for a date that cannot be read."""
    days = [None if moment is None else moment.date() for moment in map(parse_date, dates)]
    known = [day for day in days if day is not None]
    return [None if day is None else (max(known) - day).days for day in days]


def is_kept(rules: ForgettingRules, days: float, seed: int, conversation_id: str, piece_id: str) -> bool:
    """Draw whether a piece is kept; the draw depends on seed, conversation and piece alone."""
    return bool(generator(seed, conversation_id, "memorybank.forget", piece_id).random() <= rules.retention(days))
