"""What checksums, typed rows and bounded parsing cost: their share of a run whose server answers after 50 ms.

Measured inside a run of A-Mem on the sample conversation, and inside its second start, which reads and checks every
row. Run: ``python tests/benchmarks/bench_integrity.py``
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from eval.running import experiment  # noqa: E402
from eval.running.composed import compose_plan  # noqa: E402
from eval.runs import rows, snapshots  # noqa: E402
from memsys.llm import cache_rows, structured  # noqa: E402
from tests.support.stub_process import attached, stub_server  # noqa: E402

DELAY = 0.05
#: What was added to the way of a call and of a row. Reading a cached row holds its JSON, which was read before, too.
ADDED = (
    (cache_rows, "_checksum"),
    (cache_rows, "record_from"),
    (structured, "check_value"),
    (rows, "record_from"),
    (snapshots, "record_from"),
    (snapshots, "snapshot_name"),
    (experiment, "whole"),
)


class Meter:
    """Wall time spent inside functions."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._inside = False

    def wrap(self, module: Any, name: str) -> None:
        """Measure a function of a module from now on; what it calls of the others is counted once."""
        function: Callable[..., Any] = getattr(module, name)

        def measured(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return function(*arguments, **named)
            self._inside = True
            begun = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - begun
                self.calls += 1
                self._inside = False

        setattr(module, name, measured)


def start(url: str, folder: Path) -> float:
    """Run the plan, or look whether it is complete; returns the seconds."""
    settings = ["dataset=locomo_sample", "memory=amem_small", "embedder=hashing", *attached(url), "score=false",
                f"run_dir={folder / 'run'}", f"cache_dir={folder / 'cache'}", "progress=lines"]  # fmt: skip
    plan = compose_plan(settings)
    begun = time.perf_counter()
    experiment.run_experiment(plan)
    return time.perf_counter() - begun


def main() -> None:
    """Measure and print."""
    meter = Meter()
    for module, name in ADDED:
        meter.wrap(module, name)
    with stub_server(delay=DELAY) as url, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = start(url, folder)
        sys.stdout.write(f"run: {whole:.2f} s, of it {100 * meter.seconds / whole:.2f} % ({meter.calls} checks)\n")
        meter.seconds, meter.calls = 0.0, 0
        again = start(url, folder)
        share = 100 * meter.seconds / whole
        sys.stdout.write(f"second start: {again:.2f} s, its checks {share:.2f} % of the run ({meter.calls} checks)\n")
        (folder / "run" / "answers.jsonl").unlink()
        meter.seconds, meter.calls = 0.0, 0
        cached = start(url, folder)
        share = 100 * meter.seconds / whole
        sys.stdout.write(f"answers from the cache: {cached:.2f} s, checks {share:.2f} % of the run ({meter.calls})\n")


if __name__ == "__main__":
    main()
