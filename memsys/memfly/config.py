"""Hyperparameters of MemFly; the presets are in ``conf/memory/memfly``."""

from collections.abc import Mapping
from dataclasses import dataclass

from memsys.memfly.roles import MemFlyRoles, make_roles
from memsys.memfly.rules import (
    Ablation,
    CandidateRules,
    EvidenceRules,
    IngestRules,
    MemFlyRetrievalRules,
    RefinementRules,
    TopicRules,
    UpdateRules,
)
from memsys.settings import from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class MemflyConfig(SystemConfig):
    """Every choice of the paper and every one it leaves open.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        ablate: fields of :class:`memsys.memfly.rules.Ablation`.
        ingest: fields of :class:`memsys.memfly.rules.IngestRules`.
        candidates: fields of :class:`memsys.memfly.rules.CandidateRules`.
        update: fields of :class:`memsys.memfly.rules.UpdateRules`.
        topics: fields of :class:`memsys.memfly.rules.TopicRules`.
        retrieval: fields of :class:`memsys.memfly.rules.MemFlyRetrievalRules`.
        ier: fields of :class:`memsys.memfly.rules.RefinementRules`.
        evidence: fields of :class:`memsys.memfly.rules.EvidenceRules`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    ablate: Group
    ingest: Group
    candidates: Group
    update: Group
    topics: Group
    retrieval: Group
    ier: Group
    evidence: Group
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        refuse_gold(self, "MemFly")
        self.make_roles()

    def rules(self) -> "MemFlyRules":
        """Return the groups as checked dataclasses.

        Raises:
            ConfigError: an unknown, missing or wrong setting.
        """
        return MemFlyRules(
            ablate=from_settings(Ablation, self.ablate, "memory.ablate"),
            ingest=from_settings(IngestRules, self.ingest, "memory.ingest"),
            candidates=from_settings(CandidateRules, self.candidates, "memory.candidates"),
            update=from_settings(UpdateRules, self.update, "memory.update"),
            topics=from_settings(TopicRules, self.topics, "memory.topics"),
            retrieval=from_settings(MemFlyRetrievalRules, self.retrieval, "memory.retrieval"),
            ier=from_settings(RefinementRules, self.ier, "memory.ier"),
            evidence=from_settings(EvidenceRules, self.evidence, "memory.evidence"),
        )

    def make_roles(self) -> MemFlyRoles:
        """Return the roles of the backbone.

        Raises:
            ConfigError: an unknown, missing or wrong setting.
        """
        return make_roles(self.roles, thresholds=self.rules().update.thresholds_in_prompt)


@dataclass(frozen=True, slots=True)
class MemFlyRules:
    """All groups of a config."""

    ablate: Ablation
    ingest: IngestRules
    candidates: CandidateRules
    update: UpdateRules
    topics: TopicRules
    retrieval: MemFlyRetrievalRules
    ier: RefinementRules
    evidence: EvidenceRules
