"""Hyperparameters of LightMem; the presets are in ``conf/memory/lightmem``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.lightmem.roles import make_roles
from baselines.lightmem.rules import (
    BareLists,
    CompressRules,
    FactSearchRules,
    LightMemContextRules,
    LightMemTexts,
    RevisionRules,
    SegmentRules,
)
from baselines.pruned.compressor import CompressorSettings
from memsys.settings import check_choices, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class LightMemConfig(SystemConfig):
    """The choices of released code and reported settings, and those that a benchmark needs.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        compress: fields of :class:`baselines.lightmem.rules.CompressRules`.
        compressor: fields of :class:`baselines.pruned.compressor.CompressorSettings`, whose encoder also segments.
        segment: fields of :class:`baselines.lightmem.rules.SegmentRules`.
        stm_tokens: of the short-term buffer, whose contents are one extraction.
        bare_lists: a reply that is a list of facts without its object is lost, or read (the released code) where the
            role's reading allows it too.
        update: fields of :class:`baselines.lightmem.rules.RevisionRules`.
        retrieve: fields of :class:`baselines.lightmem.rules.FactSearchRules`.
        context: fields of :class:`baselines.lightmem.rules.LightMemContextRules`.
        context_texts: fields of :class:`baselines.lightmem.rules.LightMemTexts`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    compress: Group
    compressor: Group
    segment: Group
    stm_tokens: int
    bare_lists: BareLists
    update: Group
    retrieve: Group
    context: Group
    context_texts: Group
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        check_minimum(self, "memory", stm_tokens=1)
        check_choices(self, "memory", bare_lists=BareLists)
        refuse_gold(self, "LightMem")
        _ = self.compress_rules, self.compressor_settings, self.segment_rules, self.update_rules
        _ = self.search_rules, self.context_rules, self.texts
        make_roles(self.roles)

    @cached_property
    def compress_rules(self) -> CompressRules:
        """Whether turns are compressed."""
        return from_settings(CompressRules, self.compress, "memory.compress")

    @cached_property
    def compressor_settings(self) -> CompressorSettings:
        """Settings of the compressor of turns."""
        return from_settings(CompressorSettings, self.compressor, "memory.compressor")

    @cached_property
    def segment_rules(self) -> SegmentRules:
        """Settings of the segmentation by topics."""
        return from_settings(SegmentRules, self.segment, "memory.segment")

    @cached_property
    def update_rules(self) -> RevisionRules:
        """Settings of the revision of facts."""
        return from_settings(RevisionRules, self.update, "memory.update")

    @cached_property
    def search_rules(self) -> FactSearchRules:
        """Settings of the search."""
        return from_settings(FactSearchRules, self.retrieve, "memory.retrieve")

    @cached_property
    def context_rules(self) -> LightMemContextRules:
        """Settings of the reader's context."""
        return from_settings(LightMemContextRules, self.context, "memory.context")

    @cached_property
    def texts(self) -> LightMemTexts:
        """Words around the facts."""
        return from_settings(LightMemTexts, self.context_texts, "memory.context_texts")

    def check_assets(self) -> None:
        """Load what compressing and segmenting need, before anything runs.

        Raises:
            AssetError: package or model is missing.
        """
        from baselines.lightmem import attention
        from baselines.pruned import compressor

        if self.compress_rules.mode == "llmlingua2":
            compressor.load(self.compressor_settings)
        if self.segment_rules.needs_encoder:
            attention.load(self.compressor_settings, self.segment_rules.layers)
