"""What one write and one retrieval cost a memory system itself as its memory grows.

Every system of conf/memory in the settings of its shortest preset, without being named here: a
backbone that fills in schemas, the hashing embedder, turns of about 25 words in sessions of thirty. Times are those of
the processor, without what backbone and embedder take: the system's own. A write is one unit with its preparation, the
mean of the last hundred; a unit is a turn, a batch or a session, as the system takes them, so the same is also given
for a turn. A retrieval is the mean of ten. The goal is 5 ms for the write of a turn and 10 ms for a retrieval at a
million memories. Memory is what the process grew by, per turn; every system has a process of its own, as one would
take what another gave free. Modules are loaded before, by a unit written into another memory.

Run: ``python tests/benchmarks/bench_scale.py [--sizes 1000 10000 100000] [--million] [--seconds 60] [--csv]``
``--dataset locomo`` takes that data set's turns instead of drawn words, over and over until there are enough.
``--index ivf`` measures with another dense index than the exact one, ``--lists`` and ``--probes`` with other cells.
``--csv`` keeps every measurement in ``results/scale/systems.csv`` as it comes, in place of an older one of the same
system, index, texts and size; of that file ``python -m eval.results.figures.scale`` makes the tables of
``docs/scale.md`` and
their figure. A system that takes more than ``--seconds`` of the processor for a size, stand-ins for backbone and
embedder included, is stopped there, a retrieval is measured among what is stored, and larger sizes are not tried.
"""

import argparse
import asyncio
import gc
import multiprocessing
import os
import random
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import accumulate
from pathlib import Path
from statistics import mean
from typing import get_args

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.config.compose import choice_settings  # noqa: E402
from eval.config.presets import MEMORY, preset_names  # noqa: E402
from eval.results.figures.scale import MILLION, READ_GOAL_MS, SYSTEMS, WRITE_GOAL_MS, ScalePoint, keep  # noqa: E402
from memsys.embedding.contract import Vectors  # noqa: E402
from memsys.embedding.hashing import HashingEmbedder  # noqa: E402
from memsys.errors import AssetError  # noqa: E402
from memsys.index.settings import IndexKind, IndexSettings, using_index  # noqa: E402
from memsys.llm.contract import Reply, Role  # noqa: E402
from memsys.protocol import MemorySystem, NeedsAssets, Parts  # noqa: E402
from memsys.vocabulary import Conversation, Turn, Unit  # noqa: E402
from tests.support.composing import PACKAGES, dataset_turns, memory_config  # noqa: E402
from tests.support.schema_model import SchemaModel  # noqa: E402

SIZES = (1_000, 10_000, 100_000)
MEASURED_WRITES, MEASURED_READS = 100, 10


class OutsideClock:
    """Processor seconds spent in backbone and embedder."""

    def __init__(self) -> None:
        self.seconds = 0.0


class TimedModel(SchemaModel):
    """A backbone whose time does not count, and that keeps no list of its calls."""

    context_length = 1 << 40

    def __init__(self, clock: OutsideClock) -> None:
        super().__init__()
        self._clock = clock

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Answer, off the clock."""
        start = time.process_time()
        reply = await super().ask(role, values, key=key)
        self.calls.clear()
        self._clock.seconds += time.process_time() - start
        return reply


class TimedEmbedder(HashingEmbedder):
    """An embedder whose time does not count."""

    def __init__(self, clock: OutsideClock) -> None:
        super().__init__(384)
        self._clock = clock

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed, off the clock."""
        start = time.process_time()
        vectors = await super().embed(texts)
        self._clock.seconds += time.process_time() - start
        return vectors


@dataclass(frozen=True)
class Costs:
    """What was measured of one system at one size: see :class:`eval.results.figures.scale.ScalePoint`."""

    turns_a_write: float = 0.0
    turn_ms: float = 0.0
    read_ms: float = 0.0
    end_ms: float = 0.0
    bytes_a_turn: float = 0.0
    stopped_at: int = 0


