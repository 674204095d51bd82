"""Metrics that run a model, in batches: BERTScore and the cosine of sentence embeddings.

A score without its model means nothing, so both report what they ran (:meth:`fingerprint`).
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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


@dataclass(frozen=True, slots=True)
class BertScore:
    """Precision, recall and F1 of one pair."""

    precision: float
    recall: float
    f1: float


def _unit(rows: Matrix) -> Matrix:
    import numpy as np

    normed: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normed


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
    """BERTScore by package bert_score, without idf weights.

    Args:
        model: hub name or local folder of an encoder.
        layers: how many layers to use; ``None`` takes the package's choice for the model (17 for roberta-large), else
            all of them.
        rescaled: subtract the package's baseline for English, known for the models and layers that it lists.
        batch_size: texts per forward pass.

    Raises:
        ScoringError: the model is not there, or has no baseline.
    """

    def __init__(self, model: str, layers: int | None = None, rescaled: bool = False, batch_size: int = 64) -> None:
        need_package("bert_score", "metrics", "BERTScore")
        from bert_score import BERTScorer
        from bert_score.utils import model2layers
        from transformers import AutoConfig, AutoTokenizer

        self._name = model
        self.cut = 0  # texts of which the model read only the beginning
        config = _load(AutoConfig.from_pretrained, model, "BERTScore")
        depth = int(config.num_hidden_layers)
        self._layers: int = layers if layers is not None else model2layers.get(_hub_name(model), depth)
        if not 0 <= self._layers <= depth:
            raise ScoringError(f"BERTScore: layers={layers} is out of range; {model} has {depth} layers")
        self._rescaled = rescaled
        baseline = _baseline(model, self._layers) if rescaled else None
        self._scorer = _load(
            partial(_package_scorer, BERTScorer, self._layers, batch_size, baseline), model, "BERTScore"
        )
        tokenizer = self._scorer._tokenizer
        # The package asks that the first word of byte-level BPE models look like any other, after a space; transformers
        # 5 ignores that request when a text is encoded, and takes it when the tokenizer is made.
        if type(tokenizer).__name__.startswith(("Roberta", "GPT2")):
            tokenizer = _load(partial(AutoTokenizer.from_pretrained, add_prefix_space=True), model, "BERTScore")
        tokenizer.model_max_length = min(tokenizer.model_max_length, _positions(config))
        self._scorer._tokenizer = tokenizer

    def score(self, predictions: Sequence[str], references: Sequence[str]) -> list[BertScore]:
        """Score pairs of texts that have more than white space."""
        if not predictions:
            return []
        self.cut += self._too_long({*predictions, *references})
        columns = self._scorer.score(list(predictions), list(references))
        return [BertScore(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]

    def _too_long(self, texts: Collection[str]) -> int:
        """Return how many texts have more tokens than the model reads."""
        tokenizer = self._scorer._tokenizer
        lengths = [len(ids) for ids in tokenizer(list(texts), verbose=False)["input_ids"]]
        return sum(length > tokenizer.model_max_length for length in lengths)

    def fingerprint(self) -> Mapping[str, Json]:
        """Return the identity of the model and its settings."""
        return {**_fingerprint(self._name), "layers": self._layers, "rescaled": self._rescaled}


def _package_scorer(
    kind: Any, layers: int, batch_size: int, baseline: Sequence[float] | None, model: str, local_files_only: bool
) -> Any:
    """Make the package's scorer of a model that is on this machine: it has no argument that forbids a download."""
    import torch
    from huggingface_hub import snapshot_download

    folder = model if Path(model).is_dir() else snapshot_download(model, local_files_only=local_files_only)
    rescaled = baseline is not None
    scorer = kind(
        model_type=folder, num_layers=layers, batch_size=batch_size, lang="en", rescale_with_baseline=rescaled
    )
    if baseline is not None:  # the package finds its file by the model's name, which a folder's path is not
        scorer._baseline_vals = torch.tensor(baseline)
    return scorer


def _hub_name(model: str) -> str:
    """Return a model's name on the hub; of a local folder its last part."""
    return Path(model).name if Path(model).is_dir() else model


def _baseline(model: str, layers: int) -> tuple[float, float, float]:
    """Return the package's baseline for English: precision, recall and F1 of a model's layer.

    Raises:
        ScoringError: it has none.
    """
    import bert_score

    file = Path(bert_score.__file__).parent / "rescale_baseline" / "en" / f"{_hub_name(model)}.tsv"
    rows = file.read_text(encoding="utf-8").splitlines()[1:] if file.is_file() else []
    for row in rows:
        layer, precision, recall, f1 = row.split(",")
        if int(layer) == layers:
            return float(precision), float(recall), float(f1)
    raise ScoringError(
        f"BERTScore: package bert_score has no baseline for {model}, layer {layers}; set "
        "scoring.bertscore_rescaled=false, or take roberta-large"
    )


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
