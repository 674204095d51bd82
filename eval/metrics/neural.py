"""Metrics that run a model, in batches: BERTScore and the cosine of sentence embeddings.

A score without its model means nothing, so both report what they ran (:meth:`fingerprint`).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from memsys.assets.catalog import model_folder
from memsys.assets.paths import models_dir
from memsys.errors import ScoringError
from memsys.extras import need_package
from memsys.vocabulary import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Matrix: TypeAlias = "NDArray[np.float32]"

#: The layer bert_score takes for ``lang="en"``, which A-Mem and CLAG ask for.
_TUNED_LAYERS = {"roberta-large": 17}
#: bert_score's baseline for that layer: precision, recall, F1.
_BASELINES = {("roberta-large", 17): (0.83150584, 0.8314941, 0.83122575)}


@dataclass(frozen=True, slots=True)
class BertScore:
    """Precision, recall and F1 of one pair."""

    precision: float
    recall: float
    f1: float


def greedy_match(candidate: Matrix, reference: Matrix) -> BertScore:
    """Return BERTScore of one pair from its token vectors.

    The first and last token (CLS and SEP) have weight 0 but may still be the best match of another token, as in
    package ``bert_score`` without idf.

    Args:
        candidate: vectors of the prediction's tokens, shape (n, d).
        reference: vectors of the reference's tokens, shape (m, d).
    """
    if len(candidate) <= 2 or len(reference) <= 2:
        return BertScore(0.0, 0.0, 0.0)
    similarity = _unit(candidate) @ _unit(reference).T
    precision = float(similarity.max(axis=1)[1:-1].mean())
    recall = float(similarity.max(axis=0)[1:-1].mean())
    total = precision + recall
    return BertScore(precision, recall, 2 * precision * recall / total if total else 0.0)


def _unit(rows: Matrix) -> Matrix:
    import numpy as np

    normed: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normed


def rescale(score: BertScore, baseline: tuple[float, float, float]) -> BertScore:
    """Rescale a score so that the baseline becomes 0: ``(x - b) / (1 - b)``, as LoCoMo's scorer and MemOS do."""
    values = (score.precision, score.recall, score.f1)
    return BertScore(*((value - base) / (1 - base) for value, base in zip(values, baseline, strict=True)))


def _resolve(model: str) -> str:
    """Take a folder as it is, a name under the models folder if it lies there, else the name for the hub."""
    local = model_folder(model)
    return str(local) if not Path(model).is_dir() and local.is_dir() else model


def _load(loader: Any, model: str, what: str) -> Any:
    """Load a model that is on this machine, without a progress bar; scoring downloads nothing."""
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        return loader(_resolve(model), local_files_only=True)
    except (OSError, ValueError) as error:
        raise ScoringError(
            f"{what}: model {model!r} is not on this machine; run `memsys models` and name one of its models "
            f"(--bertscore-model all-MiniLM-L6-v2), or put the model's folder at {models_dir() / model} "
            f"({str(error).splitlines()[0]})"
        ) from error


def _fingerprint(model: str) -> dict[str, Json]:
    """Name and checksum of a local model's weights; a hub model is known by its name alone."""
    folder = Path(_resolve(model))
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in weights)).hexdigest() if weights else None
    return {"model": folder.name if folder.is_dir() else model, "weights_sha256": digest}