def one_preset_per_system() -> list[str]:
    """Of every system the preset with the shortest name that can be built here.

    Presets behind a gate, those that read gold, packages that are programs of their own, and those that lack a model or
    a Python package are passed over.
    """
    systems: dict[str, list[str]] = {}
    for name in preset_names(MEMORY):
        systems.setdefault(str(choice_settings("memory", name)["_target_"]), []).append(name)
    found = (next(filter(_usable, sorted(names, key=lambda name: (len(name), name))), "") for names in systems.values())
    return sorted(filter(None, found))


def _usable(name: str) -> bool:
    config = memory_config(name)
    if name in PACKAGES or getattr(config, "host", None) or config.uses_gold:
        return False
    try:
        if isinstance(config, NeedsAssets):
            config.check_assets()
    except AssetError as error:
        sys.stdout.write(f"without {name}: {error}\n")
        return False
    return True


def conversation(turns: int) -> Conversation:
    """Turns whose words fall off in frequency as in speech."""
    words = [f"word{number}" for number in range(8000)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(words))))
    rng = random.Random(0)
    drawn = (" ".join(rng.choices(words, cum_weights=weights, k=25)) for _ in range(turns))
    made = (
        Turn(f"t{number}", f"s{number // 30}", ("Ann", "Ben")[number % 2], text, date_time="1 May 2023")
        for number, text in enumerate(drawn)
    )
    return Conversation("c", tuple(made), ("Ann", "Ben"))


def repeated(dataset: str, turns: int) -> Conversation:
    """The turns of a data set one after the other, and again from the first until there are enough."""
    found = dataset_turns(dataset)
    made = (
        Turn(
            f"t{number}", f"s{number // 30}", ("Ann", "Ben")[number % 2], found[number % len(found)].text, "1 May 2023"
        )
        for number in range(turns)
    )
    return Conversation("c", tuple(made), ("Ann", "Ben"))


