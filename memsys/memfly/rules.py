"""Groups of hyperparameters, each a mapping of the YAML."""

from dataclasses import dataclass, fields
from typing import Literal

from memsys.errors import ConfigError
from memsys.memfly.links import LinkDirection
from memsys.settings import (
    check_choices,
    check_cosines,
    check_flags,
    check_minimum,
    check_optional,
    check_share,
    check_template,
)

WithoutMerge = Literal["link", "append"]
Order = Literal["chronological", "rank"]
Judged = Literal["union", "shown"]


@dataclass(frozen=True, slots=True)
class Ablation:
    """Parts that are left out (paper, Table 3); all false is the method.

    Attributes:
        update: no candidates, no call of ``update``, no links: every note is appended.
        denoise: a note's context is its raw text; keywords still come from ``ingest``.
        link: links and conflicts are dropped.
        merge: see :attr:`UpdateRules.without_merge`.
        topic: no topics, no pathway through them.
        keyword: no pathway through keywords; the layer still feeds the topics.
        neighbor: no pathway along links, which are still made.
        ier: one retrieval, without drafts and checks.
    """

    update: bool
    denoise: bool
    link: bool
    merge: bool
    topic: bool
    keyword: bool
    neighbor: bool
    ier: bool

    def __post_init__(self) -> None:
        check_flags(self, "memory.ablate", *(field.name for field in fields(self)))


@dataclass(frozen=True, slots=True)
class IngestRules:
    """Settings of making a note from a reply of ``ingest``.

    Attributes:
        max_keywords: keywords kept per turn.
        max_words: longer phrases are dropped.
        reuse_cosine: cosine from which a phrase counts as a stored keyword that is written otherwise.
        reuse_checked: nearest stored keywords that such a phrase is compared with.
        skip_phatic: turns without keywords and with fewer than ``phatic_words`` words are not stored.
        phatic_words: see ``skip_phatic``.
        fallback_letters: of the shortest word that replaces a keyword, where no reply and no capital names one.
    """

    max_keywords: int
    max_words: int
    reuse_cosine: float
    reuse_checked: int
    skip_phatic: bool
    phatic_words: int
    fallback_letters: int

    def __post_init__(self) -> None:
        check_minimum(self, "memory.ingest", max_keywords=1, max_words=1, reuse_checked=1, phatic_words=0)
        check_minimum(self, "memory.ingest", fallback_letters=1)
        check_share(self, "memory.ingest", "reuse_cosine")
        check_flags(self, "memory.ingest", "skip_phatic")


@dataclass(frozen=True, slots=True)
class CandidateRules:
    """Settings of the stored notes that a new one is compared with (paper, 3.3.2: dual sparse-dense indices).

    Attributes:
        dense: notes taken by cosine of contexts.
        sparse: notes taken by BM25 over contexts and keywords.
        kept: notes kept after fusion.
        rrf_k: constant of the fusion.
        min_cosine: a note below it without a lexical match is not a candidate.
        k1: of BM25.
        b: of BM25.
        epsilon: of BM25.
        shown_chars: characters of a candidate's context that the prompt shows; where that is not all of it, the model's
            merged context is not taken.
    """

    dense: int
    sparse: int
    kept: int
    rrf_k: int
    min_cosine: float
    k1: float
    b: float
    epsilon: float
    shown_chars: int

    def __post_init__(self) -> None:
        counts = {"dense": 0, "sparse": 0, "kept": 1, "rrf_k": 1, "shown_chars": 1}
        check_minimum(self, "memory.candidates", **counts, k1=0, epsilon=0)
        check_cosines(self, "memory.candidates", "min_cosine")
        check_share(self, "memory.candidates", "b")
        if not self.dense and not self.sparse:
            raise ConfigError(
                "memory.candidates.dense=0 and memory.candidates.sparse=0 leave no note to compare with; raise one, or "
                "set memory.ablate.update=true, which says so"
            )


@dataclass(frozen=True, slots=True)
class UpdateRules:
    """Settings of turning replies of ``update`` into operations (paper, equations 6 to 9).

    Attributes:
        tau_merge: redundancy above which notes merge.
        tau_link: complementarity above which they are linked.
        related_can_merge: a strength above ``tau_merge`` merges whatever the relation but a conflict, as the printed
            prompt has it.
        thresholds_in_prompt: show the prompt's printed thresholds (0.8 and 0.5) to the model.
        constrain_ids: the reply schema lists the candidates.
        min_merged_share: a merged context shorter than this share of the old one is not believed; the new context is
            then appended to it.
        annotate_conflicts: the older note's context gets a clause that tells the conflicting fact.
        conflicts_name_turns: a note with such a clause names the clause's turns as evidence too, besides those it
            holds.
        annotate_links: the older note's context names the newer one's keywords, as in the printed prompt's template.
        without_merge: what ``ablate.merge`` makes of notes that would merge.
        merged: context of a merged note where the model's own is not believed; of ``{old}`` and ``{new}``.
        conflict: clause of ``annotate_conflicts``; of the ``{new}`` context.
        dated_conflict: the same where the newer note has a ``{date}``.
        link: clause of ``annotate_links``; of the ``{keywords}``.
    """

    tau_merge: float
    tau_link: float
    related_can_merge: bool
    thresholds_in_prompt: bool
    constrain_ids: bool
    min_merged_share: float
    annotate_conflicts: bool
    conflicts_name_turns: bool
    annotate_links: bool
    without_merge: WithoutMerge
    merged: str
    conflict: str
    dated_conflict: str
    link: str

    def __post_init__(self) -> None:
        check_template("memory.update.merged", self.merged, "old", "new")
        check_template("memory.update.conflict", self.conflict, "new")
        check_template("memory.update.dated_conflict", self.dated_conflict, "new", "date")
        check_template("memory.update.link", self.link, "keywords")
        check_share(self, "memory.update", "tau_merge", "tau_link", "min_merged_share")
        flags = ("related_can_merge", "thresholds_in_prompt", "constrain_ids", "annotate_conflicts", "annotate_links")
        check_flags(self, "memory.update", *flags, "conflicts_name_turns")
        check_choices(self, "memory.update", without_merge=WithoutMerge)


