"""BERT encoders with mean pooling, such as all-MiniLM-L6-v2, in torch alone.

sentence-transformers computes the same vectors, bit for bit (``tests/unit/test_embedding_model.py``), but importing it
and transformers takes four times the CPU seconds of torch: most of the start of a short run. What is not exactly this
architecture is left to it.

Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding" (NAACL 2019),
and Reimers and Gurevych, "Sentence-BERT" (EMNLP 2019) for the pooling.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memsys.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

#: What a model's files must say to be computed here.
_ARCHITECTURE = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_MODULES = ("Transformer", "Pooling", "Normalize")
_POOLING = {"pooling_mode_mean_tokens"}


@dataclass(frozen=True, slots=True)
class TokenizedBatch:
    """Texts as the model takes them.

    Attributes:
        ids: word pieces, shape (texts, length).
        mask: 1 where there is a word piece, 0 where there is padding; same shape.
        cut: number of texts that were longer than the limit.
    """

    ids: "Tensor"
    mask: "Tensor"
    cut: int


def is_mean_pooled_bert(folder: Path) -> bool:
    """Whether the model of a folder is computed here: BERT, the mean of all tokens, then length one."""
    try:
        config = _read(folder / "config.json")
        modules = tuple(str(module["type"]).rpartition(".")[2] for module in _read(folder / "modules.json"))
        pooling = _read(folder / "1_Pooling" / "config.json")
    except (OSError, ValueError, KeyError, TypeError):
        return False  # sentence-transformers says what is wrong with it
    modes = {key for key, value in pooling.items() if key.startswith("pooling_mode_") and value}
    files = all((folder / name).is_file() for name in ("model.safetensors", "tokenizer.json"))
    same = all(config.get(key, value) == value for key, value in _ARCHITECTURE.items())
    return files and same and modules == _MODULES and modes == _POOLING


class BertTokenizer:
    """Word pieces of a model's ``tokenizer.json``.

    Args:
        folder: of the model.
        max_length: word pieces of a text, with the two that begin and end it; what is more is cut.
        multiple: the length of a batch is a multiple of this.
    """

    def __init__(self, folder: Path, max_length: int, multiple: int) -> None:
        from tokenizers import Tokenizer

        positions = _read(folder / "config.json").get("max_position_embeddings")
        if positions is not None and max_length > int(positions):
            raise ConfigError(f"embedder.max_word_pieces={max_length}, but {folder.name} reads {positions} at most")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(max_length)
        padding = int(_read(folder / "config.json").get("pad_token_id", 0))
        token = self._tokenizer.id_to_token(padding)
        self._tokenizer.enable_padding(pad_id=padding, pad_token=token, pad_to_multiple_of=multiple)

    def __call__(self, texts: Sequence[str]) -> TokenizedBatch:
        """Tokenize a batch."""
        import torch

        encoded = self._tokenizer.encode_batch(list(texts))
        ids = torch.tensor([each.ids for each in encoded])
        mask = torch.tensor([each.attention_mask for each in encoded])
        return TokenizedBatch(ids, mask, sum(1 for each in encoded if each.overflowing))


class BertEncoder:
    """The network.

    Args:
        folder: of the model.
        device: where to compute, as torch calls it.
    """

    def __init__(self, folder: Path, device: str) -> None:
        from safetensors import safe_open

        config = _read(folder / "config.json")
        self.device = device
        self.dimension = int(config["hidden_size"])
        self._heads, self._layers = int(config["num_attention_heads"]), int(config["num_hidden_layers"])
        self._epsilon = float(config["layer_norm_eps"])
        with safe_open(str(folder / "model.safetensors"), framework="pt", device=device) as file:
            weights = {name.removeprefix("bert."): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        self._weights: Mapping[str, Any] = {name: tensor.float() for name, tensor in weights.items()}

    def __call__(self, batch: TokenizedBatch) -> "Tensor":
        """Vectors of length one, shape (texts, dimension)."""
        import torch
        from torch.nn.functional import normalize

        with torch.inference_mode():
            ids, mask = batch.ids.to(self.device), batch.mask.to(self.device)
            states = self._embedded(ids)
            attended = None if bool(mask.all()) else mask[:, None, None, :].bool().expand(-1, 1, ids.shape[1], -1)
            for layer in range(self._layers):
                states = self._layer(f"encoder.layer.{layer}", states, attended)
            weight = mask.unsqueeze(-1).expand(states.size()).to(states.dtype)
            mean = torch.sum(states * weight, 1) / torch.clamp(weight.sum(1), min=1e-9)
            return normalize(normalize(mean, p=2, dim=1), dim=1)

    def _embedded(self, ids: "Tensor") -> "Tensor":
        """Sum of the vectors of word piece, segment (always the first) and position, normalised."""
        import torch
        from torch.nn.functional import embedding

        words = embedding(ids, self._weights["embeddings.word_embeddings.weight"])
        segments = embedding(torch.zeros_like(ids), self._weights["embeddings.token_type_embeddings.weight"])
        positions = self._weights["embeddings.position_embeddings.weight"][None, : ids.shape[1]]
        return self._normalised("embeddings", words + segments + positions)

    def _layer(self, name: str, states: "Tensor", mask: "Tensor | None") -> "Tensor":
        """One layer of attention and feed-forward network."""
        from torch.nn.functional import gelu

        attended = self._linear(
            f"{name}.attention.output.dense", self._attention(f"{name}.attention.self", states, mask)
        )
        states = self._normalised(f"{name}.attention.output", attended + states)
        inner = gelu(self._linear(f"{name}.intermediate.dense", states))
        return self._normalised(f"{name}.output", self._linear(f"{name}.output.dense", inner) + states)

    def _attention(self, name: str, states: "Tensor", mask: "Tensor | None") -> "Tensor":
        from torch.nn.functional import scaled_dot_product_attention

        shape = (*states.shape[:2], self._heads, -1)
        query, key, value = (
            self._linear(f"{name}.{part}", states).view(shape).transpose(1, 2) for part in ("query", "key", "value")
        )
        found = scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return found.transpose(1, 2).reshape(states.shape).contiguous()

    def _linear(self, name: str, states: "Tensor") -> "Tensor":
        from torch.nn.functional import linear

        return linear(states, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _normalised(self, name: str, states: "Tensor") -> "Tensor":
        from torch.nn.functional import layer_norm

        weight, bias = self._weights[f"{name}.LayerNorm.weight"], self._weights[f"{name}.LayerNorm.bias"]
        return layer_norm(states, (states.shape[-1],), weight, bias, self._epsilon)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
