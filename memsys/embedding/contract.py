"""Protocol of embedders."""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors. One text always gets the same vector within a run, however it was batched."""

    @property
    def name(self) -> str:
        """Model name, as recorded in the run."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts.

        Args:
            texts: any number of strings, also none.

        Returns:
            float32 array of shape ``(len(texts), dimension)``, rows of norm 1.
        """


@runtime_checkable
class LoadsModel(Protocol):
    """An embedder whose model is loaded into this process, which can be done before the first text."""

    def load(self) -> Future[float]:
        """Start to load in a thread; every call returns the same future.

        Returns:
            Future of the seconds that loading took; raises what :meth:`Embedder.embed` would.
        """


@runtime_checkable
class CutsIntoWindows(Protocol):
    """An embedder that reads so much of a text and can cut a longer one into pieces that it reads whole."""

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into consecutive pieces, between words; a text that is read whole is one piece, itself.

        Raises:
            ConfigError: nothing is known of its window.
        """


@runtime_checkable
class KeepsVectors(Protocol):
    """An embedder that can keep its vectors on disk for other runs."""

    def keep(self, folder: Path | None) -> None:
        """Read vectors from a folder before embedding a text, and write new ones there.

        Args:
            folder: shared by any embedders and processes; ``None`` to keep nothing.
        """

    def has_kept(self) -> bool:
        """Return whether the folder held any vector when it was opened, or holds one by now."""

    def knows(self, texts: Sequence[str]) -> bool:
        """Return whether these texts can be embedded without loading the model."""


@runtime_checkable
class PaidPerToken(Embedder, Protocol):
    """An embedder behind a provider that is paid by the token."""

    def paid(self, texts: Sequence[str]) -> int:
        """Return the tokens that a provider counted for these texts and that were not asked for here before.

        Vectors from a cache have none. A text that several callers wanted at the same time is paid once, and its tokens
        are given to the one of them who asks first.
        """