def resident_bytes() -> int:
    """Memory that the process holds now; 0 where the system does not tell."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[1]) * resource.getpagesize() if status.is_file() else 0


async def measure(preset: str, talk: Conversation, limit_s: float) -> Costs:
    """Fill a fresh memory and time its last writes, what the end of the stream costs, and some retrievals."""
    await _load_modules(preset, talk)
    clock = OutsideClock()
    gc.collect()
    before = resident_bytes()
    memory = memory_config(preset).build(Parts("c", TimedModel(clock), TimedEmbedder(clock), 7))
    units = list(memory.units(talk))
    costs, written, deadline = [], 0, time.process_time() + limit_s
    for unit in units:
        costs.append(await _own_ms(clock, memory, unit))
        written += len(unit.turns)
        if time.process_time() > deadline:
            break
    stopped = len(costs) < len(units)
    start, outside = time.process_time(), clock.seconds
    if not stopped:
        await memory.consolidate()
    end_ms = 1000 * (time.process_time() - start - (clock.seconds - outside))
    gc.collect()
    grown = max(resident_bytes() - before, 0)
    reads = await _reads(clock, memory, talk.turns[:written])
    return Costs(
        *_write_ms(costs, units),
        read_ms=mean(reads),
        end_ms=0.0 if stopped else end_ms / written,
        bytes_a_turn=grown / written,
        stopped_at=written if stopped else 0,
    )


async def _load_modules(preset: str, talk: Conversation) -> None:
    """Write a unit into another memory and ask it: FAISS alone takes a second to load, once, whatever is stored."""
    clock = OutsideClock()
    memory = memory_config(preset).build(Parts("c", TimedModel(clock), TimedEmbedder(clock), 7))
    unit = memory.units(talk)[0]
    await memory.write(unit, await memory.prepare(unit))
    await memory.consolidate()
    await memory.retrieve("word1")


def _write_ms(costs: Sequence[float], units: Sequence[Unit]) -> tuple[float, float]:
    """Of the last writes so far: turns of one, and milliseconds for a turn of theirs."""
    first = max(len(costs) - MEASURED_WRITES, 0)
    turns = sum(len(unit.turns) for unit in units[first : len(costs)])
    return turns / (len(costs) - first), sum(costs[first:]) / turns


async def _own_ms(clock: OutsideClock, memory: MemorySystem, unit: Unit) -> float:
    start, outside = time.process_time(), clock.seconds
    await memory.write(unit, await memory.prepare(unit))
    return 1000 * (time.process_time() - start - (clock.seconds - outside))


async def _reads(clock: OutsideClock, memory: MemorySystem, turns: Sequence[Turn]) -> list[float]:
    step = max(len(turns) // MEASURED_READS, 1)
    questions = [" ".join(turn.text.split()[:8]) for turn in turns[::step]][:MEASURED_READS]
    await memory.retrieve("word1")  # indexes bring themselves up to date with the first retrieval
    costs = []
    for question in questions:
        start, outside = time.process_time(), clock.seconds
        await memory.retrieve(question)
        costs.append(1000 * (time.process_time() - start - (clock.seconds - outside)))
    return costs


def write(*cells: str) -> None:
    """Print a row."""
    sys.stdout.write(f"{cells[0]:<26}" + "".join(f"{cell:>16}" for cell in cells[1:]) + "\n")
    sys.stdout.flush()


def show(point: ScalePoint) -> None:
    """Print one measurement."""
    if point.stopped_at:
        said = (
            f"stopped at {point.stopped_at} after {point.limit_s:g} s ({point.turn_ms:.3f} ms a turn, "
            f"{point.read_ms:.3f} ms a retrieval, {point.bytes_a_turn:.0f} bytes a turn)"
        )
        write(point.system, str(point.turns), said)
        return
    over = point.turn_ms > WRITE_GOAL_MS or point.read_ms > READ_GOAL_MS
    times = [f"{ms:.3f}" for ms in (point.turn_ms, point.end_ms, point.read_ms)]
    write(point.system, str(point.turns), *times, f"{point.bytes_a_turn:.0f}", "over" if over else "")


def curve(preset: str, sizes: Sequence[int], arguments: argparse.Namespace, day: str) -> None:
    """Measure a system at growing sizes, until one is too much for it; ``day`` is when the whole run began."""
    lists = arguments.lists
    exact = max(IndexSettings().exact_below, 40 * lists)  # faiss wants so many vectors to find the cells
    settings = IndexSettings(kind=arguments.index, lists=lists, probes=arguments.probes, exact_below=exact)
    cells = f" index.lists={lists} index.probes={arguments.probes}" if arguments.index == "ivf" else ""
    for size in sizes:
        talk = repeated(arguments.dataset, size) if arguments.dataset else conversation(size)
        with using_index(settings):
            costs = asyncio.run(measure(preset, talk, arguments.seconds))
        point = ScalePoint(
            system=preset,
            index="" if arguments.index == "flat" else f"index.kind={arguments.index}{cells}",
            texts=arguments.dataset,
            turns=size,
            limit_s=arguments.seconds,
            date=day,
            machine=f"{os.cpu_count()} cores",
            **vars(costs),
        )
        show(point)
        if arguments.csv:
            keep(Path(arguments.csv), point)
        if point.stopped_at:
            break


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES[:2])
    parser.add_argument("--million", action="store_true", help="up to a million turns")
    parser.add_argument("--dataset", default="", help="data set whose turns are repeated, e.g. locomo")
    parser.add_argument("--seconds", type=float, default=60.0, help="limit of a system at one size")
    parser.add_argument("--presets", nargs="+", default=None)
    parser.add_argument("--index", choices=get_args(IndexKind), default="flat", help="dense index of every system")
    parser.add_argument("--lists", type=int, default=IndexSettings().lists, help="cells of ivf")
    parser.add_argument("--probes", type=int, default=IndexSettings().probes, help="cells of ivf that are searched")
    kept = "/".join(SYSTEMS.parts[-3:])  # no path of this machine
    parser.add_argument("--csv", nargs="?", const=str(SYSTEMS), default="", help=f"keep the measurements ({kept})")
    arguments = parser.parse_args()
    sizes = [*SIZES, MILLION] if arguments.million else arguments.sizes
    write("system", "turns", "a turn (ms)", "end, a turn", "retrieve (ms)", "bytes a turn")
    day = date.today().isoformat()  # noqa: DTZ011 - one for the run: a table holds figures of one day alone
    names = arguments.presets or one_preset_per_system()
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as alone:
        for name in names:
            alone.apply(curve, (name, sizes, arguments, day))
    return 0


if __name__ == "__main__":
    sys.exit(main())
