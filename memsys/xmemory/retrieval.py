"""Retrieval from themes down to messages (paper, section 3.3); reads a memory and changes nothing in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from memsys.embedding.contract import Embedder, Vectors
from memsys.episodes.context import EpisodeContext
from memsys.index.vector import SCORE_DECIMALS
from memsys.llm.contract import LanguageModel
from memsys.notes.spans import timed
from memsys.vocabulary import Hit, Json, Retrieval
from memsys.xmemory.assembly import write_context
from memsys.xmemory.config import XMemoryConfig
from memsys.xmemory.gate import Admission, Gate
from memsys.xmemory.representatives import edge_weights, scaled, select_representatives
from memsys.xmemory.roles import XMemoryRoles
from memsys.xmemory.store import HierarchyStore
from memsys.xmemory.uncertainty import Coarse, UncertaintyProbe


@dataclass(frozen=True, slots=True)
class StageOneChoice:
    """Result of Stage I: themes and facts in the order of choice, the candidates' cosines with the question.

    ``highest`` is the highest cosine of any fact.
    """

    themes: tuple[str, ...]
    facts: tuple[str, ...]
    cosines: dict[str, float]
    highest: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """Episodes that Stage II looks at, best first, with their cosines with the question."""

    episodes: tuple[str, ...]
    cosines: dict[str, float]


@dataclass(frozen=True, slots=True)
class TopDownRetrieval:
    """Stage I chooses themes, then facts; Stage II admits episodes and expands some of them to messages."""

    config: XMemoryConfig
    llm: LanguageModel
    embedder: Embedder
    roles: XMemoryRoles
    store: HierarchyStore
    gate: Gate = field(init=False)

    def __post_init__(self) -> None:
        rules = self.config.gate_rules
        object.__setattr__(self, "gate", Gate(rules, UncertaintyProbe(self.llm, self.roles.probe, rules.estimator)))

    async def retrieve(self, question: str) -> Retrieval:
        """Find what helps to answer a question."""
        spans: dict[str, float] = {}
        with timed(spans, "embed"):
            vector = (await self.embedder.embed([question]))[0]
        with timed(spans, "select"):
            chosen = self._choose(vector)
        with timed(spans, "search"):
            ranked = self._rank_episodes(chosen, vector)
        with timed(spans, "gate"):
            admission = await self._admit(question, chosen, ranked)
        raw = self._raw(admission)
        with timed(spans, "format"):
            facts = [self.store.facts[fact_id] for fact_id in chosen.facts]
            context = await write_context(
                self.llm, self.config.context_rules, self.config.texts, facts, admission.admitted, raw
            )
        trace = {**self._trace(chosen, ranked, admission, context), "raw": list(raw), "spans": spans}
        hits = self._hits(chosen, ranked, admission, raw)
        return Retrieval(hits, context.text, trace, shown=self._shown(chosen, context))

    def _choose(self, vector: Vectors) -> StageOneChoice:
        """Select representatives among themes, then among the facts they own (Stage I, equation 4)."""
        rules, index = self.config.retrieval_rules, self.store.fact_index
        if not rules.representatives:
            found = index.search(vector, rules.facts)
            owners = dict.fromkeys(self.store.themes.home[fact_id] for fact_id, _ in found)
            facts = tuple(fact_id for fact_id, _ in found)
            return StageOneChoice(tuple(owners)[: rules.themes], facts, dict(found), _first(found))
        pool = index.search(vector, rules.pool)
        themes = self._choose_themes([self.store.themes.home[fact_id] for fact_id, _ in pool], vector)
        candidates = self._candidates(pool, themes, vector)
        chosen = self._select([fact_id for fact_id, _ in candidates], np.array([cosine for _, cosine in candidates]),
                              self.store.fact_edges, rules.facts)  # fmt: skip
        return StageOneChoice(tuple(themes), tuple(chosen), dict(candidates), _first(pool))

    def _choose_themes(self, owners: Sequence[str], vector: Vectors) -> list[str]:
        names = list(dict.fromkeys(owners))
        if not names:
            return []
        cosines = self.store.summary_index.cosines(names, vector)
        place = self.store.summary_index.position
        order = sorted(
            range(len(names)), key=lambda row: (-round(float(cosines[row]), SCORE_DECIMALS), place(names[row]))
        )
        return self._select([names[row] for row in order], cosines[order], self.store.theme_edges,
                            self.config.retrieval_rules.themes)  # fmt: skip

    def _candidates(
        self, pool: Sequence[tuple[str, float]], themes: Sequence[str], vector: Vectors
    ) -> list[tuple[str, float]]:
        """Return the facts of the chosen themes, best first: those in the pool, or all of them."""
        partition, index = self.store.themes, self.store.fact_index
        if not self.config.retrieval_rules.whole_themes:
            return [(fact_id, cosine) for fact_id, cosine in pool if partition.home[fact_id] in themes]
        names = [fact_id for theme_id in themes for fact_id in partition.members[theme_id]]
        cosines = dict(zip(names, index.cosines(names, vector).tolist(), strict=True)) if names else {}
        return sorted(cosines.items(), key=lambda pair: (-round(pair[1], SCORE_DECIMALS), index.position(pair[0])))

    def _select(self, nodes: list[str], relevance: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
                graph: dict[str, list[tuple[str, float]]], budget: int) -> list[str]:  # fmt: skip
        rules = self.config.retrieval_rules
        rows = select_representatives(relevance, edge_weights(nodes, graph), budget=budget, alpha=rules.alpha,
                                      coverage=rules.coverage, normaliser=rules.normaliser)  # fmt: skip
        return [nodes[row] for row in rows]

    def _rank_episodes(self, chosen: StageOneChoice, vector: Vectors) -> Ranked:
        """Rank the chosen facts' episodes and the nearest ones by cosine and by the relevance of their facts."""
        rules, index = self.config.retrieval_rules, self.store.episode_index
        found = dict(index.search(vector, rules.vector_episodes))
        parents: dict[str, list[str]] = {}
        for fact_id in chosen.facts if rules.linked_episodes else ():
            parents.setdefault(self.store.facts[fact_id].episode_id, []).append(fact_id)
        names = sorted({*found, *parents}, key=index.position)
        if not names:
            return Ranked((), {})
        cosines = index.cosines(names, vector)
        support = self._support(chosen, vector)
        ranks = scaled(cosines) + rules.support * np.array(
            [max((support[fact_id] for fact_id in parents.get(name, ())), default=0.0) for name in names]
        )
        order = np.argsort(-np.round(ranks, SCORE_DECIMALS), kind="stable")
        return Ranked(tuple(names[row] for row in order), dict(zip(names, cosines.tolist(), strict=True)))

    def _support(self, chosen: StageOneChoice, vector: Vectors) -> dict[str, float]:
        """Return the chosen facts' cosines, scaled by the range over all facts; its minimum takes a second search."""
        if not chosen.facts:
            return {}
        lowest = -_first(self.store.fact_index.search(-vector, 1))
        values = scaled(np.array([lowest, chosen.highest, *(chosen.cosines[name] for name in chosen.facts)]))[2:]
        return dict(zip(chosen.facts, values.tolist(), strict=True))

    async def _admit(self, question: str, chosen: StageOneChoice, ranked: Ranked) -> Admission:
        """Admit episodes (Stage II); without facts there is no uncertainty, and the nearest episodes are taken."""
        episodes = [self.store.episodes[episode_id] for episode_id in ranked.episodes]
        limit = self.config.retrieval_rules.episodes
        if not chosen.facts:
            return Admission(admitted=episodes[:limit], fallback="facts:none" if episodes else None)
        themes = tuple(self.store.summaries[theme_id] for theme_id in chosen.themes)
        facts = tuple(self.store.facts[fact_id].text for fact_id in chosen.facts)
        return await self.gate.admit(Coarse(question, themes, facts), episodes, limit)

    def _raw(self, admission: Admission) -> tuple[str, ...]:
        """Return the ids of the episodes whose messages are shown."""
        rules = self.config.context_rules
        if self.config.gate_rules.mode == "off":
            return tuple(episode.episode_id for episode in admission.admitted[: rules.raw_first])
        return tuple(admission.expanded[: rules.raw_expanded])

    def _hits(
        self, chosen: StageOneChoice, ranked: Ranked, admission: Admission, raw: Sequence[str]
    ) -> tuple[Hit, ...]:
        """Return the hits: facts by cosine, then episodes in the order of admission."""
        facts = self._by_cosine(chosen)
        names = [episode.episode_id for episode in admission.admitted]
        return (
            *(self.store.fact_hit(name, chosen.cosines[name]) for name in facts),
            *(self.store.episode_hit(name, ranked.cosines[name], raw=name in raw) for name in names),
        )

    def _by_cosine(self, chosen: StageOneChoice) -> list[str]:
        place = self.store.fact_index.position
        return sorted(chosen.facts, key=lambda name: (-round(chosen.cosines[name], SCORE_DECIMALS), place(name)))

    def _shown(self, chosen: StageOneChoice, context: EpisodeContext) -> tuple[int, ...]:
        """Return the positions of the hits in the context, which lists facts in the order of choice."""
        kept = set(chosen.facts[: context.facts])
        facts = (place for place, name in enumerate(self._by_cosine(chosen)) if name in kept)
        return (*facts, *(len(chosen.facts) + place for place in range(context.episodes)))

    def _trace(
        self, chosen: StageOneChoice, ranked: Ranked, admission: Admission, context: EpisodeContext
    ) -> dict[str, Json]:
        return {
            "themes": list(chosen.themes),
            "facts": list(chosen.facts),
            "chosen_themes": len(chosen.themes),
            "chosen_facts": len(chosen.facts),
            "candidate_episodes": list(ranked.episodes),
            "episodes": [episode.episode_id for episode in admission.admitted],
            "expanded": list(admission.expanded),
            "uncertainty": admission.before,
            "probes": list(admission.probes),
            "dropped": context.dropped,
            "fallbacks": [admission.fallback] if admission.fallback else [],
        }


def _first(found: Sequence[tuple[str, float]]) -> float:
    """Return the best cosine of a search; 0 where there is nothing to find."""
    return found[0][1] if found else 0.0
