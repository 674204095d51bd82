"""Peaks of attention between neighbouring turns, by the encoder of the compressor."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from baselines.pruned.compressor import CompressorSettings
from memsys.errors import AssetError
from memsys.extras import need_package

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TokenAttention:
    """Attention between the tokens of several texts.

    Attributes:
        weights: shape (tokens, tokens), from row to column, mean over layers and heads.
        text_of: for each token the number of its text; -1 for special tokens.
    """

    weights: Matrix
    text_of: Sequence[int]


class AttentionEncoder(Protocol):
    """Counts tokens and shows how the tokens of several texts attend to each other."""

    def count(self, text: str) -> int:
        """Count the tokens of a text, without special ones."""

    def attention(self, texts: Sequence[str]) -> TokenAttention:
        """Encode the texts together."""


def text_attention(found: TokenAttention, texts: int, edge: int) -> Matrix:
    """Average attention of each text to each earlier one.

    Args:
        found: attention between tokens.
        texts: how many there are.
        edge: positions at both ends that do not count: tokens there gather attention whatever they say.

    Returns:
        Shape (texts, texts): row i holds, for each j < i, the mean over the tokens of i of their summed attention to
        the tokens of j, divided by the row's sum; zero elsewhere.
    """
    owner = np.asarray(found.text_of)
    inner = np.ones(len(owner), dtype=bool)
    inner[:edge] = inner[len(owner) - edge :] = False
    rows = [np.flatnonzero(inner & (owner == text)) for text in range(texts)]
    summed = np.zeros((texts, texts))
    for later in range(texts):
        for earlier in range(later if len(rows[later]) else 0):
            summed[later, earlier] = found.weights[np.ix_(rows[later], rows[earlier])].sum() / len(rows[later])
    totals = summed.sum(axis=1, keepdims=True)
    shares: Matrix = np.divide(summed, totals, out=np.zeros_like(summed), where=totals > 0)
    return shares


def peaks(attention: Matrix) -> list[int]:
    """Return each k, but the first and the last, where attention of turn k + 1 to turn k exceeds both neighbours'."""
    outer = [float(attention[place + 1, place]) for place in range(len(attention) - 1)]
    return [place for place in range(1, len(outer) - 1) if outer[place - 1] < outer[place] > outer[place + 1]]


class HuggingFaceEncoder:
    """An encoder of the ``transformers`` package.

    Attention weights need its eager implementation: fused kernels return none.
    """

    #: Positions of the encoder, two of them for the special tokens.
    POSITIONS = 512

    def __init__(self, tokenizer: Any, model: Any, layers: Sequence[int]) -> None:
        self._tokenizer, self._model, self._layers = tokenizer, model, list(layers)

    def count(self, text: str) -> int:
        """Count the tokens of a text, without special ones."""
        return len(self._ids(text))

    def attention(self, texts: Sequence[str]) -> TokenAttention:
        """Encode the texts together; what is beyond the encoder's positions is left out."""
        import torch

        tokens = [(token, number) for number, text in enumerate(texts) for token in self._ids(text)]
        tokens = tokens[: self.POSITIONS - 2]
        first, last = self._tokenizer.cls_token_id, self._tokenizer.sep_token_id
        ids = torch.tensor([[first, *(token for token, _ in tokens), last]])
        with torch.no_grad():
            layers = self._model(input_ids=ids, output_attentions=True).attentions
        mean = torch.stack([layers[layer][0].mean(0) for layer in self._layers]).mean(0)
        return TokenAttention(mean.double().numpy(), (-1, *(number for _, number in tokens), -1))

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))


def load(settings: CompressorSettings, layers: Sequence[int]) -> AttentionEncoder:
    """Load the encoder, once per process.

    Raises:
        AssetError: the model is missing, or lacks one of the layers.
    """
    return _encoder(str(settings.folder), settings.source, tuple(layers))


@lru_cache(maxsize=2)
def _encoder(folder: str, source: str, layers: tuple[int, ...]) -> AttentionEncoder:
    need_package("transformers", "torch", "memory.segment.peaks=attention")
    from transformers import AutoModel, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModel.from_pretrained(folder, local_files_only=True, attn_implementation="eager")
    except (OSError, ValueError) as error:
        raise AssetError(
            f"memory.segment.peaks=attention needs the model {source}, which cannot be loaded from {folder} ({error}): "
            f"fetch it (huggingface-cli download {source} --local-dir {folder}), or set memory.segment.peaks=off"
        ) from error
    if max(layers) >= model.config.num_hidden_layers:
        raise AssetError(
            f"memory.segment.layers={list(layers)}: the encoder in {folder} has {model.config.num_hidden_layers} "
            "layers, counted from 0; name layers that it has"
        )
    return HuggingFaceEncoder(tokenizer, model.eval(), layers)
