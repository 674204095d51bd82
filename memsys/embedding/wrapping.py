"""An embedder around another one, for those that only change when or for whom it embeds."""

from collections.abc import Sequence

from memsys.embedding.contract import Embedder, Vectors
from memsys.embedding.windows import windows_of


class WrappedEmbedder:
    """Passes everything on; what embedders may have besides that (loading, keeping vectors) is the inner one's alone.

    Args:
        embedder: what embeds.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def name(self) -> str:
        """See :class:`memsys.embedding.contract.Embedder`."""
        return self._embedder.name

    @property
    def dimension(self) -> int:
        """See :class:`memsys.embedding.contract.Embedder`."""
        return self._embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`memsys.embedding.contract.Embedder`."""
        return await self._embedder.embed(texts)

    def windows(self, text: str) -> Sequence[str]:
        """See :class:`memsys.embedding.contract.CutsIntoWindows`."""
        return windows_of(self._embedder)(text)
