"""From closed blocks to stored facts: described, extracting, attaching."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from memsys.episodes.learning import FactLearning
from memsys.episodes.narrating import Story
from memsys.episodes.nodes import Episode
from memsys.episodes.writing import EpisodeDraft, EpisodeWriter, PendingExtraction
from memsys.protocol import Parts
from memsys.xmemory.config import XMemoryConfig
from memsys.xmemory.naming import Summary, summarise
from memsys.xmemory.roles import XMemoryRoles
from memsys.xmemory.store import HierarchyStore


class HierarchyConstruction:
    """The steps behind the cutting of the stream.

    Attributes:
        writer: describes blocks.
        waiting: episodes whose facts are still to be extracted, in order.
        counts: what happened.
        objectives: ``f`` of all themes after each stage of the last revision.
    """

    def __init__(self, config: XMemoryConfig, parts: Parts, roles: XMemoryRoles, store: HierarchyStore) -> None:
        self._config, self._parts, self._roles, self._store = config, parts, roles, store
        rules = config.semantic_rules
        self.writer = EpisodeWriter(parts.llm, roles, config.episode_rules, rules.mode == "direct")
        self._facts = FactLearning(
            parts.llm,
            parts.embedder,
            roles,
            store,
            max_known=rules.max_known,
            min_cos=rules.min_cos,
            dedup_cos=rules.dedup_cos,
        )
        self.waiting: list[PendingExtraction] = []
        self.counts: Counter[str] = Counter()
        self.objectives: dict[str, float] = {}

    async def keep(self, drafts: Sequence[EpisodeDraft]) -> None:
        """Store episodes, in order; their facts wait."""
        if not drafts:
            return
        episodes = [self._episode(number, each.story) for number, each in enumerate(drafts)]
        texts = [self._indexed(episode) for episode in episodes]
        vectors = await self._parts.embedder.embed(texts)
        for row, (episode, each) in enumerate(zip(episodes, drafts, strict=True)):
            self._store.add_episode(episode, vectors[row : row + 1])
            self.waiting.append(PendingExtraction(episode.episode_id, each.story.block.key, each.extracted))
            if each.story.fallback:
                self.counts.update(("fallback.episode", f"episode.{each.story.fallback}"))

    def _episode(self, number: int, story: Story) -> Episode:
        episode_id = f"e{len(self._store.episodes) + number}"
        return Episode(episode_id, story.title, story.content, story.time, story.block.messages)

    def _indexed(self, episode: Episode) -> str:
        return episode.content if self._config.episode_rules.vector == "content" else episode.headline

    async def learn(self, waiting: Sequence[PendingExtraction]) -> None:
        """Extract and store the facts of episodes, one episode after the other: a prediction sees all facts before."""
        for each in waiting:
            new = await self._facts.learn(each, self.counts)
            self._store.link_new(new)
            if self._config.theme_rules.schedule == "arrival" and new:
                # Off the event loop: other conversations' calls go on, and this one's boundaries touch no theme.
                await asyncio.to_thread(self._arrange, new)

    def _arrange(self, fact_ids: Sequence[str]) -> None:
        """Put new facts into themes, and split and merge what they ask for."""
        for fact_id in fact_ids:
            self._store.themes.attach(fact_id)
        self._store.themes.revise()

    async def finish(self) -> None:
        """Organise what is not organised yet, link the graphs, name the themes."""
        await asyncio.to_thread(self._organise)
        summaries = await self._summaries()
        self.counts["fallback.theme"] += sum(summary.fallback for summary in summaries.values())
        texts = {theme_id: summary.text for theme_id, summary in summaries.items()}
        self._store.name_themes(texts, await self._parts.embedder.embed(list(texts.values())))

    async def _summaries(self) -> dict[str, Summary]:
        """Ask for all names at once; of a theme that is named several times the last one stays."""
        themes = self._store.themes
        namings = [*themes.namings] or [(theme_id, tuple(facts)) for theme_id, facts in themes.members.items()]
        themes.namings.clear()
        last = {theme_id: number for number, (theme_id, _) in enumerate(namings)}
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    self._summary(members, f"theme:{theme_id}" + (f":{n}" if last[theme_id] != n else ""))
                )
                for n, (theme_id, members) in enumerate(namings)
            ]
        return {theme_id: tasks[last[theme_id]].result() for theme_id in themes.members}

    def _organise(self) -> None:
        themes = self._store.themes
        if self._config.theme_rules.schedule == "end":
            for fact_id in self._store.facts:
                themes.attach(fact_id)
            self.objectives["attached"] = themes.objective()
            for stage, revise in (
                ("split", themes.split_full),
                ("merged_pairs", themes.merge_pairs),
                ("merged_tiny", themes.merge_tiny),
            ):
                revise()
                self.objectives[stage] = themes.objective()
        self.objectives["final"] = themes.objective()
        self._store.link_all()

    async def _summary(self, members: Sequence[str], key: str) -> Summary:
        facts = [self._store.facts[fact_id].text for fact_id in members]
        vectors = self._store.fact_index.vectors(members)
        as_written = self._config.theme_rules.summaries == "as_written"
        return await summarise(self._parts.llm, self._roles.theme, facts, vectors, key=key, as_written=as_written)
