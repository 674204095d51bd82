"""SAGE's released code as a worker: their runner for the local backend, driven as its own script drives it.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order.
    attributes: of their ``Memory``, by dotted name, with the values that they get.
    retrieve_k: memories per speaker.
    batch_size: messages per write.
    date: in place of the day of the run.

Left out are the client of the hosted service, telemetry, ``faiss`` (which no gate by the sphere's density calls) and
``dotenv``. Qdrant's client is replaced by an exact search in memory, which its local form is too.
"""

import datetime
import os
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

from released_code import ConversationWorker, EndpointEmbedder, load, nearest, prepare, set_attribute

#: Imported by the released files, called by nothing that runs here.
UNUSED = ("dotenv", "faiss", "mem0.client", "posthog")
#: Names that the released files import from ``qdrant_client.models``: plain records here.
RECORDS = (
    "Distance", "FieldCondition", "Filter", "MatchAny", "MatchExcept", "MatchText", "MatchValue", "PointIdsList",
    "PointStruct", "Range", "VectorParams",
)  # fmt: skip
#: Their runner's place of the conversation in the data set; users are named ``SPEAKER_PLACE``.
PLACE = 0


class _Client:
    """Replacement of ``QdrantClient``: points in the order of addition, exact cosine search; one store per path."""

    stores: ClassVar[dict[str, dict[Any, Any]]] = {}

    def __init__(self, path: str) -> None:
        self._points = self.stores.setdefault(path, {})

    def get_collections(self) -> Any:
        return types.SimpleNamespace(collections=[])

    def create_collection(self, **named: Any) -> None:
        """Do nothing: the one collection exists."""

    def upsert(self, points: list[Any], **named: Any) -> None:
        for point in points:
            self._points[point.id] = point

    def delete(self, points_selector: Any, **named: Any) -> None:
        for point_id in points_selector.points:
            self._points.pop(point_id, None)

    def retrieve(self, ids: list[Any], **named: Any) -> list[Any]:
        return [self._points[point_id] for point_id in ids if point_id in self._points]

    def scroll(self, scroll_filter: Any = None, **named: Any) -> tuple[list[Any], None]:
        return self._kept(scroll_filter), None

    def query_points(self, query: Any, query_filter: Any, limit: int, **named: Any) -> Any:
        kept = self._kept(query_filter)
        best = nearest([point.vector for point in kept], query, limit)
        found = [types.SimpleNamespace(id=kept[n].id, payload=kept[n].payload, score=score) for n, score in best]
        return types.SimpleNamespace(points=found)

    def _kept(self, wanted: Any) -> list[Any]:
        conditions = wanted.must if wanted else ()
        return [
            point
            for point in list(self._points.values())  # at once: the release writes for two speakers at a time
            if all(point.payload.get(one.key) == one.match.value for one in conditions)
        ]


class SpeakerMemories(ConversationWorker):
    """Memories of two speakers that an evaluation derived from Mem0's writes and asks."""

    _path: str  # of the store
    _speakers: list[str]
    _adding: Any

    def search(self) -> Any:
        """Return the evaluation's part that answers."""
        raise NotImplementedError

    def finish(self) -> list[dict[str, str]]:
        """Let their evaluation write the conversation, first speaker before second in each session."""
        self._adding.process_conversation({"conversation": self.conversation()}, PLACE)
        return []

    def export(self) -> list[dict[str, str]]:
        """Return memories in the order of addition, speaker by speaker."""
        return [{"memory_id": point.id, "text": point.payload["data"]} for _, point in self.points()]

    def store(self) -> dict[str, Any]:
        """Return memories in the form that parity runs compare."""
        return {
            "memories": [
                {"owner": speaker, "text": point.payload["data"], "timestamp": point.payload["timestamp"]}
                for speaker, point in self.points()
            ]
        }

    def points(self) -> list[tuple[str, Any]]:
        """Return each speaker's memories, in the order they were added."""
        return [
            (speaker, point)
            for speaker in self._speakers
            for point in _Client.stores[self._path].values()
            if point.payload["user_id"] == _user(speaker)
        ]

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their evaluation does; the context has each speaker's lines below a heading."""
        users = [_user(speaker) for speaker in self._speakers]
        reply, *found = self.search().answer_question(*users, question["text"], question["answer"], 0)
        blocks = [_block(speaker, found[place]) for place, speaker in enumerate(self._speakers)]
        return {"prediction": reply, "context": "\n\n".join(block for block in blocks if block)}


