"""Hyperparameters of the MemGPT that follows its released code; the preset is ``memgpt_code``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from baselines.memgpt.config import MemGptConfig
from baselines.memgpt.roles import PROMPTS, make_roles
from memsys.errors import ConfigError
from memsys.llm.contract import Role
from memsys.llm.prompt import Prompt


@dataclass(frozen=True)
class MemGptCodeConfig(MemGptConfig):
    """Settings of :class:`baselines.memgpt.config.MemGptConfig`, of which some have one value in the release.

    Raises:
        ConfigError: such a setting has another one.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        fixed = {
            "ingest.mode": (self.ingest_rules.mode != "insert", "session or turn"),
            "core.human": (self.core_rules.human == "whole", "whole"),
            "agent.answer": (self.agent_rules.answer == "agent", "agent"),
            "agent.refuse_repeats": (not self.agent_rules.refuse_repeats, "false"),
            "search.recall": (self.search_rules.recall == "substring", "substring"),
        }
        for key, (holds, wanted) in fixed.items():
            if not holds:
                raise ConfigError(f"memory.{key} must be {wanted}: memgpt_code follows the released agent")

    def make_roles(self) -> Mapping[str, Role]:
        """Make the roles; a question is an event like any other, so that it has the agent's prompt."""
        roles = dict(make_roles(self.roles, self.agent_rules, self.core_rules))
        if self.roles["search"].get("prompt") is None:
            roles["search"] = replace(roles["search"], prompt=Prompt.load(PROMPTS / "agent.txt"))
        return roles
