"""Texts longer than an embedder's window, cut into pieces that fit: none of a text is left out then."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memsys.embedding.contract import CutsIntoWindows, Embedder, Vectors
from memsys.errors import AssetError, ConfigError
from memsys.scripts import has_joined_words

if TYPE_CHECKING:
    from tokenizers import Tokenizer

#: Where a word begins and ends in its text, and how much of a window it takes.
SizedWord = tuple[int, int, int]


def windows_of(embedder: Embedder) -> Callable[[str], Sequence[str]]:
    """Return what cuts a text into the embedder's windows.

    Raises:
        ConfigError: nothing is known of the embedder's window.
    """
    if not isinstance(embedder, CutsIntoWindows):
        raise ConfigError(f"embedder {embedder.name} has no windows: choose embedder=minilm, or embed beginnings alone")
    return embedder.windows


async def embed_whole(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Embed texts of any length: each gets the mean of its windows' vectors, brought to length one.

    Returns:
        float32 array of shape ``(len(texts), dimension)``; a row is zero where the vectors of a text cancel out.

    Raises:
        ConfigError: nothing is known of the embedder's window.
    """
    cut = windows_of(embedder)
    pieces = [cut(text) for text in texts]
    vectors = await embedder.embed([piece for each in pieces for piece in each])
    rows, first = np.zeros((len(texts), embedder.dimension), np.float32), 0
    for row, each in enumerate(pieces):
        rows[row] = _mean(vectors[first : first + len(each)])
        first += len(each)
    return rows


def _mean(vectors: Vectors) -> Vectors:
    """Return the normalised sum of vectors; a single vector is returned unchanged."""
    if len(vectors) == 1:
        return np.asarray(vectors[0], np.float32)
    total = vectors.sum(axis=0, dtype=np.float64)
    return np.asarray(total / (np.linalg.norm(total) or 1.0), np.float32)


def cut_between_words(text: str, words: Iterable[SizedWord], room: int) -> list[str]:
    """Cut a text into consecutive pieces of at most ``room``; a word that alone exceeds it is a piece of its own.

    A text that fits is one piece, itself; white space between pieces is left out.
    """
    spans: list[tuple[int, int]] = []
    filled = 0
    for begin, end, size in words:
        if not spans or filled + size > room:
            spans.append((begin, end))
            filled = 0
        spans[-1] = (spans[-1][0], end)
        filled += size
    return [text[begin:end] for begin, end in spans] if len(spans) > 1 else [text]


def cut_by_chars(text: str, most: int) -> list[str]:
    """Cut a text into pieces of at most ``most`` characters, between words; anywhere if no space separates words."""
    word = rf"\S{{1,{most}}}" if has_joined_words(text) else r"\S+"
    begins = [(match.start(), match.end()) for match in re.finditer(word, text)]
    afters = [*(begin for begin, _ in begins[1:]), len(text)]
    # The white space after a word counts, too: it is in the piece unless the piece ends there.
    words = [(begin, end, after - begin) for (begin, end), after in zip(begins, afters, strict=False)]
    return cut_between_words(text, words, most)


class WordPieceWindows:
    """Cuts texts by the word pieces of a model's ``tokenizer.json``, which is read with the first text.

    Args:
        folder: of the model.
        most: word pieces of a text, with those that begin and end it.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most = folder, most

    def __call__(self, text: str) -> list[str]:
        """Cut a text.

        Raises:
            AssetError: the model has no such file.
        """
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        pieces = zip(encoded.word_ids, encoded.offsets, strict=True)
        words = ([span for _, span in word] for _, word in groupby(pieces, key=lambda piece: piece[0]))
        sized = ((word[0][0], word[-1][1], len(word)) for word in words)
        return cut_between_words(text, sized, self._most - self._tokenizer.num_special_tokens_to_add(False))

    @cached_property
    def _tokenizer(self) -> "Tokenizer":
        from tokenizers import Tokenizer

        file = self._folder / "tokenizer.json"
        if not file.is_file():
            raise AssetError(f"{file} is missing; it is needed to cut texts into windows; run `memsys models`")
        made = Tokenizer.from_file(str(file))
        made.no_truncation()
        made.no_padding()
        return made
