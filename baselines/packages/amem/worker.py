"""a-mem 0.2.6 as a worker: https://github.com/agiresearch/A-mem, ``AgenticMemorySystem.add_note`` and its Chroma store.

Settings:
    show: how a note is shown to the reader, with {content}, {context}, {keywords} and {tags}.
    linked: notes that a found note is linked to are shown behind it, as `find_related_memories_raw` does.
    cache_size: notes that the package keeps in its own memory.

The package makes its embeddings itself, by sentence-transformers; here the run's embedder makes them. The modules that
only its own embeddings and its other backends need (sentence-transformers, transformers, litellm) are left out. Its
temperature is 1.0 and it names no limit of new tokens: the proxy's holds. A note is made of its own turn; what later
turns change in it (context and tags) is not counted as theirs.
"""

import json
import os
import sys
import types
from importlib.metadata import version

#: Of clients: the run itself waits and tries again.
PATIENT = {"timeout": None, "max_retries": 0}


class Worker:
    """One ``AgenticMemorySystem``."""

    lineage = "changes"

    def __init__(self, opening):
        llm, self._settings = opening["llm"], opening["settings"]
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = llm["base_url"], llm["api_key"]
        _leave_out("sentence_transformers", "SentenceTransformer")
        _leave_out("transformers", "AutoModel", "AutoTokenizer")
        _leave_out("litellm", "completion")
        from agentic_memory import memory_system, retrievers

        retrievers.SentenceTransformerEmbeddingFunction = _embedding_function(opening["embedder"])
        self._system = memory_system.AgenticMemorySystem(
            llm_backend="openai",
            llm_model=llm["model"],
            api_key=llm["api_key"],
            storage_path=f"{opening['folder']}/chroma",
            cache_size=self._settings["cache_size"],
        )
        controller = self._system.llm_controller.llm
        controller.client = controller.client.with_options(**PATIENT)
        self._ids = []

    def describe(self):
        """Name and version."""
        return {"package": "a-mem", "version": version("a-mem")}

    def add(self, unit):
        """Make a note of every turn."""
        made = [self._system.add_note(turn["line"], time=turn["date"]) for turn in unit["turns"]]
        self._ids += made
        return [{"memory_id": one, "change": "add"} for one in made]

    def retrieve(self, query, k):
        """Search; nothing is found for an empty query or before the first write."""
        if not query.strip() or not self._ids:
            return []
        found = self._system.retriever.search(query, k)
        hits = {}
        for name, note, distance in zip(found["ids"][0], found["metadatas"][0], found["distances"][0], strict=True):
            hits.setdefault(name, self._hit(name, note, -distance))
            for link in self._links(note)[:k]:
                linked = self._system.retriever.get_by_id(link) if link not in hits else None
                if linked:
                    hits[link] = self._hit(link, linked, -distance)
        return list(hits.values())

    def _links(self, note):
        """Return the ids of a note's links that name a note; a model may name anything."""
        links = note.get("links") or []
        return [link for link in links if link in self._ids] if self._settings["linked"] else []

    def _hit(self, name, note, score):
        shown = {key: _text(note.get(key)) for key in ("content", "context", "keywords", "tags")}
        text = self._settings["show"].format(**shown)
        return {"memory_id": name, "text": text, "score": score, "date": _text(note.get("timestamp"))}

    def export(self):
        """Return all notes."""
        notes = [(name, self._system.retriever.get_by_id(name)) for name in self._ids]
        return [{"memory_id": name, "text": _text(note["content"]), "metadata": note} for name, note in notes]


def _text(value):
    """Return a note's field as text; the store parses what looks like a number or a list."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value) if isinstance(value, dict) else str(value or "")


def _leave_out(name, *members):
    """Replace a module that the package imports and does not use here."""
    module = types.ModuleType(name)
    for member in members:
        setattr(module, member, None)
    sys.modules.setdefault(name, module)


def _embedding_function(embedder):
    """Return the run's embedder in place of sentence-transformers."""
    from chromadb import EmbeddingFunction
    from openai import OpenAI

    class RunEmbedder(EmbeddingFunction):
        def __init__(self, model_name):
            self._client = OpenAI(base_url=embedder["base_url"], api_key=embedder["api_key"], **PATIENT)

        def __call__(self, input):
            made = self._client.embeddings.create(model=embedder["model"], input=list(input), encoding_format="float")
            return [row.embedding for row in made.data]

    return RunEmbedder