@dataclass(frozen=True, slots=True)
class TopicRules:
    """Settings of the partition of keywords into topics (paper, equation 10).

    Attributes:
        min_keywords: smallest size of a topic; smaller ones join others where there is room.
        max_keywords: largest size; never exceeded.
        resolution: of the modularity.
        randomness: of Leiden's refinement.
        iterations: passes of Leiden, each from the former's result.
        refinements: how often the resolution is doubled within a topic that is too large, before k-means splits it.
        every_notes: new topics are due after so many notes; ``None``: at the end alone. Topics are always those of the
            notes as they are when they are read, so this changes no result, only the count ``topics.due``.
        at_session_end: new topics are due when a session has ended, which is counted likewise.
    """

    min_keywords: int
    max_keywords: int
    resolution: float
    randomness: float
    iterations: int
    refinements: int
    every_notes: int | None
    at_session_end: bool

    def __post_init__(self) -> None:
        check_minimum(self, "memory.topics", min_keywords=1, max_keywords=1, iterations=1, refinements=0)
        check_minimum(self, "memory.topics", resolution=1e-6, randomness=1e-9)
        check_flags(self, "memory.topics", "at_session_end")
        if self.every_notes is not None:
            check_minimum(self, "memory.topics", every_notes=1)
        if self.min_keywords > self.max_keywords:
            raise ConfigError(
                f"memory.topics.min_keywords={self.min_keywords} exceeds max_keywords={self.max_keywords}"
            )


@dataclass(frozen=True, slots=True)
class MemFlyRetrievalRules:
    """The three pathways and their fusion (paper, equations 11 to 18).

    Attributes:
        k_topic: topics searched.
        k_keyword: stored keywords matched per keyword of the question.
        k_final: notes per retrieval.
        rrf_k: constant of the fusion.
        list_cap: notes of each pathway that enter the fusion.
        expand_from: best notes of the first two pathways whose links are followed; ``None`` for all (equation 16).
        link_direction: ``both`` follows links either way; ``stored`` from the newer note to the older alone, the
            literal reading of equations 8 and 17.
        dense_fill: where the pathways give fewer than ``k_final`` notes, take the nearest ones to the question.
    """

    k_topic: int
    k_keyword: int
    k_final: int
    rrf_k: int
    list_cap: int
    expand_from: int | None
    link_direction: LinkDirection
    dense_fill: bool

    def __post_init__(self) -> None:
        counts = ("k_topic", "k_keyword", "k_final", "rrf_k", "list_cap")
        check_minimum(self, "memory.retrieval", **dict.fromkeys(counts, 1))
        check_optional(self, "memory.retrieval", expand_from=1)
        check_choices(self, "memory.retrieval", link_direction=LinkDirection)
        check_flags(self, "memory.retrieval", "dense_fill")


@dataclass(frozen=True, slots=True)
class RefinementRules:
    """Iterative evidence refinement (paper, equations 19 and 20).

    Attributes:
        max_rounds: checks per question, each followed by at most one more retrieval.
        conf_stop: confidence of the check from which the loop ends whatever its verdict; ``None`` for off.
        cap_union: rank the union of all rounds again and keep ``k_context``; otherwise all of it is kept, in the order
            it was found.
        k_context: see ``cap_union``.
        judged: what drafts, checks and sub-queries see: the ``union`` of all rounds (equations 19 and 20), or what
            the reader would be ``shown`` if the loop ended now.
    """

    max_rounds: int
    judged: Judged
    conf_stop: float | None
    cap_union: bool
    k_context: int

    def __post_init__(self) -> None:
        check_minimum(self, "memory.ier", max_rounds=1, k_context=1)
        check_flags(self, "memory.ier", "cap_union")
        check_choices(self, "memory.ier", judged=Judged)
        if self.conf_stop is not None:
            check_share(self, "memory.ier", "conf_stop")


@dataclass(frozen=True, slots=True)
class EvidenceRules:
    """Settings of notes as text, for the reader and for the checks.

    Attributes:
        order: of the notes shown; which are shown goes by rank.
        max_tokens: limit of the text in the backbone's tokens, best notes first; ``None`` for what its window leaves.
        reserve_tokens: tokens of the window that are kept for instructions and reply.
    """

    order: Order
    max_tokens: int | None
    reserve_tokens: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.evidence", order=Order)
        check_minimum(self, "memory.evidence", reserve_tokens=0)
        if self.max_tokens is not None:
            check_minimum(self, "memory.evidence", max_tokens=1)
