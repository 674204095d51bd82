"""One person's memories, and what was done to them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from baselines.mem0.graph import EntityGraph
from memsys.counting import counter_from, counter_state
from memsys.embedding.contract import Vectors
from memsys.facts.batches import subject
from memsys.facts.extraction import Facts
from memsys.facts.stored import StoredFact, UpdateTimestamp
from memsys.index.vector import VectorIndex
from memsys.llm.usage import Usage
from memsys.vocabulary import Completion, Json, Unit


@dataclass(slots=True)
class Mem0Scope:
    """Memories in the order they were added, with their vectors, their history, counts, and the graph of Mem0g.

    Ids are numbered, not random, so that runs can be compared line by line; the number of a deleted memory is not
    given again.

    Attributes:
        owner: the person, or ``conversation``.
        index: one vector per memory.
        graph: of the owner's entities; empty without Mem0g.
        memories: by id, oldest first.
        added: memories ever added.
        history: each change as Mem0 books it, with the unit that it came from; read by nobody but people.
        counts: of this scope.
        usage: calls for this scope while writing.
    """

    owner: str
    index: VectorIndex
    graph: EntityGraph
    memories: dict[str, StoredFact] = field(default_factory=dict)
    added: int = 0
    history: list[dict[str, Json]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)

    @property
    def subject(self) -> str:
        """Whose memory it is, as prompts say it."""
        return subject(self.owner)

    def similar(self, vectors: Vectors, count: int) -> list[StoredFact]:
        """Return the ``count`` nearest memories of each vector (n, d): each once, in the order they are first seen."""
        seen = dict.fromkeys(memory_id for vector in vectors for memory_id, _ in self.index.search(vector, count))
        return [self.memories[memory_id] for memory_id in seen]

    def add(self, text: str, vector: Vectors, unit: Unit, turn_ids: tuple[str, ...] | None = None) -> None:
        """Store a text with its embedding (d,); ``turn_ids``: the turns that it came from, if not the unit's."""
        memory_id = f"{self.owner}#{self.added}"
        self.memories[memory_id] = StoredFact.of(memory_id, text, unit, turn_ids)
        self.index.add([memory_id], vector[None])
        self.added += 1
        self._book("ADD", memory_id, None, text, unit)

    def update(self, memory_id: str, text: str, vector: Vectors, unit: Unit, timestamp: UpdateTimestamp) -> None:
        """Give a memory another text with its embedding (d,); it stays where it is in the order."""
        memory = self.memories[memory_id]
        self._book("UPDATE", memory_id, memory.text, text, unit)
        memory.rewrite(text, unit, timestamp)
        self.index.replace([memory_id], vector[None])

    def delete(self, memory_id: str, unit: Unit) -> None:
        """Take a memory out."""
        self._book("DELETE", memory_id, self.memories.pop(memory_id).text, None, unit)
        self.index.remove([memory_id])

    def note(self, role: str, completion: Completion, *, malformed: bool) -> None:
        """Count a call, whether its reply was cut, and whether it was malformed."""
        self.usage.note(role, completion)
        self.counts[f"cut.{role}"] += completion.finish_reason == "length"
        self.counts[f"fallback.{role}"] += malformed

    def note_extraction(self, facts: Facts, completion: Completion) -> None:
        """Count a write, its extraction and what that gave."""
        self.note("extract", completion, malformed=facts.fallback is not None)
        self.counts["writes"] += 1
        self.counts["facts"] += len(facts.texts)
        self.counts["extract.empty"] += not facts.texts
        self.counts["extract.over_limit"] += facts.over_limit
        if facts.fallback is not None:
            self.counts[f"extract.{facts.fallback}"] += 1

    def _book(self, event: str, memory_id: str, old: str | None, new: str | None, unit: Unit) -> None:
        self.history.append({"event": event, "memory_id": memory_id, "old": old, "new": new, "unit": unit.unit_id})

    def state(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {
            "owner": self.owner,
            "memories": [memory.state() for memory in self.memories.values()],
            "index": self.index.state(),
            "graph": self.graph.state(),
            "added": self.added,
            "history": [dict(entry) for entry in self.history],
            "counts": counter_state(self.counts),
            "usage": self.usage.state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.memories = {entry["memory_id"]: StoredFact.from_state(entry) for entry in state["memories"]}
        self.index.load_state(state["index"])
        self.graph.load_state(state["graph"])
        self.added = int(state["added"])
        self.history = [dict(entry) for entry in state["history"]]
        self.counts = counter_from(state["counts"])
        self.usage = Usage.from_state(state["usage"])
