"""Hyperparameters of A-Mem; the presets are ``conf/memory/amem*.yaml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from baselines.amem.heuristics import HeuristicRules
from baselines.amem.roles import make_roles
from memsys.notes.context import NoteContextRules, context_rules, note_labels
from memsys.notes.evolve import EvolutionRules
from memsys.notes.note import TextFormat
from memsys.settings import check_choices, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

Calls = Literal["joint", "staged"]
Reembed = Literal["on_change", "consolidate", "never"]
QuerySource = Literal["question", "keywords"]
EmptyKeywords = Literal["question", "empty"]

_CHOICES = {
    "calls": Calls,
    "embed_text": TextFormat,
    "consolidated_text": TextFormat,
    "reembed": Reembed,
    "search_query": QuerySource,
    "empty_keywords": EmptyKeywords,
}


@dataclass(frozen=True)
class AmemConfig(SystemConfig):
    """The choices in which the published versions differ, and the corrections of their defects.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        calls: ``joint`` analyses and evolves with one JSON call each; ``staged`` with several free-text calls (the
            "robust" path of March 2026).
        heuristics: fields of :class:`baselines.amem.heuristics.HeuristicRules`; used by ``calls: staged``.
        evolution: off stores analysed notes as they are, without links.
        evolve_alone: ask for an evolution even where there is no neighbour yet (``joint`` versions do).
        k_local: neighbours in evolution.
        evolution_rules: fields of :class:`memsys.notes.evolve.EvolutionRules`.
        embed_text: text under which a new note is indexed; ``metadata`` is the first release's, without the content.
        consolidated_text: text under which consolidation indexes a note.
        reembed: notes that evolution rewrote are indexed again at once, at the next consolidation, or never.
        evo_threshold: evolved notes between consolidations; used by ``reembed: consolidate``.
        consolidate_at_end: consolidate once more after the last note; used by ``reembed: consolidate``.
        search_query: what is searched by: keywords that the backbone makes of the question, or the question itself.
        empty_keywords: what replaces an empty keyword string.
        retrieve_k: hits.
        context: fields of :class:`memsys.notes.context.NoteContextRules`; ``max_links: 0`` shows no
            links, ``max_links: null`` as many as ``retrieve_k``.
        note_labels: fields of :class:`memsys.notes.context.NoteLabels`; what a model reads before each field.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    calls: Calls
    heuristics: Mapping[str, Json]
    evolution: bool
    evolve_alone: bool
    k_local: int
    evolution_rules: Mapping[str, Json]
    embed_text: TextFormat
    consolidated_text: TextFormat
    reembed: Reembed
    evo_threshold: int
    consolidate_at_end: bool
    search_query: QuerySource
    empty_keywords: EmptyKeywords
    retrieve_k: int
    context: Mapping[str, Json]
    note_labels: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_choices(self, "memory", **_CHOICES)
        check_minimum(self, "memory", k_local=1, evo_threshold=1, retrieve_k=1)
        refuse_gold(self, "A-Mem")
        _ = self.rules, self.context_rules, self.heuristic_rules
        make_roles(self.calls, self.roles)

    @property
    def rules(self) -> EvolutionRules:
        """Settings of applying an evolution."""
        given: dict[str, Any] = {**self.evolution_rules, "labels": note_labels(self.note_labels)}
        return from_settings(EvolutionRules, given, "memory.evolution_rules")

    @cached_property
    def heuristic_rules(self) -> HeuristicRules:
        """Settings of the heuristics for missing metadata of staged replies."""
        return from_settings(HeuristicRules, self.heuristics, "memory.heuristics")

    @property
    def context_rules(self) -> NoteContextRules:
        """Settings of the context."""
        return context_rules(self.context, self.retrieve_k, note_labels(self.note_labels))
