"""Stage 2 of retrieval: search inside the picked clusters (paper, section 3.4)."""

from collections.abc import Sequence

from memsys.clag.cluster import Partition
from memsys.clag.config import Merge
from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS
from memsys.notes.store import NoteStore

#: Note id and cosine.
Scored = tuple[str, float]


def search_clusters(
    partition: Partition, cluster_ids: Sequence[str], vector: Vectors, count: int
) -> dict[str, list[Scored]]:
    """Search each cluster on its own; per cluster, in the given order, its ``count`` best notes, best first."""
    return {cluster_id: partition[cluster_id].index.search(vector, count) for cluster_id in cluster_ids}


def merged(found: dict[str, list[Scored]], store: NoteStore, count: int, merge: Merge) -> list[Scored]:
    """Merge the clusters' results.

    ``score`` equals a search of the union: clusters share no note, and each gave its ``count`` best. ``concat`` keeps
    the clusters' order, so that a first cluster with ``count`` notes leaves no room for the others.
    """
    hits = [hit for results in found.values() for hit in results]
    if merge == "score":
        hits.sort(key=lambda hit: (-round(hit[1], SCORE_DECIMALS), store.position(hit[0])))
    return hits[:count]
