"""Hyperparameters of MemoryBank; the presets are ``conf/memory/memorybank*.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.memorybank.forgetting import ForgettingRules
from baselines.memorybank.roles import make_roles
from baselines.memorybank.rules import MemoryBankContextRules, PieceCut, SummaryRules
from memsys.errors import ConfigError
from memsys.settings import check_choices, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class MemoryBankConfig(SystemConfig):
    """The choices of paper and released code, and those that a benchmark needs.

    Attributes:
        name: of the preset; says whether pieces are forgotten.
        uses_gold: always false.
        pieces: ``pairs`` of what one speaker says and what is replied, or single ``turns`` for data that is not talk.
        summaries: fields of :class:`baselines.memorybank.rules.SummaryRules`.
        forgetting: fields of :class:`baselines.memorybank.forgetting.ForgettingRules`.
        retrieve_k: pieces and summaries found by a question.
        context: fields of :class:`baselines.memorybank.rules.MemoryBankContextRules`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    pieces: PieceCut
    summaries: Group
    forgetting: Group
    retrieve_k: int
    context: Group
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        check_choices(self, "memory", pieces=PieceCut)
        check_minimum(self, "memory", retrieve_k=1)
        refuse_gold(self, "MemoryBank")
        _ = self.summary_rules, self.forgetting_rules, self.context_rules
        make_roles(self.roles)
        if self.summary_rules.overall_history and not self.summary_rules.days:
            raise ConfigError(
                "memory.summaries.overall_history=True needs the days' summaries; set memory.summaries.days to true"
            )

    @cached_property
    def summary_rules(self) -> SummaryRules:
        """Settings of the summaries of days and conversation."""
        return from_settings(SummaryRules, self.summaries, "memory.summaries")

    @cached_property
    def forgetting_rules(self) -> ForgettingRules:
        """Settings of forgetting."""
        return from_settings(ForgettingRules, self.forgetting, "memory.forgetting")

    @cached_property
    def context_rules(self) -> MemoryBankContextRules:
        """Settings of the reader's context."""
        return from_settings(MemoryBankContextRules, self.context, "memory.context")
