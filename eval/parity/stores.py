"""Final memories in the form that both sides of a parity run share: notes by their place, clusters by their id."""

from collections.abc import Callable, Mapping
from typing import Any

from baselines.memoryos.chains import ChainSummaries
from memsys.vocabulary import Json


def notes_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return the notes in the order they were stored; links by place."""
    return {"notes": [_note(note, _places(state["notes"]), None) for note in state["notes"]]}


def clag_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return CLAG's notes with clusters, and its clusters with sorted tags, since the release keeps a set."""
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


def sage_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return each speaker's memories in order of addition, and decisions on facts; thresholds to six places."""
    scopes: dict[str, Json] = {}
    for scope in state["scopes"]:
        owner, counts = scope["owner"], scope["counts"]
        scopes[owner] = {
            "threshold": None if scope["tau"] is None else round(scope["tau"], 6),
            "added": counts.get("route.add", 0),
            "updated": counts.get("route.update", 0),
        }
    return {**mem0_store(state), "scopes": scopes}


def mem0_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return each speaker's memories in the order they were added."""
    return {
        "memories": [
            {"owner": scope["owner"], "text": memory["text"], "timestamp": ", ".join(memory["dates"])}
            for scope in state["scopes"]
            for memory in scope["memories"]
        ]
    }


def xmemory_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return xMemory's episodes and facts in order of storage, with neighbours; themes by their first fact."""
    store = state["store"]
    episodes = {one["episode_id"]: place for place, one in enumerate(store["episodes"])}
    facts = {one["fact_id"]: place for place, one in enumerate(store["facts"])}
    themes: dict[str, Json] = {}
    for theme_id, members in store["themes"]["members"].items():
        places = sorted(facts[member] for member in members)
        themes[f"of_{places[0]}"] = {"facts": list(places), "summary": store["summaries"].get(theme_id, "")}
    return {
        "episodes": [_episode(one) for one in store["episodes"]],
        "facts": [
            {
                "text": one["text"],
                "episode": [episodes[one["episode_id"]]],
                "time": one["time"],
                "nearest": [facts[other] for other, _ in store["fact_edges"].get(one["fact_id"], [])],
            }
            for one in store["facts"]
        ],
        "themes": themes,
    }


def nemori_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return the episodes and facts of Nemori in the order they were stored."""
    store = state["store"]
    episodes = {one["episode_id"]: place for place, one in enumerate(store["episodes"])}
    return {
        "episodes": [_episode(one) for one in store["episodes"]],
        "facts": [
            {"text": one["text"], "episode": [episodes[one["episode_id"]]], "time": one["time"]}
            for one in store["facts"]
        ],
    }


def _episode(episode: Mapping[str, Any]) -> dict[str, Json]:
    lines = [message["line"] for message in episode["messages"]]
    return {**{key: episode[key] for key in ("title", "content", "time")}, "messages": lines}


def lightmem_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return LightMem's facts by their texts (repeated ones numbered), since their order in a store is random."""
    facts: dict[str, Json] = {}
    for fact in sorted(state["facts"], key=lambda one: (one["text"], _time(one), one["speaker"], one["topic"])):
        name, number = fact["text"].replace(".", " "), 1
        while name in facts:
            number += 1
            name = f"{fact['text'].replace('.', ' ')} ({number})"
        facts[name] = {"time": _time(fact), "speaker": fact["speaker"], "topic": fact["topic"]}
    return {"facts": facts}


def _time(fact: Mapping[str, Any]) -> str:
    """Return the time stamp that the update uses, else the session's date."""
    return str(fact.get("moment") or fact["date"])


def gam_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return GAM's pages in the order they were stored, each with its abstract."""
    return {"pages": [{"text": page["text"], "abstract": page["abstract"]} for page in state["pages"]]}


def readagent_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return ReadAgent's pages in order, each with its gist."""
    return {"pages": [{"text": page["text"], "gist": page["gist"]} for page in state["pages"]]}


def memorybank_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return the pieces, summaries and descriptions of MemoryBank's days, in order, and the portrait."""
    days = [
        {
            "date": day["date"],
            "pieces": [one["text"] for one in day["pieces"]],
            "summary": "\n".join(one["text"] for one in day["summaries"]),
            "personality": "\n".join(day["personality"]),
        }
        for day in state["days"]
    ]
    return {"days": days, "portrait": {"portrait": {"text": state["personality"]}}}


def memoryos_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Queue, pages, segments, profile and facts of MemoryOS, each in the order they came; keywords sorted."""
    chains = ChainSummaries("two_later" if "chain_starts" in state else "latest")
    chains.load_state(state)
    places = {page["page_id"]: place for place, page in enumerate(state["pages"])}
    long_term = state["long_term"]
    return {
        "queue": [_page(queued["page"]) for queued in state["queue"]],
        "pages": [
            {**_page(page), "chain": chains.of(page["page_id"]), "read": page["page_id"] in state["read"]}
            for page in state["pages"]
        ],
        "segments": [
            {
                "summary": segment["summary"],
                "keywords": sorted(segment["keywords"]),
                "pages": [places[page] for page in segment["pages"]],
                "interactions": segment["interactions"],
            }
            for segment in state["mid_term"]["segments"]
        ],
        "profile": {"profile": {"text": long_term["profile"]}},
        "user_facts": [{"text": fact["text"], "date": fact["date"]} for fact in long_term["user"]["facts"]],
        "agent_facts": [{"text": fact["text"], "date": fact["date"]} for fact in long_term["agent"]["facts"]],
    }


def _page(page: Mapping[str, Any]) -> dict[str, Json]:
    return {key: page[key] for key in ("user", "agent", "date")}


def memgpt_store(state: Mapping[str, Any]) -> dict[str, Json]:
    """Return MemGPT's core memory, queue and messages as prompts show them, its notes and counts."""
    messages, notes = state["shown_counts"]
    return {
        "core": {"core": {block["name"]: block["text"] for block in state["core"]}},
        "queue": [_queued(message) for message in state["queue"]],
        "recall": [_queued(message) for message in state["log"]],
        "archival": [record["text"] for record in state["archival"]["records"]],
        "counts": {
            "counts": {"total": state["total"], "messages": messages, "notes": notes, "warned": state["alerted"]}
        },
    }


def _queued(message: Mapping[str, Any]) -> str:
    return f"{message['sender']}: {message['text']}"


def _places(notes: Any) -> dict[str, int]:
    return {note["note_id"]: place for place, note in enumerate(notes)}


def _note(note: Mapping[str, Any], places: Mapping[str, int], cluster: str | None) -> dict[str, Json]:
    shown = {key: note[key] for key in ("content", "timestamp", "keywords", "context", "tags")}
    return {**shown, "links": [places[link] for link in note["links"]], "cluster": cluster}


#: Normal form of a system's state, by the name that ``released/`` uses.
STORES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Json]]] = {
    "clag": clag_store,
    "lightmem": lightmem_store,
    "gam": gam_store,
    "mem0": mem0_store,
    "memgpt": memgpt_store,
    "memorybank": memorybank_store,
    "memoryos": memoryos_store,
    "nemori": nemori_store,
    "notes": notes_store,
    "readagent": readagent_store,
    "sage": sage_store,
    "xmemory": xmemory_store,
}
