"""Prices of hosted backbones and embedders: ``conf/prices.yaml``."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from eval.config.presets import CONF, read_settings
from memsys.errors import ConfigError

FILE = CONF / "prices.yaml"
_OF_BACKBONES, _OF_EMBEDDERS = ("prompt", "completion"), ("embedding",)
_TEXTS = ("date", "source")
#: Further numbers that the entry of a backbone may have.
_DISCOUNTS = ("cached", "batch")
_MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens, with the day on which they held and who says so; ``""`` where the file does not.

    ``cached``: of tokens at a prompt's beginning that the provider has seen before; ``None``: as the others. ``batch``:
    share of the price that a batch costs.
    """

    prompt: float
    completion: float
    date: str = ""
    source: str = ""
    cached: float | None = None
    batch: float = 1.0

    def of(
        self, prompt_tokens: float, completion_tokens: float, cached_tokens: float = 0, *, batch: bool = False
    ) -> float:
        """Return the dollars of these tokens.

        Args:
            prompt_tokens: of the prompts, cached ones included.
            completion_tokens: of the replies.
            cached_tokens: of those of the prompts that the provider took from its cache.
            batch: whether they were sent as a batch.
        """
        cached = min(cached_tokens, prompt_tokens) if self.cached is not None else 0
        prompts = (prompt_tokens - cached) * self.prompt + cached * (self.cached or 0)
        return (prompts + completion_tokens * self.completion) * (self.batch if batch else 1.0) / _MILLION

    def of_both(self, at_once: Iterable[float], later: Iterable[float]) -> float:
        """Return the dollars of calls made at once and of calls sent as batches, both as ``of`` takes them."""
        return self.of(*at_once) + self.of(*later, batch=True)


@dataclass(frozen=True, slots=True)
class EmbeddingPrice:
    """US dollars per million tokens that are embedded, with its day and source as :class:`Price` has them."""

    embedding: float
    date: str = ""
    source: str = ""

    def of(self, tokens: float) -> float:
        """Return the dollars of these tokens."""
        return tokens * self.embedding / _MILLION


@cache
def load_prices(path: Path = FILE) -> Mapping[str, Price]:
    """Return the prices by name of the backbone; one whose entry is null has none.

    Raises:
        ConfigError: an entry lacks a number, or contains an unknown key.
    """
    return {name: Price(**entry) for name, entry in _entries(path, _OF_BACKBONES)}


@cache
def load_embedding_prices(path: Path = FILE) -> Mapping[str, EmbeddingPrice]:
    """Return the prices by name of the embedder.

    Raises:
        ConfigError: an entry lacks its number, or contains an unknown key.
    """
    return {name: EmbeddingPrice(**entry) for name, entry in _entries(path, _OF_EMBEDDERS)}


def dates_of(prices: Iterable[Price | EmbeddingPrice | None]) -> str:
    """Return the days of the prices, to show with the dollars they gave: ``2026-03``, or ``2026-03 to 2026-07-03``."""
    dates = sorted({price.date or "no date" for price in prices if price is not None})
    return dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else ""


def _entries(path: Path, keys: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the checked entries of backbones or of embedders; who has no price has none."""
    for name, entry in read_settings(path).items():
        of_embedder = isinstance(entry, dict) and set(_OF_EMBEDDERS) <= set(entry)
        if entry is not None and of_embedder == (keys == _OF_EMBEDDERS):
            yield name, {**_numbers(path, name, entry, keys), **_texts(entry)}


def _numbers(path: Path, name: str, entry: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    given = entry if isinstance(entry, dict) else {}
    discounts = [key for key in _DISCOUNTS if key in given and keys == _OF_BACKBONES]
    numbers = [given.get(key) for key in (*keys, *discounts)]
    if not all(isinstance(one, int | float) and not isinstance(one, bool) and one >= 0 for one in numbers):
        raise ConfigError(f"{path}: {name} needs {' and '.join(keys)} in dollars per million tokens, or null")
    known = {*keys, *_TEXTS, *(_DISCOUNTS if keys == _OF_BACKBONES else ())}
    if unknown := sorted(set(given) - known):
        raise ConfigError(f"{path}: {name}.{unknown[0]} is unknown; known are {', '.join(sorted(known))}")
    return {key: float(given[key]) for key in (*keys, *discounts)}


def _texts(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: str(entry.get(key, "")) for key in _TEXTS}
