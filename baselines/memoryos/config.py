"""Hyperparameters of MemoryOS; the presets are in ``conf/memory/memoryos``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.memoryos.roles import make_roles
from baselines.memoryos.rules import (
    HeatRules,
    LongTermRules,
    MemoryOSContextRules,
    MemoryOSSearchRules,
    MemoryOSTexts,
    MidTermRules,
    PageCut,
    PromptLayout,
    ShortTermRules,
)
from memsys.settings import check_choices, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class MemoryOSConfig(SystemConfig):
    """The choices of paper and released code, and those that a benchmark needs.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        pages: ``pairs`` of what the user says and what is replied, or single ``turns``, which they are in any case
            where only one speaks (data that is not talk). ``released_pairs`` lose turns and cross sessions, as the
            released evaluation's do (:func:`baselines.memoryos.pages.pages_of`).
        short_term: fields of :class:`baselines.memoryos.rules.ShortTermRules`.
        mid_term: fields of :class:`baselines.memoryos.rules.MidTermRules`.
        heat: fields of :class:`baselines.memoryos.rules.HeatRules`.
        long_term: fields of :class:`baselines.memoryos.rules.LongTermRules`.
        retrieve: fields of :class:`baselines.memoryos.rules.MemoryOSSearchRules`.
        context: fields of :class:`baselines.memoryos.rules.MemoryOSContextRules`.
        context_texts: fields of :class:`baselines.memoryos.rules.MemoryOSTexts`.
        prompt_layout: fields of :class:`baselines.memoryos.rules.PromptLayout`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    pages: PageCut
    short_term: Group
    mid_term: Group
    heat: Group
    long_term: Group
    retrieve: Group
    context: Group
    context_texts: Group
    prompt_layout: Group
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        check_choices(self, "memory", pages=PageCut)
        refuse_gold(self, "MemoryOS")
        _ = self.short_term_rules, self.mid_term_rules, self.heat_rules, self.long_term_rules
        _ = self.search_rules, self.context_rules, self.texts, self.layout
        make_roles(self.roles)

    @cached_property
    def short_term_rules(self) -> ShortTermRules:
        """Settings of the short-term queue of pages."""
        return from_settings(ShortTermRules, self.short_term, "memory.short_term")

    @cached_property
    def mid_term_rules(self) -> MidTermRules:
        """Settings of putting pages into segments."""
        return from_settings(MidTermRules, self.mid_term, "memory.mid_term")

    @cached_property
    def heat_rules(self) -> HeatRules:
        """When a segment is hot."""
        return from_settings(HeatRules, self.heat, "memory.heat")

    @cached_property
    def long_term_rules(self) -> LongTermRules:
        """Settings of the long-term memory of the speakers."""
        return from_settings(LongTermRules, self.long_term, "memory.long_term")

    @cached_property
    def search_rules(self) -> MemoryOSSearchRules:
        """Settings of the search."""
        return from_settings(MemoryOSSearchRules, self.retrieve, "memory.retrieve")

    @cached_property
    def context_rules(self) -> MemoryOSContextRules:
        """Settings of the reader's context."""
        return from_settings(MemoryOSContextRules, self.context, "memory.context")

    @cached_property
    def texts(self) -> MemoryOSTexts:
        """Words of the context."""
        return from_settings(MemoryOSTexts, self.context_texts, "memory.context_texts")

    @cached_property
    def layout(self) -> PromptLayout:
        """Pages in prompts, and headings in replies."""
        return from_settings(PromptLayout, self.prompt_layout, "memory.prompt_layout")
