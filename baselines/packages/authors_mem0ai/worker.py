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

from released_code import EndpointEmbedder, load, prepare

_SAGE = load("authors_sage_worker", str(Path(__file__).parents[1] / "authors_sage" / "worker.py"))


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


class Worker(_SAGE.SpeakerMemories):  # type: ignore[misc, name-defined]
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

    def search(self) -> Any:
        """Return the evaluation's part that answers."""
        return self._searching


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
