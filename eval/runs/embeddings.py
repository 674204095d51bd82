"""Rows of the ledger of embeddings: ``embeddings.jsonl`` of a proxy, and of a run with a paid embedder."""

from dataclasses import dataclass

EMBEDDINGS = "embeddings.jsonl"


@dataclass(frozen=True, slots=True)
class EmbeddingRecord:
    """One request for embeddings: texts, their characters, and the seconds it took.

    ``tokens``: what a provider counted for it and asks money for; 0 where every vector was there already.
    """

    conversation_id: str
    phase: str
    item: str
    texts: int
    characters: int
    seconds: float
    tokens: int = 0
