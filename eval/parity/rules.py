"""Tests of a difference's two values, by the names that ``match`` in ``departures.yaml`` uses."""

from collections.abc import Callable, Mapping
from typing import Any


def links_to_stored_notes(place: str, ours: Any, theirs: Any) -> bool:
    """Ours are their links without those that name no note stored before (``place`` is ``notes.N.links``)."""
    number = int(place.split(".")[1])
    return [link for link in theirs if isinstance(link, int) and 0 <= link < number] == ours


RULES: Mapping[str, Callable[[str, Any, Any], bool]] = {"links_to_stored_notes": links_to_stored_notes}
