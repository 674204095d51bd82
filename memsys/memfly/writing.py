"""The write path: compare a denoised turn with what is stored, then merge it or append it, and link it (3.3.2)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from memsys.embedding.contract import Embedder
from memsys.memfly.config import MemFlyRules
from memsys.memfly.counts import strength_bin
from memsys.memfly.gating import OPERATION_OF, Judgement, MergeDecision, decide, merged_context
from memsys.memfly.ingest import Denoised
from memsys.memfly.links import Link, LinkRelation
from memsys.memfly.note import MemFlyNote
from memsys.memfly.retrieval import Layers
from memsys.memfly.store import Candidate
from memsys.memfly.update import DuplicateJudge, DuplicateJudgement


@dataclass(slots=True)
class Writing:
    """Changes the graph, one turn at a time.

    Attributes:
        rules: hyperparameters.
        embedder: shared embedder.
        judge: asks the role ``update``.
        layers: the graph.
        counts: statistics; added to.
        turns: turns written so far.
    """

    rules: MemFlyRules
    embedder: Embedder
    judge: DuplicateJudge
    layers: Layers
    counts: Counter[str] = field(default_factory=Counter)
    turns: int = 0

    async def write(self, unit_id: str, new: Denoised) -> bool:
        """Store a turn; returns whether the graph changed."""
        self.counts["fallback.ingest"] += new.malformed
        self.counts["fallback.ingest_context"] += new.context_empty
        if self.rules.ingest.skip_phatic and new.phatic:
            self.counts["route.skipped"] += 1
            return False
        candidates = self._candidates(new)
        judged = await self.judge.judge(unit_id, new, candidates) if candidates else DuplicateJudgement(())
        cosines = {one.position: one.cosine for one in candidates}
        decision = decide(judged.judgements, cosines, self.rules.update, self.rules.ablate)
        self._count(judged, decision, candidates)
        await self._apply(unit_id, new, decision)
        self.turns += 1
        return True

    def _candidates(self, new: Denoised) -> list[Candidate]:
        if self.rules.ablate.update:
            return []
        return self.layers.notes.candidates(new.context, new.keywords, new.context_vector)

    async def _apply(self, unit_id: str, new: Denoised, decision: MergeDecision) -> None:
        """Make all texts first and embed them in one batch; then change the graph without a pause."""
        rules = self.rules.update
        contexts = self._contexts(new, decision)
        vectors = await self.embedder.embed(list(contexts.values())) if contexts else ()
        numbers = self.layers.keywords.link(new.keywords, new.keyword_vectors)
        survivor = self._keep(unit_id, new, decision, numbers)
        for judgement, kind in decision.links:
            self._link(survivor, judgement, conflict=kind == "conflict")
            if kind == "conflict" and rules.annotate_conflicts and rules.conflicts_name_turns:
                self.layers.notes[judgement.candidate].told_by.extend(item.turn_id for item in new.raw)
        for (position, context), vector in zip(contexts.items(), vectors, strict=True):
            self.layers.notes.rewrite(position, context, vector)

    def _contexts(self, new: Denoised, decision: MergeDecision) -> dict[int, str]:
        """Return the new contexts of stored notes, by position: the merged one, and those that get a clause."""
        contexts: dict[int, str] = {}
        if decision.merge is not None:
            old = self.layers.notes[decision.merge.candidate].context
            seen = len(old) <= self.rules.candidates.shown_chars  # what was cut from the prompt cannot be in a reply
            proposed = decision.merge.updated_context if seen else ""
            context, by_model = merged_context(old, new.context, proposed, self.rules.update)
            contexts[decision.merge.candidate] = context
            self.counts["merged_context.model" if by_model else "merged_context.appended"] += 1
        for judgement, kind in decision.links:
            clause = self._clause(new, conflict=kind == "conflict")
            if clause:
                contexts[judgement.candidate] = self.layers.notes[judgement.candidate].context + clause
        return contexts

    def _clause(self, new: Denoised, *, conflict: bool) -> str:
        """Return what is added to an older note's context of the new one; empty where it is left alone."""
        rules = self.rules.update
        if conflict and rules.annotate_conflicts:
            date = next((item.timestamp for item in new.raw if item.timestamp), "")
            return (rules.dated_conflict if date else rules.conflict).format(new=new.context, date=date)
        if not conflict and rules.annotate_links and new.keywords:
            return rules.link.format(keywords=", ".join(new.keywords))
        return ""

    def _keep(self, unit_id: str, new: Denoised, decision: MergeDecision, numbers: Sequence[int]) -> int:
        """Merge the turn into a note or append it as one; returns the note's position."""
        notes = self.layers.notes
        if decision.merge is None:
            self.counts["route.append"] += 1
            return notes.append(MemFlyNote(unit_id, list(new.raw), new.context, []), numbers, new.context_vector)
        self.counts["route.merge"] += 1
        position = decision.merge.candidate
        notes[position].raw.extend(new.raw)
        notes[position].merged += 1
        self.layers.keywords.attach(notes[position], position, numbers)
        return position

    def _link(self, survivor: int, judgement: Judgement, *, conflict: bool) -> None:
        relation: LinkRelation = "CONFLICT" if conflict else "RELATED"
        self.layers.links.add(Link(survivor, judgement.candidate, judgement.strength, relation, self.turns))
        self.counts["links.conflict" if conflict else "links.made"] += 1

    def _count(self, judged: DuplicateJudgement, decision: MergeDecision, candidates: Sequence[Candidate]) -> None:
        self.counts.update(judged.counts)
        self.counts["candidates.none"] += not candidates
        self.counts["candidates.shown"] += len(candidates)
        for judgement, action in zip(judged.judgements, decision.actions, strict=True):
            self.counts[strength_bin(judgement.strength)] += 1
            self.counts[f"relation.{judgement.relation}"] += 1
            agrees = judgement.operation == OPERATION_OF[action]
            self.counts["operation.agrees" if agrees else "operation.differs"] += 1
