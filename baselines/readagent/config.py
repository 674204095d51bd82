"""Hyperparameters of ReadAgent; the presets are ``conf/memory/readagent*.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass

from baselines.readagent.roles import Replies, make_roles
from baselines.readagent.rules import GistContextRules, GistRules, LookupRules, PageRules, ReadAgentRules
from memsys.llm.contract import Role
from memsys.settings import check_choices, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Group = Mapping[str, Json]


@dataclass(frozen=True)
class ReadAgentConfig(SystemConfig):
    """The choices of paper and notebook, and those that a conversation needs.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        pages: fields of :class:`baselines.readagent.rules.PageRules`.
        gists: fields of :class:`baselines.readagent.rules.GistRules`.
        lookup: fields of :class:`baselines.readagent.rules.LookupRules`.
        context: fields of :class:`baselines.readagent.rules.GistContextRules`.
        replies: marks and page numbers come as ``json`` that is bound to the valid numbers, or as free ``text``.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    pages: Group
    gists: Group
    lookup: Group
    context: Group
    replies: Replies
    roles: Mapping[str, Group]

    def __post_init__(self) -> None:
        refuse_gold(self, "ReadAgent")
        check_choices(self, "memory", replies=Replies)
        self.make_roles()

    @property
    def embeds(self) -> bool:
        """Never; see :class:`memsys.protocol.DeclaresEmbedding`."""
        return False

    def rules(self) -> ReadAgentRules:
        """Return the groups as checked dataclasses.

        Raises:
            ConfigError: an unknown, missing or wrong setting.
        """
        return ReadAgentRules(
            pages=from_settings(PageRules, self.pages, "memory.pages"),
            gists=from_settings(GistRules, self.gists, "memory.gists"),
            lookup=from_settings(LookupRules, self.lookup, "memory.lookup"),
            context=from_settings(GistContextRules, self.context, "memory.context"),
        )

    def make_roles(self) -> Mapping[str, Role]:
        """Return the roles of the backbone.

        Raises:
            ConfigError: a role is missing or unknown, or a setting is wrong.
        """
        return make_roles(self.roles, self.replies, keep_facts=self.rules().gists.keep_facts)
