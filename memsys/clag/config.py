"""Hyperparameters of CLAG; the presets are in ``conf/memory/clag``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from memsys.clag.cards import CardLabels, CardRules, Profiles
from memsys.clag.cluster import ProvisionalRules
from memsys.clag.geometry import Metric
from memsys.clag.profiling import SampleLabels
from memsys.clag.roles import make_roles
from memsys.notes.context import NoteContextRules, context_rules, note_labels
from memsys.notes.evolve import EvolutionRules
from memsys.settings import check_choices, check_cosines, check_flags, check_minimum, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

ColdStart = Literal["evolve", "buffer"]
Clustering = Literal["agent", "cosine", "kmeans"]
InvalidRoute = Literal["nearest", "new_cluster"]
Scope = Literal["cluster", "global"]
EvolutionCalls = Literal["joint", "per_neighbour"]
NeighbourQuery = Literal["content", "note"]
NewClusterEvolution = Literal["global", "none"]
ProfileUpdate = Literal["consolidate", "on_evolution"]
SplitWhen = Literal["consolidate", "on_insert"]
SplitTags = Literal["frequent", "union"]
CentroidUpdate = Literal["none", "running_mean"]
ReembedGlobal = Literal["on_change", "never"]
ReembedClusters = Literal["on_change", "consolidate"]
Select = Literal["agent", "force_first_three"]
QuerySource = Literal["question", "keywords"]
EmptyKeywords = Literal["question", "empty"]
Merge = Literal["score", "concat"]

_CHOICES = {
    "card_profiles": Profiles,
    "cold_start": ColdStart,
    "clustering": Clustering,
    "candidate_metric": Metric,
    "invalid_route": InvalidRoute,
    "evolution_calls": EvolutionCalls,
    "evolution_scope": Scope,
    "neighbour_query": NeighbourQuery,
    "new_cluster_evolution": NewClusterEvolution,
    "profile_update": ProfileUpdate,
    "split_when": SplitWhen,
    "split_tags": SplitTags,
    "centroid_update": CentroidUpdate,
    "reembed_global": ReembedGlobal,
    "reembed_clusters": ReembedClusters,
    "retrieval_scope": Scope,
    "select": Select,
    "selector_query": QuerySource,
    "search_query": QuerySource,
    "empty_keywords": EmptyKeywords,
    "merge": Merge,
}
_MINIMA = {
    "buffer_size": 1,
    "n_init": 1,
    "kmeans_seed": 0,
    "kmeans_restarts": 1,
    "k_route": 1,
    "k_local": 1,
    "tau_split": 1,
    "consolidate_every": 1,
    "k_stage1": 1,
    "top_n": 1,
    "k_retrieve": 1,
    "card_examples": 1,
    "card_chars": 1,
    "profile_samples": 1,
    "profile_tags": 1,
    "provisional_tags": 1,
}


@dataclass(frozen=True)
class ClagConfig(SystemConfig):
    """Every choice of the paper and of the official code.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        buffer_size: notes before the clusters are initialised (paper: n).
        cold_start: whether buffered notes already ``evolve`` among all notes (code) or only wait (Algorithm 1).
        n_init: clusters of the initial k-means (not scikit-learn's parameter of that name).
        kmeans_seed: random state of every k-means.
        kmeans_restarts: initialisations per k-means.
        clustering: ``agent`` asks the router; ``cosine`` takes the centroid of highest cosine; ``kmeans`` the nearest
            centroid, with a new partition of all notes at each consolidation (Table 5).
        k_route: candidate clusters shown to the router.
        candidate_metric: distance to centroids that picks candidates, in routing and in Stage 1.
        constrain_ids: the reply schemas of router and selector list the candidates.
        invalid_route: what a choice that is not a candidate leads to.
        tau: cosine with the centroid below which a new cluster is made; not used by ``clustering: kmeans``.
        k_local: neighbours in evolution.
        neighbour_query: what neighbours are near to: the embedding of the new note's ``content`` alone (code), or of
            the whole ``note``, as the router has it (eq. 2).
        evolution_calls: ``joint`` asks once for the links and for all neighbours (code, role ``evolve``);
            ``per_neighbour`` once for the links and once for each neighbour (eq. 3 and 4, roles ``link`` and
            ``rewrite``), and nothing where there is no neighbour.
        evolution_scope: where neighbours come from (Table 7). A buffered note that evolves uses all notes.
        new_cluster_evolution: whether a note that founds a cluster evolves among all notes (code) or, as its cluster
            has no other, not at all (section 3.3); used by ``evolution_scope: cluster``.
        evolution_rules: fields of :class:`memsys.notes.evolve.EvolutionRules`.
        tau_split: size above which a cluster is bisected; not used by ``clustering: kmeans``.
        split_when: at consolidation (code) or as soon as a note joins (Algorithm 3).
        split_tags: provisional tags of each half: its own members' most frequent, or all of them (code).
        profile_update: whether the profile of a cluster is renewed at consolidation alone (code), or also whenever
            evolution has rewritten one of its notes (section 3.3).
        centroid_update: whether a centroid follows each note that joins.
        consolidate_every: evolved notes between consolidations.
        consolidate_at_end: consolidate once more after the last note.
        reembed_global: refresh rewritten notes in the index of all notes, or never.
        reembed_clusters: refresh rewritten notes in their cluster's index at once, or at the next consolidation.
        retrieval_scope: ``global`` skips Stage 1 (Table 7).
        select: who picks clusters in Stage 1; ``force_first_three`` takes the first three ids of the alphabet.
        k_stage1: candidate clusters shown to the selector.
        top_n: clusters that the selector may pick.
        selector_without_tags: whether the selector is also asked where the keyword string gives no tags, although all
            notes are searched then whatever it says (code).
        selector_query: what the selector is shown, and what its candidates are nearest to (with the query's tags).
        search_query: what Stage 2 and the search of all notes embed.
        empty_keywords: what replaces an empty keyword string.
        merge: ``score`` ranks the union of the picked clusters; ``concat`` appends each one's best and cuts.
        k_retrieve: hits.
        context: fields of :class:`memsys.notes.context.NoteContextRules`.
        note_labels: fields of :class:`memsys.notes.context.NoteLabels`; what a model reads before each field.
        card_labels: fields of :class:`memsys.clag.cards.CardLabels`; what router and selector read before each line.
        sample_labels: fields of :class:`memsys.clag.profiling.SampleLabels`; the same for the role ``profile``.
        card_profiles: see :class:`memsys.clag.cards.CardRules`.
        card_examples: example notes per candidate card.
        card_chars: characters of each.
        profile_samples: members nearest the centroid that the profile is written from; also the representatives.
        profile_tags: tags kept of a profile.
        provisional_tags: tags of a cluster that has no profile yet.
        provisional: fields of :class:`memsys.clag.cluster.ProvisionalRules`.
        roles: per role the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    buffer_size: int
    cold_start: ColdStart
    n_init: int
    kmeans_seed: int
    kmeans_restarts: int
    clustering: Clustering
    k_route: int
    candidate_metric: Metric
    constrain_ids: bool
    invalid_route: InvalidRoute
    tau: float
    k_local: int
    neighbour_query: NeighbourQuery
    evolution_calls: EvolutionCalls
    evolution_scope: Scope
    new_cluster_evolution: NewClusterEvolution
    evolution_rules: Mapping[str, Json]
    tau_split: int
    split_when: SplitWhen
    split_tags: SplitTags
    profile_update: ProfileUpdate
    centroid_update: CentroidUpdate
    consolidate_every: int
    consolidate_at_end: bool
    reembed_global: ReembedGlobal
    reembed_clusters: ReembedClusters
    retrieval_scope: Scope
    select: Select
    k_stage1: int
    top_n: int
    selector_without_tags: bool
    selector_query: QuerySource
    search_query: QuerySource
    empty_keywords: EmptyKeywords
    merge: Merge
    k_retrieve: int
    context: Mapping[str, Json]
    note_labels: Mapping[str, Json]
    card_labels: Mapping[str, Json]
    sample_labels: Mapping[str, Json]
    card_profiles: Profiles
    card_examples: int
    card_chars: int
    profile_samples: int
    profile_tags: int
    provisional_tags: int
    provisional: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_choices(self, "memory", **_CHOICES)
        check_minimum(self, "memory", **_MINIMA)
        check_flags(self, "memory", "selector_without_tags")
        refuse_gold(self, "CLAG")
        check_cosines(self, "memory", "tau")
        _ = self.evolution, self.context_rules, self.provisional_rules, self.card_rules, self.profile_labels
        make_roles(self.roles)

    @property
    def evolution(self) -> EvolutionRules:
        """Settings of applying replies of the role ``evolve``."""
        given: dict[str, Any] = {**self.evolution_rules, "labels": note_labels(self.note_labels)}
        return from_settings(EvolutionRules, given, "memory.evolution_rules")

    @cached_property
    def provisional_rules(self) -> ProvisionalRules:
        """Settings of the description of clusters without a profile."""
        return from_settings(ProvisionalRules, self.provisional, "memory.provisional")

    @property
    def card_rules(self) -> CardRules:
        """Settings of the cards for router and selector."""
        labels = from_settings(CardLabels, self.card_labels, "memory.card_labels")
        return CardRules(self.card_examples, self.card_chars, labels, self.card_profiles)

    @cached_property
    def profile_labels(self) -> SampleLabels:
        """Settings of the members shown to the role ``profile``."""
        return from_settings(SampleLabels, self.sample_labels, "memory.sample_labels")

    @property
    def context_rules(self) -> NoteContextRules:
        """Settings of the context."""
        return context_rules(self.context, self.k_retrieve, note_labels(self.note_labels))
