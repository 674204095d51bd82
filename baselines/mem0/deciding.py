"""From extracted facts to what they change in a scope."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from baselines.mem0.config import Mem0Config
from baselines.mem0.events import Event, Events, event_of_decide, events_of_route
from baselines.mem0.scope import Mem0Scope
from memsys.embedding.contract import Embedder, Vectors
from memsys.facts.batches import batch_turn_ids
from memsys.facts.stored import StoredFact
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.vocabulary import Unit

#: Events that Mem0's ``add`` returns.
VISIBLE = ("add", "update", "delete")


@dataclass(frozen=True, slots=True)
class NewFacts:
    """The facts of a batch for one scope, with their embeddings (facts, d)."""

    texts: tuple[str, ...]
    vectors: Vectors

    @property
    def by_text(self) -> dict[str, Vectors]:
        """Embedding by text."""
        return dict(zip(self.texts, self.vectors, strict=True))


@dataclass(frozen=True, slots=True)
class Decider:
    """Lets the backbone decide what facts change, and changes it.

    A scope's memories are named to the backbone by the numbers of a list, so that an id it makes up changes nothing.
    """

    config: Mem0Config
    llm: LanguageModel
    embedder: Embedder
    roles: Mapping[str, Role]

    async def write(self, scope: Mem0Scope, unit: Unit, facts: NewFacts) -> None:
        """Add, rewrite and delete memories; without a fact nobody is asked."""
        before = _visible(scope)
        if self.config.decisions == "none":
            for text, vector in zip(facts.texts, facts.vectors, strict=True):
                scope.add(text, vector, unit)
                scope.counts["event.add"] += 1
        elif self.config.decisions == "per_fact":
            for number, text in enumerate(facts.texts):
                await self._decide(scope, unit, text, facts.vectors[number], number)
        elif facts.texts:
            await self._route(scope, unit, facts)
        acted = _visible(scope) > before
        scope.counts["writes.non_empty"] += acted
        scope.counts["writes.facts_without_event"] += bool(facts.texts) and not acted

    async def _route(self, scope: Mem0Scope, unit: Unit, facts: NewFacts) -> None:
        """Decide on all facts with one call, also while nothing is stored yet."""
        old = scope.similar(facts.vectors, self.config.similar)
        values = {"stored": _listed(old), "facts": json.dumps(list(facts.texts), ensure_ascii=False, indent=0)}
        reply = await self._ask("route", scope, values, f"{unit.unit_id}:{scope.owner}")
        await self._apply(scope, unit, events_of_route(reply, self.roles["route"].reading), old, facts.by_text)

    async def _decide(self, scope: Mem0Scope, unit: Unit, fact: str, vector: Vectors, number: int) -> None:
        """Decide on one fact, given what those before it have changed."""
        old = scope.similar(vector[None], self.config.similar)
        reply = await self._ask(
            "decide", scope, {"stored": _listed(old), "fact": fact}, f"{unit.unit_id}:{scope.owner}:{number}"
        )
        events = event_of_decide(reply, fact, self.roles["decide"].reading)
        await self._apply(scope, unit, events, old, {fact: vector})

    async def _ask(self, role: str, scope: Mem0Scope, values: Mapping[str, str], key: str) -> Reply:
        reply = await self.llm.ask(self.roles[role], {"owner": scope.subject, **values}, key=key)
        scope.note(role, reply.completion, malformed=reply.malformed)
        return reply

    async def _apply(
        self, scope: Mem0Scope, unit: Unit, events: Events, old: Sequence[StoredFact], vectors: Mapping[str, Vectors]
    ) -> None:
        """Apply the events in their order; ``vectors`` has the batch's facts."""
        scope.counts.update({f"skipped.{reason}": count for reason, count in events.skipped.items()})
        if events.fallback is not None:
            scope.counts[f"events.{events.fallback}"] += 1
        known = dict(vectors)
        new = [e.text for e in events.events if e.kind in ("ADD", "UPDATE") and e.text not in known]
        known.update(zip(new, await self.embedder.embed(new), strict=True))
        ids = {str(number): memory.memory_id for number, memory in enumerate(old)}
        for event in events.events:
            if event.kind == "ADD":  # whatever its id: Mem0 gives the memory one of its own
                self._add(scope, unit, event.text, known[event.text], ids.values(), said=event.text in vectors)
            else:
                scope.counts[self._done(scope, unit, event, ids, known)] += 1

    def _add(
        self, scope: Mem0Scope, unit: Unit, text: str, vector: Vectors, shown: Iterable[str], *, said: bool
    ) -> None:
        """Add a memory; one that repeats a memory the backbone was shown is stored once more, as in Mem0.

        Such a copy came from the turns of that memory, and from this batch's too where the batch ``said`` it: its text
        is one of the facts that were extracted from it.
        """
        stored = filter(None, map(scope.memories.get, shown))
        copied = next((memory for memory in stored if memory.text == text), None)
        turn_ids = None
        if copied is not None:
            turn_ids = tuple(dict.fromkeys((*copied.turn_ids, *(batch_turn_ids(unit) if said else ()))))
        scope.add(text, vector, unit, turn_ids)
        scope.counts["event.add_of_stored"] += copied is not None
        scope.counts["event.add"] += 1

    def _done(
        self, scope: Mem0Scope, unit: Unit, event: Event, ids: Mapping[str, str], vectors: Mapping[str, Vectors]
    ) -> str:
        """Apply an event that adds nothing, and return its counts."""
        if event.kind == "NONE":
            return "event.none"
        memory_id = ids.get(event.alias)
        if memory_id is None:
            return "skipped.unknown_id"
        if memory_id not in scope.memories:
            return "skipped.deleted_id"
        if event.kind == "DELETE":
            scope.delete(memory_id, unit)
            return "event.delete"
        if event.text == scope.memories[memory_id].text:
            return "event.none"
        scope.update(memory_id, event.text, vectors[event.text], unit, self.config.update_timestamp)
        return "event.update"


def _listed(memories: Sequence[StoredFact]) -> str:
    """Write memories as the backbone sees them: numbered from 0, one per line."""
    rows = [json.dumps({"id": str(n), "text": memory.text}, ensure_ascii=False) for n, memory in enumerate(memories)]
    return "[\n" + ",\n".join(rows) + "\n]" if rows else "[]"


def _visible(scope: Mem0Scope) -> int:
    return sum(scope.counts[f"event.{kind}"] for kind in VISIBLE)
