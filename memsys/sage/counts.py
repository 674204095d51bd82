"""Statistics of a SAGE memory in the run's record."""

from collections import Counter
from collections.abc import Sequence

from memsys.counting import counts_with
from memsys.llm.usage import Usage
from memsys.sage.scope import SageScope
from memsys.vocabulary import Json

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "writes",
    "facts",
    "route.add",
    "route.update",
    "route.noop",
    "exact_duplicates",
    "extract.empty",
    "extract.over_limit",
    "extract.recovered",
    "extract.lost",
    "merge.unchanged",
    "merge.cut",
    "fallback.extract",
    "fallback.merge",
)


def write_statistics(scopes: Sequence[SageScope]) -> dict[str, Json]:
    """Return counts, shares, calls and traces as JSON values, in all and by scope."""
    counts, usage = Counter[str](), Usage()
    for scope in scopes:
        counts.update(scope.counts)
        usage.add(scope.usage)
    return {
        "memories": sum(len(scope.memories) for scope in scopes),
        **shares(counts),
        "counts": _all(counts),
        "add_phase": usage.state(),
        "scopes": [
            {
                "owner": scope.owner,
                "memories": len(scope.memories),
                "merged_memories": sum(memory.merges > 0 for memory in scope.memories.values()),
                **shares(scope.counts),
                "counts": _all(scope.counts),
                "trace": scope.trace,
            }
            for scope in scopes
        ],
    }


def shares(counts: Counter[str]) -> dict[str, float]:
    """Return the share of merged facts: of those stored (``pi_upd``, the paper's) and of all; and of ignored ones."""
    add, update, noop = (counts[f"route.{action}"] for action in ("add", "update", "noop"))
    stored, routed = add + update, add + update + noop
    return {
        "pi_upd": update / stored if stored else 0.0,
        "pi_all": update / routed if routed else 0.0,
        "pi_noop": noop / routed if routed else 0.0,
    }


def _all(counts: Counter[str]) -> dict[str, int]:
    return counts_with(_ALWAYS, counts)
