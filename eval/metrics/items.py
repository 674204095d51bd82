"""Evidence by items: what a data set's gold names as a whole, such as a dialogue, is found where any turn of it is.

The figures of :mod:`eval.metrics.evidence` with items in place of turns, for references that name their items
(:data:`EVIDENCE_ITEMS`). By turns a dialogue of fifteen lines is fifteen gold turns, of which ten memories hold ten at
most.
"""

from collections.abc import Mapping, Sequence

from eval.metrics.evidence import EVIDENCE_METRICS, evidence_scores, rank_by_lineage

#: Key of ``Reference.extra``: gold item -> ids of its turns.
EVIDENCE_ITEMS = "evidence_items"
#: The same where items that tell the same thing are one, such as an event and the dialogues that retell it.
LENIENT_ITEMS = "evidence_items_lenient"
#: What ends the names of the figures, by the key of their items.
ITEM_SUFFIXES: Mapping[str, str] = {EVIDENCE_ITEMS: "_items", LENIENT_ITEMS: "_items_lenient"}
#: Names of the figures.
ITEM_METRICS: tuple[str, ...] = tuple(
    f"{name}{suffix}" for suffix in ITEM_SUFFIXES.values() for name in EVIDENCE_METRICS
)


def item_scores(
    retrieved: Sequence[Sequence[str]], items: Mapping[str, Sequence[str]], suffix: str, *, ranked: bool = True
) -> dict[str, float | None]:
    """Return all scores of one question, ``None`` where there is no gold or nothing was ranked.

    Args:
        retrieved: per memory, best first, the ids of the turns it came from.
        items: gold item -> ids of its turns.
        suffix: of the names.
        ranked: see :class:`memsys.vocabulary.Retrieval`.
    """
    item_of = {turn_id: item for item, turns in items.items() for turn_id in turns}
    origins = [[item_of.get(turn_id, "") for turn_id in memory] for memory in retrieved]
    return evidence_scores(rank_by_lineage(origins, list(items)) if ranked else None, suffix)
