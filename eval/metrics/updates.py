"""Update metrics of one question, by lineage: are the newest turns remembered, and overruled ones forgotten?

For questions whose reference names overruled turns (:data:`memsys.vocabulary.OVERRULED`) in addition to its evidence,
which are the newest ones; what else of the conversation is overruled, the run says
(:func:`eval.runs.load.load_updates`). Ours; MemoryAgentBench scores answers alone.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from eval.metrics.evidence import DEPTH

#: Name of the figure of the context, as far as it is known what is there.
IN_CONTEXT = "newest_in_context"


@dataclass(frozen=True, slots=True)
class Update:
    """Inputs of the update metrics of one question.

    Attributes:
        newest: turn ids that hold last; not empty.
        overruled: turn ids that these overrule; not empty.
        retrieved: per memory, best first, the ids of the turns it came from.
        shown: the same of the memories in the context alone; ``None`` where it is not known which these are.
        stored: ids of turns that some entry of the memory came from; ``None`` where its snapshot does not say.
        ranked: whether the memories are the result of a search.
        successors: every overruled turn of the conversation, with the turn that holds in its place; ``None`` where the
            run does not say.
    """

    newest: frozenset[str]
    overruled: frozenset[str]
    retrieved: Sequence[Collection[str]]
    shown: Sequence[Collection[str]] | None
    stored: Collection[str] | None
    ranked: bool
    successors: Mapping[str, str] | None


def newest_stored(update: Update) -> float | None:
    """Return 1 where every newest turn is the origin of some entry of the memory (update correctness of writing)."""
    return None if update.stored is None else float(update.newest <= set(update.stored))


def newest_retrieved(update: Update) -> float | None:
    """Return 1 where the first ten memories hold every newest turn (update correctness of retrieval)."""
    return _holds(update.retrieved[:DEPTH], update.newest) if update.ranked else None


def newest_in_context(update: Update) -> float | None:
    """Return 1 where the memories in the context hold every newest turn (update correctness of the context)."""
    return None if update.shown is None else _holds(update.shown, update.newest)


def staleness(update: Update) -> float | None:
    """Return the share of the first ten memories that are overruled (:func:`is_overruled`), whatever the question asks.

    ``None`` where nothing was retrieved, and where the run does not say what else than the question's is overruled.
    """
    hits = update.retrieved[:DEPTH]
    if not hits or not update.ranked or update.successors is None:
        return None
    return sum(is_overruled(turns, update.successors) for turns in hits) / len(hits)


def staleness_of_question(update: Update) -> float | None:
    """Return the share of the first ten memories made from a turn that the evidence overrules and from no evidence.

    Overruled turns about other things count as fresh. A memory that merged old and new is not stale. ``None`` where
    nothing was retrieved.
    """
    hits = [set(turns) for turns in update.retrieved[:DEPTH]]
    if not hits or not update.ranked:
        return None
    return sum(bool(turns & update.overruled) and not turns & update.newest for turns in hits) / len(hits)


def is_overruled(turns: Collection[str], successors: Mapping[str, str]) -> bool:
    """Return whether a memory came from an overruled turn and not from the turn that replaces it.

    A memory that merged old and new is not.

    Args:
        turns: ids of the turns it came from.
        successors: overruled turn -> the turn that holds in its place.
    """
    return any(turn in successors and successors[turn] not in turns for turn in turns)


def _holds(retrieved: Sequence[Collection[str]], newest: frozenset[str]) -> float:
    return float(newest <= {turn for turns in retrieved for turn in turns})


#: Figures of one question, in table order.
UPDATE_METRICS: Mapping[str, Callable[[Update], float | None]] = {
    "newest_stored": newest_stored,
    "newest_retrieved": newest_retrieved,
    IN_CONTEXT: newest_in_context,
    "staleness": staleness,
    "staleness_of_question": staleness_of_question,
}


def update_scores(update: Update) -> dict[str, float | None]:
    """Return all update scores of a question."""
    return {name: metric(update) for name, metric in UPDATE_METRICS.items()}