class BertScorer:
    """BERTScore with any encoder; every distinct text is encoded once, in an order that does not depend on the run.

    Args:
        model: hub name or local folder.
        layers: how many layers to use; ``None`` takes the tuned layer of the model, else all.
        rescaled: subtract the published baseline (known for roberta-large, layer 17).
        batch_size: texts per forward pass.

    Raises:
        ScoringError: the model is not there, or has no baseline.
    """

    def __init__(self, model: str, layers: int | None = None, rescaled: bool = False, batch_size: int = 64) -> None:
        need_package("transformers", "metrics", "BERTScore")
        from transformers import AutoModel, AutoTokenizer

        self._name = model
        self._batch_size = batch_size
        self.cut = 0  # texts of which the model read only the beginning
        self._tokenizer = _load(AutoTokenizer.from_pretrained, model, "BERTScore")
        self._model = _load(AutoModel.from_pretrained, model, "BERTScore").eval()
        # Package bert_score lets the first word of byte-level BPE models look like any other: after a blank. Under
        # transformers 5 its request is ignored without a word, so it is not left to the tokenizer here.
        self._prefix = " " if type(self._tokenizer).__name__.startswith(("Roberta", "GPT2")) else ""
        depth = int(self._model.config.num_hidden_layers)
        self._layers = layers if layers is not None else _TUNED_LAYERS.get(Path(model).name, depth)
        if not 0 <= self._layers <= depth:
            raise ScoringError(f"BERTScore: layers={layers} is out of range; {model} has {depth} layers")
        self._baseline = _BASELINES.get((Path(model).name, self._layers)) if rescaled else None
        if rescaled and self._baseline is None:
            known = ", ".join(f"{name} layer {layer}" for name, layer in _BASELINES)
            raise ScoringError(f"BERTScore: no baseline for {model} layer {self._layers}; rescaling works for {known}")

    def score(self, predictions: Sequence[str], references: Sequence[str]) -> list[BertScore]:
        """Score pairs; a pair with an empty side scores 0 throughout, before any rescaling."""
        texts = sorted({text.strip() for text in (*predictions, *references)})
        vectors = dict(zip(texts, self._encode(texts), strict=True))
        scores = [
            greedy_match(vectors[prediction.strip()], vectors[reference.strip()])
            for prediction, reference in zip(predictions, references, strict=True)
        ]
        baseline = self._baseline
        return scores if baseline is None else [rescale(score, baseline) for score in scores]

    def _encode(self, texts: Sequence[str]) -> list[Matrix]:
        """Return the token vectors of each text, shape (tokens, d), without padding."""
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._model.to(device)
        limit = min(self._tokenizer.model_max_length, _positions(self._model.config))
        order = sorted(range(len(texts)), key=lambda index: (len(texts[index]), index))
        vectors: dict[int, Matrix] = {}
        for start in range(0, len(order), self._batch_size):
            chosen = order[start : start + self._batch_size]
            batch = self._tokenizer(
                [self._prefix + texts[index] if texts[index] else "" for index in chosen],
                return_tensors="pt",
                padding=True,
                truncation=True,
                max_length=limit,
            ).to(device)
            with torch.inference_mode():
                states = self._model(**batch, output_hidden_states=True).hidden_states[self._layers].float().cpu()
            lengths = batch["attention_mask"].sum(dim=1).tolist()
            for row, (index, length) in enumerate(zip(chosen, lengths, strict=True)):
                vectors[index] = states[row, :length].numpy()
                self.cut += length >= limit and len(self._tokenizer(self._prefix + texts[index])["input_ids"]) > limit
        return [vectors[index] for index in range(len(texts))]

    def fingerprint(self) -> Mapping[str, Json]:
        """Return the identity of the model and its settings."""
        return {**_fingerprint(self._name), "layers": self._layers, "rescaled": self._baseline is not None}


def _positions(config: Any) -> int:
    """Return the longest input of an encoder; RoBERTa keeps two positions for padding."""
    positions = int(config.max_position_embeddings)
    return positions - 2 if "roberta" in str(config.model_type) else positions


class SentenceScorer:
    """Cosine of two sentence embeddings. Source: A-Mem and CLAG ``utils.py`` (all-MiniLM-L6-v2).

    Raises:
        ScoringError: the model is not there.
    """

    def __init__(self, model: str, batch_size: int = 64) -> None:
        need_package("sentence_transformers", "metrics", "the cosine of sentence embeddings")
        from sentence_transformers import SentenceTransformer

        self._name = model
        self._batch_size = batch_size
        self._model = _load(SentenceTransformer, model, "SBERT")

    def score(self, predictions: Sequence[str], references: Sequence[str]) -> list[float]:
        """Score pairs, in [-1, 1]; a pair with an empty side scores 0."""
        texts = sorted({*predictions, *references})
        vectors = dict(zip(texts, self._unit_vectors(texts), strict=True))
        return [
            float(vectors[prediction] @ vectors[reference]) if prediction and reference else 0.0
            for prediction, reference in zip(predictions, references, strict=True)
        ]

    def cosines(self, texts: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """Return the cosines of every text with every other, shape (texts, others); both are non-empty."""
        rows, columns = (self._unit_vectors(own) for own in (texts, others))
        found: list[list[float]] = (rows @ columns.T).tolist()
        return found

    def _unit_vectors(self, texts: Sequence[str]) -> Matrix:
        import numpy as np

        rows = self._model.encode(
            list(texts), batch_size=self._batch_size, show_progress_bar=False, convert_to_numpy=True
        )
        return _unit(np.asarray(rows, dtype=np.float32))

    def fingerprint(self) -> Mapping[str, Json]:
        """Return the identity of the model and its settings."""
        return _fingerprint(self._name)
