"""How close the scheduler comes to the critical path, on all of LoCoMo against a server with a fixed delay.

The server answers every request after 50 ms, any number at once, so wall time is what the scheduling leaves on the
table. The critical path of ingestion is the longest chain of dependent calls in any conversation, counted from the
ledger, times the delay: one analysis, then each write's routing, evolution, update and consolidation. SAGE merges one
fact after the other within a speaker's memories, both speakers at once; the stub's facts are two words, of which nearly
all would be ignored, so that here all are merged: the longest chain it can have. xMemory's is every boundary call, then
the last episode, its facts and the themes' summaries. For answering the critical path is calls / 64 times the delay, or
the longest chain of one question's calls where that is more. With ``--embedder minilm`` the bound is the larger of that
and the embedding work. ``gated+amem`` is A-Mem behind the gate.

``waited`` is how long the run's thread was ready and had no core: where it is not small beside the wall time, the ratio
tells of the machine's load and not of the scheduling.

Run: ``python tests/benchmarks/bench_scheduling.py [--embedder hashing|minilm] [--memories amem clag] [--stages ...]``
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.running.models import make_resources, open_backbones  # noqa: E402
from eval.running.plan import Plan  # noqa: E402
from eval.running.runner import Runner  # noqa: E402
from eval.runs.files import read_json_lines  # noqa: E402
from eval.runs.rundir import RunDirectory  # noqa: E402
from memsys.vocabulary import Sample  # noqa: E402
from tests.support.stub_process import attached, stub_server  # noqa: E402

DELAY = 0.05
IN_FLIGHT = 64
#: What is set beside the preset.
SETTINGS = {"sage": ("memory.tau_0=0", "memory.tau_min=0", "memory.delta=1")}
#: Roles whose calls within one write follow one another, in lanes named by the key without its last part.
SEQUENTIAL = ("merge",)


class Quiet:
    """No progress display: it is not what is measured."""

    def restored(self, turns: int) -> None:
        """Ignore."""

    def wrote(self, turns: int, seconds: float) -> None:
        """Ignore."""

    def retrieved(self, seconds: float) -> None:
        """Ignore."""

    def answered(self, seconds: float) -> None:
        """Ignore."""


@dataclass(frozen=True)
class Row:
    """One measurement: seconds of wall time, of its bound, and spent ready to run without a core."""

    what: str
    calls: int
    wall: float
    bound: float
    waited: float

    def text(self) -> str:
        """Format the row."""
        ratio = self.wall / self.bound
        return (
            f"{self.what:<34}{self.calls:>8} calls {self.wall:>8.2f} s  bound {self.bound:>7.2f} s  ratio {ratio:.3f}"
            f"  waited {self.waited:.2f} s"
        )


def compose_plan(memory: str, embedder: str, url: str, folder: str) -> Plan:
    """Compose the plan of one memory against the stub."""
    from eval.running.composed import compose_plan as compose

    preset, _, host = memory.partition("+")
    overrides = [
        f"memory={preset}", f"embedder={embedder}", "dataset=locomo", *attached(url), "backbone.max_in_flight=2000",
        "use_cache=false", f"run_dir={folder}", "score=false",
        f"schedule.questions_in_flight={IN_FLIGHT}", *SETTINGS.get(preset, ()),
    ]  # fmt: skip
    overrides += [f"memory@memory.host={host}"] if host else []
    plan: Plan = compose(overrides)
    return plan


def waited() -> float:
    """Seconds that this process's main thread has been ready to run without a core; 0 where Linux does not say."""
    known = Path("/proc/self/schedstat")
    return int(known.read_text(encoding="utf-8").split()[1]) / 1e9 if known.is_file() else 0.0


async def timed_run(plan: Plan, samples: Sequence[Sample], directory: RunDirectory) -> tuple[float, float]:
    """Run the samples; returns the seconds between an open backbone and the last record, and of these the waited."""
    async with AsyncExitStack() as stack:
        backbone = await open_backbones(plan, directory, stack)
        resources = make_resources(plan, backbone, {})
        await resources.embedder.embed(["warm up"])
        begun, before = time.perf_counter(), waited()
        outcome = await Runner(resources, plan.schedule, directory, Quiet()).run(samples)
        seconds = time.perf_counter() - begun, waited() - before
    if outcome.failures:
        raise SystemExit(f"benchmark failed: {outcome.failures}")
    return seconds


