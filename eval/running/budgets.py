"""Budgets of a run (``budget.tokens``, ``budget.dollars``), and what its earlier parts spent."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.config.prices import FILE, dates_of, load_embedding_prices, load_prices
from eval.runs.embeddings import EMBEDDINGS, EmbeddingRecord
from eval.runs.rows import ledger
from eval.runs.rundir import CALLS, REPEATED_CALLS
from memsys.errors import ConfigError
from memsys.llm.budget import Budget, EmbeddingMeter, SpendingMeter
from memsys.llm.config import BackboneConfig
from memsys.llm.ledger import CallRecord


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The ``budget:`` node of the configuration; ``None`` for no limit.

    Attributes:
        tokens: prompts and replies of the backbones.
        dollars: of the backbones and of an embedder that is paid by the token.
    """

    tokens: int | None = None
    dollars: float | None = None

    @property
    def given(self) -> bool:
        """Whether there is any limit."""
        return self.tokens is not None or self.dollars is not None


def read_limits(settings: Mapping[str, Any] | None) -> BudgetLimits:
    """Read the ``budget:`` node.

    Raises:
        ConfigError: a limit is not a number above 0.
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
    """The budget as the run's backbones and its embedder see it; ``None`` where there is no limit or no price."""

    main: SpendingMeter | None = None
    second: SpendingMeter | None = None
    embedder: EmbeddingMeter | None = None

    @property
    def excess(self) -> str:
        """Message of a finished run that exceeded its budget; empty where it did not."""
        if self.main is None or not self.main.budget.is_exceeded:
            return ""
        return (
            f"the run has spent more than its budget, {self.main.budget.amounts()}: calls that were in flight when the "
            "limit was met are finished, and no further one was needed"
        )


@dataclass(frozen=True, slots=True)
class PaidParts:
    """The parts of a run that may cost dollars.

    Attributes:
        main: the backbone; ``None`` for a run that only retrieves.
        second: answers ``second_roles``.
        second_roles: names of roles.
        embedder: name of one that is paid by the token; ``None`` for any other.
    """

    main: BackboneConfig | None = None
    second: BackboneConfig | None = None
    second_roles: tuple[str, ...] = ()
    embedder: str | None = None


def check_prices(limits: BudgetLimits, parts: PaidParts) -> None:
    """Refuse a limit in dollars where a price is not known.

    Raises:
        ConfigError: names the backbone or the embedder.
    """
    backbones = [one.name for one in (parts.main, parts.second) if one is not None]
    unknown = [name for name in backbones if name not in load_prices()]
    if parts.embedder is not None and parts.embedder not in load_embedding_prices():
        unknown.append(parts.embedder)
    if limits.dollars is not None and unknown:
        raise ConfigError(
            f"budget.dollars: {FILE} has no price of {' and '.join(unknown)}; enter it, or set budget.tokens instead"
        )


def make_meters(limits: BudgetLimits, parts: PaidParts, folder: Path) -> RunMeters:
    """Make the meters of a run, with what its ledgers say was spent before.

    Args:
        limits: of the run.
        parts: of the run.
        folder: of the run, with its ledgers, if there are any.

    Raises:
        ConfigError: dollars are limited and a price is not known.
    """
    if not limits.given:
        return RunMeters()
    check_prices(limits, parts)
    main, second = (load_prices().get(one.name) if one else None for one in (parts.main, parts.second))
    embedding = load_embedding_prices().get(parts.embedder) if parts.embedder else None
    budget = Budget(limits.tokens, limits.dollars, dates_of((main, second, embedding)))
    meters = RunMeters(
        SpendingMeter(budget, main),
        SpendingMeter(budget, second) if parts.second else None,
        EmbeddingMeter(budget, embedding) if embedding and limits.dollars is not None else None,
    )
    _spend_earlier(meters, parts.second_roles, folder)
    return meters


def _spend_earlier(meters: RunMeters, second_roles: tuple[str, ...], folder: Path) -> None:
    """Count what earlier parts of a run spent."""
    for name in (CALLS, REPEATED_CALLS):
        for call in ledger(folder / name, CallRecord):
            meter = meters.second if meters.second and call.role in second_roles else meters.main
            if meter is not None and not call.cache_hit:
                meter.spend(call.prompt_tokens, call.completion_tokens, call.cached_tokens, batch=call.batched)
    if meters.embedder is not None:
        for row in ledger(folder / EMBEDDINGS, EmbeddingRecord):
            meters.embedder.spend(row.tokens)
