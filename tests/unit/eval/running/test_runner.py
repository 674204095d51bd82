"""The runner against a memory that reports misuse: order, look-ahead, failures, resume, latency mode."""

import asyncio
import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.running.runner import Runner, RunOutcome, RunResources
from eval.running.schedule import Schedule
from eval.runs.files import read_json_lines
from eval.runs.rundir import RunDirectory
from memsys.embedding.contract import Vectors
from memsys.errors import BackboneError, BackboneUnusableError
from memsys.llm.contract import Reply, Role
from memsys.llm.refusals import RepeatedFailureError, RequestRefusedError
from memsys.llm.scope import call_scope
from memsys.protocol import BaseMemory, Parts
from memsys.turns import TurnFormat
from memsys.vocabulary import Completion, Conversation, Hit, Question, Reference, Retrieval, Sample, Turn, Unit
from tests.support.readers import READER


class NoEmbedder:
    name, dimension = "none", 2

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return np.zeros((len(texts), 2), dtype=np.float32)


@dataclass(frozen=True)
class ChainConfig:
    """A memory whose content depends on the order of its writes."""

    name: str = "chain"
    uses_gold: bool = False
    die_at: str = ""

    def build(self, parts: Parts) -> "Chain":
        return Chain(parts, self.die_at)


class Chain(BaseMemory):
    def __init__(self, parts: Parts, die_at: str) -> None:
        self.parts, self.die_at = parts, die_at
        self.log: list[str] = []
        self.consolidated = False
        self.preparing = self.most_preparing = 0

    async def prepare(self, unit: Unit) -> str:
        assert call_scope.get().phase == "prepare" and call_scope.get().item == unit.unit_id
        self.preparing += 1
        self.most_preparing = max(self.most_preparing, self.preparing)
        await asyncio.sleep(random.random() / 500)
        self.preparing -= 1
        return f"p({unit.unit_id})"

    async def write(self, unit: Unit, prepared: str) -> None:
        assert prepared == f"p({unit.unit_id})" and call_scope.get().phase == "write"
        if unit.unit_id == self.die_at:
            raise BackboneError("server gone")
        await asyncio.sleep(random.random() / 1000)
        self.log.append(f"{unit.unit_id}<{len(self.log)}")

    async def consolidate(self) -> None:
        assert not self.consolidated
        self.consolidated = True

    async def retrieve(self, query: str) -> Retrieval:
        assert self.consolidated and call_scope.get().phase in ("retrieve", "warm_up")
        hits = (Hit(self.log[-1], 1.0, (self.log[-1].split("<")[0],)),)
        return Retrieval(hits, "|".join(self.log), {"most": self.most_preparing})

    def state(self) -> Mapping[str, Any]:
        return {"log": list(self.log), "consolidated": self.consolidated}

    def load_state(self, state: Mapping[str, Any]) -> None:
        self.log, self.consolidated = list(state["log"]), state["consolidated"]


class Echo:
    """Answers with the context it was shown; counts who is in flight and what was asked fresh."""

    context_length = 1000

    def __init__(self) -> None:
        self.in_flight = self.most_in_flight = self.asked = self.fresh = 0

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        self.asked += 1
        self.fresh += call_scope.get().fresh
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(random.random() / 500)
        self.in_flight -= 1
        return Reply({"answer": values["context"]}, "", Completion("", 1, 1, 0.0, "stop"))

    async def count_tokens(self, text: str) -> int:
        return len(text)


class Quiet:
    def __init__(self) -> None:
        self.turns = self.questions = self.retrievals = 0

    def restored(self, turns: int) -> None:
        self.turns += turns

    def wrote(self, turns: int, seconds: float) -> None:
        self.turns += turns

    def retrieved(self, seconds: float) -> None:
        self.retrievals += 1

    def answered(self, seconds: float) -> None:
        self.questions += 1


def sample(name: str, turns: int = 12, questions: int = 5) -> Sample:
    conversation = Conversation(name, tuple(Turn(f"{name}-t{i}", "s1", "A", f"text {i}") for i in range(turns)))
    asked = tuple(Question(f"{name}:q{i}", name, f"question {i}", 4) for i in range(questions))
    return Sample(conversation, asked, {q.question_id: Reference(q.question_id, ("x",)) for q in asked})


class AnsweringChain(Chain):
    async def retrieve(self, query: str) -> Retrieval:
        return replace(await super().retrieve(query), answer="its own" if "1" in query else None)


@dataclass(frozen=True)
class AnsweringChainConfig(ChainConfig):
    def build(self, parts: Parts) -> Chain:
        return AnsweringChain(parts, self.die_at)