class Worker(SpeakerMemories):
    """The authors' memory for one conversation.

    Attributes:
        gated: facts pass SAGE's gate; otherwise they are decided on as in Mem0, of which the release is a fork.
    """

    gated = True

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        os.environ |= {"MEM0_DIR": opening["folder"], "MEM0_TELEMETRY": "False"}
        prepare(opening, UNUSED)
        _import_released(settings["files"], settings["date"])
        self._speakers = settings["speakers"]
        self._path = str(Path(opening["folder"]) / "qdrant")
        self._options = {
            "backend": "openai",
            "llm_model": opening["llm"]["model"],
            "embedding_dims": len(EndpointEmbedder(opening).embed(["a"])[0]),
            "qdrant_path": self._path,
            "history_db_path": str(Path(opening["folder"]) / "history.db"),
        }
        self._adding = sys.modules["add_sage"].MemoryADDSAGE(
            batch_size=settings["batch_size"], enable_sage=self.gated, infer_add=True, **self._options
        )
        for name, value in settings["attributes"].items():
            set_attribute(self._adding.memory, name, value)
        self._top_k = settings["retrieve_k"]
        self._searching: Any = None

    def search(self) -> Any:
        """Return the part that answers, made with the first question."""
        if self._searching is None:
            search = sys.modules["search_local_backend"].MemorySearchLocal
            self._searching = search(top_k=self._top_k, collection_name="mem0_eval_persist", **self._options)
        return self._searching

    def store(self) -> dict[str, Any]:
        """Return memories and scopes in the form that parity runs compare."""
        return {**super().store(), "scopes": {speaker: self._scope(speaker) for speaker in self._speakers}}

    def points(self) -> list[tuple[str, Any]]:
        """Return each speaker's memories, in the order of their scope."""
        memory = self._adding.memory
        return [
            (speaker, memory.vector_store.get(memory_id))
            for speaker in self._speakers
            for memory_id in memory.novelty_scorer.get_scope_ids(_scope_key(speaker))
        ]

    def _scope(self, speaker: str) -> dict[str, Any]:
        reached = self._adding.memory.adaptive_threshold._threshold_by_scope.get(_scope_key(speaker))
        counts = self._adding.per_user_action_counts[_user(speaker)]
        return {
            "threshold": None if reached is None else round(reached, 6),
            "added": counts["ADD"],
            "updated": counts["UPDATE"],
        }


def _user(speaker: str) -> str:
    return f"{speaker}_{PLACE}"


def _scope_key(speaker: str) -> str:
    return f"{_user(speaker)}||"


def _block(speaker: str, memories: list[dict[str, Any]]) -> str:
    lines = [f"{memory['timestamp']}: {memory['memory']}" for memory in memories]
    return "\n".join([f"Memories of {speaker}:", *lines]) if lines else ""


def _replace_qdrant() -> None:
    client: Any = types.ModuleType("qdrant_client")
    models: Any = types.ModuleType("qdrant_client.models")
    client.QdrantClient = _Client
    for name in RECORDS:
        setattr(models, name, type(name, (types.SimpleNamespace,), {"COSINE": "cosine"}))
    sys.modules |= {"qdrant_client": client, "qdrant_client.models": models}


def _import_released(files: dict[str, str], date: str) -> None:
    """Import their runner, and all of the package that it imports, on a fixed day."""
    _replace_qdrant()
    package: Any = types.ModuleType("mem0")  # its own __init__ imports the client of the hosted service
    package.__path__ = [str(Path(files["mem0.memory.main"]).parents[1])]
    package.__version__ = "local"
    sys.modules["mem0"] = package
    real, datetime.datetime = datetime.datetime, _day(date)
    load("mem0.configs.prompts", files["mem0.configs.prompts"])
    datetime.datetime = real
    from mem0.memory.main import Memory

    package.Memory, package.MemoryClient = Memory, None
    for name in ("prompts", "add_sage", "search_local_backend"):
        load(name, files[name])


def _day(date: str) -> type:
    class Day(datetime.datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromisoformat(date)

    return Day
