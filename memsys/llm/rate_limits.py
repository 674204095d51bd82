"""Limits of a server by requests and tokens, as headers of its replies state them: nothing is sent beyond them."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

from memsys.retrying import seconds_in

#: Of each limit, how headers name its size, what remains of it and when it is full again: OpenAI, Azure and Groq;
#: Mistral; Anthropic; Together and others.
_NAMES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "requests": (
        ("x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-limit-req-minute", "x-ratelimit-remaining-req-minute", ""),
        (
            "anthropic-ratelimit-requests-limit", "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ),
        ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
    ),
    "tokens": (
        ("x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("x-ratelimit-limit-tokens-minute", "x-ratelimit-remaining-tokens-minute", ""),
        (
            "anthropic-ratelimit-tokens-limit", "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ),
        ("x-tokenlimit-limit", "x-tokenlimit-remaining", ""),
    ),
}  # fmt: skip
_REMAINING = frozenset(remaining for families in _NAMES.values() for _, remaining, _ in families)
#: Seconds after which a limit is full again where no header says it, and the longest wait by a header: a limit by the
#: day is left to the server's refusal, which says how long to wait.
_MINUTE = 60.0


@dataclass(slots=True)
class _Limit:
    """One limit.

    Attributes:
        size: of the whole; ``None`` where no header says it.
        remaining: what the latest reply left.
        learnt: when that was, in seconds.
        full_at: when it is full again, in seconds.
        sent: since then.
    """

    size: float | None
    remaining: float
    learnt: float
    full_at: float
    sent: float = 0.0

    def pause(self, cost: float, now: float) -> float:
        """Return the seconds until so much more can be sent; 0 for now. What was used comes back evenly."""
        wanted = min(cost, self.size or cost)
        missing = wanted + self.sent - self.remaining
        if missing <= 0 or now >= self.full_at:
            return 0.0
        used = (self.size or 0.0) - self.remaining
        whole = self.full_at - self.learnt
        ready = self.learnt + (whole * min(1.0, missing / used) if used > 0 else whole)
        return max(0.0, ready - now)


class RateLimits:
    """Limits of one server. Belongs to one event loop."""

    def __init__(self) -> None:
        self._limits: dict[str, _Limit] = {}
        self._held_until = 0.0

    @property
    def may_hold(self) -> bool:
        """Whether a limit is known, or a pause was asked for."""
        return bool(self._limits) or self._held_until > 0

    def known(self) -> dict[str, float]:
        """Return the sizes of the limits that are known."""
        return {name: limit.size for name, limit in self._limits.items() if limit.size is not None}

    def learn(self, headers: Mapping[str, str]) -> None:
        """Read the headers of a reply.

        Args:
            headers: names in lower case.
        """
        if _REMAINING.isdisjoint(headers):
            return
        for name, families in _NAMES.items():
            for size, remaining, reset in families:
                left = _number(headers.get(remaining))
                if left is None:
                    continue
                until = seconds_in(headers.get(reset) or "")
                now = monotonic()
                full_at = now + (_MINUTE if until is None else until)
                self._limits[name] = _Limit(_number(headers.get(size)), left, now, full_at)
                break

    def hold(self, seconds: float) -> None:
        """Send nothing for a while: the server has refused a request and asks for this pause."""
        self._held_until = max(self._held_until, monotonic() + seconds)

    async def wait(self, tokens: float) -> None:
        """Wait until a request may be sent, and count it.

        Args:
            tokens: of its prompt and of the longest reply.
        """
        costs = {"requests": 1.0, "tokens": tokens}
        while True:
            pause = self._pause(costs)
            if pause <= 0:
                break
            await asyncio.sleep(min(pause, _MINUTE))
        for name, limit in self._limits.items():
            limit.sent += costs[name]

    def _pause(self, costs: Mapping[str, float]) -> float:
        now = monotonic()
        pauses = [limit.pause(costs[name], now) for name, limit in self._limits.items()]
        return max([self._held_until - now, *(pause for pause in pauses if pause <= _MINUTE)])


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text and len(text) <= 20 else None
    except ValueError:
        return None
