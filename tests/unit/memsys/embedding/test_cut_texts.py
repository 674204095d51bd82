"""Texts that are longer than an embedder's window are counted, once each, and stated."""

import asyncio
from collections.abc import Sequence

import numpy as np

from eval.scoring.remarks import remarks
from memsys.embedding.contract import Vectors
from memsys.embedding.cut_texts import CutTextCounter
from memsys.embedding.windows import cut_by_chars


class _Embedder:
    name, dimension = "e", 2

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 2), np.float32)

    def windows(self, text: str) -> Sequence[str]:
        return cut_by_chars(text, 10)


def test_each_text_above_the_window_counts_once() -> None:
    noted: list[int] = []
    embedder = CutTextCounter(_Embedder(), 10, noted.append)
    for texts in (["short", "a text of many words"], ["a text of many words", "another one of them"], ["short"]):
        assert asyncio.run(embedder.embed(texts)).shape == (len(texts), 2)
    assert noted == [1, 2]


def test_what_was_read_in_part_is_said() -> None:
    summary = {
        "calls": {"total": {"calls": 9, "estimated": 3, "shortened": 2}},
        "cut_texts": {"embedded": 4, "bertscore": 1},
    }
    said = "; ".join(remarks(summary))
    assert "3 of 9 calls are estimated" in said and "the prompt in 2 of 9 calls" in said
    assert "embedded only up to it: 4" in said and "truncated by BERTScore's model: 1" in said
    assert remarks({"calls": {"total": {"calls": 9}}}) == []
