"""Texts longer than an embedder's window: how they are cut, and the vector that they get."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.running.paid_embedding import PaidEmbedder
from eval.running.timing import LoadingEmbedder
from memsys.embedding.hashing import HashingEmbedder
from memsys.embedding.windows import WordPieceWindows, cut_between_words, cut_by_chars, embed_whole, windows_of
from memsys.embedding.wrapping import WrappedEmbedder
from memsys.errors import AssetError, ConfigError
from tests.support.fakes import TableEmbedder
from tests.unit.memsys.embedding.test_embedding_model import MINILM, needs_model


class WordWindows(TableEmbedder):
    """Reads one word."""

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into words."""
        return text.split()


def test_pieces_end_between_words_by_hand() -> None:
    text = "one  two three"
    words = [(0, 3, 1), (5, 8, 2), (9, 14, 1)]
    assert cut_between_words(text, words, 4) == [text]
    assert cut_between_words(text, words, 3) == ["one  two", "three"]
    assert cut_between_words(text, words, 1) == ["one", "two", "three"]
    assert cut_between_words("", [], 1) == [""]
    assert cut_by_chars(text, 8) == ["one", "two", "three"]
    assert cut_by_chars(text, 9) == ["one  two", "three"]
    assert cut_by_chars("unbreakable", 3) == ["unbreakable"]


@given(st.text(alphabet="ab \n", max_size=60), st.integers(1, 12))
def test_no_word_is_left_out(text: str, most: int) -> None:
    pieces = cut_by_chars(text, most)
    assert [word for piece in pieces for word in piece.split()] == text.split()
    assert all(len(piece.strip()) <= most or len(piece.split()) <= 1 for piece in pieces)


def test_a_text_has_the_mean_of_its_windows_by_hand() -> None:
    table = {"east": (1.0, 0.0), "north": (0.0, 1.0), "west": (-1.0, 0.0)}
    found = asyncio.run(embed_whole(WordWindows(table), ["east north", "north", "east east north", "east west"]))
    half = 0.5**0.5
    expected = [[half, half], [0, 1], [2 / 5**0.5, 1 / 5**0.5], [0, 0]]
    assert np.allclose(found, expected, atol=1e-7) and found.dtype == np.float32
    assert asyncio.run(embed_whole(WordWindows(table), [])).shape == (0, 2)


def test_an_embedder_without_windows_is_refused() -> None:
    plain = TableEmbedder({"a": (1.0, 0.0)})
    for embedder in (plain, LoadingEmbedder(plain, None, lambda: pytest.fail("no model is needed"))):
        with pytest.raises(ConfigError, match="embedder table has no windows"):
            windows_of(embedder)("a")


def test_windows_are_found_while_a_model_is_loaded() -> None:
    waiting = LoadingEmbedder(WordWindows({"a": (1.0,)}), None, lambda: pytest.fail("no model is needed"))
    assert windows_of(waiting)("a b") == ["a", "b"]
    assert windows_of(HashingEmbedder(8))("a b") == ("a b",)


def test_an_embedder_around_another_cuts_as_that_does() -> None:
    """A paid embedder had no windows, so that GAM refused to embed whole pages with it."""
    inner = WordWindows({"a": (1.0,)})
    for around in (PaidEmbedder(inner, lambda record: None), WrappedEmbedder(inner)):
        assert windows_of(around)("a b") == ["a", "b"] and around.dimension == inner.dimension


def test_a_model_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssetError, match=r"tokenizer\.json is missing"):
        WordPieceWindows(tmp_path, 8)("a")


@needs_model
@pytest.mark.real_model
def test_all_of_a_long_text_moves_its_vector() -> None:
    embedder = replace(MINILM, max_word_pieces=16).build()
    begin, end = "The boat went out to the harbour and came back at night again.", "My guitar has unbelievableness!"
    long = f"{begin}\n{end}"
    pieces = embedder.windows(long)
    # Fourteen word pieces beside the two that begin and end a text; no piece of a word is apart from it.
    assert pieces == [begin, end]
    # A word of two pieces that no longer fits goes to the next window whole.
    assert embedder.windows(f"{begin[:-1]} unbelievableness") == [begin[:-1], "unbelievableness"]
    other = f"{begin}\nA cake is in the oven now."
    cut = asyncio.run(embedder.embed([long, other]))
    whole = asyncio.run(embed_whole(embedder, [long, other, begin]))
    assert embedder.statistics()["truncated"] == 2
    assert np.array_equal(cut[0], cut[1]) and not np.allclose(whole[0], whole[1], atol=1e-2)
    assert np.array_equal(whole[2], asyncio.run(embedder.embed([begin]))[0])
