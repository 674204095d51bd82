"""Hyperparameters of MemGPT; the presets are in ``conf/memory/memgpt``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.memgpt.roles import make_roles
from baselines.memgpt.rules import (
    AgentRules,
    CoreRules,
    IngestionRules,
    MainContextRules,
    MemGptContextRules,
    MemGptTexts,
    PagedSearchRules,
    SummaryRules,
)
from memsys.settings import from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class MemGptConfig(SystemConfig):
    """The choices of paper and released code, and those that a benchmark needs.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        ingest: fields of :class:`baselines.memgpt.rules.IngestionRules`.
        main_context: fields of :class:`baselines.memgpt.rules.MainContextRules`.
        summary: fields of :class:`baselines.memgpt.rules.SummaryRules`.
        core: fields of :class:`baselines.memgpt.rules.CoreRules`.
        agent: fields of :class:`baselines.memgpt.rules.AgentRules`.
        search: fields of :class:`baselines.memgpt.rules.PagedSearchRules`.
        context: fields of :class:`baselines.memgpt.rules.MemGptContextRules`.
        context_texts: fields of :class:`baselines.memgpt.rules.MemGptTexts`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    ingest: Group
    main_context: Group
    summary: Group
    core: Group
    agent: Group
    search: Group
    context: Group
    context_texts: Group
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        refuse_gold(self, "MemGPT")
        _ = self.ingest_rules, self.main_rules, self.summary_rules, self.core_rules, self.search_rules
        _ = self.context_rules, self.texts
        make_roles(self.roles, self.agent_rules, self.core_rules)

    @property
    def answers(self) -> bool:
        """Whether the agent's own message is the answer; see :class:`memsys.protocol.MayAnswer`."""
        return self.agent_rules.answer == "agent"

    @cached_property
    def ingest_rules(self) -> IngestionRules:
        """Settings of feeding a conversation to the agent."""
        return from_settings(IngestionRules, self.ingest, "memory.ingest")

    @cached_property
    def main_rules(self) -> MainContextRules:
        """The window that is paged."""
        return from_settings(MainContextRules, self.main_context, "memory.main_context")

    @cached_property
    def summary_rules(self) -> SummaryRules:
        """The summary of what was evicted."""
        return from_settings(SummaryRules, self.summary, "memory.summary")

    @cached_property
    def core_rules(self) -> CoreRules:
        """Core memory."""
        return from_settings(CoreRules, self.core, "memory.core")

    @cached_property
    def agent_rules(self) -> AgentRules:
        """The agent's steps."""
        return from_settings(AgentRules, self.agent, "memory.agent")

    @cached_property
    def search_rules(self) -> PagedSearchRules:
        """The search functions."""
        return from_settings(PagedSearchRules, self.search, "memory.search")

    @cached_property
    def context_rules(self) -> MemGptContextRules:
        """Settings of the reader's context."""
        return from_settings(MemGptContextRules, self.context, "memory.context")

    @cached_property
    def texts(self) -> MemGptTexts:
        """Words of the context."""
        return from_settings(MemGptTexts, self.context_texts, "memory.context_texts")
