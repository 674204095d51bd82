"""Hyperparameters of xMemory; the presets are in ``conf/memory/xmemory``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from memsys.episodes.context import ContextTexts
from memsys.episodes.rules import BoundaryRules, EpisodeRules
from memsys.settings import check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json
from memsys.xmemory.roles import make_roles
from memsys.xmemory.rules import (
    GROUPS,
    GateRules,
    NeighborGraphRules,
    SemanticRules,
    ThemeRules,
    XMemoryContextRules,
    XMemoryRetrievalRules,
)


@dataclass(frozen=True)
class XMemoryConfig(SystemConfig):
    """Every choice of the paper and of the official code.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        unit_turns: messages per write, where sessions do not cut: while they are cut into blocks, the blocks of the
            write before become episodes, and the facts of those before them are extracted. Cannot change a result.
        boundary: fields of :class:`memsys.episodes.rules.BoundaryRules`.
        episode: fields of :class:`memsys.episodes.rules.EpisodeRules`.
        semantic: fields of :class:`memsys.xmemory.rules.SemanticRules`.
        theme: fields of :class:`memsys.xmemory.rules.ThemeRules`.
        graph: fields of :class:`memsys.xmemory.rules.NeighborGraphRules`.
        retrieval: fields of :class:`memsys.xmemory.rules.XMemoryRetrievalRules`.
        gate: fields of :class:`memsys.xmemory.rules.GateRules`.
        context: fields of :class:`memsys.xmemory.rules.XMemoryContextRules`.
        context_texts: fields of :class:`memsys.episodes.context.ContextTexts`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    unit_turns: int
    boundary: Mapping[str, Json]
    episode: Mapping[str, Json]
    semantic: Mapping[str, Json]
    theme: Mapping[str, Json]
    graph: Mapping[str, Json]
    retrieval: Mapping[str, Json]
    gate: Mapping[str, Json]
    context: Mapping[str, Json]
    context_texts: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_minimum(self, "memory", unit_turns=1)
        refuse_gold(self, "xMemory")
        for group, kind in GROUPS.items():
            from_settings(kind, getattr(self, group), f"memory.{group}")
        make_roles(self.roles, self.gate_rules.estimator, self.semantic_rules.mode)

    @cached_property
    def boundary_rules(self) -> BoundaryRules:
        """Settings of the boundaries of episodes."""
        return from_settings(BoundaryRules, self.boundary, "memory.boundary")

    @cached_property
    def episode_rules(self) -> EpisodeRules:
        """Settings of what an episode keeps."""
        return from_settings(EpisodeRules, self.episode, "memory.episode")

    @cached_property
    def semantic_rules(self) -> SemanticRules:
        """Settings of the extraction of facts."""
        return from_settings(SemanticRules, self.semantic, "memory.semantic")

    @cached_property
    def theme_rules(self) -> ThemeRules:
        """Settings of the organisation of facts."""
        return from_settings(ThemeRules, self.theme, "memory.theme")

    @cached_property
    def graph_rules(self) -> NeighborGraphRules:
        """Settings of the links between neighbours."""
        return from_settings(NeighborGraphRules, self.graph, "memory.graph")

    @cached_property
    def retrieval_rules(self) -> XMemoryRetrievalRules:
        """Stage I and the candidates of Stage II."""
        return from_settings(XMemoryRetrievalRules, self.retrieval, "memory.retrieval")

    @cached_property
    def gate_rules(self) -> GateRules:
        """Stage II."""
        return from_settings(GateRules, self.gate, "memory.gate")

    @cached_property
    def texts(self) -> ContextTexts:
        """Words of the context around facts and episodes."""
        return from_settings(ContextTexts, self.context_texts, "memory.context_texts")

    @cached_property
    def context_rules(self) -> XMemoryContextRules:
        """Settings of what the reader sees."""
        return from_settings(XMemoryContextRules, self.context, "memory.context")
