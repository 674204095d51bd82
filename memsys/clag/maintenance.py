"""Making, splitting, refreshing and describing clusters (Algorithms 2 and 3, and the code's consolidation)."""

import asyncio
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from memsys.clag.cluster import Cluster, Partition, ProvisionalRules, frequent_tags, provisional_summary
from memsys.clag.config import ClagConfig
from memsys.clag.geometry import groups, kmeans, mean, nearest_rows
from memsys.clag.profiling import Profile, ask_profile
from memsys.embedding.contract import Embedder, Vectors
from memsys.index.vector import VectorIndex
from memsys.llm.contract import LanguageModel, Role
from memsys.notes.note import Note
from memsys.notes.store import NoteStore


@dataclass(slots=True)
class ClusterMaintainer:
    """Keeps the partition in shape.

    Attributes:
        config: hyperparameters.
        llm: the backbone.
        embedder: shared embedder.
        role: the role ``profile``.
        store: all notes.
        partition: the clusters; changed in place.
        counts: statistics; added to.
        stale: notes whose vector in their cluster's index is older than their context and tags.
        rounds: how often profiles were asked for; part of the calls' keys.
    """

    config: ClagConfig
    llm: LanguageModel
    embedder: Embedder
    role: Role
    store: NoteStore
    partition: Partition
    counts: Counter[str] = field(default_factory=Counter)
    stale: dict[str, None] = field(default_factory=dict)
    rounds: int = 0

    @property
    def rules(self) -> ProvisionalRules:
        """Settings of the description of a cluster without a profile."""
        return self.config.provisional_rules

    async def initialise(self) -> None:
        """Make the first clusters from all notes stored so far (Algorithm 2)."""
        notes = list(self.store)
        ids = [note.note_id for note in notes]
        texts = [note.text("plain") for note in notes] + [note.text("clustered") for note in notes]
        vectors = await self.embedder.embed(texts)
        plain, clustered = vectors[: len(notes)], vectors[len(notes) :]
        labels = await self._kmeans(plain, self.config.n_init)
        for label, members in enumerate(groups(ids, labels)):
            rows = labels == label
            self.partition.put(self._cluster(f"cluster_{label}", members, clustered[rows], mean(plain[rows])))
        await self._describe(self.partition.clusters, keep_samples=False)

    def create_cluster(self, note: Note, vector: Vectors, centroid: Vectors) -> None:
        """Make a cluster of one new note, without a profile until the next consolidation.

        Args:
            note: its only member.
            vector: the note's ``clustered`` embedding, shape (1, d).
            centroid: the note's ``plain`` embedding, shape (d,).
        """
        index = VectorIndex(self.embedder.dimension)
        index.add([note.note_id], vector)
        summary = provisional_summary(note.tags, note.context, self.rules.founder_chars, self.rules)
        cluster_id = f"cluster_new_{len(self.partition)}"
        self.partition.put(Cluster(cluster_id, summary, list(note.tags), centroid, index))

    async def consolidate(self) -> None:
        """Refresh stale vectors, split large clusters, recompute centroids and representatives, describe again."""
        if not self.partition:
            return
        self.counts["consolidations"] += 1
        await self._refresh()
        if self.config.clustering == "kmeans":
            await self._refit()
        else:
            for cluster in self.partition.clusters:
                await self._split(cluster)
        for cluster in self.partition.clusters:
            self.partition.move(cluster.cluster_id, mean(cluster.index.vectors(cluster.members)))
        await self._describe(self.partition.clusters, keep_samples=True)

    async def renew_profiles(self, note_ids: Sequence[str], described: Collection[str]) -> None:
        """Describe the clusters that hold these notes again, but for those that were ``described`` just now."""
        found = (self.partition.home(note_id) for note_id in note_ids)
        homes = dict.fromkeys(home for home in found if home is not None and home not in described)
        if homes:
            self.counts["profiles.renewed"] += len(homes)
            await self._describe([self.partition[home] for home in homes], keep_samples=True)

    async def join(self, note: Note, cluster_id: str, vector: Vectors) -> Sequence[str]:
        """Append a stored note to a cluster, which may move its centroid or make it too large (Algorithm 3).

        Args:
            note: the new member.
            cluster_id: the cluster.
            vector: the note's ``clustered`` embedding, shape (1, d).

        Returns:
            the clusters that it was split into and that were described.
        """
        self.partition.join(note.note_id, cluster_id, vector)
        cluster = self.partition[cluster_id]
        if self.config.centroid_update == "running_mean":
            step = (vector[0] - cluster.centroid) / np.float32(len(cluster))
            self.partition.move(cluster_id, cluster.centroid + step)
        if self.config.split_when != "on_insert" or self.config.clustering == "kmeans":
            return ()
        children = await self._split(cluster)
        if children:
            await self._describe(children, keep_samples=True)
        return [child.cluster_id for child in children]

    async def _refresh(self) -> None:
        stale = [note_id for note_id in self.stale if self.partition.home(note_id) is not None]
        self.stale.clear()
        if not stale:
            return
        vectors = await self.embedder.embed([self.store[note_id].text("clustered") for note_id in stale])
        self.replace_clustered(stale, vectors)

    def replace_clustered(self, note_ids: Sequence[str], vectors: Vectors) -> None:
        """Put new ``clustered`` vectors (n, d) of stored notes into their clusters' indexes."""
        rows: dict[str, list[int]] = {}
        for row, note_id in enumerate(note_ids):
            home = self.partition.home(note_id)
            if home is not None:
                rows.setdefault(home, []).append(row)
        for cluster_id, chosen in rows.items():
            self.partition[cluster_id].index.replace([note_ids[row] for row in chosen], vectors[chosen])

    async def _split(self, parent: Cluster) -> list[Cluster]:
        if len(parent) <= self.config.tau_split:
            return []
        members, vectors = list(parent.members), parent.index.vectors(parent.members)
        labels = await self._kmeans(vectors, 2)
        halves = groups(members, labels)
        if len(halves) < 2:  # all members look the same
            self.counts["splits.impossible"] += 1
            return []
        self.counts["splits"] += 1
        self.partition.drop(parent.cluster_id)
        children = []
        for label, (suffix, half) in enumerate(zip("ab", halves, strict=True)):
            rows = vectors[labels == label]
            child = self._cluster(f"{parent.cluster_id}_{suffix}", half, rows, mean(rows))
            child.summary = self.rules.part.format(summary=parent.summary, part=suffix)
            if self.config.split_tags == "union":
                child.tags = list(dict.fromkeys(tag for note_id in half for tag in self.store[note_id].tags))
            self.partition.put(child)
            children.append(child)
        return children

    async def _refit(self) -> None:
        """Partition all notes again by k-means of their ``clustered`` vectors (``clustering: kmeans``)."""
        rows: dict[str, Vectors] = {}
        for cluster in self.partition.clusters:
            rows.update(zip(cluster.members, cluster.index.vectors(cluster.members), strict=True))
            self.partition.drop(cluster.cluster_id)
        ids = [note.note_id for note in self.store]
        vectors = np.stack([rows[note_id] for note_id in ids])
        labels = await self._kmeans(vectors, self.config.n_init)
        for label, members in enumerate(groups(ids, labels)):
            chosen = vectors[labels == label]
            self.partition.put(self._cluster(f"cluster_{label}", members, chosen, mean(chosen)))

    async def _kmeans(self, vectors: Vectors, clusters: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        seed, restarts = self.config.kmeans_seed, self.config.kmeans_restarts
        return await asyncio.to_thread(kmeans, vectors, clusters, seed=seed, restarts=restarts)

    def _cluster(self, cluster_id: str, members: Sequence[str], vectors: Vectors, centroid: Vectors) -> Cluster:
        index = VectorIndex(self.embedder.dimension)
        index.add(members, vectors)
        notes = [self.store[note_id] for note_id in members]
        tags = frequent_tags(notes, self.config.provisional_tags)
        summary = provisional_summary(tags, notes[0].context, self.rules.initial_chars, self.rules)
        return Cluster(cluster_id, summary, tags, centroid, index)

    async def _describe(self, clusters: Sequence[Cluster], *, keep_samples: bool) -> None:
        """Ask for all profiles at once, each from the members nearest the centroid."""
        self.rounds += 1
        samples = [self._typical(cluster) for cluster in clusters]
        pairs = zip(clusters, samples, strict=True)
        profiles = await asyncio.gather(*(self._profile(cluster, typical) for cluster, typical in pairs))
        for cluster, typical, profile in zip(clusters, samples, profiles, strict=True):
            cluster.summary = profile.summary or cluster.summary
            cluster.tags = list(profile.tags) or cluster.tags
            if keep_samples:
                cluster.representatives = typical
            if profile.fallback:
                self.counts["fallback.profile"] += 1
                self.counts[f"profile.{profile.fallback}"] += 1

    async def _profile(self, cluster: Cluster, samples: Sequence[str]) -> Profile:
        notes = [self.store[note_id] for note_id in samples]
        key = f"profile:{self.rounds}:{cluster.cluster_id}"
        labels, limit = self.config.profile_labels, self.config.profile_tags
        return await ask_profile(self.llm, self.role, notes, labels, key=key, tag_limit=limit)

    def _typical(self, cluster: Cluster) -> list[str]:
        members = cluster.members
        rows = cluster.index.vectors(members)
        return [members[row] for row in nearest_rows(cluster.centroid, rows, self.config.profile_samples)]
