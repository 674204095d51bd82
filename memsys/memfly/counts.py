"""Statistics of a MemFly memory in the run's record."""

from collections import Counter
from collections.abc import Sequence

from memsys.counting import counts_with
from memsys.memfly.retrieval import Layers
from memsys.memfly.topics import Topics
from memsys.vocabulary import Json

#: Counters that the statistics report even at zero.
_ALWAYS = (
    "route.append",
    "route.merge",
    "route.skipped",
    "links.made",
    "links.conflict",
    "candidates.none",
    "merged_context.model",
    "merged_context.appended",
    "operation.agrees",
    "operation.differs",
    "topics.due",
    "fallback.ingest",
    "fallback.ingest_context",
    "fallback.update",
)


def write_statistics(layers: Layers, topics: Topics, counts: Counter[str], min_keywords: int) -> dict[str, Json]:
    """Return sizes and counts as JSON values; counts of the read path are in each retrieval's trace."""
    notes, keywords, links = layers.notes, layers.keywords, layers.links
    sizes = [len(members) for members in topics.members]
    turns = sum(len(note.raw) for note in notes)
    stored = counts_with(_ALWAYS, counts)
    return {
        "notes": len(notes),
        "turns": turns,
        "notes_per_turn": len(notes) / turns if turns else 0.0,
        "largest_note_turns": max((len(note.raw) for note in notes), default=0),
        "notes_without_keyword": sum(not note.keywords for note in notes),
        "linked_notes": links.linked_notes(),
        "links": {"related": links.count("RELATED"), "conflict": links.count("CONFLICT")},
        "keywords": len(keywords),
        "keyword_pairs": keywords.edges,
        "topics": len(sizes),
        "topic_sizes": _sizes(sizes),
        "undersized_topics": sum(size < min_keywords for size in sizes),
        "counts": stored,
    }


def _sizes(sizes: Sequence[int]) -> dict[str, Json]:
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    return {"min": min(sizes, default=0), "mean": mean, "max": max(sizes, default=0)}


def strength_bin(strength: float) -> str:
    """Return the name of a strength's bin of a tenth; 1 counts to the last."""
    return f"strength.{min(int(round(strength * 10, 6)), 9) / 10:.1f}"
