"""Budgets of a run for its backbones and its embedder: once one is spent, no further call is sent.

The run then stops and can be resumed.

Calls in flight when the limit is met are finished, stored and booked before the run stops, so that nothing that was
paid for is lost; by so much the limit can be passed. Replies from the cache cost nothing and are not stopped. Of calls
that go out together as a batch, whose costs are known when all are paid, no more are begun than the budget pays where
each prompt has as many tokens as estimated and each reply as many as it may have.
"""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memsys.errors import BudgetSpentError


class TokenPrice(Protocol):
    """Prices of a backbone's tokens."""

    def of(
        self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0, *, batch: bool = False
    ) -> float:
        """Return the cost of these tokens in dollars."""


class TextPrice(Protocol):
    """Price of an embedder's tokens."""

    def of(self, tokens: float) -> float:
        """Return the cost of these tokens in dollars."""


class Expected(NamedTuple):
    """Most that a call can cost, where it is counted before it is made."""

    tokens: int = 0
    dollars: float = 0.0


_NOT_COUNTED = Expected()


class Budget:
    """Limits and what was spent, over all backbones and the embedder of a run. Belongs to one event loop.

    Args:
        tokens: most prompt and completion tokens of calls that are made; ``None`` for no limit. Embedded tokens, which
            cost a small part of theirs, are not among them.
        dollars: most dollars, those of embedded tokens included; ``None`` for no limit.
        prices_of: the day of the prices, told with the dollars.

    Attributes:
        spent_tokens: so far, in earlier parts of a resumed run too.
        spent_dollars: likewise.
    """

    def __init__(self, tokens: int | None = None, dollars: float | None = None, prices_of: str = "") -> None:
        self.tokens, self.dollars = tokens, dollars
        self._prices_of = prices_of
        self.spent_tokens, self.spent_dollars = 0, 0.0
        self._in_flight = 0
        self._expected = Expected()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_spent(self) -> bool:
        """Whether no further call may be made."""
        return (self.tokens is not None and self.spent_tokens >= self.tokens) or (
            self.dollars is not None and self.spent_dollars >= self.dollars
        )

    async def begin(self, expected: Expected = _NOT_COUNTED) -> None:
        """Count a call in, before it is sent; one that the rest of the budget may not pay waits for those in flight.

        Args:
            expected: most that it can cost, where it goes out with others.

        Raises:
            BudgetSpentError: the budget is spent, or does not pay this one; raised when no call is in flight any
                longer.
        """
        while self._in_flight and not self._covers(expected):
            await self._idle.wait()
            await asyncio.sleep(0)
        if self.is_spent or (expected != _NOT_COUNTED and not self._covers(expected)):
            await self._idle.wait()
            await asyncio.sleep(0)  # those that waited for the last call store and book it first
            raise BudgetSpentError(self.message())
        self._in_flight += 1
        self._expect(expected, 1)
        self._idle.clear()

    def end(self, expected: Expected = _NOT_COUNTED) -> None:
        """Count a call out, whatever became of it."""
        self._in_flight -= 1
        self._expect(expected, -1)
        if not self._in_flight:
            self._idle.set()

    def spend(
        self,
        prompt_tokens: int,
        completion_tokens: int,
        price: TokenPrice | None,
        cached_tokens: int = 0,
        *,
        batch: bool = False,
    ) -> None:
        """Count what a call cost."""
        self.spent_tokens += prompt_tokens + completion_tokens
        if price is not None:
            self.spent_dollars += price.of(prompt_tokens, completion_tokens, cached_tokens, batch=batch)

    def _expect(self, expected: Expected, sign: int) -> None:
        tokens, dollars = self._expected
        self._expected = Expected(tokens + sign * expected.tokens, dollars + sign * expected.dollars)

    def _covers(self, expected: Expected) -> bool:
        """Return whether the rest of the budget pays a call besides all that are in flight."""
        tokens = self.spent_tokens + self._expected.tokens + expected.tokens
        dollars = self.spent_dollars + self._expected.dollars + expected.dollars
        return (self.tokens is None or tokens <= self.tokens) and (self.dollars is None or dollars <= self.dollars)

    @property
    def is_exceeded(self) -> bool:
        """Whether calls that were in flight when a limit was met have passed it."""
        return (self.tokens is not None and self.spent_tokens > self.tokens) or (
            self.dollars is not None and self.spent_dollars > self.dollars
        )

    def amounts(self) -> str:
        """Return the amount spent and the amount allowed."""
        spent = []
        if self.tokens is not None:
            spent.append(f"{self.spent_tokens} of {self.tokens} tokens")
        if self.dollars is not None:
            prices = f" (list prices of {self._prices_of})" if self._prices_of else ""
            spent.append(f"${self.spent_dollars:.4f} of ${self.dollars:g}{prices}")
        return ", ".join(spent)

    def message(self) -> str:
        """Return the message of an exhausted budget: the amount spent and how to continue."""
        limits = {"budget.tokens": self.tokens, "budget.dollars": self.dollars}
        keys = " or ".join(key for key, limit in limits.items() if limit is not None)
        what = (
            "the budget is spent"
            if self.is_spent
            else "what is left of the budget may not pay one more call of a batch"
        )
        return f"{what}: {self.amounts()}; run the same command with a larger {keys} to continue"


@dataclass(frozen=True, slots=True)
class SpendingMeter:
    """A budget as one backbone sees it.

    Attributes:
        budget: shared by the backbones of a run.
        price: of this one; ``None`` where it is not known.
    """

    budget: Budget
    price: TokenPrice | None = None

    def expected(self, prompt_tokens: int, completion_tokens: int) -> Expected:
        """Return the most that a call of a batch can cost."""
        dollars = 0.0 if self.price is None else self.price.of(prompt_tokens, completion_tokens, batch=True)
        return Expected(prompt_tokens + completion_tokens, dollars)

    def spend(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int | None, *, batch: bool = False
    ) -> None:
        """Count what a call cost."""
        self.budget.spend(prompt_tokens, completion_tokens, self.price, cached_tokens or 0, batch=batch)


@dataclass(frozen=True, slots=True)
class EmbeddingMeter:
    """A budget as an embedder sees it.

    Attributes:
        budget: that of the run's backbones.
        price: of its tokens.
    """

    budget: Budget
    price: TextPrice

    def spend(self, tokens: int) -> None:
        """Count what embedded tokens cost."""
        self.budget.spent_dollars += self.price.of(tokens)
