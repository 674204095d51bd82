"""All that xMemory keeps: episodes, facts, their vectors, themes, graphs and summaries."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from memsys.embedding.contract import Vectors
from memsys.episodes.nodes import Episode, Fact, joined
from memsys.index.vector import VectorIndex
from memsys.vocabulary import Hit
from memsys.xmemory.graph import Graph, fact_graph, graph_from, graph_state, newest_edges
from memsys.xmemory.rules import NeighborGraphRules, ThemeRules
from memsys.xmemory.themes import Themes


class HierarchyStore:
    """The hierarchy above the messages.

    Attributes:
        episodes: by id, oldest first.
        facts: by id, oldest first.
        episode_index: episodes by the text that the config names.
        fact_index: facts by their text.
        themes: the partition of the facts.
        fact_edges: neighbour graph of the facts.
        theme_edges: neighbour graph of the themes.
        summaries: text by theme.
        summary_index: themes by their summary.
    """

    def __init__(self, theme_rules: ThemeRules, graph_rules: NeighborGraphRules, dimension: int) -> None:
        self._graph_rules, self._dimension = graph_rules, dimension
        self.episodes: dict[str, Episode] = {}
        self.facts: dict[str, Fact] = {}
        self.episode_index = VectorIndex(dimension)
        self.fact_index = VectorIndex(dimension)
        self.themes = Themes(theme_rules, self.fact_index, dimension)
        self.fact_edges: Graph = {}
        self.theme_edges: Graph = {}
        self.summaries: dict[str, str] = {}
        self.summary_index = VectorIndex(dimension)

    def add_episode(self, episode: Episode, vector: Vectors) -> None:
        """Store an episode with its vector ``(1, d)``."""
        self.episodes[episode.episode_id] = episode
        self.episode_index.add([episode.episode_id], vector)

    def add_fact(self, fact: Fact, vector: Vectors) -> None:
        """Store a fact with its vector ``(1, d)``; it belongs to no theme yet."""
        self.facts[fact.fact_id] = fact
        self.fact_index.add([fact.fact_id], vector)

    def link_new(self, fact_ids: Sequence[str]) -> None:
        """Give new facts their edges, where the graph is not made of all facts at the end."""
        if not self._graph_rules.rebuild and fact_ids:
            self.fact_edges |= newest_edges(self.fact_index, fact_ids, self._graph_rules.facts)

    def link_all(self) -> None:
        """Make the graphs that hold once everything is stored."""
        ids = list(self.facts)
        if self._graph_rules.rebuild:
            self.fact_edges = fact_graph(ids, self.fact_index.vectors(ids), self._graph_rules.facts)
        self.theme_edges = self.themes.space.neighbours(self._graph_rules.themes)

    def name_themes(self, summaries: Mapping[str, str], vectors: Vectors) -> None:
        """Store the summaries of all themes with their vectors ``(themes, d)``."""
        self.summaries = dict(summaries)
        self.summary_index = VectorIndex(self._dimension)
        self.summary_index.add(list(summaries), vectors)

    def fact_hit(self, fact_id: str, score: float) -> Hit:
        """Return a fact as a retrieved memory; its turns are those of its episode."""
        fact = self.facts[fact_id]
        return Hit(fact.text, score, self.episodes[fact.episode_id].turn_ids, fact_id)

    def episode_hit(self, episode_id: str, score: float, *, raw: bool) -> Hit:
        """Return an episode as a retrieved memory, with its messages where they are shown."""
        episode = self.episodes[episode_id]
        text = f"{episode.content}\n{joined(episode.messages, dated=False)}" if raw else episode.content
        return Hit(text, score, episode.turn_ids, episode_id)

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values and arrays."""
        return {
            "episodes": [episode.state() for episode in self.episodes.values()],
            "facts": [asdict(fact) for fact in self.facts.values()],
            "episode_index": self.episode_index.state(),
            "fact_index": self.fact_index.state(),
            "themes": self.themes.state(),
            "fact_edges": graph_state(self.fact_edges),
            "theme_edges": graph_state(self.theme_edges),
            "summaries": dict(self.summaries),
            "summary_index": self.summary_index.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Replace the content by what :meth:`state` returned."""
        episodes = [Episode.from_state(entry) for entry in state["episodes"]]
        self.episodes = {episode.episode_id: episode for episode in episodes}
        self.facts = {entry["fact_id"]: Fact(**entry) for entry in state["facts"]}
        self.episode_index.load_state(state["episode_index"])
        self.fact_index.load_state(state["fact_index"])
        self.themes.load_state(state["themes"])
        self.fact_edges = graph_from(state["fact_edges"])
        self.theme_edges = graph_from(state["theme_edges"])
        self.summaries = dict(state["summaries"])
        self.summary_index.load_state(state["summary_index"])
