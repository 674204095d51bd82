"""Statistics of a CLAG memory in the run's record (sizes as in the paper's appendix C.1)."""

from collections import Counter

from memsys.clag.cluster import Partition
from memsys.counting import counts_with
from memsys.notes.store import NoteStore
from memsys.vocabulary import Json

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "route.chosen",
    "route.invalid_nearest",
    "route.new_tau",
    "route.new_invalid",
    "evolution.yes",
    "evolution.no",
    "links.created",
    "links.dropped",
    "links.repeated",
    "consolidations",
    "splits",
    "fallback.analyse",
    "fallback.router",
    "fallback.evolve",
    "fallback.profile",
)


def write_statistics(store: NoteStore, partition: Partition, counts: Counter[str], evolved: int) -> dict[str, Json]:
    """Return sizes and counts as JSON values; counts of the read path are in each retrieval's trace."""
    sizes = [len(cluster) for cluster in partition.clusters]
    return {
        "notes": len(store),
        "evolved_notes": evolved,
        "clusters": len(sizes),
        "cluster_sizes": sizes,
        "cluster_size_max": max(sizes, default=0),
        "cluster_size_mean": len(store) / len(sizes) if sizes else 0.0,
        "counts": counts_with(_ALWAYS, counts),
    }
