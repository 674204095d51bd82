"""Final memories in the form that both sides of a parity run share: notes by their place, clusters by their id."""

from collections.abc import Callable, Mapping
from typing import Any

from memsys.vocabulary import Json


def notes_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Notes in the order they were stored; links by place."""
    return {"notes": [_note(note, _places(state["notes"]), None) for note in state["notes"]]}


def clag_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """CLAG's notes with their clusters, and its clusters; tags of a cluster sorted, since the release keeps a set."""
    places = _places(state["notes"])
    home = {member: cluster["cluster_id"] for cluster in state["clusters"] for member in cluster["index"]["ids"]}
    return {
        "notes": [_note(note, places, home.get(note["note_id"])) for note in state["notes"]],
        "clusters": {
            cluster["cluster_id"]: {
                "members": [places[member] for member in cluster["index"]["ids"]],
                "summary": cluster["summary"],
                "tags": sorted(cluster["tags"]),
                "representatives": [places[member] for member in cluster["representatives"]],
            }
            for cluster in state["clusters"]
        },
    }


def _places(notes: Any) -> dict[str, int]:
    return {note["note_id"]: place for place, note in enumerate(notes)}


def _note(note: Mapping[str, Any], places: Mapping[str, int], cluster: str | None) -> dict[str, Json]:
    shown = {key: note[key] for key in ("content", "timestamp", "keywords", "context", "tags")}
    return {**shown, "links": [places[link] for link in note["links"]], "cluster": cluster}


#: Normal form of a system's state, by the name that ``released/`` uses.
STORES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Json]]] = {"clag": clag_store, "notes": notes_store}
