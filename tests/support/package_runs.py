"""Runs of a package's memory against a stub server, in which the run or its worker can be killed."""

import asyncio
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eval.running.runner import Runner, RunOutcome, RunResources
from eval.running.schedule import Schedule
from eval.runs.files import read_json_lines
from eval.runs.rundir import RunDirectory
from memsys.embedding.hashing import HashingEmbedder
from memsys.llm.cache import ReplyCache
from memsys.llm.ledger import CallRecord
from memsys.protocol import MemoryConfig, Parts
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn
from memsys.workers.memory import PackageMemory
from tests.support.backbones import StubEngine, backbone_config, open_backbone
from tests.support.composing import PACKAGES, memory_config
from tests.support.readers import READER
from tests.support.stub_server import StubServer, digest, prompt_of

TINY = Path(__file__).parent / "workers" / "tiny.py"
WORDS = ("boat", "sea", "cake", "oven", "song", "drum", "rose", "soil")

#: Names of the tests' worker: as most packages are, without lineage, and without a call of the backbone when it writes.
TINIES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {},
    "tiny_without_lineage": {"lineage": "none"},
    "tiny_without_calls": {"ask": False},
}
#: Presets of packages whose environment is installed here.
INSTALLED = tuple(name for name in PACKAGES if memory_config(name).installed)


def tiny_config(**settings: Any) -> MemoryConfig:
    """The worker of the tests, in this interpreter."""
    given = {
        "interpreter": sys.executable,
        "worker": str(TINY),
        "settings": settings,
        "k": 5,
        "quiet_timeout_s": 10,
    }
    per_write = 1 if settings.get("ask", True) else 0
    given["calls"] = {"per_write": per_write, "per_question": 0, "template_tokens": 0, "reply_tokens": 100}
    return replace(memory_config("package_mem0", **given), name="tiny")


def config_of(name: str) -> MemoryConfig:
    """The tests' worker, or the preset of an installed package."""
    return tiny_config(**TINIES[name]) if name in TINIES else memory_config(name)


def sample() -> Sample:
    """A conversation of twelve turns in two sessions, and four questions."""
    texts = [f"the {WORDS[n % 8]} and the {WORDS[(n * 3 + 1) % 8]} number{n}" for n in range(12)]
    turns = tuple(
        Turn(f"D{n // 6 + 1}:{n % 6 + 1}", f"session_{n // 6 + 1}", ("Ann", "Ben")[n % 2], text, "1 May 2023")
        for n, text in enumerate(texts)
    )
    asked = tuple(Question(f"q{n}", "talk", f"Where is the {WORDS[n]}?", 4) for n in range(4))
    references = {q.question_id: Reference(q.question_id, ("x",), ("D1:1",)) for q in asked}
    return Sample(Conversation("talk", turns, ("Ann", "Ben")), asked, references)


