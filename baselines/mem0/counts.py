"""Statistics of a Mem0 memory in the run's record."""

from collections import Counter
from collections.abc import Sequence

from baselines.mem0.scope import Mem0Scope
from memsys.counting import counts_with
from memsys.llm.usage import Usage
from memsys.vocabulary import Json

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "writes",
    "writes.non_empty",
    "writes.facts_without_event",
    "facts",
    "event.add",
    "event.add_of_stored",
    "event.update",
    "event.delete",
    "event.none",
    "skipped.empty_text",
    "skipped.unknown_id",
    "skipped.deleted_id",
    "skipped.unknown_event",
    "events.recovered",
    "events.lost",
    "extract.empty",
    "extract.over_limit",
    "extract.recovered",
    "extract.lost",
    "fallback.extract",
    "cut.extract",
)


def write_statistics(scopes: Sequence[Mem0Scope], summaries: Usage) -> dict[str, Json]:
    """Return counts, calls and sizes as JSON values, in all and by scope.

    ``non_empty_adds`` counts the adds (a batch into a scope) that changed a memory: what SAGE's Table 8 prints as
    routing calls. All other adds are ``empty_adds``, its EMPTY_RESULT: malformed replies, but also batches without a
    fact, and facts that change nothing.
    """
    counts, usage = Counter[str](), Usage()
    for scope in scopes:
        counts.update(scope.counts)
        usage.add(scope.usage)
    usage.add(summaries)
    memories = sum(len(scope.memories) for scope in scopes)
    return {
        "memories": memories,
        "memories_per_add": memories / counts["writes"] if counts["writes"] else 0.0,
        "rewritten_memories": _rewritten(scopes),
        "non_empty_adds": counts["writes.non_empty"],
        "empty_adds": counts["writes"] - counts["writes.non_empty"],
        "counts": _all(counts),
        "add_phase": usage.state(),
        "scopes": [
            {
                "owner": scope.owner,
                "memories": len(scope.memories),
                "rewritten_memories": _rewritten([scope]),
                "counts": _all(scope.counts),
                "graph": scope.graph.sizes(),
            }
            for scope in scopes
        ],
        **{name: sum(scope.graph.sizes()[name] for scope in scopes) for name in ("nodes", "edges", "invalid_edges")},
    }


def _rewritten(scopes: Sequence[Mem0Scope]) -> int:
    return sum(memory.merges > 0 for scope in scopes for memory in scope.memories.values())


def _all(counts: Counter[str]) -> dict[str, int]:
    return counts_with(_ALWAYS, counts)
