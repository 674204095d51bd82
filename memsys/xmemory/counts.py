"""Statistics of an xMemory memory in the run's record (paper, section 5.3 and tables 6 to 8)."""

from collections import Counter
from collections.abc import Mapping

from memsys.counting import counts_with
from memsys.vocabulary import Json
from memsys.xmemory.store import HierarchyStore

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "cut.model",
    "cut.limit",
    "cut.session",
    "cut.end",
    "splits.online",
    "splits.batch",
    "merges.pair",
    "merges.tiny",
    "fallback.boundary",
    "fallback.episode",
    "fallback.extract",
    "fallback.predict",
    "fallback.calibrate",
    "fallback.theme",
)


def _reassigned_share(store: HierarchyStore) -> float:
    """Return the share of facts that left their first theme (the paper's dynamic reassignment ratio)."""
    paths = [path for path in store.themes.paths.values() if path]
    return sum(path[0][0] != path[-1][0] for path in paths) / len(paths) if paths else 0.0


def write_statistics(store: HierarchyStore, counts: Counter[str], objectives: Mapping[str, float]) -> dict[str, Json]:
    """Return sizes, the themes that each fact went through, and counts as JSON values.

    ``theme_paths`` holds, fact by fact, the ids of the themes it belonged to, first to last, and ``theme_causes`` why
    it came to each; ``objective`` holds ``f`` of all themes after each stage of their last revision.
    """
    sizes = [len(facts) for facts in store.themes.members.values()]
    return {
        "episodes": len(store.episodes),
        "episode_messages": [len(episode.messages) for episode in store.episodes.values()],
        "facts": len(store.facts),
        "themes": len(sizes),
        "theme_sizes": sizes,
        "facts_per_theme": sum(sizes) / len(sizes) if sizes else 0.0,
        "reassigned_share": _reassigned_share(store),
        "theme_paths": [[entry[0] for entry in store.themes.paths.get(fact_id, ())] for fact_id in store.facts],
        "theme_causes": [[entry[2] for entry in store.themes.paths.get(fact_id, ())] for fact_id in store.facts],
        "objective": dict(objectives),
        "counts": counts_with(_ALWAYS, counts),
    }
