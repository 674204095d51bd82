"""The portable gate: its rule, what a host sees of it, its presets on the command line, and its calibration."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.running.composed import compose_plan
from memsys.embedding.hashing import HashingEmbedder
from memsys.errors import AssetError, ConfigError, DataError
from memsys.gate.calibration import diary_role, personas, stream_scores, threshold, write_diary
from memsys.gate.config import GatedConfig
from memsys.gate.decisions import Decisions, GateDecision, GateRule, decide
from memsys.gate.memory import GatedMemory
from memsys.gate.vmf import KappaRule, VmfScope, vmf_score
from memsys.llm.roles import make_role
from memsys.llm.scripted import ScriptedModel
from memsys.llm.usage import MeteredModel, Usage, metered
from memsys.protocol import BaseMemory, MemorySystem, NeedsAssets, Parts, State
from memsys.vocabulary import Completion, Conversation, Retrieval, Unit
from tests.support.composing import conversation, ingest, memory_config, parts
from tests.support.fakes import FakeModel, TableEmbedder, WordEmbedder
from tests.support.sage import monologue
from tests.unit.memsys.sage.test_sage_mathematics import unit_rows

ROOT = Path(__file__).resolve().parents[4]

#: Half of what is said repeats an earlier turn.
REPEATING = [f"boat harbour sail w{n}" if n % 2 == 0 else "cake oven sugar" for n in range(24)]


@dataclass(frozen=True)
class HostConfig:
    """A host that the gate cannot know: not from this project."""

    name: str = "stranger"
    uses_gold: bool = False

    def build(self, parts: Parts) -> MemorySystem:
        return Host(parts)


class Host(BaseMemory):
    """Asks once to prepare and once to write, and keeps the ids of its units."""

    def __init__(self, parts: Parts) -> None:
        self.llm = parts.llm
        self.seen: list[str] = []
        shipped = ROOT / "memsys" / "sage" / "prompts"
        self.role = make_role("merge_short", {"temperature": 0, "max_tokens": 1}, shipped, None)

    async def prepare(self, unit: Unit) -> str:
        await self.llm.ask(self.role, {"stored": "", "new": ""}, key=f"prepare {unit.unit_id}")
        return unit.unit_id

    async def write(self, unit: Unit, prepared: str) -> None:
        await self.llm.ask(self.role, {"stored": "", "new": ""}, key=f"write {unit.unit_id}")
        self.seen.append(prepared)

    async def retrieve(self, query: str) -> Retrieval:
        await self.llm.ask(self.role, {"stored": "", "new": ""}, key=f"retrieve {query}")
        return Retrieval((), " ".join(self.seen))

    def state(self) -> State:
        return {"seen": list(self.seen)}

    def load_state(self, state: State) -> None:
        self.seen = list(state["seen"])

    def statistics(self) -> Mapping[str, Any]:
        return {"seen": len(self.seen)}


def gated(model: FakeModel | None = None, host: Any = None, **changes: Any) -> GatedMemory:
    settings = {**{"tau_noop": 0.9, "min_scope": 1}, **changes}
    embedder = settings.pop("embedder", None) or WordEmbedder()
    config = memory_config("gated", host=host or HostConfig(), **settings)
    memory = config.build(parts(model or silent(), embedder=embedder))
    assert isinstance(memory, GatedMemory)
    return memory


def silent() -> FakeModel:
    return FakeModel(lambda role, values, key: "said")


def gate(memory: MemorySystem) -> dict[str, Any]:
    found: dict[str, Any] = memory.statistics()["gate"]
    return found


# the rule


def test_a_unit_is_dropped_strictly_above_the_threshold() -> None:
    scope = VmfScope(2, KappaRule(50, 1e-3))
    scope.add("0", np.array([1, 0], np.float32))
    vector = np.array([1, 0], np.float32)
    score = scope.support(vector).score
    assert decide(scope, vector, GateRule(score, 1, KappaRule(50, 1e-3))).dropped is False
    assert decide(scope, vector, GateRule(float(np.nextafter(score, -1)), 1, KappaRule(50, 1e-3))).dropped is True


def test_nothing_is_scored_before_enough_has_passed() -> None:
    texts = {"same": [1.0, 0.0]}
    for min_scope in (1, 3):
        decisions = Decisions(TableEmbedder(texts), GateRule(0.5, min_scope, KappaRule(50, 1e-3)))
        decisions.follow(["same"] * 5)
        made = [asyncio.run(decisions.of(position)) for position in range(5)]
        assert [each.dropped for each in made] == [False] * min_scope + [True] * (5 - min_scope)
        assert made[0] == GateDecision(dropped=False)


def test_dropped_units_do_not_join_the_scope() -> None:
    texts = {"a": [1.0, 0.0], "b": [0.0, 1.0]}
    decisions = Decisions(TableEmbedder(texts), GateRule(0.9, 1, KappaRule(50, 1e-3)))
    decisions.follow(["a", "a", "b", "b"])
    last = asyncio.run(decisions.of(3))
    # the scope is {a, b}: kappa of R = 0.707 in two dimensions
    kappa = KappaRule(50, 1e-3).concentration(2**-0.5, 2)
    assert last.kappa == pytest.approx(kappa, rel=1e-5)
    assert last.score == pytest.approx(vmf_score(np.array([0.0, 1.0]), kappa), abs=1e-6)


def test_decisions_do_not_depend_on_how_they_are_asked_for() -> None:
    rule = GateRule(0.75, 2, KappaRule(50, 1e-3))
    texts = [f"{REPEATING[n % 24]} {n // 24}" for n in range(150)]
    one, other = Decisions(WordEmbedder(), rule), Decisions(WordEmbedder(), rule)
    one.follow(texts)
    other.follow(texts)
    in_order = [asyncio.run(one.of(position)) for position in range(150)]

    async def at_once() -> list[GateDecision]:
        return list(await asyncio.gather(*(other.of(position) for position in reversed(range(150)))))

    assert list(reversed(asyncio.run(at_once()))) == in_order
    assert 0 < sum(each.dropped for each in in_order) < 150


def test_a_position_beyond_the_stream_is_refused() -> None:
    decisions = Decisions(WordEmbedder(), GateRule(0.5, 1, KappaRule(50, 1e-3)))
    decisions.follow(["one"])
    with pytest.raises(IndexError, match="too few texts"):
        asyncio.run(decisions.of(1))


# the host


def test_a_dropped_unit_costs_no_call_and_reaches_no_host() -> None:
    model = silent()
    memory = gated(model)
    ingest(memory, monologue(*REPEATING))
    host = memory.state()["host"]["seen"]
    found = gate(memory)
    assert (found["units"], found["passed"], found["dropped"]) == (24, len(host), 24 - len(host))
    assert found["dropped"] >= 11  # every repetition
    asked = [key.split()[1] for _, key in model.calls]
    assert sorted(set(asked)) == sorted(host) and len(asked) == 2 * len(host)
    assert found["calls"] == 2 * len(host)
    assert found["calls_saved"] == 2 * found["dropped"]
    assert found["skip_rate"] == found["dropped"] / 24
    assert found["add_phase"]["merge_short"]["prompt_tokens"] == found["calls"]


def test_reading_is_the_hosts_and_is_not_counted_as_writing() -> None:
    memory = gated()
    ingest(memory, monologue(*REPEATING))
    before = gate(memory)
    assert asyncio.run(memory.retrieve("q")).context == " ".join(memory.state()["host"]["seen"])
    assert gate(memory) == before
    assert memory.statistics()["seen"] == before["passed"]


def test_an_open_gate_changes_nothing_and_a_shut_one_keeps_what_fills_the_scope() -> None:
    conv = monologue(*REPEATING)
    everything = gated(tau_noop=1.0)
    ingest(everything, conv)
    assert everything.state()["host"]["seen"] == [turn.turn_id for turn in conv.turns]
    nothing = gated(tau_noop=-1.0, min_scope=4)
    ingest(nothing, conv)
    assert nothing.state()["host"]["seen"] == [turn.turn_id for turn in conv.turns[:4]]


def test_calls_run_ahead_do_not_show_in_a_snapshot() -> None:
    conv = monologue(*REPEATING)
    ahead, straight = gated(), gated()

    async def run(memory: GatedMemory, look_ahead: int) -> str:
        units = memory.units(conv)
        prepared = [await memory.prepare(unit) for unit in units[: 12 + look_ahead]]
        for unit, each in zip(units[:12], prepared, strict=False):
            await memory.write(unit, each)
        return repr(memory.state())

    assert asyncio.run(run(ahead, 12)) == asyncio.run(run(straight, 0))


def test_a_resumed_gate_decides_as_if_it_had_gone_on() -> None:
    conv = monologue(*REPEATING)
    straight, first, second = gated(), gated(), gated()
    ingest(straight, conv)

    async def run() -> None:
        for unit in first.units(conv)[:11]:
            await first.write(unit, await first.prepare(unit))
        second.units(conv)
        second.load_state(first.state())
        for unit in second.units(conv)[11:]:
            await second.write(unit, await second.prepare(unit))

    asyncio.run(run())
    assert repr(second.state()) == repr(straight.state())
    assert second.statistics() == straight.statistics()


def test_units_that_were_not_announced_are_refused() -> None:
    with pytest.raises(ValueError, match="units"):
        asyncio.run(gated().prepare(Unit("D1:0", monologue("x").turns)))


def test_the_gate_scores_bare_words_or_the_turn_as_written() -> None:
    conv = conversation(["same words", "same words"])
    assert gate(written(conv, "bare"))["trace"]["cosine"] == [None, 1.0]
    cosine = gate(written(conv, "rendered"))["trace"]["cosine"][1]
    assert cosine < 0.95  # "Ann:" and "Ben:" differ


def written(conv: Conversation, text: str) -> GatedMemory:
    memory = gated(text=text)
    ingest(memory, conv)
    return memory


def test_the_benchmarks_own_quantile_is_noted() -> None:
    memory = gated(tau_noop=1.0)
    ingest(memory, monologue(*REPEATING))
    scores = [score for score in gate(memory)["trace"]["score"] if score is not None]
    assert gate(memory)["score_p80"] == pytest.approx(float(np.quantile(scores, 0.8)), abs=1e-5)
    assert gate(gated())["score_p80"] is None


def test_usage_is_counted_where_it_is_open_alone() -> None:
    role = make_role("merge_short", {"temperature": 0, "max_tokens": 1}, ROOT / "memsys" / "sage" / "prompts", None)
    model = MeteredModel(silent())
    assert model.context_length == 8192

    async def run() -> Usage:
        values = {"stored": "", "new": ""}
        await model.ask(role, values, key="outside")
        with metered() as usage:
            await asyncio.gather(*(model.ask(role, values, key=str(n)) for n in range(3)))
        await model.ask(role, values, key="outside")
        return usage

    usage = asyncio.run(run())
    assert usage.calls == 3
    total = Usage.from_state(usage.state())
    total.note("other", Completion("", 5, 7, 0.5, "stop"))
    total.add(usage)
    assert total.state()["merge_short"]["calls"] == 6
    assert total.state()["other"] == {"calls": 1, "prompt_tokens": 5, "completion_tokens": 7, "seconds": 0.5}


# settings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tau_noop": "low"}, "tau_noop"),
        ({"min_scope": 0}, "min_scope"),
        ({"kappa_cap": 0}, "kappa_cap"),
        ({"text": "spoken"}, "text"),
        ({"host": "amem"}, "host"),
        ({"uses_gold": True}, "uses_gold"),
        ({"calibration": {}}, "calibration"),
    ],
)
def test_wrong_settings_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"memory\.{said}"):
        memory_config("gated", **changes)


def test_what_a_host_needs_is_asked_for_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path))
    config = memory_config("gated", host=memory_config("lightmem"))
    assert isinstance(config, NeedsAssets)
    with pytest.raises(AssetError, match=r"llmlingua|LLMLingua"):
        config.check_assets()


def test_a_gate_is_not_gated() -> None:
    with pytest.raises(ConfigError, match="gate already"):
        memory_config("gated", host=memory_config("gated"))


def test_a_calibrated_threshold_holds_for_its_embedder() -> None:
    held = {"embedder": "words", "text": "bare", "kappa_cap": 50, "kappa_floor": 1e-3, "min_scope": 10}
    held["tau_noop"] = 0.572
    with pytest.raises(ConfigError, match=r"memory\.text"):
        memory_config("gated", calibration=held, text="rendered")
    with pytest.raises(ConfigError, match=r"memory\.tau_noop=0\.6 but the calibration gave 0\.572"):
        memory_config("gated", calibration=held, tau_noop=0.6)
    config = memory_config("gated", calibration=held)
    assert isinstance(config.build(parts(silent())), GatedMemory)
    with pytest.raises(ConfigError, match=r"words.*hashing"):
        config.build(parts(silent(), embedder=HashingEmbedder(8)))


@pytest.mark.parametrize("host", ["amem_small", "sage_small", "clag_code"])
def test_the_command_line_names_the_host(host: str) -> None:
    memory = compose_plan(["memory=gated", f"memory@memory.host={host}", "memory.tau_noop=0.6"]).memory
    assert isinstance(memory, GatedConfig)
    assert memory.host == compose_plan([f"memory={host}"]).memory
    assert (memory.name, memory.tau_noop) == (f"gated_{host}", 0.6)


def test_the_runs_settings_hold_those_of_the_host() -> None:
    settings = compose_plan(["memory=gated", "memory@memory.host=amem_small"]).settings["memory"]
    assert settings["host"]["name"] == "amem_small" and settings["host"]["roles"]["evolve"]["max_items"] == 5
    assert json.loads(json.dumps(settings)) == settings


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("memory@memory.host=gated", "memory.host=gated_rag is a gate already; name the system behind it"),
        ("memory.host=amem", "memory.host=amem is not a choice; write memory@memory.host=amem"),
    ],
)
def test_a_host_that_cannot_be_is_one_error(host: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose_plan(["memory=gated", host])
    assert str(caught.value) == said


def test_a_host_with_gold_evidence_needs_it_said() -> None:
    with pytest.raises(ConfigError, match=r"set memory\.uses_gold"):
        compose_plan(["memory=gated", "memory@memory.host=oracle"])
    plan = compose_plan(["memory=gated", "memory@memory.host=oracle", "memory.uses_gold=true"])
    assert plan.memory.host.name == "oracle"


# calibration


def test_a_diary_is_written_in_blocks_and_malformed_ones_are_missing() -> None:
    def say(role: str, values: Mapping[str, str], key: str) -> Any:
        return "no" if key == "Ida:20" else {"entries": [f"{key} {n}" for n in range(int(values["count"]))] + [" "]}

    diary = asyncio.run(write_diary(ScriptedModel(say), diary_role(0.7, 600), personas()[0], 35, 10))
    assert (len(diary.entries), diary.malformed) == (30, 1)
    assert diary.entries[0] == "Ida:0 0" and diary.entries[-1] == "Ida:30 9"
    assert len({each.name for each in personas()}) == 10


def test_scores_are_those_of_a_scope_that_keeps_everything() -> None:
    rule = GateRule(-1.0, 2, KappaRule(50, 1e-3))
    rows = unit_rows(5, 4)
    embedder = TableEmbedder({str(n): row for n, row in enumerate(rows.tolist())})
    scores = asyncio.run(stream_scores(embedder, [str(n) for n in range(5)], rule))
    assert len(scores) == 3
    scope = VmfScope(4, rule.kappa)
    for row in rows[:4]:
        scope.add(str(len(scope)), row)
    assert scores[-1] == pytest.approx(scope.support(rows[4]).score, abs=1e-6)


def test_the_threshold_is_a_quantile() -> None:
    assert threshold([0.0, 0.1, 0.2, 0.3, 0.4, 0.5], 0.8) == pytest.approx(0.4)
    with pytest.raises(ValueError, match="min_scope"):
        threshold([], 0.8)


def calibrate(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "scripts" / "calibrate_gate.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_command_writes_a_preset_that_can_be_run(tmp_path: Path) -> None:
    corpus, out = tmp_path / "diaries.jsonl", tmp_path / "gated_mine.yaml"
    lines = [{"name": name, "about": "boats", "entries": [f"boat {name} w{n % 5}" for n in range(30)]} for name in "AB"]
    corpus.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    done = calibrate("--corpus", str(corpus), "--out", str(out), "embedder=hashing", "memory.min_scope=2")
    assert done.returncode == 0, done.stderr
    assert "from 56 scores of 2 diaries" in done.stdout
    written = read_yaml(out)
    assert written["min_scope"] == 2 and written["calibration"]["embedder"] == "hashing"
    assert 0 < written["tau_noop"] < 1
    assert written.pop("name") == "gated_mine_${.host.name}"
    assert written.pop("defaults") == ["gated", "_self_"]
    assert isinstance(memory_config("gated", host=HostConfig(), **written), GatedConfig)
    short = calibrate("--corpus", str(corpus), "embedder=hashing", "memory.min_scope=40")
    assert short.returncode == 2 and "memory.min_scope=40" in short.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--quantile", "80"), "--quantile=80.0"),
        (("--per-call", "0"), "--per-call=0"),
        (("--out", "nowhere/gated_mine.yaml"), "nowhere does not exist"),
        (("--corpus", "no/diaries.jsonl"), "no does not exist"),
    ],
)
def test_what_cannot_work_is_refused_before_a_diary_is_written(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["calibrate_gate.py", *arguments])
    command = command_module()
    with pytest.raises(ConfigError, match=said):
        command.calibrate(command.parsed())


@pytest.mark.parametrize("line", ["no json", "[1]", '{"name": "Ida", "about": "boats"}'])
def test_a_line_that_is_no_diary_is_named(line: str, tmp_path: Path) -> None:
    corpus = tmp_path / "diaries.jsonl"
    corpus.write_text('{"name": "Ida", "about": "boats", "entries": ["a"]}\n' + line, encoding="utf-8")
    with pytest.raises(DataError, match=r"diaries\.jsonl, line 2"):
        command_module().read_corpus(corpus)


def command_module() -> Any:
    spec = spec_from_file_location("calibrate_gate", ROOT / "scripts" / "calibrate_gate.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found
