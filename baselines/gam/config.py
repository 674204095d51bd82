"""Hyperparameters of GAM; the presets are in ``conf/memory/gam``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.gam.roles import make_roles
from baselines.gam.rules import GamContextRules, GamPageRules, GamTexts, ResearchRules
from memsys.settings import from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class GamConfig(SystemConfig):
    """The choices of the released code, and those that a benchmark needs.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        pages: fields of :class:`baselines.gam.rules.GamPageRules`.
        research: fields of :class:`baselines.gam.rules.ResearchRules`.
        context: fields of :class:`baselines.gam.rules.GamContextRules`.
        texts: fields of :class:`baselines.gam.rules.GamTexts`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    pages: Group
    research: Group
    context: Group
    texts: Group
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        refuse_gold(self, "GAM")
        _ = self.page_rules, self.research_rules, self.context_rules, self.page_texts
        make_roles(self.roles)

    @cached_property
    def page_rules(self) -> GamPageRules:
        """Settings of cutting and numbering pages."""
        return from_settings(GamPageRules, self.pages, "memory.pages")

    @cached_property
    def research_rules(self) -> ResearchRules:
        """Settings of the research of questions."""
        return from_settings(ResearchRules, self.research, "memory.research")

    @cached_property
    def context_rules(self) -> GamContextRules:
        """Settings of the reader's context."""
        return from_settings(GamContextRules, self.context, "memory.context")

    @cached_property
    def page_texts(self) -> GamTexts:
        """Words of pages and prompts."""
        return from_settings(GamTexts, self.texts, "memory.texts")