def run(path: Path, samples: list[Sample], llm: Echo, *, memory: ChainConfig | None = None, reader: bool = True,
        clock: Callable[[], float] = time.perf_counter, failures_in_a_row: int = 5,
        **schedule: Any) -> tuple[RunOutcome, Quiet]:  # fmt: skip
    resources = RunResources(
        memory=memory or ChainConfig(),
        embedder=NoEmbedder(),
        turn_format=TurnFormat(),
        seed=0,
        bind=lambda conversation_id: llm,
        reader=READER.build(0) if reader else None,
        prompts={},
        count_context=reader,
        clock=clock,
        failures_in_a_row=failures_in_a_row,
    )
    directory, progress = RunDirectory(path), Quiet()
    try:
        outcome = asyncio.run(Runner(resources, Schedule(**schedule), directory, progress).run(samples))
    finally:
        directory.close()
    return outcome, progress


def answers(path: Path) -> dict[str, str]:
    rows = list(read_json_lines(path / "answers.jsonl"))
    assert len(rows) == len({row["question_id"] for row in rows})
    return {row["question_id"]: row["prediction"] for row in rows}


def test_results_do_not_depend_on_workers_or_look_ahead(tmp_path: Path) -> None:
    samples = [sample("a"), sample("b", turns=20), sample("c", turns=3)]
    expected = None
    for index, (ahead, questions, conversations) in enumerate([(1, 1, 1), (4, 3, 2), (64, 64, 0)]):
        path = tmp_path / str(index)
        outcome, progress = run(path, samples, Echo(), prepare_ahead=ahead, questions_in_flight=questions,
                                conversations_in_flight=conversations)  # fmt: skip
        assert outcome.failures == {}
        assert (progress.turns, progress.questions, progress.retrievals) == (35, 15, 15)
        most = max(row["trace"]["most"] for row in read_json_lines(path / "retrievals.jsonl"))
        assert most <= ahead
        expected = expected or answers(path)
        assert answers(path) == expected
    assert expected is not None and len(expected) == 15


def test_a_memorys_own_answer_stands_in_place_of_the_readers(tmp_path: Path) -> None:
    llm = Echo()
    run(tmp_path, [sample("a", questions=3)], llm, memory=AnsweringChainConfig())
    assert [text == "its own" for _, text in sorted(answers(tmp_path).items())] == [False, True, False]
    assert llm.asked == 2
    run(tmp_path / "no reader", [sample("a", questions=3)], llm, memory=AnsweringChainConfig(), reader=False)
    assert llm.asked == 2 and not (tmp_path / "no reader" / "answers.jsonl").read_text()


def test_questions_in_flight_is_a_bound_over_all_conversations(tmp_path: Path) -> None:
    llm = Echo()
    run(tmp_path, [sample(name, questions=20) for name in "abc"], llm, questions_in_flight=4)
    assert llm.most_in_flight <= 4


def test_a_failed_conversation_leaves_the_others_and_resumes(tmp_path: Path) -> None:
    samples = [sample("a"), sample("b")]
    whole, _ = run(tmp_path / "whole", samples, Echo())
    assert whole.failures == {}
    broken = ChainConfig(die_at="b-t7")
    outcome, _ = run(tmp_path / "run", samples, Echo(), memory=broken, checkpoint_every=3)
    assert outcome.failures == {"b": "server gone"}
    assert {key[0] for key in answers(tmp_path / "run")} == {"a"}
    llm = Echo()
    outcome, _ = run(tmp_path / "run", samples, llm, checkpoint_every=3)
    assert outcome.failures == {} and llm.asked == 5
    assert answers(tmp_path / "run") == answers(tmp_path / "whole")
    conversations = list(read_json_lines(tmp_path / "run" / "conversations.jsonl"))
    assert sorted(row["conversation_id"] for row in conversations) == ["a", "b"]
    assert all(len(row["write_seconds"]) == len(row["prepare_seconds"]) == 12 for row in conversations)


class SlowToResume(Chain):
    """Takes a thousand seconds of its clock to be restored."""

    now = 0.0
    restored = False

    def load_state(self, state: Mapping[str, Any]) -> None:
        super().load_state(state)
        self.restored = True

    async def resume(self) -> None:
        type(self).now += 1000.0
        self.restored = False

    async def write(self, unit: Unit, prepared: str) -> None:
        assert not self.restored
        await super().write(unit, prepared)

    async def retrieve(self, query: str) -> Retrieval:
        assert not self.restored
        return await super().retrieve(query)


@dataclass(frozen=True)
class SlowToResumeConfig(ChainConfig):
    def build(self, parts: Parts) -> Chain:
        return SlowToResume(parts, self.die_at)


