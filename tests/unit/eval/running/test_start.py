"""What a start loads, when, and that no clock of the run contains it."""

import asyncio
import fnmatch
import logging
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.config.compose import compose_run, config_loader
from eval.config.presets import description, descriptions, preset_names, read_settings
from eval.config.run_help import SECTIONS, groups, help_text, sections
from eval.run import compose_and_run
from eval.running.composed import compose_plan
from eval.running.loading import BACKBONE, EMBEDDER, Loading, embeds
from eval.running.models import load_models
from eval.running.plan import Plan
from eval.running.runner import Runner, RunResources
from eval.running.schedule import Schedule
from eval.running.timing import ConversationClock, LoadingEmbedder
from eval.runs.files import read_json_lines
from eval.runs.rundir import RunDirectory
from memsys.embedding.contract import Vectors
from memsys.errors import ConfigError
from memsys.protocol import Parts
from memsys.turns import TurnFormat
from memsys.vocabulary import Unit
from tests.support.composing import CONF, memory_config
from tests.unit.eval.running.test_runner import Chain, Echo, Quiet, sample

ROOT = Path(__file__).resolve().parents[4]
HEAVY = ("torch", "transformers", "sentence_transformers", "pandas", "matplotlib", "sklearn", "scipy", "datasets",
         "nltk", "faiss", "xllamacpp")  # fmt: skip
COMMANDS = ("run", "score", "compare", "tables", "report", "judge", "lens", "explain", "export", "sweep",
            "inspect_data", "serve", "plots")  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_help_imports_nothing_heavy(command: str) -> None:
    forbidden = (*HEAVY, "hydra", "omegaconf", "numpy", "rich") if command in ("run", "sweep") else HEAVY
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['eval.{command}', '--help']\n"
        "try:\n"
        f"    runpy.run_module('eval.{command}', run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        f"sys.stderr.write(repr([name for name in {forbidden!r} if name in sys.modules]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]", done.stderr
    assert "usage" in done.stdout


def test_help_names_every_group_and_describes_each_choice_of_one() -> None:
    text = help_text([])
    for name in groups(CONF):
        assert f"{name}=" in text
        described = help_text(["--help", name])
        for preset, about in descriptions(CONF / name).items():
            assert described.count(f"\n  {preset} ") == 1 and about


def test_the_short_help_of_run_is_a_screen_with_a_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = help_text([])
    assert len(text.splitlines()) <= 65
    assert "memsys run memory=rag dataset=locomo_sample\n" in text
    assert text.index("start here: rag, ") < text.index("papers: amem, clag, ") < text.index("packages: package_amem")
    assert "clag_tau_015" not in text and re.search(r"and \d+ more: `--help memory`", text)


def test_sections_hold_every_choice_once_and_name_nothing_that_is_not_there() -> None:
    for group, listed in read_settings(SECTIONS).items():
        names = preset_names(CONF / group)
        found = sections(group, names)
        assert sorted(name for each in found for name in each.choices) == sorted(names)
        patterns = [pattern for each in listed.values() for pattern in each]
        assert [each for each in patterns if not fnmatch.filter(names, each)] == []


def test_a_variant_follows_the_choice_whose_name_it_begins_with(tmp_path: Path) -> None:
    path = tmp_path / "help.yaml"
    path.write_text("memory:\n  first: [a, a_b]\n  second: ['p_*']\n")
    names = ["new", "p_q", "a_b_c", "a_z", "a", "a_b"]
    assert [(each.heading, each.choices, each.listed) for each in sections("memory", names, path)] == [
        ("first", ["a", "a_b", "a_b_c", "a_z"], 2),
        ("second", ["p_q"], 1),
        ("more", ["new"], 0),
    ]
    assert [each.choices for each in sections("reader", ["b", "a"], path)] == [["a", "b"]]


def test_help_of_a_group() -> None:
    memories = " ".join(help_text(["--help", "memory"]).split())
    assert "clag_small CLAG" in memories and description(CONF / "memory" / "clag_small.yaml") in memories
    assert "clag_code CLAG" in memories and description(CONF / "memory" / "clag_code.yaml") in memories
    assert not {"judge", "tables", "backbone/base"} & set(groups(CONF))
    assert description(CONF / "experiment" / "quickstart.yaml").startswith("The sample conversation")
    with pytest.raises(ConfigError, match=r"memroy.*memory"):
        help_text(["--help", "memroy"])


class Moved:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Embedder:
    name, dimension = "slow", 2

    def __init__(self) -> None:
        self.loaded: Future[float] = Future()
        self.embedded: list[str] = []

    def load(self) -> "Future[float]":
        return self.loaded

    async def embed(self, texts: Sequence[str]) -> Vectors:
        assert self.loaded.done()
        self.embedded += texts
        return np.zeros((len(texts), 2), dtype=np.float32)


class EmbeddingChain(Chain):
    """Embeds in every write, never in prepare."""

    clock: Moved

    async def prepare(self, unit: Unit) -> str:
        self.clock.now += 1.0  # a call of one second
        return f"p({unit.unit_id})"

    async def write(self, unit: Unit, prepared: str) -> None:
        await self.parts.embedder.embed([unit.unit_id])
        self.clock.now += 2.0
        self.log.append(f"{unit.unit_id}<{len(self.log)}")


class EmbeddingChainConfig:
    name, uses_gold = "chain", False

    def __init__(self, clock: Moved) -> None:
        self.clock = clock

    def build(self, parts: Parts) -> Chain:
        memory = EmbeddingChain(parts, "")
        memory.clock = self.clock
        return memory


def test_ingestion_starts_beside_the_loading_and_its_seconds_are_without_it(tmp_path: Path) -> None:
    clock, embedder = Moved(), Embedder()
    loading = Loading(clock)
    config = EmbeddingChainConfig(clock)
    loaded = loading.start_embedder(embedder, config)
    assert loaded is not None
    resources = RunResources(
        memory=config, embedder=LoadingEmbedder(embedder, loaded, embedder.load), turn_format=TurnFormat(), seed=0,
        bind=lambda conversation_id: Echo(), reader=None, prompts={}, count_context=False, clock=clock,
    )  # fmt: skip

    async def run() -> None:
        directory = RunDirectory(tmp_path)
        runner = asyncio.create_task(
            Runner(resources, Schedule(prepare_ahead=4), directory, Quiet()).run([sample("a", turns=4, questions=1)])
        )
        while clock.now < 4.0:  # all four were prepared before the model was there
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)
        assert embedder.embedded == []
        clock.now += 30.0
        loaded.set_result(30.0)
        await runner
        directory.close()

    asyncio.run(run())
    (row,) = read_json_lines(tmp_path / "conversations.jsonl")
    assert row["write_seconds"] == [2.0] * 4 and row["prepare_seconds"] == [1.0] * 4
    assert row["ingest_seconds"] == pytest.approx(12.0)
    assert loading.seconds == {EMBEDDER: 34.0}


