"""``import memsys``: a memory of one's own conversation, and the record of a run as frames and TREC files."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import ir_measures
import pytest

import memsys
from baselines.rag.memory import RagMemory
from eval.api.parts import choose
from eval.export import main as export
from eval.metrics.evidence import ranked_turns
from eval.runs.trec import _id
from memsys.errors import ConfigError, RunDirectoryError
from memsys.llm.scripted import ScriptedModel
from memsys.protocol import MemorySystem, Parts
from memsys.vocabulary import Retrieval
from tests.support.sample_run import retrieval_run

ROOT = Path(__file__).resolve().parents[3]
TURNS = [("Ann", "I have adopted a cat called Pixel.", "3 May 2024"), ("Ben", "I bake bread.", "3 May 2024")]


def echo(role: str, values: Mapping[str, str], key: str) -> str:
    return f"{role}: {values['question']} {values['context']}"


def test_a_memory_without_a_backbone_retrieves() -> None:
    with memsys.open_memory("rag", backbone=None, embedder="hashing", settings=["memory.k=1"]) as memory:
        memory.add(TURNS)
        (hit,) = memory.retrieve("a cat called?").hits
        assert hit.turn_ids == ("S1:1",) and "Pixel" in hit.text
        memory.add([("Ann", "The dog next door is called Rex the dog.")])
        assert memory.retrieve("dog Rex next door").hits[0].turn_ids == ("S2:1",)
        assert memory.calls == []
        with pytest.raises(ConfigError, match="answers need a backbone"):
            memory.answer("Who?")


def test_the_reader_sees_question_and_memories() -> None:
    model = ScriptedModel(echo)
    with memsys.open_memory("rag", backbone=model, embedder="hashing", settings=["memory.k=1"]) as memory:
        memory.add(TURNS)
        answer = memory.answer("What is the cat called?")
    assert "What is the cat called?" in answer.prediction and "Pixel" in answer.prediction
    assert "bread" not in answer.prediction and len(model.calls) == 1


class ClosingConfig:
    """RAG that notes when it is built and closed."""

    name, uses_gold = "closing", False

    def __init__(self) -> None:
        self.events: list[str] = []

    def build(self, parts: Parts) -> MemorySystem:
        assert parts.log_dir is not None and parts.log_dir.is_dir()
        memory: Any = choose("rag", None, "hashing", "sage").memory.build(parts)
        self.events.append("built")

        async def close() -> None:
            self.events.append("closed")

        memory.close = close
        return cast(MemorySystem, memory)


def test_a_memory_is_closed_before_another_is_built() -> None:
    """Those of packages are processes: every round of turns and questions left one more."""
    config = ClosingConfig()
    with memsys.open_memory(config, backbone=None, embedder="hashing") as memory:
        for _ in range(2):
            memory.add(TURNS[:1])
            memory.retrieve("cat")
            memory.retrieve("bread")
        assert config.events == ["built", "closed", "built"]
    assert config.events == ["built", "closed", "built", "closed"]


class AnsweringConfig:
    """RAG that answers questions with "cat" in them itself."""

    name, uses_gold = "answering", False

    def build(self, parts: Parts) -> MemorySystem:
        memory = choose("rag", None, "hashing", "sage").memory.build(parts)
        search = memory.retrieve

        async def retrieve(query: str) -> Retrieval:
            return replace(await search(query), answer="Pixel" if "cat" in query else None)

        memory.retrieve = retrieve  # type: ignore[method-assign]
        return memory


def test_a_memorys_own_answer_is_the_answer_as_in_a_run() -> None:
    """The reader was asked in its place, so that ``memgpt/native`` answered as MemGPT with the shared reader."""
    model = ScriptedModel(echo)
    with memsys.open_memory(AnsweringConfig(), backbone=model, embedder="hashing") as memory:
        memory.add(TURNS)
        assert memory.answer("What is the cat called?").prediction == "Pixel" and not model.calls
        assert "What bakes Ben?" in memory.answer("What bakes Ben?").prediction and len(model.calls) == 1


def test_a_memory_that_answers_itself_is_not_read_by_the_reader() -> None:
    """The reader was asked, and its answer given."""

    def reply(role: str, values: Mapping[str, str], key: str) -> Any:
        return {"thought": "known", "function": "send_message", "args": {"message": "Pixel"}}

    model = ScriptedModel(reply)
    settings = ["memory.ingest.mode=insert"]
    with memsys.open_memory("memgpt_native", backbone=model, embedder="hashing", settings=settings) as memory:
        memory.add(TURNS)
        answer = memory.answer("What is the cat called?")
    assert answer.prediction == "Pixel" and {call.role for call in model.calls} == {"search"}


def test_a_program_with_an_event_loop_waits_itself() -> None:
    async def run() -> list[str]:
        async with memsys.open_async_memory("bm25_turn", backbone=None, embedder="hashing") as memory:
            memory.add([memsys.Turn("one", "s", "Ann", "A cat called Pixel.")])
            found = await memory.retrieve("Pixel")
            assert dict(await memory.statistics()) is not None
            return [hit.memory_id for hit in found.hits]

    assert asyncio.run(run()) == ["one"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"memory": "clga"}, "did you mean clag"),
        ({"settings": ["memory.kk=1"]}, "did you mean memory.k"),
        ({"settings": ["seed=x"]}, "whole number"),
        ({"memory": "oracle"}, "gold"),
        ({"embedder": "nope"}, "embedder/nope"),
    ],
)
def test_a_wrong_choice_is_one_message(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        memsys.open_memory(**{"memory": "rag", "backbone": None, "embedder": "hashing", **arguments})


def test_wrong_turns_are_named() -> None:
    with memsys.open_memory("rag", backbone=None, embedder="hashing") as memory:
        with pytest.raises(ConfigError, match="the conversation is empty"):
            memory.retrieve("anything")
        with pytest.raises(ConfigError, match="a turn is"):
            memory.add(["just a text"])
        with pytest.raises(ConfigError, match="'x' is taken"):
            memory.add([memsys.Turn("x", "s", "A", "a"), memsys.Turn("x", "s", "A", "b")])
    with (
        pytest.raises(ConfigError, match="calls the backbone"),
        memsys.open_memory("amem", backbone=None, embedder="hashing") as memory,
    ):
        memory.add(TURNS)
        memory.retrieve("cat")


def test_messages_of_a_chat_are_turns_and_a_date_that_cannot_be_read_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with memsys.open_memory("bm25_turn", backbone=None, embedder="hashing") as memory:
        memory.add([{"role": "user", "content": "my cat is Pixel"}, ("Ann", "a dog", "2024-05-08T13:56")])
        assert not caplog.records
        memory.add([("Ann", "a bird", "some day")])
        assert "such as 'some day'" in caplog.text
        assert "Pixel" in memory.retrieve("what is the cat called?").hits[0].text
        with pytest.raises(ConfigError, match="all of them texts, not"):
            memory.add([{"role": "user", "content": [{"type": "text"}]}])  # type: ignore[dict-item]


def test_an_endpoint_is_a_backbone() -> None:
    config = memsys.endpoint("http://127.0.0.1:9/v1", "my-model", context_length=4096)
    assert (config.name, config.context_length, config.engine.model) == ("my-model", 4096, "my-model")  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="base_urls"):
        memsys.endpoint("no address", "my-model")


def test_memsys_imports_no_harness_before_it_is_asked() -> None:
    code = "import sys, memsys; sys.exit(any(name == 'eval' or name.startswith('eval.') for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
    assert set(memsys.__all__) <= {name for name in memsys.__all__ if getattr(memsys, name) is not None}
    with pytest.raises(AttributeError, match="nothing_like_it"):
        memsys.nothing_like_it  # noqa: B018


def test_the_example_runs() -> None:
    command = [sys.executable, "examples/own_conversation.py", "rag_quickstart", "smollm2_135m", "hashing"]
    source = (ROOT / command[1]).read_text(encoding="utf-8")
    assert 10 <= len(source.splitlines()) <= 35
    compile(source, command[1], "exec")
    replaced = source.replace('CHOICES.get("backbone", "smollm2_135m")', "MODEL").replace(
        "CHOICES = ", "from memsys.llm.scripted import ScriptedModel\nMODEL = ScriptedModel(['Pixel'])\nCHOICES = "
    )
    done = subprocess.run(
        [sys.executable, "-c", replaced, "rag_quickstart", "-", "hashing"], cwd=ROOT, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "S1:1" in done.stdout and done.stdout.splitlines()[-2:] == ["Pixel", "0 calls of the backbone"]


def test_a_run_is_frames(tmp_path: Path) -> None:
    path = retrieval_run(tmp_path)
    run = memsys.load_run(path)
    assert run.complete and run.record["config"]["memory"]["name"] == "rag"
    retrievals, references = run.retrievals(), run.references()
    assert len(retrievals) == len(references) == 6 and set(retrievals.question_id) == set(references.question_id)
    assert run.answers().empty and run.calls().empty and len(run.conversations()) == 1
    assert run.scores()["recall@10"].notna().any()
    with pytest.raises(RunDirectoryError, match=r"no run\.json"):
        memsys.load_run(tmp_path / "none")


def test_trec_files_give_an_independent_tool_our_own_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = retrieval_run(tmp_path)
    assert export([str(path), "--to", "trec", "--out", str(tmp_path / "trec")]) == 0
    assert "recall at ten is recall_turns@10" in " ".join(capsys.readouterr().out.split())
    ranking = list(ir_measures.read_trec_run(str(tmp_path / "trec" / f"{path.name}.run")))
    gold = list(ir_measures.read_trec_qrels(str(tmp_path / "trec" / f"{path.name}.qrels")))
    wanted = {"recall@5": ir_measures.R @ 5, "recall@10": ir_measures.R @ 10, "ndcg@10": ir_measures.nDCG @ 10}
    for name, measure in wanted.items():
        found = {each.query_id: each.value for each in ir_measures.iter_calc([measure], gold, ranking)}
        own = memsys.load_run(path).scores().set_index("question_id")[name].dropna()
        assert found == pytest.approx(own.to_dict(), abs=1e-6), name


def test_turns_of_a_memory_stand_at_its_place_once() -> None:
    assert ranked_turns([["b", "a"], ["a"], [], ["c", "b"]]) == ["b", "a", "c"]
    assert _id("a b\tc") == "a%20b%09c" and _id("D1:3") == "D1:3"


def test_a_run_without_ranking_is_refused(tmp_path: Path) -> None:
    path = retrieval_run(tmp_path, "no_memory")
    assert export([str(path), "--to", "trec"]) == 2
    assert not (path / "trec").exists()


def test_questions_asked_together_share_one_memory_and_turns_added_meanwhile_are_not_lost() -> None:
    async def run() -> tuple[set[int], int, list[str]]:
        async with memsys.open_async_memory("bm25_turn", backbone=None, embedder="hashing") as memory:
            memory.add([memsys.Turn(str(number), "s", "Ann", f"turn {number}") for number in range(8)])
            asked = [asyncio.create_task(memory.retrieve("turn")) for _ in range(3)]
            await asyncio.sleep(0)
            memory.add([memsys.Turn("cat", "s", "Ann", "A cat called Pixel.")])
            found = [len(one.hits) for one in await asyncio.gather(*asked)]
            last = await memory.retrieve("Pixel")
            statistics: Any = await memory.statistics()
            return set(found), len(statistics), [hit.memory_id for hit in last.hits][:1]

    found, _, last = asyncio.run(run())
    assert min(found) == 8 and last == ["cat"]


def test_a_memory_is_not_closed_while_a_question_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question is under way when more turns come and the next question builds another memory."""
    under_way: list[object] = []
    closed: list[bool] = []
    plain = RagMemory.retrieve

    async def slow(self: Any, query: str) -> Any:
        under_way.append(self)
        await asyncio.sleep(0.05)
        under_way.remove(self)
        return await plain(self, query)

    async def close(memory: Any) -> None:
        closed.append(any(memory is each for each in under_way))

    monkeypatch.setattr(RagMemory, "retrieve", slow)
    monkeypatch.setattr("eval.api.memory.close_memory", close)

    async def run() -> None:
        async with memsys.open_async_memory("bm25_turn", backbone=None, embedder="hashing") as memory:
            memory.add([memsys.Turn("one", "s", "Ann", "A cat called Pixel.")])
            first = asyncio.create_task(memory.retrieve("Pixel"))
            while not under_way:
                await asyncio.sleep(0)
            memory.add([memsys.Turn("two", "s", "Ann", "A dog called Byte.")])
            assert len((await memory.retrieve("Byte")).hits) == 1 and len((await first).hits) == 1

    asyncio.run(run())
    assert closed == [False, False]