@pytest.mark.parametrize("die_at", ["a-t7", ""])
def test_restoring_a_memory_is_no_part_of_what_is_timed(tmp_path: Path, die_at: str) -> None:
    """A package's worker was started, and all was written to it again, in the seconds of the next write or question."""

    def go(die_at: str) -> None:
        run(tmp_path, [sample("a")], Echo(), memory=SlowToResumeConfig(die_at), clock=lambda: SlowToResume.now,
            checkpoint_every=3)  # fmt: skip

    go(die_at)
    before, answers_file = SlowToResume.now, tmp_path / "answers.jsonl"
    answers_file.write_text("")
    go("")
    assert SlowToResume.now == before + 1000
    assert [row["retrieve_seconds"] for row in read_json_lines(answers_file)] == [0.0] * 5
    record = next(read_json_lines(tmp_path / "conversations.jsonl"))
    assert record["ingest_seconds"] == 0 and set(record["write_seconds"]) == {0.0}


def test_another_error_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Chain, unit: Unit, prepared: str) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Chain, "write", broken)
    with pytest.raises(ExceptionGroup) as caught:
        run(tmp_path, [sample("a")], Echo())
    assert caught.group_contains(ZeroDivisionError)


def test_latency_mode_is_one_at_a_time_fresh_and_warmed_up(tmp_path: Path) -> None:
    llm = Echo()
    run(tmp_path, [sample("a"), sample("b")], llm, latency=True, warmup=2)
    assert llm.most_in_flight == 1
    assert llm.asked == 12 and llm.fresh == 12
    rows = list(read_json_lines(tmp_path / "answers.jsonl"))
    assert len(rows) == 10 and sum(row["measured"] for row in rows) == 8  # those asked before are not measured


def test_retrieval_only_asks_no_backbone(tmp_path: Path) -> None:
    llm = Echo()
    run(tmp_path, [sample("a")], llm, reader=False)
    assert llm.asked == 0 and list(read_json_lines(tmp_path / "answers.jsonl")) == []
    assert len(list(read_json_lines(tmp_path / "retrievals.jsonl"))) == 5


class Picky(Echo):
    """Takes some questions from nobody, at once, while others are asked."""

    def __init__(self, refused: Collection[str], error: BackboneError | None = None) -> None:
        super().__init__()
        self.refused, self.error = refused, error or RequestRefusedError("a field is wrong")

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        if call_scope.get().item in self.refused:
            raise self.error
        return await super().ask(role, values, key=key)


def settled(folder: Path) -> dict[str, tuple[str, str]]:
    return {row["question_id"]: (row["outcome"], row["reason"]) for row in read_json_lines(folder / "settled.jsonl")}


def test_a_refused_question_is_settled_and_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    llm = Picky({"a:q1", "a:q3"})
    outcome, _ = run(tmp_path, [sample("a")], llm)
    assert outcome.failures == {} and settled(tmp_path) == {f"a:q{n}": ("failed", "a field is wrong") for n in (1, 3)}
    assert set(answers(tmp_path)) == {"a:q0", "a:q2", "a:q4"} and llm.asked == 3
    again = Echo()
    assert run(tmp_path, [sample("a")], again)[0].failures == {} and again.asked == 0
    assert len(answers(tmp_path)) == 3


def test_questions_that_all_fail_stay_open_and_are_asked_again(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, [sample("a")], Picky({f"a:q{n}" for n in range(5)}))
    (message,) = outcome.failures.values()
    assert message.startswith("question a:q0: a field is wrong (5 questions failed: a:q0, a:q1, a:q2, a:q3, a:q4)")
    assert not (tmp_path / "settled.jsonl").exists()
    assert run(tmp_path, [sample("a")], Echo())[0].failures == {} and len(answers(tmp_path)) == 5


@pytest.mark.parametrize(("failing", "open_ones"), [(("a:q4",), 0), (("a:q2", "a:q3", "a:q4"), 3)])
def test_a_server_that_fails_in_a_row_is_down_and_settles_nothing(
    tmp_path: Path, failing: Sequence[str], open_ones: int
) -> None:
    llm = Picky(failing, RepeatedFailureError("status 500"))
    outcome, _ = run(tmp_path, [sample("a")], llm, failures_in_a_row=2, questions_in_flight=1)
    assert len(settled(tmp_path)) == len(failing) - open_ones and bool(outcome.failures) == bool(open_ones)
    assert len(answers(tmp_path)) == 5 - len(failing)


def test_a_backbone_that_can_answer_nothing_ends_the_run_at_once(tmp_path: Path) -> None:
    llm = Picky({"a:q0"}, BackboneUnusableError("no credit"))
    outcome, _ = run(tmp_path, [sample("a"), sample("b")], llm, questions_in_flight=1)
    assert outcome.failures == {"the run": "no credit"} and llm.asked < 9
