"""Dense indexes by kind: time of a search, time to build, and recall against the exact one.

Unit vectors of 384 components around 200 centres, as texts about as many topics have. Recall at ten is the share of the
exact ten that are found.

Run: ``python tests/benchmarks/bench_index.py [--sizes 20000 100000]``
"""

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from memsys.embedding.contract import Vectors  # noqa: E402
from memsys.index.settings import IndexSettings  # noqa: E402
from memsys.index.vector import VectorIndex  # noqa: E402

DIMENSION, TOPICS, QUERIES, K = 384, 200, 100, 10
CHOICES = (
    IndexSettings(),
    IndexSettings(kind="hnsw"),
    IndexSettings(kind="ivf"),
    IndexSettings(kind="ivf", probes=8),
)


def vectors(count: int, seed: int) -> Vectors:
    """Unit rows around centres that every seed shares."""
    centres = np.random.default_rng(0).standard_normal((TOPICS, DIMENSION))
    rng = np.random.default_rng(seed)
    rows = centres[rng.integers(0, TOPICS, count)] + rng.standard_normal((count, DIMENSION))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def main() -> int:
    """Measure and print; fails where a default setting finds less than nine of ten."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000])
    short = 0
    for size in parser.parse_args().sizes:
        stored, queries = vectors(size, 1), vectors(QUERIES, 2)
        exact: list[set[str]] = []
        for settings in CHOICES:
            index = VectorIndex(DIMENSION, settings=settings)
            index.add([str(row) for row in range(size)], stored)
            start = time.process_time()
            index.search(queries[0], K)  # builds
            built = time.process_time() - start
            start = time.process_time()
            found = [{name for name, _ in index.search(query, K)} for query in queries]
            ms = 1000 * (time.process_time() - start) / QUERIES
            exact = exact or found
            recall = sum(len(own & best) for own, best in zip(found, exact, strict=True)) / (K * QUERIES)
            short += recall < 0.9 and settings in CHOICES[:3]
            probes = f" probes={settings.probes}" if settings.kind == "ivf" else ""
            times = f"search {ms:8.3f} ms  build {built:8.2f} s"
            sys.stdout.write(f"{size:>9} {settings.kind + probes:<16} {times}  recall@10 {recall:.3f}\n")
            sys.stdout.flush()
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
