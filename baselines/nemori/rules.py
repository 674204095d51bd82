"""Groups of hyperparameters of Nemori, as they are under ``memory.<group>`` in the presets."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from memsys.episodes.context import ContextTexts
from memsys.episodes.rules import BoundaryRules, EpisodeRules
from memsys.settings import check_choices, check_cosines, check_flags, check_minimum, check_optional

Segmentation = Literal["online", "batch"]
MergeScope = Literal["never", "first", "every"]
FactMode = Literal["none", "direct", "predict_calibrate"]
SearchMethod = Literal["vector", "bm25", "hybrid"]


@dataclass(frozen=True, slots=True)
class BatchRules:
    """Settings of segmenting messages batch by batch, with one call each.

    Attributes:
        size: messages of a batch.
        least: messages that must wait before a batch is segmented; fewer become one episode without a call. Where it
            equals ``size`` those of one batch wait, so that this is the end of the stream; where it is below, all
            messages of the stream wait together, as in the code of April 2026, which stores them first.
        clip_chars: a message's line is shown up to this length; ``None`` shows all of it.
        session_cut: a batch ends with a session where one ends in it, instead of in the middle of the next.
    """

    size: int
    least: int
    clip_chars: int | None
    session_cut: bool

    def __post_init__(self) -> None:
        check_minimum(self, "memory.batch", size=1, least=1)
        check_optional(self, "memory.batch", clip_chars=1)
        check_flags(self, "memory.batch", "session_cut")


@dataclass(frozen=True, slots=True)
class MergeRules:
    """Settings of merging a new episode into a stored one.

    Attributes:
        scope: ``never`` merges; ``first`` looks for a partner of the first episode of each batch, ``every`` of each
            episode. With online segmentation each episode is a batch of its own.
        candidates: nearest stored episodes that the backbone chooses from.
        min_cos: least cosine of a candidate; -1 for none.
        query_chars: candidates are those nearest to the beginning of the new story, of this length; ``None`` takes the
            new episode's own vector.
        shown_chars: of a candidate's story.
    """

    scope: MergeScope
    candidates: int
    min_cos: float
    query_chars: int | None
    shown_chars: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.merge", scope=MergeScope)
        check_minimum(self, "memory.merge", candidates=1, shown_chars=1)
        check_cosines(self, "memory.merge", "min_cos")
        check_optional(self, "memory.merge", query_chars=1)


@dataclass(frozen=True, slots=True)
class FactRules:
    """Settings of learning lasting facts from an episode.

    Attributes:
        mode: ``predict_calibrate`` predicts the episode from known facts and keeps what its messages add; ``direct``
            reads facts off the story; ``none`` keeps episodes alone. While no fact is stored, facts are always read
            directly.
        max_known: facts that a prediction may use, the nearest to the episode.
        min_cos: least cosine of such a fact with the episode; -1 for none.
        dedup_cos: a fact more similar than this to a stored one is dropped; 1 drops none.
        dated: the messages that a prediction is compared with follow their times.
    """

    mode: FactMode
    max_known: int
    min_cos: float
    dedup_cos: float
    dated: bool

    def __post_init__(self) -> None:
        check_choices(self, "memory.facts", mode=FactMode)
        check_minimum(self, "memory.facts", max_known=1)
        check_cosines(self, "memory.facts", "min_cos", "dedup_cos")
        check_flags(self, "memory.facts", "dated")


@dataclass(frozen=True, slots=True)
class SearchRules:
    """Settings of the search for episodes and facts, each in a store of their own.

    Attributes:
        method: by cosine, by BM25 (documents without a word of the question are no hits), or both, their first
            ``2 k`` fused by reciprocal rank.
        episodes: hits among the episodes; 0 shows none.
        facts: hits among the facts; 0 shows none.
        rrf_k: constant of the fusion.
    """

    method: SearchMethod
    episodes: int
    facts: int
    rrf_k: int

    def __post_init__(self) -> None:
        check_choices(self, "memory.search", method=SearchMethod)
        check_minimum(self, "memory.search", episodes=0, facts=0, rrf_k=0)


@dataclass(frozen=True, slots=True)
class NemoriContextRules:
    """Settings of the reader's context.

    Attributes:
        raw_first: episodes, from the first, that bring their messages.
        titles: an episode's story follows its title.
        episodes_first: episodes precede facts.
        max_tokens: limit, counted with the backbone's tokenizer; what does not fit is left out from there on. ``None``
            for no limit.
    """

    raw_first: int
    titles: bool
    episodes_first: bool
    max_tokens: int | None

    def __post_init__(self) -> None:
        check_minimum(self, "memory.context", raw_first=0)
        check_flags(self, "memory.context", "titles", "episodes_first")
        check_optional(self, "memory.context", max_tokens=1)


#: Name of each group in the config, and its type.
GROUPS: Mapping[str, Any] = {
    "boundary": BoundaryRules,
    "batch": BatchRules,
    "episode": EpisodeRules,
    "merge": MergeRules,
    "facts": FactRules,
    "search": SearchRules,
    "context": NemoriContextRules,
    "context_texts": ContextTexts,
}
