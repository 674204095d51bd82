"""A backbone: a model, the engine that serves it, and everything between a role and its reply."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from memsys.llm.accepted import AcceptedFields
from memsys.llm.budget import SpendingMeter
from memsys.llm.cache import ReplyCache
from memsys.llm.client import BoundModel, Counters, SharedBackbone
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import Engine
from memsys.llm.ledger import CallRecord
from memsys.llm.limiter import Limiter
from memsys.llm.sampling import SAMPLING_FIELDS
from memsys.llm.tokens import TokenCounter
from memsys.llm.transport import Transport
from memsys.llm.wire import model_text
from memsys.vocabulary import Json

__all__ = ["SAMPLING_FIELDS", "Backbone", "BackboneConfig", "Traffic"]


class Traffic(NamedTuple):
    """For a progress display: replies so far, tokens generated or read in calls made, requests at servers, cached."""

    calls: int
    tokens: int
    in_flight: int
    cache_hits: int


class Backbone:
    """An open backbone, shared by all conversations of a run: ``async with Backbone(...) as backbone``.

    The engine is started on entry and left running on exit: who made it stops it, since several runs may share it.

    Args:
        config: the backbone's settings.
        engine: made by ``config.engine.build()``.
        cache: where replies are stored and found; ``None`` for none.
        on_call: called with every row of the ledger.
        log_dir: for the engine's log.
        run_seed: part of every sampling seed.

    Attributes:
        meter: what may be spent on it; ``None`` for no limit. Set before it is opened.
        on_rejected: called with a row for every reply that was paid for but rejected. Set before it is opened.
        accepted: which fields of a request its server takes, as far as that is known.
    """

    def __init__(
        self,
        config: BackboneConfig,
        engine: Engine,
        *,
        cache: ReplyCache | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
        log_dir: Path,
        run_seed: int,
    ) -> None:
        self.config, self.engine, self.counters = config, engine, Counters()
        self._cache, self._on_call, self._run_seed = cache, on_call, run_seed
        self.meter: SpendingMeter | None = None
        self.on_rejected: Callable[[CallRecord], None] | None = None
        self._transport = Transport(config, engine, log_dir, None if cache is None else cache.folder / "batches")
        self._shared: SharedBackbone | None = None
        self.accepted = AcceptedFields(config)

    async def __aenter__(self) -> "Backbone":
        """Start the engine and connect.

        Raises:
            BackboneError: the server did not come up, or cannot be reached.
        """
        await self._transport.open()
        model = {"model": self.config.model, "engine": dict(await asyncio.to_thread(self.engine.fingerprint))}
        self._shared = SharedBackbone(
            config=self.config,
            dialect=self.engine.name,
            model=model,
            model_text=model_text(model),
            run_seed=self._run_seed,
            transport=self._transport,
            limiter=Limiter(self.config.max_in_flight),
            tokens=TokenCounter(self.config, self.engine.name, self._transport),
            cache=self._cache,
            counters=self.counters,
            on_call=self._on_call,
            on_rejected=self.on_rejected,
            accepted=self.accepted,
            meter=self.meter,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close connections and the cache's file."""
        await self._transport.close()
        if self._cache is not None:
            self._cache.close()

    def bind(self, conversation_id: str) -> BoundModel:
        """Give the backbone as one conversation sees it."""
        return BoundModel(self._opened(), conversation_id)

    def fingerprint(self) -> Mapping[str, Json]:
        """Say which model answers: part of the run's identity and of every cache key."""
        return self._opened().model

    def traffic(self) -> Traffic:
        """Return the counters since the backbone was opened."""
        counters, in_flight = self.counters, self._shared.limiter.held if self._shared else 0
        tokens = counters.prompt_tokens + counters.completion_tokens
        return Traffic(counters.calls, tokens, in_flight, counters.cache_hits)

    def _opened(self) -> SharedBackbone:
        if self._shared is None:
            raise RuntimeError("the backbone is not open: use `async with Backbone(...) as backbone`")
        return self._shared
