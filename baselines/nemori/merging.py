"""Merging a new episode with a stored one of the same event: roles ``decide_merge`` and ``merge``."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from baselines.nemori.roles import TEXTS, NemoriRoles
from baselines.nemori.rules import MergeRules
from baselines.nemori.store import NemoriStore
from memsys.dates import parse_date
from memsys.embedding.contract import Embedder, Vectors
from memsys.episodes.narrating import resolve_timestamp
from memsys.episodes.nodes import Episode, MessageBlock
from memsys.episodes.recovery import loose_object, text_of
from memsys.episodes.rules import EpisodeRules
from memsys.index.vector import SCORE_DECIMALS
from memsys.llm.contract import LanguageModel


@dataclass(frozen=True, slots=True)
class Merged:
    """An episode that describes two, and the id of the stored one of them."""

    episode: Episode
    replaces: str


@dataclass(frozen=True, slots=True)
class Merger:
    """Decides with one call whether episodes are merged, and describes them as one with another.

    Attributes:
        llm: the backbone.
        embedder: of the beginning of a story, where that is searched by.
        roles: ``decide_merge`` and ``merge``.
        rules: which episodes, and how candidates are found and shown.
        episode_rules: which timestamps are believed.
        store: the stored episodes.
        counts: what happened is added here.
    """

    llm: LanguageModel
    embedder: Embedder
    roles: NemoriRoles
    rules: MergeRules
    episode_rules: EpisodeRules
    store: NemoriStore
    counts: Counter[str]

    def due(self, *, first: bool) -> bool:
        """Return whether an episode may be merged; ``first`` says that it is the first of its batch."""
        return self.rules.scope == "every" or (self.rules.scope == "first" and first)

    async def merge(self, episode: Episode, vector: Vectors, key: str) -> Merged | None:
        """Look for a partner of a new episode; at most two calls.

        Fallback of both roles: the episodes stay apart. So they do where ``decide_merge`` names no candidate. A reply
        of ``merge`` that is an object without a story gives both stories, one behind the other.

        Args:
            episode: the new one.
            vector: its vector ``(d,)``.
            key: what the calls are about.
        """
        candidates = await self._candidates(episode, vector)
        if not candidates:
            return None
        partner = await self._decide(episode, candidates, key)
        return None if partner is None else await self._combine(partner, episode, key)

    async def _candidates(self, episode: Episode, vector: Vectors) -> list[Episode]:
        chars = self.rules.query_chars
        if chars is not None and len(self.store.episode_index):
            vector = (await self.embedder.embed([episode.content[:chars]]))[0]
        found = self.store.episode_index.search(vector, self.rules.candidates, least=self.rules.min_cos)
        near = [name for name, cosine in found if round(cosine, SCORE_DECIMALS) >= self.rules.min_cos]
        return [self.store.episodes[name] for name in near]

    async def _decide(self, episode: Episode, candidates: Sequence[Episode], key: str) -> Episode | None:
        shown = "\n".join(f"{each.episode_id}: {_as_text(each, self.rules.shown_chars)}" for each in candidates)
        reply = await self.llm.ask(
            self.roles.decide_merge, {"episode": _as_text(episode), "candidates": shown}, key=key
        )
        found = loose_object(reply, self.roles.decide_merge.reading)
        decision = found.get("decision")
        self.counts["fallback.decide_merge"] += decision not in ("merge", "new")
        if decision != "merge":
            return None
        names = (text_of(found, "target"), text_of(found, "merge_target_id"))  # our prompt's, the authors'
        named = {each.episode_id: each for each in candidates}.get(names[0] or names[1])
        self.counts["merge.unknown_target"] += named is None
        return named

    async def _combine(self, stored: Episode, new: Episode, key: str) -> Merged | None:
        reply = await self.llm.ask(self.roles.merge, {"stored": _as_text(stored), "new": _as_text(new)}, key=key)
        found = loose_object(reply, self.roles.merge.reading)
        content = text_of(found, "content")
        if found and "content" not in found:
            content = f"{stored.content}\n\n{new.content}"
        if not content:
            self.counts["fallback.merge"] += 1
            return None
        self.counts["merges"] += 1
        title = text_of(found, "title") or TEXTS("merged_title", title=stored.title)
        time = self._time(stored, new, text_of(found, "timestamp"))
        messages = (*stored.messages, *new.messages)
        return Merged(Episode(new.episode_id, title, content, time, messages), stored.episode_id)

    def _time(self, stored: Episode, new: Episode, claimed: str) -> str:
        """Return the time of a merged episode: the reply's if it can be parsed, else the earlier of both.

        A time that can be read and is not believed gives way to that of the earliest message.
        """
        first, second = parse_date(stored.time), parse_date(new.time)
        if parse_date(claimed) is None and first is not None and second is not None:
            return stored.time if first <= second else new.time
        block = MessageBlock((*stored.messages, *new.messages), "model", "")
        return resolve_timestamp(block, claimed, self.episode_rules.slack_days)


def _as_text(episode: Episode, chars: int | None = None) -> str:
    """Write time, title and story, the story up to a length."""
    time = f"[{episode.time}] " if episode.time else ""
    return f"{time}{episode.title}\n{episode.content[:chars]}"
