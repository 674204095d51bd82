"""CLAG's and A-Mem's released code as a worker: their agent, driven as their own driver drives it.

dmis-lab/CLAG is a fork of WujiangXu/A-mem, and both have the same classes.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum, in the order in which they are imported; the last
        one is their driver.
    attributes: of their ``AgenticMemorySystem``, with the values that they get.
    retrieve_k: number of hits.

Replaced are ``sentence_transformers`` (vectors come from the embedder's address, so that both sides of a parity run
embed alike) and the packages that the released files import and that nothing here calls. The order of the two options
of category 5, which the releases draw without a seed, is the one that the question gives.
"""

import json
import random
import sys
import types
from collections.abc import Sequence
from typing import Any

from released_code import AbsentModule, EndpointEmbedder, ReleasedWorker, load, prepare, set_attribute

#: Imported by the released files, called by nothing that runs here.
UNUSED = (
    "rank_bm25", "transformers", "nltk", "litellm", "requests", "torch", "matplotlib", "ollama", "load_dataset", "utils"
)  # fmt: skip


class _Encoder:
    """A ``SentenceTransformer`` that asks the endpoint; vectors are float32 arrays as there."""

    embedder: EndpointEmbedder

    def __init__(self, *given: Any, **named: Any) -> None:
        """Do nothing: there is no model to load."""

    def encode(self, texts: Sequence[str], **named: Any) -> Any:
        import numpy as np

        return np.array(self.embedder.embed(texts), dtype=np.float32)


class Worker(ReleasedWorker):
    """The authors' agent for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        encoders: Any = types.ModuleType("sentence_transformers")
        encoders.SentenceTransformer, encoders.util = _Encoder, AbsentModule("sentence_transformers.util")
        sys.modules |= {"sentence_transformers": encoders, "sentence_transformers.util": encoders.util}
        _Encoder.embedder = EndpointEmbedder(opening)
        *_, driver = [load(name, path) for name, path in settings["files"].items()]
        self._read = getattr(driver, "parse_plain_text_answer", _read_json)
        agent = getattr(driver, "RobustAdvancedMemAgent", None) or driver.advancedMemAgent
        self._agent = agent(opening["llm"]["model"], "openai", settings["retrieve_k"], 0.5)
        self._system = self._agent.memory_system
        for name, value in settings["attributes"].items():
            set_attribute(self._system, name, value)

    def add(self, unit: dict[str, Any]) -> list[dict[str, str]]:
        """Add each turn as the driver does."""
        for turn in unit["turns"]:
            self._agent.add_memory(turn["line"], time=turn["date"])
        return []

    def finish(self) -> list[dict[str, str]]:
        """Run the final step of CLAG's driver after a conversation; A-Mem's has none."""
        if _has_clusters(self._system):
            self._system.initialize_clusters_if_needed()
            self._system.consolidate_memories()
        return []

    def export(self) -> list[dict[str, str]]:
        """Return the notes in the order they were added."""
        return [{"memory_id": note.id, "text": note.content} for note in self._system.memories.values()]

    def store(self) -> dict[str, Any]:
        """Return the notes and clusters in the form that parity runs compare; notes are named by their place."""
        places = {note_id: place for place, note_id in enumerate(self._system.memories)}
        found: dict[str, Any] = {"notes": [_note(note) for note in self._system.memories.values()]}
        if _has_clusters(self._system):
            found["clusters"] = {name: _cluster(info, places) for name, info in self._system.clusters.items()}
        return found

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as the driver does, and read the reply as it does."""
        random.random = lambda: 0.9 if question["answer_first"] else 0.1
        raw, _, context, *_ = self._agent.answer_question(question["text"], question["category"], question["answer"])
        return {"prediction": self._read(raw), "context": context}


def _read_json(raw: Any) -> Any:
    """Return an answer as the plain drivers read it: the raw reply if parsing fails."""
    try:
        return json.loads(raw)["answer"]
    except (ValueError, TypeError, LookupError):
        return raw


def _has_clusters(system: Any) -> bool:
    return hasattr(system, "clusters")


def _note(note: Any) -> dict[str, Any]:
    return {
        "content": note.content,
        "timestamp": note.timestamp,
        "keywords": note.keywords,
        "context": note.context,
        "tags": note.tags,
        "links": note.links,
        "cluster": getattr(note, "cluster_id", None),
    }


def _cluster(info: dict[str, Any], places: dict[str, int]) -> dict[str, Any]:
    return {
        "members": [places[member] for member in info["members"]],
        "summary": info["summary"],
        "tags": sorted(info["tags"]),
        "representatives": [places[member] for member in info.get("rep_ids", [])],
    }
