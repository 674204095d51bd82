"""What the novelty gate costs: one decision with 10,000 memories stored, and one step of SAGE's threshold.

Vectors are unit rows of eight topics with noise, as wide as those of MiniLM. Medians; a decision (kappa, score, nearest
memory, route) is bound to 2 ms. The threshold moves once per write and measures the scope's volume only if it changed.

Run: ``python tests/benchmarks/bench_gate.py [--memories 10000]``
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from memsys.embedding.contract import Vectors  # noqa: E402
from memsys.gate.decisions import GateRule, decide  # noqa: E402
from memsys.gate.vmf import KappaRule, VmfScope  # noqa: E402
from memsys.sage.threshold import ln_volume, route  # noqa: E402

DECISION_BOUND_MS = 2.0
DIMENSION = 384


def make_rows(count: int) -> Vectors:
    """Make unit rows around eight topics."""
    rng = np.random.default_rng(0)
    topics = rng.standard_normal((8, DIMENSION))
    rows = (topics[np.arange(count) % 8] + rng.standard_normal((count, DIMENSION))).astype(np.float32)
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def milliseconds(step: Callable[[], object], times: int) -> float:
    """Time a step; median of several runs after one for warmth."""
    step()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        step()
        taken.append(1000 * (time.perf_counter() - begun))
    return median(taken)


def main() -> int:
    """Measure, print, and fail where the bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    arguments = parser.parse_args()
    rows = make_rows(arguments.memories + 1)
    scope, rule = VmfScope(DIMENSION, KappaRule(50, 1e-3)), GateRule(0.572, 1, KappaRule(50, 1e-3))
    for number, row in enumerate(rows[:-1]):
        scope.add(str(number), row)
    candidate = rows[-1]
    gate = milliseconds(lambda: decide(scope, candidate, rule), 200)
    routed = milliseconds(lambda: route((1 - scope.support(candidate).score) / 2, 0.025, 0.025), 200)
    for name, taken in (("gate: decision", gate), ("SAGE: decision", routed)):
        sys.stdout.write(f"{name:<28}{len(scope):>7} memories{taken:>10.3f} ms\n")
    for count in (130, 260, len(scope)):
        taken = milliseconds(lambda count=count: ln_volume(rows[:count], 16, 1e-3), 10)  # type: ignore[misc]
        sys.stdout.write(f"{'SAGE: volume, once a write':<28}{count:>7} memories{taken:>10.3f} ms\n")
    slow = max(gate, routed) > DECISION_BOUND_MS
    sys.stdout.write(f"above the bound of {DECISION_BOUND_MS} ms: {'yes' if slow else 'no'}\n")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
