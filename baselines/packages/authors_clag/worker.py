"""CLAG's released code in a process of its own, driven line by line.

Runs inside ``.venv-packages/authors_clag`` and imports nothing of memsys. One JSON object per line comes in, one goes
out: ``open`` (files of the authors, settings, addresses), ``add`` (a note), ``finish``, ``store``, ``ask`` (a
question). What the authors' code prints goes to standard error.

Replaced are ``sentence_transformers`` (vectors come from the address that ``open`` names, so that both sides embed
alike) and the packages that the released files import and that nothing here calls. The order of the two options of
category 5, which the release draws without a seed, is the one that ``ask`` gives.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import sys
import types
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

#: Imported by the released files, called by nothing that runs here.
UNUSED = (
    "rank_bm25", "transformers", "nltk", "litellm", "requests", "torch", "matplotlib", "ollama", "load_dataset", "utils"
)  # fmt: skip


class _Absent(types.ModuleType):
    """Stands for a module that is not needed: every name in it is one more of these."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self


class _AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of :data:`UNUSED`, whatever is installed."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name.partition(".")[0] in UNUSED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


class _Encoder:
    """A ``SentenceTransformer`` that asks the endpoint; vectors are float32 arrays as there."""

    url = ""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._known: dict[str, Any] = {}

    def encode(self, texts: Sequence[str], **named: Any) -> Any:
        import numpy as np

        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            body = json.dumps({"input": new}).encode()
            request = urllib.request.Request(f"{self.url}/embeddings", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                rows = json.load(reply)["data"]
            self._known |= {text: row["embedding"] for text, row in zip(new, rows, strict=True)}
        return np.array([self._known[text] for text in texts], dtype=np.float32)


def load(name: str, path: str) -> Any:
    """Import a file of the authors under the name by which their other files import it."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Authors:
    """The authors' agent for one conversation."""

    def __init__(self, files: Mapping[str, str], settings: Mapping[str, Any], url: str, retrieve_k: int) -> None:
        sys.meta_path.insert(0, _AbsentFinder())
        encoders: Any = types.ModuleType("sentence_transformers")
        encoders.SentenceTransformer, encoders.util = _Encoder, _Absent("sentence_transformers.util")
        sys.modules |= {"sentence_transformers": encoders, "sentence_transformers.util": encoders.util}
        _Encoder.url = url
        os.environ |= {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        load("CLAG_memory", files["code"])
        self._driver = load("test_CLAG", files["driver"])
        self._agent = self._driver.advancedMemAgent("deterministic", "openai", retrieve_k, 0.5)
        self._system = self._agent.memory_system
        for name, value in settings.items():
            if not hasattr(self._system, name):
                raise ValueError(f"the released code has no setting {name}")
            setattr(self._system, name, value)

    def add(self, content: str, time: str) -> None:
        """Add a note as the driver does."""
        self._agent.add_memory(content, time=time)

    def finish(self) -> None:
        """What the driver does once a conversation has been added."""
        self._system.initialize_clusters_if_needed()
        self._system.consolidate_memories()

    def store(self) -> dict[str, Any]:
        """Notes and clusters; notes are named by their place."""
        places = {note_id: place for place, note_id in enumerate(self._system.memories)}
        return {
            "notes": [
                {
                    "content": note.content,
                    "timestamp": note.timestamp,
                    "keywords": note.keywords,
                    "context": note.context,
                    "tags": note.tags,
                    "links": note.links,
                    "cluster": note.cluster_id,
                }
                for note in self._system.memories.values()
            ],
            "clusters": {
                name: {
                    "members": [places[member] for member in info["members"]],
                    "summary": info["summary"],
                    "tags": sorted(info["tags"]),
                    "representatives": [places[member] for member in info.get("rep_ids", [])],
                }
                for name, info in self._system.clusters.items()
            },
        }

    def ask(self, question: str, category: int, answer: str, answer_first: bool) -> dict[str, Any]:
        """Answer a question as the driver does; reads the reply as it does."""
        random.random = lambda: 0.9 if answer_first else 0.1
        raw, prompt, context, *_, debug = self._agent.answer_question(question, category, answer)
        try:
            prediction = json.loads(raw)["answer"]
        except Exception:  # the driver's own rule: whatever fails, the raw reply is the answer
            prediction = raw
        del prompt
        return {"prediction": prediction, "context": context, "hits": debug["retrieved_indices"]}


def main() -> None:
    """Serve standard input."""
    out, sys.stdout = sys.stdout, sys.stderr
    authors: Authors | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        do = asked.pop("do")
        try:
            if do == "open":
                authors, result = Authors(**asked), None
            else:
                result = getattr(authors, do)(**asked)
            answer = {"result": result}
        except Exception as error:
            import traceback

            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    assert Path(__file__).is_file()
    main()
