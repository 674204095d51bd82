"""Mem0's own library as a worker, driven by its own evaluation of LoCoMo.

Settings:
    name: of the release, for the record.
    files: module name -> file of the authors, fetched by checksum; they lie in folders as in the release.
    speakers: of the conversation, in the data set's order.
    retrieve_k: memories per speaker.
    batch_size: messages per write.
    date: in the place of the day of the run.

The evaluation asks the hosted service; its client is replaced by one that asks the library instead, which has no place
for the evaluation's instructions. Qdrant and the modules that are left out are those of SAGE's worker.
"""

import datetime
import os
import sys
import types
import zoneinfo
from pathlib import Path
from typing import Any

from released_code import ConversationWorker, EndpointEmbedder, load, prepare

_SAGE = load("authors_sage_worker", str(Path(__file__).parents[1] / "authors_sage" / "worker.py"))
#: Their evaluation's place of the conversation in the data set; users are named ``SPEAKER_PLACE``.
PLACE = 0


class _Service:
    """Replacement of the hosted service's client; ``memory`` is the library's."""

    memory: Any = None

    def __init__(self, **access: Any) -> None:
        pass

    def update_project(self, custom_instructions: str) -> None:
        """Do nothing: the library has no projects."""

    def delete_all(self, user_id: str) -> None:
        self.memory.delete_all(user_id=user_id)

    def add(self, messages: list[dict[str, str]], user_id: str, metadata: dict[str, Any], **named: Any) -> Any:
        return self.memory.add(messages, user_id=user_id, metadata=metadata)

    def search(self, query: str, user_id: str, top_k: int, **named: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.memory.search(query, user_id=user_id, limit=top_k)["results"]
        return found


class Worker(ConversationWorker):
    """The authors' memory for one conversation."""

    def __init__(self, opening: dict[str, Any]) -> None:
        settings = opening["settings"]
        super().__init__(settings)
        os.environ |= {"MEM0_DIR": opening["folder"], "MEM0_TELEMETRY": "False", "MODEL": opening["llm"]["model"]}
        prepare(opening, _SAGE.UNUSED)
        self._path = str(Path(opening["folder"]) / "qdrant")
        _import_released(settings["files"], settings["date"])
        dimensions = len(EndpointEmbedder(opening).embed(["a"])[0])
        _Service.memory = sys.modules["mem0"].Memory.from_config(  # type: ignore[attr-defined]
            {
                "llm": {"provider": "openai", "config": {"model": opening["llm"]["model"]}},
                "embedder": {"provider": "openai", "config": {"embedding_dims": dimensions}},
                "vector_store": {
                    "provider": "qdrant",
                    "config": {"path": self._path, "embedding_model_dims": dimensions, "on_disk": True},
                },
                "history_db_path": str(Path(opening["folder"]) / "history.db"),
                "version": "v1.1",
            }
        )
        self._speakers = settings["speakers"]
        self._adding = sys.modules["add"].MemoryADD(batch_size=settings["batch_size"])
        self._searching = sys.modules["search"].MemorySearch(top_k=settings["retrieve_k"])

    def finish(self) -> list[dict[str, str]]:
        """Let their evaluation write the conversation."""
        self._adding.process_conversation({"conversation": self.conversation()}, PLACE)
        return []

    def export(self) -> list[dict[str, str]]:
        """Return memories in the order of addition, speaker by speaker."""
        return [{"memory_id": point.id, "text": point.payload["data"]} for _, point in self._points()]

    def store(self) -> dict[str, Any]:
        """Return memories in the form that parity runs compare."""
        return {
            "memories": [
                {"owner": speaker, "text": point.payload["data"], "timestamp": point.payload["timestamp"]}
                for speaker, point in self._points()
            ]
        }

    def _points(self) -> list[tuple[str, Any]]:
        points = _SAGE._Client.stores[self._path].values()
        return [
            (speaker, point)
            for speaker in self._speakers
            for point in points
            if point.payload["user_id"] == _SAGE._user(speaker)
        ]

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question as their evaluation does; the context has each speaker's lines below a heading."""
        users = [_SAGE._user(speaker) for speaker in self._speakers]
        reply, *found = self._searching.answer_question(*users, question["text"], question["answer"], 0)
        blocks = [_SAGE._block(speaker, found[place]) for place, speaker in enumerate(self._speakers)]
        return {"prediction": reply, "context": "\n\n".join(block for block in blocks if block)}


def _import_released(files: dict[str, str], date: str) -> None:
    """Import their evaluation, and all of the library that it imports, on a fixed day."""
    _SAGE._replace_qdrant()
    package: Any = types.ModuleType("mem0")  # its own __init__ imports the client of the hosted service
    package.__path__ = [str(Path(files["mem0.memory.main"]).parents[1])]
    package.__version__ = "0.1.114"
    clock: Any = types.ModuleType("pytz")
    clock.timezone = zoneinfo.ZoneInfo
    sys.modules |= {"mem0": package, "pytz": clock}
    real, datetime.datetime = datetime.datetime, _SAGE._day(date)
    load("mem0.configs.prompts", files["mem0.configs.prompts"])
    datetime.datetime = real
    from mem0.memory.main import Memory

    package.Memory, package.MemoryClient = Memory, _Service
    for name in ("prompts", "add", "search"):
        load(name, files[name])
