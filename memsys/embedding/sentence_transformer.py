"""Sentence-transformers models, loaded from the local models folder and never from the network.

BERT with mean pooling (all-MiniLM-L6-v2) is computed on the CPU by :mod:`memsys.embedding.bert`, without torch; any
other model, and any on a GPU, by sentence-transformers.

Vectors do not depend on the batch. There each text is computed alone. In sentence-transformers, matrix kernels pick
other code paths for other shapes, which moves components by up to 2e-7 between a text alone and the same text in a
batch: enough to turn a near-tie around in one of some thousand searches. Padding every batch to a multiple of
``pad_to_multiple_of`` tokens removes it (with 16, on x86 CPUs; 8 does not).
"""

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from memsys.assets.catalog import model_folder
from memsys.assets.paths import models_dir
from memsys.cores import thread_limit, usable_cores
from memsys.embedding.batching import BatchingEmbedder
from memsys.embedding.bert import BertEncoder, BertTokenizer, is_mean_pooled_bert
from memsys.embedding.contract import Vectors
from memsys.embedding.store import fingerprint
from memsys.embedding.windows import WordPieceWindows
from memsys.errors import AssetError, ConfigError
from memsys.extras import need_package

Device = Literal["auto", "cpu", "cuda"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SentenceTransformerConfig:
    """Settings of a sentence-transformers embedder.

    Attributes:
        name: recorded in the run.
        model: folder under the models folder.
        dimension: length of a vector; checked against the model.
        device: ``auto`` takes CUDA where torch is installed and finds it.
        max_batch: texts per call of the model.
        max_word_pieces: longer texts are cut here and counted.
        pad_to_multiple_of: of batches in sentence-transformers; see the module's text.
        cache_entries: vectors kept in memory (all-MiniLM-L6-v2: 1.5 KiB each).
        threads: threads on the CPU; ``None`` takes half of the cores, because the backbone and the event loop run
            next to it: with a thread for every core, encoding on busy cores takes several times as long. Where
            ``OMP_NUM_THREADS`` says less, as in the cells of a local sweep, that is taken.
    """

    name: str
    model: str
    dimension: int
    device: Device
    max_batch: int
    max_word_pieces: int
    pad_to_multiple_of: int
    cache_entries: int
    threads: int | None

    def __post_init__(self) -> None:
        if self.device not in get_args(Device):
            choices = ", ".join(get_args(Device))
            raise ConfigError(f"embedder.device={self.device!r} is unknown; choose one of {choices}")
        for key in ("dimension", "max_batch", "max_word_pieces", "pad_to_multiple_of", "threads"):
            value = getattr(self, key)
            if value is not None and value < 1:
                raise ConfigError(f"embedder.{key}={value} must be at least 1")

    def build(self) -> "SentenceTransformerEmbedder":
        """Make the embedder; the model is loaded by its ``load``, or with the first text."""
        return SentenceTransformerEmbedder(self)


class SentenceTransformerEmbedder(BatchingEmbedder):
    """A micro-batching embedder over a sentence-transformers model."""

    def __init__(self, config: SentenceTransformerConfig) -> None:
        self._model = _LocalModel(config)
        super().__init__(
            config.name,
            config.dimension,
            self._model,
            max_batch=config.max_batch,
            cache_entries=config.cache_entries,
        )
        self._loading: Future[float] | None = None
        self._cut = WordPieceWindows(models_dir() / config.model, config.max_word_pieces)

    def load(self) -> Future[float]:
        """Load the model in the thread that encodes; see :class:`~memsys.embedding.contract.LoadsModel`."""
        with self._lock:
            if self._loading is None:
                self._loading = self._worker.submit(self._model.load)
            return self._loading

    def keep(self, folder: Path | None) -> None:
        """See :class:`~memsys.embedding.contract.KeepsVectors`; on a GPU, where embedding is cheap, nothing is kept."""
        self._keep_in(None if folder is None else self._model.kept_in(folder))

    def windows(self, text: str) -> Sequence[str]:
        """See :class:`~memsys.embedding.contract.CutsIntoWindows`; pieces of ``max_word_pieces``, by its tokenizer."""
        return self._cut(text)

    def statistics(self) -> Mapping[str, float]:
        """Return the counts since the embedder was made; ``truncated`` counts encoded texts that were cut."""
        return {**super().statistics(), "truncated": self._model.truncated}


class _LocalModel:
    """The blocking side: tokenise, run, count what was cut."""

    def __init__(self, config: SentenceTransformerConfig) -> None:
        self._config = config
        self._model: _Bert | _Library | None = None
        self.truncated = 0

    def load(self) -> float:
        """Load the model unless it is there; returns the seconds that took.

        Raises:
            AssetError: the model's folder is missing.
            ConfigError: the device is not there, or the model has another dimension.
        """
        begun = time.perf_counter()
        if self._model is None:
            self._model = self._load()
        return time.perf_counter() - begun

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Encode one batch.

        Raises:
            AssetError: the model's folder is missing.
            ConfigError: the device is not there, or the model has another dimension.
        """
        self.load()
        assert self._model is not None
        vectors, cut = self._model(texts)
        self._count_truncated(cut)
        return vectors

    def kept_in(self, folder: Path) -> Path | None:
        """Return where in a folder the vectors of this model on this processor are kept; ``None`` on a GPU.

        Raises:
            AssetError: the model's folder is missing.
        """
        config = self._config
        if config.device == "cuda" or (config.device == "auto" and _sees_gpu()):
            return None
        settings = {
            "dimension": config.dimension,  # or rows of another length would count as damaged
            "max_word_pieces": config.max_word_pieces,
            "pad_to_multiple_of": config.pad_to_multiple_of,
            "threads": self._threads(),
        }
        return folder / f"{config.name}-{fingerprint(settings, self._folder())}"

    def _threads(self) -> int:
        half = max(1, usable_cores() // 2)
        return self._config.threads or min(half, thread_limit() or half)

    def _count_truncated(self, cut: int) -> None:
        if cut and not self.truncated:
            limit = self._config.max_word_pieces
            _log.warning("a text longer than %d word pieces was cut before embedding; further ones are counted", limit)
        self.truncated += cut

    def _load(self) -> "_Bert | _Library":
        folder = self._folder()  # a missing model is reported before seconds of imports
        device = self._device()
        if device == "cpu" and is_mean_pooled_bert(folder):
            model: _Bert | _Library = _Bert(folder, self._config, self._threads())
        else:
            model = _Library(folder, device, self._config, self._threads())
        if model.dimension != self._config.dimension:
            raise ConfigError(
                f"embedder.dimension={self._config.dimension}, but {self._config.model} has {model.dimension}; "
                "set it so"
            )
        return model

    def _folder(self) -> Path:
        folder = model_folder(self._config.model)
        if not (folder / "config.json").is_file():
            raise AssetError(f"embedding model {folder} is not there; run `memsys models` or set MEMSYS_MODELS")
        return folder

    def _device(self) -> Literal["cpu", "cuda"]:
        asked = self._config.device
        if asked == "cpu" or (asked == "auto" and not (_sees_gpu() and find_spec("torch"))):
            return "cpu"
        need_package("torch", "torch", "embedder.device=cuda")
        import torch

        if torch.cuda.is_available():
            return "cuda"
        if asked == "cuda":
            raise ConfigError("embedder.device=cuda, but torch sees no CUDA device; use auto or cpu")
        return "cpu"


class _Bert:
    """A model that :mod:`memsys.embedding.bert` computes."""

    def __init__(self, folder: Path, config: SentenceTransformerConfig, threads: int) -> None:
        self._tokenize = BertTokenizer(folder, config.max_word_pieces)
        self._encoder = BertEncoder(folder, threads)
        self.dimension = self._encoder.dimension

    def __call__(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return the vectors of a batch, and how many of its texts were cut."""
        tokenized = self._tokenize(texts)
        return self._encoder(tokenized), tokenized.cut


class _Library:
    """A model that sentence-transformers computes."""

    def __init__(self, folder: Path, device: str, config: SentenceTransformerConfig, threads: int) -> None:
        need_package("sentence_transformers", "torch", f"embedder {config.name}")
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging

        torch.set_num_threads(threads)
        quieten: Any = transformers_logging.disable_progress_bar
        quieten()  # loading six layers needs no progress bar
        self._model: Any = SentenceTransformer(str(folder), device=device, local_files_only=True).eval()
        self._options = {
            "padding": True,
            "pad_to_multiple_of": config.pad_to_multiple_of,
            "truncation": True,
            "max_length": config.max_word_pieces,
            "return_tensors": "pt",
        }
        self.dimension = self._model.get_embedding_dimension()

    def __call__(self, texts: Sequence[str]) -> tuple[Vectors, int]:
        """Return the vectors of a batch, and how many of its texts were cut."""
        import torch

        tokens = self._model.tokenizer(list(texts), **self._options)
        with torch.inference_mode():
            features = {key: value.to(self._model.device) for key, value in tokens.items()}
            vectors = torch.nn.functional.normalize(self._model(features)["sentence_embedding"].float(), dim=1)
        rows = np.ascontiguousarray(vectors.cpu().numpy(), dtype=np.float32)
        return rows, sum(1 for each in tokens.encodings if each.overflowing)


def _sees_gpu() -> bool:
    """Return whether torch may find a GPU; asked without importing it."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