def package_reply(body: Mapping[str, Any]) -> str | dict[str, Any]:
    """Say what any of the packages may have asked for: facts, decisions, notes, a graph, or calls of tools."""
    number = digest(prompt_of(body))
    if body.get("tools"):
        return {"role": "assistant", "content": None, "tool_calls": _tool_calls(body["tools"], number)}
    first, second = WORDS[number % 8], WORDS[number // 8 % 8]
    said: dict[str, Any] = {
        "facts": [f"Ann likes the {first} {number % 97}", f"Ben has a {second} {number % 89}"],
        "memory": [
            {"id": "0", "text": f"both know the {first} {number % 97}", "event": ("ADD", "UPDATE")[number % 2]},
            {"id": "1", "text": f"Ben sold the {second} {number % 89}", "event": ("ADD", "DELETE")[number % 7 == 0]},
        ],
        "keywords": [first, second],
        "context": f"about {first}",
        "tags": [second],
        "should_evolve": number % 3 == 0,
        "actions": ["strengthen"],
        "suggested_connections": [0],
        "tags_to_update": [first],
        "new_context_neighborhood": [f"near {first}"],
        "new_tags_neighborhood": [[second]],
        "extracted_entities": [{"name": name, "entity_type_id": 0} for name in ("Ann", "Ben")],
        "entity_resolutions": [],
        "edges": [_edge("Ann", "Ben", first), _edge("Ben", "Ann", second)],
        "duplicate_facts": [0][: number % 2],
        "contradicted_facts": [1][: number % 3 == 0],
        "valid_at": f"2023-05-{number % 28 + 1:02d}T00:00:00Z",
        "summaries": [],
    }
    return json.dumps(said)


def _edge(source: str, target: str, word: str) -> dict[str, Any]:
    names = {"source_entity_name": source, "target_entity_name": target, "relation_type": "KNOWS"}
    return {**names, "fact": f"{source} told {target} of the {word}"}


def _tool_calls(tools: Sequence[Mapping[str, Any]], number: int) -> list[dict[str, Any]]:
    """Add a memory, change the first of those that are there, and remove the last one, the latter two at times."""
    calls = {"Memory": {"content": f"Ann likes the {WORDS[number % 8]} {number % 97}"}}
    known = re.findall(r"\b[0-9a-f]{32}\b", json.dumps([tool for tool in tools if _name(tool) == "RemoveDoc"]))
    if known and number % 2:
        patch = {"op": "replace", "path": "/content", "value": f"Ben sold the {WORDS[number % 8]} {number % 89}"}
        calls["PatchDoc"] = {"json_doc_id": known[0], "planned_edits": "sold", "patches": [patch]}
    if len(known) > 1 and number % 3 == 0:
        calls["RemoveDoc"] = {"json_doc_id": known[-1]}
    return [
        {"id": name, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for name, given in calls.items()
    ]


def _name(tool: Mapping[str, Any]) -> str:
    return str(tool["function"]["name"])


class Nobody:
    """A progress display that shows nothing; may do something after each write."""

    def __init__(self, after_write: Callable[[], None] = lambda: None) -> None:
        self._after_write = after_write

    def restored(self, turns: int) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""

    def wrote(self, turns: int, seconds: float) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""
        self._after_write()

    def retrieved(self, seconds: float) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""

    def answered(self, seconds: float) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""


class RunKilledError(BaseException):
    """Stands for the end of the run's process: nothing is written after it."""


@dataclass
class Watched:
    """A config whose memories are kept, so that their workers can be found."""

    config: Any
    memories: list[PackageMemory] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.config, name)

    def build(self, parts: Parts) -> PackageMemory:
        """Make a memory and keep it."""
        self.memories.append(self.config.build(parts))
        return self.memories[-1]

    def kill_worker(self) -> None:
        """Kill -9 the last memory's worker."""
        session = self.memories[-1]._session
        assert session is not None
        os.kill(session.pid, signal.SIGKILL)


@dataclass
class PackageRun:
    """Runs of one package in one folder.

    Attributes:
        server: what answers the package's calls.
        folder: of run directory and cache.
        config: of the memory.
        pids: of the workers that were started.
    """

    server: StubServer
    folder: Path
    config: MemoryConfig
    cached: bool = True

    def go(
        self, *, die_after: int | None = None, kill_worker_at: int | None = None, checkpoint_every: int = 2
    ) -> RunOutcome | None:
        """Run, or take up.

        Args:
            die_after: end the run when so many calls of it were booked; then ``None`` is returned.
            kill_worker_at: kill -9 the worker after so many writes.
            checkpoint_every: writes between snapshots.
        """
        directory, booked, writes = RunDirectory(self.folder / "run"), [0], [0]
        watched = Watched(self.config)

        def on_call(record: CallRecord) -> None:
            if die_after is not None and booked[0] >= die_after:
                raise RunKilledError
            directory.add_call(record)
            booked[0] += 1

        def after_write() -> None:
            writes[0] += 1
            if writes[0] == kill_worker_at:
                watched.kill_worker()

        async def run() -> RunOutcome:
            cache = ReplyCache(self.folder / "cache") if self.cached else None
            engine, config = StubEngine([self.server.url]), backbone_config(timeout_s=30)
            async with open_backbone(engine, self.folder, config=config, cache=cache, on_call=on_call) as llm:
                reader = READER.build(0)
                resources = RunResources(watched, HashingEmbedder(32), TurnFormat(), 0, llm.bind, reader, {})
                schedule = Schedule(checkpoint_every=checkpoint_every)
                return await Runner(resources, schedule, directory, Nobody(after_write)).run([sample()])

        try:
            return asyncio.run(run())
        except BaseExceptionGroup as group:
            assert group.subgroup(RunKilledError) is not None, group
            return None
        finally:
            directory.close()
            assert all(memory._session is None for memory in watched.memories), "a worker was left open"

    def ledger(self) -> Counter[tuple[Any, ...]]:
        """Calls that were booked."""
        names = ("phase", "role", "key", "item", "attempt", "prompt_tokens", "completion_tokens", "request_hash")
        return Counter(tuple(row[name] for name in names) for row in self.rows("calls"))

    def answers(self) -> dict[str, Any]:
        """Prediction, context and hits by question."""
        found = {row["question_id"]: row for row in self.rows("retrievals")}
        return {
            row["question_id"]: (
                row["prediction"],
                found[row["question_id"]]["context"],
                found[row["question_id"]]["hits"],
            )
            for row in self.rows("answers")
        }

    def statistics(self) -> dict[str, Any]:
        """Of the memory."""
        return dict(self.rows("conversations")[0]["statistics"])

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Rows of a file."""
        return list(read_json_lines(self.folder / "run" / f"{name}.jsonl"))
