"""Hyperparameters of Mem0 and Mem0g; the presets are ``conf/memory/mem0*.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from baselines.mem0.graph import EntityGraphRules
from baselines.mem0.roles import Decisions, ExtractContext, ExtractPrompt, make_roles, needed_roles
from memsys.errors import ConfigError
from memsys.facts.batches import Scopes
from memsys.facts.stored import UpdateTimestamp
from memsys.llm.contract import Role
from memsys.settings import check_choices, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json


@dataclass(frozen=True)
class Mem0Config(SystemConfig):
    """The choices in which the paper and the released versions differ.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        batch_size: messages of one session per write; each write extracts once for every scope.
        scopes: one memory per speaker of the conversation (of those who speak), or one for all.
        extract_context: what an extraction is shown besides the batch: nothing (code), or a running summary and the
            messages just before (paper).
        history_messages: how many messages just before; used by ``extract_context: history``.
        extract_prompt: whose facts are extracted: ``user`` those of the scope's owner (version 1.0), ``user_today`` the
            same, with ``prompt_date`` as today's date and not the conversation's (as the code does), ``both``
            everybody's (version 0.1.x and paper), ``instructed`` the owner's as self-contained paragraphs with names,
            feelings and dates (the custom instructions of Mem0's own LoCoMo run, which was on the hosted service).
        prompt_date: the date in the extraction's prompt: ``session`` for the batch's date, any other text as it is
            (Mem0 tells the day of the run; name one, so that the run can be repeated).
        max_facts: facts kept of one extraction; null for all.
        decisions: ``batched`` decides on all facts of a write with one call (code), ``per_fact`` with one call each
            (paper), ``none`` adds every fact.
        similar: stored memories found for each fact, which the decision sees.
        update_timestamp: a rewritten memory has the new date alone (code), the old ones, or both.
        top_k: memories retrieved per scope.
        context_max_tokens: tokens of memories and relations shown to the reader; null for no limit.
        graph: fields of :class:`baselines.mem0.graph.EntityGraphRules`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`; those that are not asked are unused.
    """

    name: str
    uses_gold: bool
    batch_size: int
    scopes: Scopes
    extract_context: ExtractContext
    history_messages: int
    extract_prompt: ExtractPrompt
    prompt_date: str
    max_facts: int | None
    decisions: Decisions
    similar: int
    update_timestamp: UpdateTimestamp
    top_k: int
    context_max_tokens: int | None
    graph: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_choices(
            self,
            "memory",
            scopes=Scopes,
            extract_context=ExtractContext,
            extract_prompt=ExtractPrompt,
            decisions=Decisions,
            update_timestamp=UpdateTimestamp,
        )
        check_minimum(self, "memory", batch_size=1, history_messages=0, similar=1, top_k=1)
        for key in ("max_facts", "context_max_tokens"):
            if getattr(self, key) is not None:
                check_minimum(self, "memory", **{key: 1})
        refuse_gold(self, "Mem0")
        if self.extract_context == "history" and self.extract_prompt != "both":
            raise ConfigError(
                f"memory.extract_prompt={self.extract_prompt} with memory.extract_context=history: the paper extracts "
                "from both speakers; set memory.extract_prompt=both"
            )
        self.make_roles()

    @cached_property
    def graph_rules(self) -> EntityGraphRules:
        """Settings of the graph."""
        return from_settings(EntityGraphRules, self.graph, "memory.graph")

    @property
    def needed(self) -> tuple[str, ...]:
        """Names of the roles that are asked."""
        return needed_roles(self.extract_context, self.decisions, graph=self.graph_rules.kept)

    def make_roles(self) -> Mapping[str, Role]:
        """Make the roles that are asked."""
        return make_roles(
            self.roles,
            self.needed,
            extract_prompt=self.extract_prompt,
            extract_context=self.extract_context,
        )
