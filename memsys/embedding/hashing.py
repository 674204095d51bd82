"""Feature hashing of words: an embedder that costs next to nothing, for tests and for benchmarks of the scheduling.

Two texts are similar when they share words. Each word adds +1 or -1 to one of ``dimension`` components, both chosen
by its CRC-32 (Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning").
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from memsys.embedding.contract import Embedder, Vectors
from memsys.errors import ConfigError
from memsys.scripts import all_words
from memsys.settings import check_share


@dataclass(frozen=True, slots=True)
class HashingConfig:
    """Settings of :class:`HashingEmbedder`.

    Attributes:
        name: recorded in the run.
        dimension: length of a vector.
        noise: share of a direction that each text has for itself, white space aside. Above 0 no two texts are equally
            near to a third, which matters where two programs are compared that order ties differently.
    """

    name: str
    dimension: int
    noise: float = 0.0

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ConfigError(f"embedder.dimension={self.dimension} must be at least 1")
        check_share(self, "embedder", "noise")

    def build(self) -> Embedder:
        """Make the embedder."""
        return HashingEmbedder(self.dimension, name=self.name, noise=self.noise)


class HashingEmbedder:
    """An :class:`~memsys.embedding.contract.Embedder` without a model. The same text gives the same bits everywhere."""

    def __init__(self, dimension: int = 384, *, name: str = "hashing", noise: float = 0.0) -> None:
        self._dimension, self._noise = dimension, noise
        self._name = name

    @property
    def name(self) -> str:
        """Model name, as recorded in the run."""
        return self._name

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def windows(self, text: str) -> Sequence[str]:
        """See :class:`~memsys.embedding.contract.CutsIntoWindows`; texts of any length are read whole."""
        return (text,)

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts; see :class:`~memsys.embedding.contract.Embedder`."""
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            self._fill(vectors[row], text)
        return vectors

    def _fill(self, vector: Vectors, text: str) -> None:
        for word in all_words(text):
            code = _crc32(word)
            vector[(code >> 1) % self._dimension] += 1.0 if code & 1 else -1.0
        norm = float(np.linalg.norm(vector))
        if norm == 0.0:  # no words, or words that cancel out: any fixed direction keeps the norm at 1
            vector[(_own_code(text) >> 1) % self._dimension] = norm = 1.0
        vector /= norm
        if self._noise:
            own = np.random.default_rng(_own_code(text)).standard_normal(self._dimension, dtype=np.float32)
            vector += np.float32(self._noise) * own / np.linalg.norm(own)
            vector /= np.linalg.norm(vector)


@lru_cache(maxsize=1 << 16)
def _crc32(word: str) -> int:
    return zlib.crc32(word.encode())


def _own_code(text: str) -> int:
    """Return a number of the whole text, whatever its white space."""
    return zlib.crc32(" ".join(text.split()).encode())
