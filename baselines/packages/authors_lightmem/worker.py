"""LightMem's released code as a worker: its LoCoMo scripts add a conversation, update it "in sleep", and answer.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order.
    retrieve_k: memories per question.
    buffer_tokens: of the sensory buffer: the positions of the encoder that cuts it.
    stm_tokens: of the short-term buffer, a constant of the released class.
    theta: least cosine of an update.
    keep: memories that each may change.

Replaced are LLMLingua-2, which leaves every message as it is and sees a peak of attention at each, so that topics end
at drops of similarity alone; its tokenizer and OpenAI's, for which a word is a token; sentence-transformers; and Qdrant
(exact search in memory, in the order in which memories were added). One thread makes the update, whose calls see the
memories as they were before it. The store after the update is searched. The judge is left out.
"""

import os
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

from released_code import ConversationWorker, EndpointEmbedder, load, nearest, prepare

#: Imported by the released files, called by nothing that runs here.
UNUSED = ("spacy", "torch")
#: Names that the released files import from ``qdrant_client.models``: plain records here.
RECORDS = (
    "Distance", "FieldCondition", "Filter", "MatchAny", "MatchValue", "PointIdsList", "PointStruct", "Range",
    "VectorParams",
)  # fmt: skip
#: Their class looks for the compressor under this name or as a folder.
COMPRESSOR = "microsoft/llmlingua-2-bert-base-multilingual-cased-meetingbank"
#: Their script's name of the conversation.
SAMPLE = "sample"


class _Tokenizer:
    """Replacement of all tokenizers: a word is a token, as on our side of the comparison."""

    def encode(self, text: str) -> list[str]:
        return text.split()


class _Point(types.SimpleNamespace):
    """A stored memory with its vector."""

    def model_dump(self) -> dict[str, Any]:
        return {"id": self.id, "vector": self.vector, "payload": self.payload}


class _Client:
    """Replacement of ``QdrantClient``: points in the order of addition, exact cosine search; one store per path."""

    stores: ClassVar[dict[str, dict[Any, _Point]]] = {}

    def __init__(self, path: str) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)  # their script copies the folder
        self._points = self.stores.setdefault(str(Path(path).resolve()), {})

    def get_collections(self) -> Any:
        return types.SimpleNamespace(collections=[])

    def create_collection(self, **named: Any) -> None:
        """Do nothing: the one collection exists."""

    def upsert(self, points: list[Any], **named: Any) -> None:
        self._points.update({point.id: _Point(**vars(point)) for point in points})

    def delete(self, points_selector: Any, **named: Any) -> None:
        for point_id in points_selector.points:
            self._points.pop(point_id, None)

    def retrieve(self, ids: list[Any], **named: Any) -> list[_Point]:
        return [self._points[point_id] for point_id in ids if point_id in self._points]

    def scroll(self, **named: Any) -> tuple[list[_Point], None]:
        return list(self._points.values()), None

    def query_points(self, query: Any, query_filter: Any, limit: int, **named: Any) -> Any:
        kept = [point for point in self._points.values() if _passes(point.payload, query_filter)]
        best = nearest([point.vector for point in kept], query, limit)
        found = [types.SimpleNamespace(id=kept[n].id, payload=kept[n].payload, score=score) for n, score in best]
        return types.SimpleNamespace(points=found)


