"""What a run may spend (``budget.tokens``, ``budget.dollars``), and what earlier parts of it have spent."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.configs.prices import FILE, load_prices
from eval.runs.rows import read_rows
from memsys.errors import ConfigError
from memsys.llm.budget import Budget, SpendingMeter
from memsys.llm.config import BackboneConfig
from memsys.llm.ledger import CallRecord


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The ``budget:`` node of the configuration; ``None`` for no limit."""

    tokens: int | None = None
    dollars: float | None = None

    @property
    def given(self) -> bool:
        """Whether there is any limit."""
        return self.tokens is not None or self.dollars is not None


def read_limits(settings: Mapping[str, Any] | None) -> BudgetLimits:
    """Read the ``budget:`` node.

    Raises:
        ConfigError: a limit is no number above 0.
    """
    given = dict(settings or {})
    tokens, dollars = given.get("tokens"), given.get("dollars")
    if tokens is not None and (isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 1):
        raise ConfigError(f"budget.tokens={tokens!r} must be a whole number above 0, or null for no limit")
    if dollars is not None and (isinstance(dollars, bool) or not isinstance(dollars, int | float) or not dollars > 0):
        raise ConfigError(f"budget.dollars={dollars!r} must be a number above 0, or null for no limit")
    return BudgetLimits(tokens, dollars)


@dataclass(frozen=True, slots=True)
class RunMeters:
    """The budget as the run's backbones see it; ``None`` where there is no limit."""

    main: SpendingMeter | None = None
    second: SpendingMeter | None = None


def check_prices(limits: BudgetLimits, *backbones: BackboneConfig | None) -> None:
    """Refuse a limit in dollars where a price is not known.

    Raises:
        ConfigError: names the backbone.
    """
    unknown = [one.name for one in backbones if one is not None and one.name not in load_prices()]
    if limits.dollars is not None and unknown:
        raise ConfigError(
            f"budget.dollars: {FILE} has no price of {' and '.join(unknown)}; enter it, or set budget.tokens instead"
        )


def make_meters(
    limits: BudgetLimits,
    main: BackboneConfig,
    second: BackboneConfig | None,
    second_roles: tuple[str, ...],
    calls: Path,
) -> RunMeters:
    """Make the meters of a run, with what its ledger says was spent before.

    Args:
        limits: of the run.
        main: the backbone.
        second: answers ``second_roles``.
        second_roles: names of roles.
        calls: the run's ledger, if there is one.

    Raises:
        ConfigError: dollars are limited and a price is not known.
    """
    if not limits.given:
        return RunMeters()
    check_prices(limits, main, second)
    budget = Budget(limits.tokens, limits.dollars)
    prices = load_prices()
    first = SpendingMeter(budget, prices.get(main.name))
    other = SpendingMeter(budget, prices.get(second.name)) if second else None
    for call in read_rows(calls, CallRecord):
        if not call.cache_hit:
            meter = other if other and call.role in second_roles else first
            meter.spend(call.prompt_tokens, call.completion_tokens)
    return RunMeters(first, other)
