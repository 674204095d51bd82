"""Hyperparameters of Nemori; the presets are ``conf/memory/nemori*.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.nemori.roles import make_roles
from baselines.nemori.rules import (
    GROUPS,
    BatchRules,
    FactRules,
    MergeRules,
    NemoriContextRules,
    SearchRules,
    Segmentation,
)
from memsys.episodes.context import ContextTexts
from memsys.episodes.rules import BoundaryRules, EpisodeRules
from memsys.errors import ConfigError
from memsys.settings import check_choices, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json


@dataclass(frozen=True)
class NemoriConfig(SystemConfig):
    """The choices in which the published generations of the code differ, and the corrections of their defects.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        segmentation: ``online`` asks of every message whether it begins a new episode; ``batch`` groups the messages
            of a batch with one call.
        unit_turns: messages per write, with ``online``, where sessions do not cut: while they are cut into blocks, the
            blocks of the write before become episodes, and the facts of those before them are extracted. Cannot
            change a result.
        boundary: fields of :class:`memsys.episodes.rules.BoundaryRules`; used by ``online``.
        batch: fields of :class:`baselines.nemori.rules.BatchRules`; used by ``batch``.
        episode: fields of :class:`memsys.episodes.rules.EpisodeRules`.
        merge: fields of :class:`baselines.nemori.rules.MergeRules`.
        facts: fields of :class:`baselines.nemori.rules.FactRules`.
        search: fields of :class:`baselines.nemori.rules.SearchRules`.
        context: fields of :class:`baselines.nemori.rules.NemoriContextRules`.
        context_texts: fields of :class:`memsys.episodes.context.ContextTexts`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    segmentation: Segmentation
    unit_turns: int
    boundary: Mapping[str, Json]
    batch: Mapping[str, Json]
    episode: Mapping[str, Json]
    merge: Mapping[str, Json]
    facts: Mapping[str, Json]
    search: Mapping[str, Json]
    context: Mapping[str, Json]
    context_texts: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_choices(self, "memory", segmentation=Segmentation)
        check_minimum(self, "memory", unit_turns=1)
        refuse_gold(self, "Nemori")
        for group, kind in GROUPS.items():
            from_settings(kind, getattr(self, group), f"memory.{group}")
        if not self.search_rules.episodes and not self.search_rules.facts:
            raise ConfigError("memory.search: episodes=0 and facts=0 find nothing; set one of them above 0")
        make_roles(self.roles)

    @cached_property
    def boundary_rules(self) -> BoundaryRules:
        """Settings of the boundaries of episodes, message by message."""
        return from_settings(BoundaryRules, self.boundary, "memory.boundary")

    @cached_property
    def batch_rules(self) -> BatchRules:
        """Settings of the grouping of batches."""
        return from_settings(BatchRules, self.batch, "memory.batch")

    @cached_property
    def episode_rules(self) -> EpisodeRules:
        """Settings of what an episode keeps."""
        return from_settings(EpisodeRules, self.episode, "memory.episode")

    @cached_property
    def merge_rules(self) -> MergeRules:
        """Settings of merging episodes."""
        return from_settings(MergeRules, self.merge, "memory.merge")

    @cached_property
    def fact_rules(self) -> FactRules:
        """Settings of learning facts."""
        return from_settings(FactRules, self.facts, "memory.facts")

    @cached_property
    def search_rules(self) -> SearchRules:
        """Settings of the search for episodes and facts."""
        return from_settings(SearchRules, self.search, "memory.search")

    @cached_property
    def texts(self) -> ContextTexts:
        """Words of the context around facts and episodes."""
        return from_settings(ContextTexts, self.context_texts, "memory.context_texts")

    @cached_property
    def context_rules(self) -> NemoriContextRules:
        """Settings of the reader's context."""
        return from_settings(NemoriContextRules, self.context, "memory.context")
