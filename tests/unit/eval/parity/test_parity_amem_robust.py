"""Parity with A-Mem's robust release, without that code: the worker on stand-in files, roles, replies in sections."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from baselines.amem.sections import analysis, connections, decision, neighbour_blocks
from eval.parity import authors
from eval.parity.config import backbone_settings, find_counterpart
from eval.parity.endpoint import ParityEndpoint
from eval.parity.facts import KnownTexts
from eval.parity.ours import Answered
from eval.parity.replies import DeterministicBackbone, read_request
from memsys.assets.paths import ROOT
from memsys.embedding.hashing import HashingEmbedder
from memsys.vocabulary import Conversation, Question, Reference, Sample, Turn

CODE = find_counterpart("authors_amem_robust")
BACKBONE = DeterministicBackbone(KnownTexts([]), backbone_settings().words, phrases=CODE.phrases)

#: In place of the authors' files: the names that the worker uses.
FILES = {
    "memory_layer_robust": """
import ollama
from openai import OpenAI
from types import SimpleNamespace

class RobustAgenticMemorySystem:
    def __init__(self, backend, model):
        assert backend == "openai"
        self.memories, self.evo_threshold, self.model, self.client = {}, 100, model, OpenAI()

    def add_note(self, content, time):
        asked = [{"role": "user", "content": f"You turn one message of a long conversation into {content}"}]
        told = self.client.chat.completions.create(model=self.model, messages=asked, temperature=0.7)
        self.memories[content] = SimpleNamespace(content=content, timestamp=time, keywords=[], tags=[], links=[],
                                                 context=told.choices[0].message.content)
""",
    "test_advanced_robust": """
from memory_layer_robust import RobustAgenticMemorySystem
from utils import calculate_metrics

def parse_plain_text_answer(response):
    return response.strip()

class RobustAdvancedMemAgent:
    def __init__(self, model, backend, retrieve_k, temperature_c5):
        self.memory_system = RobustAgenticMemorySystem(backend, model)

    def add_memory(self, content, time=None):
        self.memory_system.add_note(content, time)

    def answer_question(self, question, category, answer):
        return f" {question} ", "prompt", f"context of {self.memory_system.evo_threshold}"
""",
}


def test_the_worker_drives_the_robust_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(authors, "interpreter", lambda environment: Path(sys.executable))
    files = {name: str(tmp_path / f"{name}.py") for name in FILES}
    settings = {"name": "stand-in", "files": files, "attributes": {"evo_threshold": 7}, "retrieve_k": 3}
    sample = Sample(
        Conversation("c", (Turn("D1:1", "s", "Ann", "t1", date_time="noon"),)),
        (Question(question_id="q", conversation_id="c", text="why?", category=1),),
        {"q": Reference("q", ("yes",))},
    )
    plan = SimpleNamespace(
        seed=0,
        dataset=SimpleNamespace(turn_format=SimpleNamespace(render=lambda turn: f"Ann: {turn.text}")),
        reader=SimpleNamespace(build=lambda seed: SimpleNamespace(options=lambda *given: ())),
    )
    endpoint = ParityEndpoint(BACKBONE, HashingEmbedder(8))
    with endpoint.listening():
        run = authors.AuthorsRun(CODE.package, CODE.environment, settings, endpoint.url("theirs"), tmp_path / "log")
        result = asyncio.run(run.run(plan, sample))
    (call,) = endpoint.calls["theirs"]
    assert call.request.role == "analyse_sections"
    (note,) = result.store["notes"]  # type: ignore[misc]
    assert (note["content"], note["timestamp"], note["context"]) == ("Ann: t1", "noon", call.reply)  # type: ignore[index, call-overload]
    assert result.answers == {"q": Answered("why?", "context of 7", "why?")}


def test_each_of_our_prompts_tells_its_role_by_a_phrase() -> None:
    texts = {path.stem: path.read_text() for path in (ROOT / "baselines" / "amem" / "prompts").glob("*.txt")}
    found = {role_of(text): name for name, text in texts.items() if name in CODE.phrases or name == "keywords"}
    assert found == {name: name for name in CODE.phrases if name not in ("query", "short_answer")} | {
        "query": "keywords"
    }
    answers = (ROOT / "eval" / "running" / "prompts" / "amem_robust").glob("*.txt")
    assert {role_of(path.read_text()) for path in answers} == {"short_answer"}


def role_of(prompt: str) -> str:
    return read_request({"messages": [{"role": "user", "content": prompt}]}, CODE.phrases).role


def replies(phrase: str, count: int = 150) -> list[str]:
    shown = [f"{phrase} memory index: 3 memory index: 5 zq{number:06x}" for number in range(count)]
    return [
        BACKBONE.reply(read_request({"messages": [{"role": "user", "content": text}]}, CODE.phrases)) for text in shown
    ]


def test_replies_have_all_the_shapes_that_the_robust_release_reads() -> None:
    analysed = replies("You turn one message of a long conversation into")
    read = [analysis(text) for text in analysed]
    for empty in ("keywords", "context", "tags"):
        assert {bool(getattr(one, empty)) for one in read} == {False, True}
    assert {text.strip("`json\n").startswith("{") for text in analysed} == {False, True}
    decided = Counter(decision(text) for text in replies("Decide whether the memory should change"))
    assert set(decided) >= {None, ("strengthen",), ("update_neighbor",), ("strengthen", "update_neighbor")}
    linked = [connections(text) for text in replies("A new note is to be linked to stored notes")]
    assert {number for numbers, _ in linked for number in numbers} == {3, 5}
    assert {len(numbers) for numbers, _ in linked} >= {0, 1, 2}
    blocks = [neighbour_blocks(text, 2) for text in replies("A new note sheds light on stored notes")]
    assert {tuple(bool(context) for context, _ in pair) for pair in blocks} >= {(True, True), (True, False)}
    answers = replies("Answer the question about time")
    assert (
        0 < sum("answer" in text and text == json.dumps(json.loads(text)) for text in answers if text[0] == "{") < 150
    )
