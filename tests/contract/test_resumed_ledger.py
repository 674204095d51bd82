"""A run killed while it answers books, once resumed, the calls of a run that was never killed: for every system."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from eval.results.papers.deviations import systems
from eval.running.runner import Runner, RunResources
from eval.running.schedule import Schedule
from eval.runs.files import read_json_lines
from eval.runs.rundir import RunDirectory
from memsys.embedding.hashing import HashingEmbedder
from memsys.llm.cache import ReplyCache
from memsys.llm.ledger import CallRecord
from memsys.turns import TurnFormat
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn
from tests.support.backbones import StubEngine, backbone_config, open_backbone
from tests.support.composing import PRESETS, composed
from tests.support.readers import READER
from tests.support.small import STAND_INS, small_config
from tests.support.stub_server import StubServer, digest, prompt_of, reply_text, schema_of


def asking_systems() -> list[str]:
    """One preset of every system that asks the backbone: the one with the system's name, else the first."""
    found = []
    for system, (_, presets) in systems().items():
        asking = [name for name in presets if name in PRESETS and composed(name).get("roles")]
        found += [system if system in asking else asking[0]] if asking else []
    return found


#: Every system, and what shares another system's class but keeps a ledger of its own.
SYSTEMS = (*asking_systems(), "mem0_graph", "gated+amem")
WORDS = ("boat", "sea", "cake", "oven", "song", "drum", "rose", "soil")
#: Few free replies, so that several questions lead to the same further search.
FREE = ("What of the boat?", "Which song was it?", "Who baked?")


class KilledError(BaseException):
    """Stands for the end of the process: nothing is written after it."""


class Nobody:
    """A progress display that shows nothing."""

    def restored(self, turns: int) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""

    def wrote(self, turns: int, seconds: float) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""

    def retrieved(self, seconds: float) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""

    def answered(self, seconds: float) -> None:
        """See :class:`eval.running.progress.ProgressListener`."""


def sample() -> Sample:
    texts = [f"the {WORDS[n % 8]} and the {WORDS[(n * 3 + 1) % 8]} number{n}" for n in range(12)]
    turns = tuple(
        Turn(f"D{n // 6 + 1}:{n % 6 + 1}", f"session_{n // 6 + 1}", ("Ann", "Ben")[n % 2], text, "1 May 2023")
        for n, text in enumerate(texts)
    )
    asked = tuple(Question(f"q{n}", "talk", f"Where is the {WORDS[n]}?", 4) for n in range(8))
    return Sample(
        Conversation("talk", turns, ("Ann", "Ben")),
        asked,
        {q.question_id: Reference(q.question_id, ("x",)) for q in asked},
    )


def free_reply(body: Mapping[str, Any]) -> str | None:
    """Say one of a few sentences where nothing binds the reply."""
    return None if schema_of(body) else FREE[digest(prompt_of(body)) % len(FREE)]


