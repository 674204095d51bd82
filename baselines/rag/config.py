"""Settings of plain retrieval; the presets are in ``conf/memory``: ``rag*``, ``bm25*``, ``hybrid*``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from baselines.rag.chunking import Bound
from memsys.errors import ConfigError
from memsys.notes.roles import note_role
from memsys.settings import check_choices, check_minimum, check_share, from_settings, refuse_gold
from memsys.system_config import SystemConfig
from memsys.vocabulary import Json

PassageUnit = Literal["turn", "chunk"]
Scorer = Literal["dense", "bm25", "hybrid"]
QuerySource = Literal["question", "keywords"]
Order = Literal["rank", "time"]


@dataclass(frozen=True, slots=True)
class Bm25Settings:
    """Constants of Okapi BM25, see :class:`memsys.index.bm25.BM25Index`, and what becomes of passages of score 0.

    ``fill`` takes them, oldest first, where fewer than ``k`` match. Where no word matches, nothing is found.
    """

    k1: float
    b: float
    epsilon: float
    fill: bool


@dataclass(frozen=True, slots=True)
class FusionSettings:
    """Constants of reciprocal rank fusion; see :func:`memsys.index.fusion.fuse`."""

    k: int
    depth: int
    dense_weight: float
    bm25_weight: float


@dataclass(frozen=True)
class RagConfig(SystemConfig):
    """Settings of cutting, finding and showing passages.

    Attributes:
        name: of the preset.
        uses_gold: always false.
        unit: a passage is one turn, or a chunk of whole turns.
        chunk_within: what a chunk may not cross: a ``session``, or a ``record`` of the data set (an article, a snippet,
            a person, an event), which is the session where the set has none.
        chunk_tokens: limit of a chunk in the backbone's tokens, date included; a longer turn is a chunk of its own.
        scorer: ``dense`` cosine, ``bm25``, or ``hybrid`` (reciprocal rank fusion of both).
        k: passages retrieved; ``None`` with ``budget_tokens``.
        budget_tokens: tokens of passages retrieved: best first, up to the first that does not fit; ``None`` with ``k``.
        order: of the passages in the context: by rank, or by time.
        query: what is searched by: the question, or keywords that the backbone makes of it (one call).
        date_in_index: the session's date is part of what is embedded and indexed; the reader always sees it.
        speakers_in_bm25: the words that name the speakers of turns count for BM25; false leaves them out of its index,
            wherever they are. Embedding, question and context keep them.
        bm25: fields of :class:`Bm25Settings`.
        fusion: fields of :class:`FusionSettings`.
        roles: per role (``keywords``) the fields of :class:`memsys.llm.roles.RoleSettings`.
    """

    name: str
    uses_gold: bool
    unit: PassageUnit
    chunk_tokens: int
    chunk_within: Bound
    scorer: Scorer
    k: int | None
    budget_tokens: int | None
    order: Order
    query: QuerySource
    date_in_index: bool
    speakers_in_bm25: bool
    bm25: Mapping[str, Json]
    fusion: Mapping[str, Json]
    roles: Mapping[str, Mapping[str, Json]]

    def __post_init__(self) -> None:
        check_choices(
            self, "memory", unit=PassageUnit, chunk_within=Bound, scorer=Scorer, order=Order, query=QuerySource
        )
        check_minimum(self, "memory", chunk_tokens=1)
        refuse_gold(self, "plain retrieval")
        if (self.k is None) == (self.budget_tokens is None):
            raise ConfigError(
                f"memory.k={self.k} and memory.budget_tokens={self.budget_tokens}: set one of them, the other to null"
            )
        limit = "budget_tokens" if self.k is None else "k"
        check_minimum(self, "memory", **{limit: 1})
        check_minimum(self.bm25_settings, "memory.bm25", k1=0, epsilon=0)
        check_share(self.bm25_settings, "memory.bm25", "b")
        check_minimum(self.fusion_settings, "memory.fusion", k=0, depth=1, dense_weight=0, bm25_weight=0)
        if not self.fusion_settings.dense_weight and not self.fusion_settings.bm25_weight:
            raise ConfigError("memory.fusion.dense_weight=0 and memory.fusion.bm25_weight=0 rank nothing; raise one")
        if set(self.roles) != {"keywords"}:
            raise ConfigError(f"memory.roles has {', '.join(sorted(self.roles)) or 'nothing'}; it must have keywords")
        note_role("keywords", self.roles["keywords"])

    @property
    def embeds(self) -> bool:
        """Unless BM25 alone scores; see :class:`memsys.protocol.DeclaresEmbedding`."""
        return self.scorer != "bm25"

    @cached_property
    def bm25_settings(self) -> Bm25Settings:
        """Constants of BM25."""
        return from_settings(Bm25Settings, self.bm25, "memory.bm25")

    @cached_property
    def fusion_settings(self) -> FusionSettings:
        """Constants of the fusion."""
        return from_settings(FusionSettings, self.fusion, "memory.fusion")

    @property
    def counts_tokens(self) -> bool:
        """Whether passages need to be counted; see :class:`memsys.protocol.CountsTokens`."""
        return self.unit == "chunk" or self.budget_tokens is not None
