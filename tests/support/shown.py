"""Which hits a retrieval says that its context shows, held against the context's text."""

from memsys.vocabulary import Retrieval


def places_in_text(retrieval: Retrieval) -> tuple[int, ...]:
    """Places of the hits of which every line stands in the context."""
    there = (all(line in retrieval.context for line in hit.text.splitlines()) for hit in retrieval.hits)
    return tuple(place for place, found in enumerate(there) if found)


def check_shown(retrieval: Retrieval) -> None:
    """Check that a limit kept some hits out, and that those are shown whose text stands in the context."""
    assert retrieval.shown == places_in_text(retrieval)
    assert 0 < len(retrieval.shown) < len(retrieval.hits)