def test_a_conversation_with_work_beside_what_waits_is_timed(tmp_path: Path) -> None:
    clock = Moved()
    whole = ConversationClock(clock)
    with whole.operation() as waiting:
        with waiting.waiting():
            with whole.operation() as working:
                clock.now += 5
                assert working.seconds() == 5
            clock.now += 7  # only the waiting one is left
        clock.now += 1
        assert waiting.seconds() == 1
    assert whole.seconds() == 6


def test_both_loads_overlap_and_are_recorded() -> None:
    clock, embedder = Moved(), Embedder()
    loading = Loading(clock)
    loaded = loading.start_embedder(embedder, EmbeddingChainConfig(clock))
    clock.now += 1
    with loading.of(BACKBONE):
        clock.now += 2
        embedder.loaded.set_result(3.0)
        clock.now += 1
    backbone, own = loading.spans[BACKBONE], loading.spans[EMBEDDER]
    assert loaded is embedder.loaded and own.ended is not None
    assert own.begun < backbone.begun < own.ended
    assert loading.seconds == {EMBEDDER: 3.0, BACKBONE: 3.0}


@pytest.mark.parametrize("name", ["no_memory", "oracle", "full_context", "readagent", "bm25_turn"])
def test_no_model_is_loaded_for_a_memory_that_never_embeds(name: str) -> None:
    config = memory_config(name)
    assert not embeds(config)
    assert Loading().start_embedder(Embedder(), config) is None


@pytest.mark.parametrize("name", ["rag", "hybrid_turn", "clag", "amem", "gated_amem"])
def test_the_model_is_loaded_for_a_memory_that_embeds(name: str) -> None:
    assert embeds(memory_config(name))


def test_a_single_run_is_composed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``hydra.main`` composes twice; sweeps, settings of Hydra's own and its messages are left to it."""
    loader = type(config_loader())
    composed, plans = [], []
    load = loader.load_configuration

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        composed.append(args)
        return load(self, *args, **kwargs)

    def no_run(plan: Plan, *_: object) -> tuple[str, int]:
        plans.append(plan)
        return "", 0

    monkeypatch.setattr(loader, "load_configuration", counted)
    monkeypatch.setattr("eval.run.run_one", no_run)
    compose_and_run(["backbone=smollm2_135m", "memory=clag_small", "seed=7", "score=false", f"runs_dir={tmp_path}"])
    assert len(composed) == 1
    assert [(plan.memory.name, plan.seed, "hydra" in plan.settings) for plan in plans] == [("clag_small", 7, False)]
    for overrides in (["+sweep=clag_table7"], ["memory=rag,clag"], ["hydra.verbose=false"], ["memory.no_such=1"]):
        assert compose_run(overrides) is None


