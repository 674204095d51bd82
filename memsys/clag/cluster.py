"""Clusters and the partition of the notes into them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from memsys.clag.centroids import Centroids
from memsys.clag.geometry import Metric
from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex
from memsys.notes.note import Note
from memsys.settings import check_minimum, check_template


@dataclass(slots=True)
class Cluster:
    """A topic.

    Attributes:
        cluster_id: ``cluster_<label>`` after initialisation, ``cluster_new_<count>``, or the parent's id with ``_a``
            or ``_b`` after a split.
        summary: one sentence, from the role ``profile`` or a provisional one.
        tags: of the profile.
        centroid: plain mean of vectors, shape (d,).
        index: the members with their ``clustered`` vectors, in the order they joined.
        representatives: up to three members nearest the centroid; empty before the first consolidation.
    """

    cluster_id: str
    summary: str
    tags: list[str]
    centroid: Vectors
    index: VectorIndex
    representatives: list[str] = field(default_factory=list)

    @property
    def members(self) -> Sequence[str]:
        """Note ids in the order they joined."""
        return self.index.ids

    def __len__(self) -> int:
        return len(self.index)

    def state(self) -> dict[str, Any]:
        """Return the cluster as JSON values and arrays."""
        return {
            "cluster_id": self.cluster_id,
            "summary": self.summary,
            "tags": list(self.tags),
            "centroid": self.centroid.copy(),
            "index": self.index.state(),
            "representatives": list(self.representatives),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Cluster":
        """Make the cluster that :meth:`state` described."""
        centroid = np.array(state["centroid"], dtype=np.float32)
        index = VectorIndex(len(centroid))
        index.load_state(state["index"])
        return cls(
            cluster_id=state["cluster_id"],
            summary=state["summary"],
            tags=list(state["tags"]),
            centroid=centroid,
            index=index,
            representatives=list(state["representatives"]),
        )


class Partition:
    """All clusters in the order they were made, and which cluster holds a note."""

    def __init__(self) -> None:
        self._clusters: dict[str, Cluster] = {}
        self._home: dict[str, str] = {}
        self._centroids = Centroids()

    def __len__(self) -> int:
        return len(self._clusters)

    def __contains__(self, cluster_id: str) -> bool:
        return cluster_id in self._clusters

    def __getitem__(self, cluster_id: str) -> Cluster:
        return self._clusters[cluster_id]

    @property
    def clusters(self) -> list[Cluster]:
        """All clusters, oldest first."""
        return list(self._clusters.values())

    def home(self, note_id: str) -> str | None:
        """Return the id of the cluster that holds a note; ``None`` before initialisation."""
        return self._home.get(note_id)

    def put(self, cluster: Cluster) -> None:
        """Add a cluster; its members belong to it from now on."""
        self._clusters[cluster.cluster_id] = cluster
        self._home.update(dict.fromkeys(cluster.members, cluster.cluster_id))
        self._centroids.put(cluster.cluster_id, cluster.centroid)

    def drop(self, cluster_id: str) -> None:
        """Remove a cluster whose members have gone, or go, to others."""
        del self._clusters[cluster_id]
        self._centroids.drop(cluster_id)

    def move(self, cluster_id: str, centroid: Vectors) -> None:
        """Give a cluster another centroid (d,)."""
        self._clusters[cluster_id].centroid = centroid
        self._centroids.put(cluster_id, centroid)

    def join(self, note_id: str, cluster_id: str, vector: Vectors) -> None:
        """Append a note with its ``clustered`` vector of shape (1, d)."""
        self._clusters[cluster_id].index.add([note_id], vector)
        self._home[note_id] = cluster_id

    def nearest(self, vector: Vectors, count: int, metric: Metric) -> list[str]:
        """Return the ids of the ``count`` clusters whose centroids are nearest, nearest first; ties: oldest first."""
        return self._centroids.nearest(vector, count, metric)

    def similarity(self, vector: Vectors, cluster_id: str) -> float:
        """Return the cosine of a vector (d,) with a cluster's centroid."""
        return self._centroids.similarity(vector, cluster_id)

    def state(self) -> list[dict[str, Any]]:
        """Return all clusters as JSON values and arrays."""
        return [cluster.state() for cluster in self._clusters.values()]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Replace the content by what :meth:`state` returned."""
        self._clusters, self._home, self._centroids = {}, {}, Centroids()
        for entry in state:
            self.put(Cluster.from_state(entry))


def frequent_tags(notes: Iterable[Note], limit: int) -> list[str]:
    """Return the most frequent tags, the more frequent first; ties go by first occurrence."""
    return [tag for tag, _ in Counter(tag for note in notes for tag in note.tags).most_common(limit)]


@dataclass(frozen=True, slots=True)
class ProvisionalRules:
    """Settings of the description of a cluster without a profile (``memory.provisional``), for the router.

    Attributes:
        tags: where it has tags, which are filled in.
        nothing: where it has neither tags nor a context.
        part: of each half of a cluster that was split, from the whole's summary and the half's letter.
        initial_chars: of a member's context that stands for missing tags in an initial cluster.
        founder_chars: the same in a cluster that a single note made.
    """

    tags: str
    nothing: str
    part: str
    initial_chars: int
    founder_chars: int

    def __post_init__(self) -> None:
        check_minimum(self, "memory.provisional", initial_chars=0, founder_chars=0)
        check_template("memory.provisional.tags", self.tags, "tags")
        check_template("memory.provisional.nothing", self.nothing)
        check_template("memory.provisional.part", self.part, "summary", "part")


def provisional_summary(tags: Sequence[str], context: str, limit: int, rules: ProvisionalRules) -> str:
    """Describe a cluster that has no profile yet: by its tags, else by a member's context cut to ``limit``."""
    if tags:
        return rules.tags.format(tags=", ".join(tags))
    return context[:limit] or rules.nothing
