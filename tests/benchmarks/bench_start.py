"""How long commands take to start, as ratios to the import of Hydra, in CPU seconds: they tell little of the load.

``--help`` of every command; then a run's command to its first call of the embedded backbone, by CPU seconds of the
process and by wall time. The first call of a memory that prepares its turns with the backbone (``clag_quickstart``)
does not wait for the embedder, that of plain retrieval does, unless an earlier run has kept the vectors. The minimum of
several runs is shown.

Run: ``python tests/benchmarks/bench_start.py [--repeat 3]``
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    "run",
    "score",
    "compare",
    "tables",
    "report",
    "judge",
    "lens",
    "explain",
    "export",
    "sweep",
    "inspect_data",
)
MEMORIES = ("no_memory", "clag_quickstart", "rag_quickstart")
#: Ends the process with the first request for a completion.
FIRST_CALL = """
import os, runpy, sys
from memsys.llm.transport import Transport
original = Transport._post
async def post(self, endpoint, path, body):
    if "completions" in path:
        os._exit(0)
    return await original(self, endpoint, path, body)
Transport._post = post
runpy.run_module("eval.run", run_name="__main__")
"""


class Seconds(NamedTuple):
    """Wall time and CPU time."""

    wall: float
    cpu: float


def timed(arguments: Sequence[str], repeat: int) -> Seconds:
    """The least wall time and the least CPU time of some runs of ``python ARGUMENTS``."""
    rounds = [_once(arguments) for _ in range(repeat)]
    return Seconds(min(each.wall for each in rounds), min(each.cpu for each in rounds))


def _once(arguments: Sequence[str]) -> Seconds:
    before, begun = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, stdout=subprocess.DEVNULL, check=True, timeout=600)
    after, wall = os.times(), time.perf_counter() - begun
    children = after.children_user + after.children_system - before.children_user - before.children_system
    return Seconds(wall, children)


def first_call(memory: str, repeat: int) -> Seconds:
    """From the command to the first request for a completion."""
    with tempfile.TemporaryDirectory() as folder:
        return timed(_until_first_call(memory, folder, "use_cache=false"), repeat)


def first_call_with_vectors(memory: str, repeat: int) -> Seconds:
    """The same where a run before has kept the vectors of all texts."""
    with tempfile.TemporaryDirectory() as folder:
        cached = _until_first_call(memory, folder, f"cache_dir={folder}/cache")
        _once([*cached, "mode=retrieval_only", f"run_dir={folder}/retrievals"])
        return timed(cached, repeat)


def _until_first_call(memory: str, folder: str, cache: str) -> Sequence[str]:
    overrides = [f"memory={memory}", cache, "score=false", f"run_dir={folder}/run", "progress=lines"]
    return ["-c", FIRST_CALL, *overrides]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    hydra = timed(["-c", "import hydra"], repeat)
    rows = {f"eval.{name} --help": timed(["-m", f"eval.{name}", "--help"], repeat) for name in COMMANDS}
    rows |= {f"first call, {memory}": first_call(memory, repeat) for memory in MEMORIES}
    sys.stdout.write(f"{'import hydra':<32}{hydra.wall:>8.2f} s wall {hydra.cpu:>7.2f} s CPU\n")
    rows["first call, vectors kept"] = first_call_with_vectors(MEMORIES[-1], repeat)
    for what, seconds in rows.items():
        ratio = seconds.cpu / hydra.cpu
        line = f"{what:<32}{seconds.wall:>8.2f} s wall {seconds.cpu:>7.2f} s CPU  {ratio:>6.2f} x the import of Hydra\n"
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