def longest_chain(calls: Sequence[dict[str, Any]]) -> int:
    """Dependent calls in a row: per conversation one analysis, then the sequential steps of each write.

    xMemory's boundaries depend on each other; what follows from a cut runs beside the cuts after it, except at the end.
    """
    if any(call["role"] == "boundary" for call in calls):
        return max(_xmemory_chain(calls).values())
    steps: dict[str, set[tuple[str, str, int]]] = defaultdict(set)
    lanes: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    prepared: dict[str, int] = defaultdict(int)
    for call in calls:
        conversation = call["conversation_id"]
        if call["phase"] == "prepare":
            prepared[conversation] = 1
        elif call["role"] in SEQUENTIAL:
            lanes[conversation][call["item"], call["key"].rpartition(":")[0]] += 1
        elif call["phase"] in ("write", "consolidate"):
            # Calls of one role within one write (a consolidation's profiles) run side by side: one step.
            steps[conversation].add((call["item"], call["role"], call["attempt"]))
    names = {*steps, *prepared, *lanes}
    return max((len(steps[name]) + prepared[name] + longest_lanes(lanes[name]) for name in names), default=0)


def longest_lanes(lanes: Mapping[tuple[str, str], int]) -> int:
    """Sum over the writes of one conversation the calls of the longest lane in each."""
    longest: dict[str, int] = defaultdict(int)
    for (item, _), count in lanes.items():
        longest[item] = max(longest[item], count)
    return sum(longest.values())


def _xmemory_chain(calls: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Per conversation: its boundary calls, and one step for each role that the last episode passes through."""
    chain: dict[str, int] = defaultdict(int)
    tail: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        chain[call["conversation_id"]] += call["role"] == "boundary"
        if call["role"] in ("episode", "extract", "theme"):
            tail[call["conversation_id"]].add(call["role"])
    return {name: chain[name] + len(tail[name]) for name in chain}


def longest_question(calls: Sequence[dict[str, Any]]) -> int:
    """Calls of the question that made most: a question's calls follow one another."""
    return max(Counter(call["item"] for call in calls).values(), default=0)


async def embedding_seconds(plan: Plan, samples: Sequence[Sample]) -> float:
    """Seconds that the embedder needs for the texts of all turns, alone and as one batch."""
    texts = [f"{turn.speaker}: {turn.text}" for sample in samples for turn in sample.conversation.turns]
    embedder = plan.embedder.build()
    await embedder.embed(["warm up"])
    begun = time.perf_counter()
    await embedder.embed(texts)
    return time.perf_counter() - begun


def measure(memory: str, embedder: str, url: str, stages: Sequence[str]) -> list[Row]:
    """Ingest all conversations, then answer all questions on the stored memories."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        plan = compose_plan(memory, embedder, url, folder)
        samples = plan.dataset.load().samples
        directory = RunDirectory(Path(folder))
        wall, starved = asyncio.run(timed_run(plan, [replace(s, questions=()) for s in samples], directory))
        calls = list(read_json_lines(Path(folder) / "calls.jsonl"))
        if "ingest" in stages and calls:  # RAG writes without a call: there is no path to be critical
            bound = longest_chain(calls) * DELAY
            if embedder != "hashing":
                bound = max(bound, asyncio.run(embedding_seconds(plan, samples)))
            rows.append(Row(f"{memory}: ingest, {embedder}", len(calls), wall, bound, starved))
        if "answer" in stages:
            wall, starved = asyncio.run(timed_run(plan, samples, directory))
            read = list(read_json_lines(Path(folder) / "calls.jsonl"))[len(calls) :]
            chain = max(len(read) / IN_FLIGHT, longest_question(read)) * DELAY
            rows.append(Row(f"{memory}: answer, {embedder}", len(read), wall, chain, starved))
        directory.close()
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--embedder", default="hashing")
    parser.add_argument(
        "--memories", nargs="+", default=["rag", "amem", "clag", "memfly", "sage", "gated+amem", "xmemory"]
    )
    parser.add_argument("--stages", nargs="+", default=["ingest", "answer"])
    arguments = parser.parse_args()
    with stub_server(delay=DELAY) as url:
        for memory in arguments.memories:
            for row in measure(memory, arguments.embedder, url, arguments.stages):
                sys.stdout.write(row.text() + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
