"""LLMLingua-2: a classifier of tokens that leaves words out (Pan et al., ACL 2024; package ``llmlingua``)."""

import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Protocol

from memsys.assets.paths import models_dir
from memsys.errors import AssetError, ConfigError
from memsys.settings import check_choices

Device = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class CompressorSettings:
    """Settings of the pruning of passages.

    Attributes:
        model: folder of the classifier, under the models folder or absolute.
        source: where the model is published, for the message that says it is missing.
        keep_rate: share of tokens kept.
        force_tokens: tokens that are always kept.
        device: where the classifier runs.
    """

    model: str
    source: str
    keep_rate: float
    force_tokens: Sequence[str]
    device: Device

    def __post_init__(self) -> None:
        check_choices(self, "memory.compressor", device=Device)
        if not 0 < self.keep_rate <= 1:
            raise ConfigError(f"memory.compressor.keep_rate={self.keep_rate} must be above 0 and at most 1")

    @property
    def folder(self) -> Path:
        """Folder of the model."""
        return models_dir() / self.model


class Compressor(Protocol):
    """Prunes texts."""

    def prune(self, text: str) -> str:
        """Return the text without the words that matter least."""


class LlmLingua2:
    """The published classifier, one text at a time."""

    def __init__(self, prompt_compressor: Any, settings: CompressorSettings) -> None:
        self._compressor, self._settings = prompt_compressor, settings
        self._lock = threading.Lock()

    def prune(self, text: str) -> str:
        """Return the text without the words that matter least."""
        if not text.strip():
            return text
        with self._lock:
            result = self._compressor.compress_prompt_llmlingua2(
                [text], rate=self._settings.keep_rate, force_tokens=list(self._settings.force_tokens)
            )
        return str(result["compressed_prompt"])


def check_files(settings: CompressorSettings) -> None:
    """Check that package and model are there.

    Raises:
        AssetError: one is missing; says how to get it.
    """
    if importlib.util.find_spec("llmlingua") is None:
        raise AssetError(
            "memory.compressor needs the package llmlingua, which is not installed: pip install 'memsys[prune]'"
        )
    if not (settings.folder / "config.json").is_file():
        raise AssetError(
            f"memory.compressor needs the model {settings.source}, and {settings.folder} holds none: fetch it "
            f"(huggingface-cli download {settings.source} --local-dir {settings.folder}) or set memory.compressor.model"
        )


def load(settings: CompressorSettings) -> Compressor:
    """Load the classifier, once per process.

    Raises:
        AssetError: package, model or one of their files is missing.
    """
    check_files(settings)
    return LlmLingua2(_prompt_compressor(str(settings.folder), settings.device), settings)


@lru_cache(maxsize=2)
def _prompt_compressor(folder: str, device: str) -> Any:
    from llmlingua import PromptCompressor

    try:
        return PromptCompressor(folder, device_map=device, use_llmlingua2=True)
    except OSError as error:
        raise AssetError(
            f"LLMLingua-2 cannot be loaded from {folder} ({error}); check the folder. The package also loads OpenAI's "
            "tokenizer, from the network or from the folder that TIKTOKEN_CACHE_DIR names"
        ) from error
