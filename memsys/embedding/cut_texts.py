"""Counts the texts of a run that are longer than its embedder's window, of which only the beginning is embedded."""

import hashlib
import logging
import sys
from collections.abc import Callable, Sequence

from memsys.embedding.contract import Embedder, Vectors
from memsys.embedding.wrapping import WrappedEmbedder
from memsys.errors import AssetError

_log = logging.getLogger(__name__)


class CutTextCounter(WrappedEmbedder):
    """Passes everything on; every distinct text counts once, whether its vector was known or made.

    Args:
        embedder: what embeds, with windows.
        always_fits: characters of a text that no window is too short for, so that it need not be cut to see it.
        note: called with the number of texts whenever it grows.
    """

    def __init__(self, embedder: Embedder, always_fits: int, note: Callable[[int], None]) -> None:
        super().__init__(embedder)
        self._always_fits, self._note = always_fits, note
        self._seen: set[bytes] = set()
        self._cut = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """See :class:`memsys.embedding.contract.Embedder`."""
        for text in texts:
            if len(text) > self._always_fits:
                self._count(text)
        return await super().embed(texts)

    def _count(self, text: str) -> None:
        key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self._seen:
            return
        self._seen.add(key)
        try:
            windows = self.windows(text)
        except AssetError as error:  # of a model without the file, whose own log line says that it cuts
            self._always_fits = sys.maxsize
            _log.warning("texts that are cut before embedding cannot be counted: %s", error)
            return
        if len(windows) > 1:
            self._cut += 1
            self._note(self._cut)
