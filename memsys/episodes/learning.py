"""From an episode that was stored to its facts: those known are looked up, new ones are stored unless they repeat one.

Nemori and xMemory do this alike; what a system does with its new facts is its own.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memsys.embedding.contract import Embedder, Vectors
from memsys.episodes.extraction import EpisodeStatements, extract_by_prediction, extract_directly
from memsys.episodes.nodes import Episode, Fact
from memsys.episodes.roles import EpisodeRoles
from memsys.episodes.writing import PendingExtraction
from memsys.index.vector import SCORE_DECIMALS, VectorIndex
from memsys.llm.contract import LanguageModel


class FactStore(Protocol):
    """Store of episodes and facts.

    Attributes:
        episodes: by id.
        facts: by id, oldest first.
        fact_index: facts by their text.
    """

    episodes: dict[str, Episode]
    facts: dict[str, Fact]
    fact_index: VectorIndex

    def add_fact(self, fact: Fact, vector: Vectors) -> None:
        """Store a fact with its vector ``(1, d)``."""


@dataclass(frozen=True, slots=True)
class FactLearning:
    """Extracts and stores the facts of episodes.

    Attributes:
        llm: the backbone.
        embedder: of facts and headlines.
        roles: ``extract``, ``predict`` and ``calibrate``.
        store: of the conversation.
        max_known: facts that a prediction may use, the nearest to the episode.
        min_cos: least cosine of such a fact with the episode.
        dedup_cos: a fact more similar than this to a stored one is dropped.
        directly: no episode is predicted; else the first one alone is not, as nothing is known before it.
        dated: the messages that a prediction is compared with follow their times.
    """

    llm: LanguageModel
    embedder: Embedder
    roles: EpisodeRoles
    store: FactStore
    max_known: int
    min_cos: float
    dedup_cos: float
    directly: bool = False
    dated: bool = True

    async def learn(self, pending: PendingExtraction, counts: Counter[str]) -> list[str]:
        """Extract and store the facts of an episode, after those of all episodes before it.

        Args:
            pending: the episode; its facts are not asked for where they are there already.
            counts: of what happened, added to.

        Returns:
            Ids of the new facts.
        """
        episode = self.store.episodes[pending.episode_id]
        extracted = pending.extracted or await self._extract(episode, pending.key)
        counts.update(extracted.events)
        return await self._keep(episode, extracted.statements, counts)

    async def _extract(self, episode: Episode, key: str) -> EpisodeStatements:
        if self.directly or not self.store.facts:
            return await extract_directly(self.llm, self.roles, episode, key)
        vector = (await self.embedder.embed([episode.headline]))[0]
        found = self.store.fact_index.search(vector, self.max_known, least=self.min_cos)
        near = [fact_id for fact_id, cosine in found if round(cosine, SCORE_DECIMALS) >= self.min_cos]
        known = [self.store.facts[fact_id].text for fact_id in near]
        return await extract_by_prediction(self.llm, self.roles, episode, known, key, dated=self.dated)

    async def _keep(self, episode: Episode, statements: Sequence[str], counts: Counter[str]) -> list[str]:
        if not statements:
            return []
        vectors = await self.embedder.embed(statements)
        new: list[str] = []
        for row, statement in enumerate(statements):
            if self._is_duplicate(vectors[row]):
                counts["facts.duplicates"] += 1
                continue
            fact = Fact(f"s{len(self.store.facts)}", statement, episode.episode_id, episode.time)
            self.store.add_fact(fact, vectors[row : row + 1])
            new.append(fact.fact_id)
        return new

    def _is_duplicate(self, vector: Vectors) -> bool:
        index = self.store.fact_index
        if not index.may_exceed(vector, self.dedup_cos):
            return False
        closest = index.search(vector, 1, least=self.dedup_cos)
        return bool(closest) and round(closest[0][1], SCORE_DECIMALS) > self.dedup_cos
