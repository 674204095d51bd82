"""MemoryOS's released evaluation as a worker: its own ``main`` writes the conversation, its functions answer.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum, in the order of their imports.
    speakers: of the conversation, in the data set's order.
    attributes: constants of the module with ``main``, with the values that they get.
    retrieve_k: pages per question.

``main`` is given a file with the one conversation and no question; the memories that it makes are kept, and asked the
questions as it would ask them. Replaced are the model (its client asks the endpoint), sentence-transformers (our
embedder, over the endpoint), FAISS (exact search in memory), the clock (it is constant: recency is of the same moment
in any case, and the dates of facts are those of the run) and the random ids, by which equally hot segments are ordered
(they are counted, so that the older is the first). What it saves after each step, and nothing reads, is not saved.
"""

import json
import os
import sys
import types
import uuid
from itertools import count
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, EndpointEmbedder, ExactIndex, load, prepare, set_attribute

#: Imported by the released files, called by nothing that runs here.
UNUSED = ("tiktoken",)
#: Stands for the clock.
MOMENT = "2000-01-01 00:00:00"
#: Id of the conversation in the data file, and of the user in the memories.
SAMPLE = "conversation"
#: What their ``main`` asks for.
THRESHOLDS = {"segment_threshold": 0.1, "page_threshold": 0.1, "knowledge_threshold": 0.1}
#: Stands in their answer prompt before the question.
QUESTION = "the question is:"
#: Stand in its system message before what is known of the speaker who answers, and after it.
KNOWLEDGE = ("【Assistant Knowledge】", "\nAny content referring to")


class Worker(ConversationWorker):
    """The authors' memories of one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        os.chdir(opening["folder"])
        _replace_packages(EndpointEmbedder(opening))
        numbers = count(1)
        uuid.uuid4 = lambda: uuid.UUID(int=next(numbers) << 96)  # their ids are the first eight digits
        for name, path in settings["files"].items():
            module = load(name, path)
            if name == "utils":
                _replace_client_and_clock(module)
        self._main = sys.modules["main_loco_parse"]
        for name, value in settings["attributes"].items():
            set_attribute(self._main, name, value)
        self._kept: dict[str, Any] = {}
        for name in ("ShortTermMemory", "MidTermMemory", "LongTermMemory", "RetrievalAndAnswer"):
            setattr(self._main, name, _keeping(getattr(self._main, name), self._kept))

    def finish(self) -> list[dict[str, str]]:
        """Let their ``main`` write the conversation."""
        sample = {"sample_id": SAMPLE, "conversation": self.conversation(), "qa": []}
        Path("locomo10.json").write_text(json.dumps([sample]), encoding="utf-8")
        self._main.main()
        self._kept["RetrievalAndAnswer"].queue_capacity = self._settings["retrieve_k"]
        return []

    def export(self) -> list[dict[str, str]]:
        """Return the pages in the order they were stored."""
        return [
            {"memory_id": page["page_id"], "text": f"{page['user_input']}\n{page['agent_response']}"}
            for page in self._pages()
        ]

    def store(self) -> dict[str, Any]:
        """Queue, pages, segments, profile and facts in the form that parity runs compare."""
        pages, long_term = self._pages(), self._kept["LongTermMemory"]
        places = {page["page_id"]: place for place, page in enumerate(pages)}
        return {
            "queue": [_sides(page) for page in self._kept["ShortTermMemory"].get_all()],
            "pages": [{**_sides(page), "chain": page["meta_info"], "read": bool(page["analyzed"])} for page in pages],
            "segments": [
                {
                    "summary": segment["summary"],
                    "keywords": sorted(set(segment["summary_keywords"])),
                    "pages": [places[page["page_id"]] for page in segment["details"]],
                    "interactions": segment["L_interaction"],
                }
                for segment in self._segments()
            ],
            "profile": {"profile": {"text": long_term.get_raw_user_profile(SAMPLE)}},
            "user_facts": [_fact(fact) for fact in long_term.get_knowledge()],
            "agent_facts": [_fact(fact) for fact in long_term.get_assistant_knowledge()],
        }

    def _segments(self) -> list[dict[str, Any]]:
        return list(self._kept["MidTermMemory"].sessions.values())

    def _pages(self) -> list[dict[str, Any]]:
        """Return each page once, in the order of their numbered ids."""
        found = {page["page_id"]: page for segment in self._segments() for page in segment["details"]}
        return [found[name] for name in sorted(found)]

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their ``main`` does; the context is what the two messages show, if anything."""
        main, text = self._main, question["text"]
        found = self._kept["RetrievalAndAnswer"].retrieve(text, client=main.client, **THRESHOLDS)
        reply, system, prompt = main.generate_system_response_with_meta(
            text,
            self._kept["ShortTermMemory"],
            self._kept["LongTermMemory"],
            found["retrieval_queue"],
            found["long_term_knowledge"],
            main.client,
            SAMPLE,
            *self._settings["speakers"],
            {},
        )
        known = system.partition(KNOWLEDGE[0])[2].partition(KNOWLEDGE[1])[0]
        long_term = self._kept["LongTermMemory"]
        shown = (found["retrieval_queue"], found["long_term_knowledge"], long_term.get_raw_user_profile(SAMPLE))
        context = prompt.partition(QUESTION)[0] + known if any(shown) or known.strip() else ""
        return {"prediction": reply, "context": context}


def _sides(page: dict[str, Any]) -> dict[str, Any]:
    return {"user": page["user_input"], "agent": page["agent_response"], "date": page["timestamp"]}


def _fact(fact: dict[str, Any]) -> dict[str, Any]:
    return {"text": fact["knowledge"], "date": fact["timestamp"]}


def _keeping(base: type, kept: dict[str, Any]) -> type:
    """Return the authors' class with its last instance kept and without saving to files."""

    class Keeping(base):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            kept[base.__name__] = self

        def save(self) -> None:
            """Do nothing: saved files would not be read."""

    return Keeping


def _replace_packages(embedder: EndpointEmbedder) -> None:
    class SentenceTransformer:
        """Replacement of the embedder's class, which asks the endpoint."""

        def __init__(self, name: str) -> None:
            """Accept any model's name: there is one embedder."""

        def encode(self, texts: list[str], convert_to_numpy: bool) -> Any:
            import numpy as np

            return np.array(embedder.embed(texts), dtype=np.float32)

    transformers: Any = types.ModuleType("sentence_transformers")
    faiss: Any = types.ModuleType("faiss")
    transformers.SentenceTransformer, faiss.IndexFlatIP = SentenceTransformer, ExactIndex
    sys.modules |= {"sentence_transformers": transformers, "faiss": faiss}


def _replace_client_and_clock(utils: Any) -> None:
    """Replace client and clock before the authors' other modules import the names."""
    from openai import OpenAI

    set_attribute(utils, "gpt_client", OpenAI())
    set_attribute(utils, "get_timestamp", lambda: MOMENT)
