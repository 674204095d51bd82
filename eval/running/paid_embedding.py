"""An embedder that is paid by the token: what it costs is booked by phase, and stopped where the budget is spent."""

import time
from collections.abc import Callable, Sequence

from eval.runs.embeddings import EmbeddingRecord
from memsys.embedding.contract import KeepsVectors, PaidPerToken, Vectors
from memsys.embedding.wrapping import WrappedEmbedder
from memsys.llm.budget import EmbeddingMeter
from memsys.llm.scope import call_scope

#: Phase of what is embedded outside of any step of a conversation.
_NO_PHASE = ""


class PaidEmbedder(WrappedEmbedder):
    """Books what another embedder is paid. Texts whose vectors are there already cost nothing and are not stopped.

    Args:
        embedder: what embeds and counts its tokens.
        book: gets a row for every request that cost tokens.
        meter: what may be spent; ``None`` for no limit.
    """

    def __init__(
        self,
        embedder: PaidPerToken,
        book: Callable[[EmbeddingRecord], None],
        meter: EmbeddingMeter | None = None,
    ) -> None:
        super().__init__(embedder)
        self._counter, self._book, self._meter = embedder, book, meter

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; see :class:`memsys.embedding.contract.Embedder`.

        Raises:
            BudgetSpentError: a text would have to be paid, and the budget is spent.
        """
        if self._meter is None or (isinstance(self._embedder, KeepsVectors) and self._embedder.knows(texts)):
            return await self._embed(texts)
        await self._meter.budget.begin()
        try:
            return await self._embed(texts)
        finally:
            self._meter.budget.end()

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        begun = time.perf_counter()
        vectors = await super().embed(texts)
        if tokens := self._counter.paid(texts):
            if self._meter is not None:
                self._meter.spend(tokens)
            scope = call_scope.get(None)
            phase, item = (scope.phase, scope.item) if scope else (_NO_PHASE, "")
            characters = sum(map(len, texts))
            self._book(EmbeddingRecord("", phase, item, len(texts), characters, time.perf_counter() - begun, tokens))
        return vectors
