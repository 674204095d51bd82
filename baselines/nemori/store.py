"""All that Nemori keeps: episodes, facts and their indices."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from memsys.embedding.contract import Vectors
from memsys.episodes.nodes import Episode, Fact, joined
from memsys.index.bm25 import BM25Index
from memsys.index.vector import VectorIndex
from memsys.vocabulary import Hit


class NemoriStore:
    """Episodes and facts, each in an index of its own.

    An episode that was merged into another is found no more, but its facts stay, and with it the turns they came from.

    Attributes:
        episodes: by id, oldest first, merged ones too.
        facts: by id, oldest first.
        merged_into: by the id of an episode that was merged, the id of the one that replaced it.
        episode_index: episodes by the text that the config names, without merged ones.
        fact_index: facts by their text.
        episode_words: episodes by title and story, as of the last :meth:`index_words`.
        fact_words: facts by their text, as of then.
    """

    def __init__(self, dimension: int) -> None:
        self.episodes: dict[str, Episode] = {}
        self.facts: dict[str, Fact] = {}
        self.merged_into: dict[str, str] = {}
        self.episode_index = VectorIndex(dimension)
        self.fact_index = VectorIndex(dimension)
        self.episode_words = BM25Index()
        self.fact_words = BM25Index()

    def add_episode(self, episode: Episode, vector: Vectors, *, replaces: str | None = None) -> None:
        """Store an episode with its vector ``(1, d)``; ``replaces`` names the one that was merged into it."""
        self.episodes[episode.episode_id] = episode
        if replaces is not None:
            self.merged_into[replaces] = episode.episode_id
            self.episode_index.remove([replaces])
        self.episode_index.add([episode.episode_id], vector)

    def add_fact(self, fact: Fact, vector: Vectors) -> None:
        """Store a fact with its vector ``(1, d)``."""
        self.facts[fact.fact_id] = fact
        self.fact_index.add([fact.fact_id], vector)

    def index_words(self) -> None:
        """Make the word indices of all that can be found now."""
        self.episode_words, self.fact_words = BM25Index(), BM25Index()
        found = self.episode_index.ids
        self.episode_words.add(found, [self.episodes[episode_id].headline for episode_id in found])
        self.fact_words.add(list(self.facts), [fact.text for fact in self.facts.values()])

    def fact_hit(self, fact_id: str, score: float) -> Hit:
        """Return a fact as a retrieved memory; its turns are those of the episode that it was learnt from."""
        fact = self.facts[fact_id]
        return Hit(fact.text, score, self.episodes[fact.episode_id].turn_ids, fact_id)

    def episode_hit(self, episode_id: str, score: float, *, raw: bool, titled: bool) -> Hit:
        """Return an episode as a retrieved memory, with its messages and its title where they are shown."""
        episode = self.episodes[episode_id]
        text = episode.headline if titled else episode.content
        text = f"{text}\n{joined(episode.messages, dated=False)}" if raw else text
        return Hit(text, score, episode.turn_ids, episode_id)

    def state(self) -> dict[str, Any]:
        """Return everything as JSON values and arrays."""
        return {
            "episodes": [episode.state() for episode in self.episodes.values()],
            "facts": [asdict(fact) for fact in self.facts.values()],
            "merged_into": dict(self.merged_into),
            "episode_index": self.episode_index.state(),
            "fact_index": self.fact_index.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Replace the content by what :meth:`state` returned; :meth:`index_words` then makes the word indices."""
        episodes: Sequence[Episode] = [Episode.from_state(entry) for entry in state["episodes"]]
        self.episodes = {episode.episode_id: episode for episode in episodes}
        self.facts = {entry["fact_id"]: Fact(**entry) for entry in state["facts"]}
        self.merged_into = dict(state["merged_into"])
        self.episode_index.load_state(state["episode_index"])
        self.fact_index.load_state(state["fact_index"])
