"""From drafts of episodes to stored episodes and facts, in order."""

from collections import Counter
from collections.abc import Sequence

from baselines.nemori.config import NemoriConfig
from baselines.nemori.merging import Merger
from baselines.nemori.roles import NemoriRoles
from baselines.nemori.store import NemoriStore
from memsys.embedding.contract import Vectors
from memsys.episodes.learning import FactLearning
from memsys.episodes.nodes import Episode
from memsys.episodes.writing import EpisodeDraft, EpisodeWriter, PendingExtraction
from memsys.protocol import Parts


class EpisodeConstruction:
    """The steps behind the cutting of the stream.

    Storing an episode (which may merge it) and learning its facts are two chains: the first needs no facts, the second
    only the episode as it was stored.

    Attributes:
        writer: describes blocks.
        waiting: episodes whose facts are still to be learnt, in order.
        counts: what happened.
    """

    def __init__(self, config: NemoriConfig, parts: Parts, roles: NemoriRoles, store: NemoriStore) -> None:
        self._parts, self._store = parts, store
        self._episode_rules, self._rules = config.episode_rules, config.fact_rules
        self.counts: Counter[str] = Counter()
        self._merger = Merger(parts.llm, parts.embedder, roles, config.merge_rules, config.episode_rules, store,
                              self.counts)  # fmt: skip
        directly = self._rules.mode == "direct" and config.merge_rules.scope == "never"
        self.writer = EpisodeWriter(parts.llm, roles, config.episode_rules, directly)
        self.waiting: list[PendingExtraction] = []
        self._facts = FactLearning(
            parts.llm,
            parts.embedder,
            roles,
            store,
            max_known=self._rules.max_known,
            min_cos=self._rules.min_cos,
            dedup_cos=self._rules.dedup_cos,
            directly=self._rules.mode == "direct",
            dated=self._rules.dated,
        )

    async def keep(self, drafts: Sequence[EpisodeDraft], *, batch: bool) -> None:
        """Store episodes, in order; their facts wait. They are one batch, or else each is a batch of its own."""
        if not drafts:
            return
        first_number = len(self._store.episodes)
        episodes = [_episode(first_number + row, each) for row, each in enumerate(drafts)]
        vectors = await self._parts.embedder.embed([self._indexed(episode) for episode in episodes])
        for row, (episode, each) in enumerate(zip(episodes, drafts, strict=True)):
            first = row == 0 or not batch
            await self._keep_one(episode, vectors[row : row + 1], each, first=first)

    async def _keep_one(self, episode: Episode, vector: Vectors, draft: EpisodeDraft, *, first: bool) -> None:
        if draft.story.fallback:
            self.counts.update(("fallback.episode", f"episode.{draft.story.fallback}"))
        key, replaces = draft.story.block.key, None
        if self._merger.due(first=first):
            merged = await self._merger.merge(episode, vector[0], key)
            if merged is not None:
                episode, replaces = merged.episode, merged.replaces
                vector = await self._parts.embedder.embed([self._indexed(episode)])
        self._store.add_episode(episode, vector, replaces=replaces)
        if self._rules.mode != "none":
            self.waiting.append(PendingExtraction(episode.episode_id, key, draft.extracted))

    def _indexed(self, episode: Episode) -> str:
        return episode.content if self._episode_rules.vector == "content" else episode.headline

    def take_waiting(self) -> list[PendingExtraction]:
        """Return the episodes whose facts are still to be learnt; from now on none waits."""
        waiting, self.waiting = self.waiting, []
        return waiting

    async def learn(self, waiting: Sequence[PendingExtraction]) -> None:
        """Learn the facts of episodes, one episode after the other: a prediction sees all facts before."""
        for each in waiting:
            await self._facts.learn(each, self.counts)


def _episode(number: int, draft: EpisodeDraft) -> Episode:
    story = draft.story
    return Episode(f"e{number}", story.title, story.content, story.time, story.block.messages)