@pytest.mark.parametrize("arguments", [(), ("hydra.verbose=false",)], ids=["composed here", "composed by Hydra"])
def test_a_run_leaves_the_loggers_as_they_are(
    arguments: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hydra's ``disabled`` switched off every logger there was, and no warning of memsys reached anybody."""
    monkeypatch.setattr("eval.run.run_one", lambda *_: ("", 0))
    monkeypatch.setattr(sys, "argv", ["eval.run"])
    logger, level = logging.getLogger("memsys.llm.cache_files"), logging.getLogger().level
    compose_and_run(["backbone=smollm2_135m", "memory=no_memory", "score=false", f"runs_dir={tmp_path}", *arguments])
    assert not logger.disabled and logger.isEnabledFor(logging.WARNING)
    assert logging.getLogger().level == level


def test_loading_is_told_only_where_something_loads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``loading `` stood there with nothing after it."""
    plan = compose_plan(["mode=retrieval_only", "embedder=hashing", "memory=rag"])

    async def load() -> None:
        async with AsyncExitStack() as stack:
            assert await load_models(plan, RunDirectory(tmp_path), stack, Loading()) == (None, None)

    asyncio.run(load())
    assert "loading" not in capsys.readouterr().out


def test_llama_cpp_is_loaded_before_torch_can_be() -> None:
    """Both bring libgomp; the first to come decides how its threads wait."""
    code = (
        "import sys\n"
        "from eval.running.composed import compose_plan\n"
        "from eval.running.models import make_engines, backbone_selection\n"
        "plan = compose_plan([])\n"
        "make_engines(backbone_selection(plan, plan.backbone))\n"
        "sys.exit(not ('xllamacpp' in sys.modules and 'torch' not in sys.modules))\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=120)


def test_a_memory_that_never_embeds_needs_no_files_of_the_embedder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of kept vectors is named by the model's files, which such a run may lack."""
    plan = compose_plan(["mode=retrieval_only", "memory=bm25_turn", f"cache_dir={tmp_path}"])
    monkeypatch.setenv("MEMSYS_MODELS", str(tmp_path / "none"))

    async def load() -> None:
        async with AsyncExitStack() as stack:
            assert await load_models(plan, RunDirectory(tmp_path), stack, Loading()) == (None, None)

    asyncio.run(load())


@pytest.mark.parametrize(
    ("override", "kept"), [("seed=1", True), ("use_cache=false", False), ("timing=latency", False)]
)
def test_vectors_are_kept_unless_the_run_uses_no_cache_or_is_timed(
    override: str, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = compose_plan(["mode=retrieval_only", "embedder=hashing", "memory=rag", f"cache_dir={tmp_path}", override])
    embedder = Keeping("a")
    monkeypatch.setattr("eval.running.models.embedder_for", lambda plan: embedder)

    async def load() -> None:
        async with AsyncExitStack() as stack:
            await load_models(plan, RunDirectory(tmp_path), stack, Loading())

    asyncio.run(load())
    assert embedder.folder == (tmp_path / "vectors" if kept else None) and embedder.loads == 0


class Keeping(Embedder):
    """An embedder with the vectors of an earlier run."""

    def __init__(self, *known: str) -> None:
        super().__init__()
        self.known, self.loads = set(known), 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        assert self.knows(texts) or self.loaded.done()
        self.embedded += texts
        return np.zeros((len(texts), 2), dtype=np.float32)

    def keep(self, folder: Path | None) -> None:
        self.folder = folder

    def has_kept(self) -> bool:
        return bool(self.known)

    def knows(self, texts: Sequence[str]) -> bool:
        return self.known.issuperset(texts)

    def load(self) -> "Future[float]":
        self.loads += 1
        return super().load()


def test_the_model_is_loaded_with_the_first_text_whose_vector_is_not_kept() -> None:
    clock, embedder = Moved(), Keeping("a", "b")
    loading = Loading(clock)
    assert loading.start_embedder(embedder, EmbeddingChainConfig(clock)) is None
    patient = LoadingEmbedder(embedder, None, partial(loading.load_embedder, embedder))

    async def run() -> None:
        await patient.embed(["a", "b"])
        assert (embedder.loads, embedder.embedded, loading.spans) == (0, ["a", "b"], {})
        new = [asyncio.create_task(patient.embed([text])) for text in ("a", "c", "d")]
        for _ in range(5):
            await asyncio.sleep(0)
        assert (embedder.loads, embedder.embedded[2:]) == (1, ["a"])  # what is known does not wait
        clock.now += 4
        embedder.loaded.set_result(4.0)
        await asyncio.gather(*new)

    asyncio.run(run())
    assert sorted(embedder.embedded[3:]) == ["c", "d"] and loading.seconds == {EMBEDDER: 4.0}
    assert Loading(clock).start_embedder(Keeping(), EmbeddingChainConfig(clock)) is not None  # nothing is kept: at once


def test_a_failed_load_is_the_error_of_the_text() -> None:
    embedder = Embedder()
    embedder.loaded.set_exception(ConfigError("no such model"))

    async def run() -> None:
        started = time.monotonic()
        await asyncio.wait_for(_embed(embedder), 5)
        assert time.monotonic() - started < 5

    with pytest.raises(ConfigError, match="no such model"):
        asyncio.run(run())


async def _embed(embedder: Embedder) -> None:
    waiting: Future[float] = Future()
    task = asyncio.create_task(LoadingEmbedder(embedder, waiting, embedder.load).embed(["a"]))
    await asyncio.sleep(0)
    waiting.set_exception(ConfigError("no such model"))
    await task
