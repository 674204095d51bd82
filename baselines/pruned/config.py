"""Settings of pruned retrieval; the preset is ``conf/memory/rag_prune.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.pruned import compressor
from baselines.pruned.compressor import CompressorSettings
from baselines.rag.config import RagConfig
from memsys.settings import from_settings
from memsys.vocabulary import Json


@dataclass(frozen=True)
class PrunedRagConfig(RagConfig):
    """Plain retrieval with pruned passages.

    Attributes:
        compressor: fields of :class:`baselines.pruned.compressor.CompressorSettings`.
    """

    compressor: Mapping[str, Json]

    def __post_init__(self) -> None:
        RagConfig.__post_init__(self)
        _ = self.compressor_settings

    @cached_property
    def compressor_settings(self) -> CompressorSettings:
        """Settings of the pruning of passages."""
        return from_settings(CompressorSettings, self.compressor, "memory.compressor")

    def check_assets(self) -> None:
        """Load what pruning needs, before anything runs.

        Raises:
            AssetError: package or model is missing.
        """
        compressor.load(self.compressor_settings)