def _passes(payload: dict[str, Any], wanted: Any) -> bool:
    """Return whether a memory is not later than the filter's time, the only kind of filter used here."""
    return all(payload[one.key] <= one.range.lte for one in (wanted.must if wanted else ()))


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        prepare(opening, UNUSED)
        for name in ("OPENROUTER_API_KEY", "OPENAI_API_BASE"):  # their client would ask there
            os.environ.pop(name, None)
        os.chdir(opening["folder"])  # their scripts write where they are started
        _replace_packages(EndpointEmbedder(opening), settings["buffer_tokens"])
        files = settings["files"]
        sys.path.insert(0, str(Path(files["lightmem.memory.lightmem"]).parents[2]))
        for name in ("prompts", "retrievers", "add_locomo", "search_locomo"):
            setattr(self, f"_{name}", load(name, files[name]))
        from lightmem.factory.topic_segmenter.llmlingua_2 import LlmLingua2Segmenter

        LlmLingua2Segmenter.propose_cut = lambda self, texts: list(range(len(texts)))
        adding: Any = self._add_locomo
        adding.LightMemory = _settled(adding.LightMemory, settings)
        adding.LLM_MODEL, adding.LLMLINGUA_MODEL_PATH = opening["llm"]["model"], COMPRESSOR
        self._model = opening["llm"]["model"]
        self._loader = self._retrievers.QdrantEntryLoader(f"{adding.QDRANT_POST_UPDATE_DIR}/{SAMPLE}")
        self._retriever: Any = None

    _prompts: Any
    _retrievers: Any
    _add_locomo: Any
    _search_locomo: Any

    def finish(self) -> list[dict[str, str]]:
        """Let their script add the conversation, turn by turn, and update what it stored."""
        said = {name.replace("session_session_", "session_"): value for name, value in self.conversation().items()}
        sample = {"sample_id": SAMPLE, "conversation": said}  # their sessions are known by their numbers
        arguments = types.SimpleNamespace(extraction_mode="flat", enable_summary=False)
        told = self._add_locomo.process_single_sample(sample, os.environ["OPENAI_API_KEY"], arguments)
        if told["status"] != "success":
            raise RuntimeError(f"the released script failed: {told}")
        return []

    def export(self) -> list[dict[str, str]]:
        """Return memories in the order they were added."""
        return [{"memory_id": str(one["id"]), "text": one["payload"]["memory"]} for one in self._entries()]

    def store(self) -> dict[str, Any]:
        """Return memories by their texts, in the form that parity runs compare."""
        facts: dict[str, Any] = {}
        for payload in sorted((one["payload"] for one in self._entries()), key=_place):
            name, number = payload["memory"].replace(".", " "), 1
            while name in facts:
                number += 1
                name = f"{payload['memory'].replace('.', ' ')} ({number})"
            time = payload["time_stamp"].removesuffix(".000")
            facts[name] = {"time": time, "speaker": payload["speaker_name"], "topic": payload["topic_id"]}
        return {"facts": facts}

    def _entries(self) -> list[dict[str, Any]]:
        return self._loader.load_entries(SAMPLE, with_vectors=True)

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their script does; the context is what the answer's prompt shows of the memory."""
        search = self._search_locomo
        if self._retriever is None:
            settings = search.BaseTextEmbedderConfig(model="ours", embedding_dims=1, model_kwargs={})
            self._retriever = self._retrievers.VectorRetriever(search.TextEmbedderHuggingface(settings))
            self._client = search.OpenAI()
        limit = self._settings["retrieve_k"]
        asked = {"question": question["text"], "answer": question["answer"], "category": 1}  # they leave out 5
        told = search.process_sample(
            {"sample_id": SAMPLE, "qa": [asked]}, self._loader, self._retriever, self._client, None, self._model, "",
            [1], limit, limit, "combined",
        )  # fmt: skip
        found = search.retrieve_combined(self._entries(), self._retriever, question["text"], limit)
        speakers = dict.fromkeys(one["_retrieved_speaker"] for one in found)
        blocks = [
            f"Memories of {speaker}:\n"
            + search.format_related_memories([one for one in found if one["_retrieved_speaker"] == speaker])
            for speaker in speakers
        ]
        return {"prediction": told["results"][0]["prediction"], "context": "\n\n".join(blocks)}


def _place(payload: dict[str, Any]) -> tuple[Any, ...]:
    """Return the sort key of memories of the same text."""
    return payload["memory"], payload["time_stamp"], payload["speaker_name"], payload["topic_id"]


def _replace_packages(embedder: EndpointEmbedder, positions: int) -> None:
    """Put stand-ins in the place of the packages that cannot be had, or that would load a model."""

    class Sentences:
        def __init__(self, *given: Any, **named: Any) -> None:
            """Do nothing: there is no model to load."""

        def encode(self, text: str, **named: Any) -> Any:
            import numpy as np

            # Their turns end with the space before the empty reply; no tokenizer of such a model sees it.
            return np.array(embedder.embed([text.strip()])[0], dtype=np.float32)

    class Compressor:
        tokenizer = _Tokenizer()
        model = types.SimpleNamespace(config=types.SimpleNamespace(max_position_embeddings=positions))

        def __init__(self, **named: Any) -> None:
            """Do nothing: there is no model to load."""

        def compress_prompt(self, context: list[str], **named: Any) -> dict[str, str]:
            return {"compressed_prompt": context[0]}

    tokenizers = {name: type(name, (), {}) for name in ("PreTrainedTokenizer", "PreTrainedTokenizerFast")}
    others = {name: type(name, (), {}) for name in ("AutoModel", "AutoTokenizer", "PreTrainedTokenizerBase")}
    records = {name: type(name, (types.SimpleNamespace,), {"COSINE": "cosine"}) for name in RECORDS}
    for module, names in {
        "llm_judge": {"evaluate_llm_judge": lambda *given, **named: 0},
        "llmlingua": {"PromptCompressor": Compressor},
        "qdrant_client": {"QdrantClient": _Client},
        "qdrant_client.models": records,
        "sentence_transformers": {"SentenceTransformer": Sentences},
        "tiktoken": {"Encoding": _Tokenizer, "encoding_for_model": lambda model: _Tokenizer()},
        "transformers": others,
        "transformers.tokenization_utils": tokenizers,
        "transformers.tokenization_utils_fast": tokenizers,
    }.items():
        found = types.ModuleType(module)
        vars(found).update(names)
        sys.modules[module] = found


def _settled(base: type, settings: dict[str, Any]) -> type:
    """Return the authors' memory with the comparison's settings as its constants, and one thread."""

    class Settled(base):
        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.shortmem_buffer_manager.max_tokens = settings["stm_tokens"]

        def construct_update_queue_all_entries(self, **named: Any) -> None:
            super().construct_update_queue_all_entries(keep_top_n=settings["keep"], max_workers=1)

        def offline_update_all_entries(self, **named: Any) -> None:
            super().offline_update_all_entries(score_threshold=settings["theta"], max_workers=1)

    return Settled