@pytest.fixture(autouse=True)
def stand_ins_for_models(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, replacement in STAND_INS.items():
        monkeypatch.setattr(name, replacement)


@pytest.fixture(scope="module")
def server() -> Iterator[StubServer]:
    """One server for all runs; replies are a function of the request."""
    with StubServer() as running:
        running.state.replies = free_reply
        running.state.keep_requests = False
        yield running


def run(server: StubServer, folder: Path, system: str, *, die_after: int | None = None, cached: bool = True) -> None:
    """Run, or take up, one conversation; with ``die_after`` end when so many calls of questions were booked."""
    directory, booked = RunDirectory(folder / "run"), [0]

    def on_call(record: CallRecord) -> None:
        if die_after is not None and booked[0] >= die_after:
            raise KilledError
        directory.add_call(record)
        booked[0] += record.phase in ("retrieve", "answer")

    async def go() -> None:
        cache = ReplyCache(folder / "cache") if cached else None
        config = backbone_config(max_in_flight=4, timeout_s=30)
        async with open_backbone(StubEngine([server.url]), folder, config=config, cache=cache, on_call=on_call) as llm:
            memory = small_config(system)
            resources = RunResources(memory, HashingEmbedder(32), TurnFormat(), 0, llm.bind, READER.build(0), {})
            await Runner(resources, Schedule(questions_in_flight=3), directory, Nobody()).run([sample()])

    try:
        asyncio.run(go())
    except BaseExceptionGroup as group:
        assert group.subgroup(KilledError) is not None, group
    finally:
        directory.close()


def ledger(folder: Path) -> Counter[tuple[Any, ...]]:
    names = ("conversation_id", "phase", "role", "key", "item", "attempt", "prompt_tokens", "completion_tokens",
             "malformed", "repaired", "request_hash")  # fmt: skip
    return Counter(tuple(row[name] for name in names) for row in read_json_lines(folder / "run" / "calls.jsonl"))


def answers(folder: Path) -> dict[str, tuple[Any, ...]]:
    rows = {row["question_id"]: row for row in read_json_lines(folder / "run" / "retrievals.jsonl")}
    return {
        row["question_id"]: (row["prediction"], rows[row["question_id"]]["context"])
        for row in read_json_lines(folder / "run" / "answers.jsonl")
    }


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_resumed_ledger_is_the_uninterrupted_one(server: StubServer, tmp_path: Path, system: str) -> None:
    run(server, tmp_path / "whole", system)
    whole = ledger(tmp_path / "whole")
    asked = sum(count for call, count in whole.items() if call[1] in ("retrieve", "answer"))
    assert max(whole.values()) == 1 and asked >= 8
    for number, (die_after, cached) in enumerate(
        ((1, True), (asked // 2, True), (asked // 2, False), (asked - 1, True))
    ):
        folder = tmp_path / str(number)
        run(server, folder, system, die_after=die_after, cached=cached)
        assert len(answers(folder)) < 8
        run(server, folder, system, cached=cached)
        assert answers(folder) == answers(tmp_path / "whole")
        assert ledger(folder) == whole


def test_questions_that_ask_the_same_are_booked_each(server: StubServer, tmp_path: Path) -> None:
    """Two questions of MemFly lead to one further search: the ledger has the calls of both."""
    run(server, tmp_path, "memfly")
    calls = [row for row in read_json_lines(tmp_path / "run" / "calls.jsonl") if row["role"] == "intent"]
    items: dict[str, set[str]] = {}
    for row in calls:
        items.setdefault(row["key"], set()).add(row["item"])
    rounds = sum(len(row["trace"]["rounds"]) for row in read_json_lines(tmp_path / "run" / "retrievals.jsonl"))
    assert max(map(len, items.values())) > 1
    assert len(calls) == rounds


#: What a server may write where a role wants a number.
NUMBERS = ("9" * 400, "-" + "9" * 400, "1e999", "NaN", "-Infinity", "9" * 5000, "1e300", "-0.0")


def with_numbers(body: Mapping[str, Any]) -> str:
    """Follow the request's schema, but for numbers, and put a number into every free reply."""
    number = NUMBERS[digest(prompt_of(body), body.get("seed")) % len(NUMBERS)]
    text = json.dumps(_marked(json.loads(reply_text(body)))) if schema_of(body) else f"[{NUMBER}] <{NUMBER}> {NUMBER}"
    return text.replace(f'"{NUMBER}"', number).replace(NUMBER, number)


NUMBER = "a number"


def _marked(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _marked(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_marked(inner) for inner in value]
    return NUMBER if isinstance(value, int | float) and not isinstance(value, bool) else value


@pytest.mark.parametrize("system", SYSTEMS)
def test_numbers_that_nothing_can_hold_end_in_no_error(tmp_path: Path, system: str) -> None:
    with StubServer() as server:
        server.state.replies = with_numbers
        run(server, tmp_path, system)
    assert len(answers(tmp_path)) == 8
    for row in read_json_lines(tmp_path / "run" / "conversations.jsonl"):
        json.dumps(row, allow_nan=False)
