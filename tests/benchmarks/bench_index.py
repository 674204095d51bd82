"""Dense indexes by kind: time of a search, time to build, and recall against the exact one.

Unit vectors of 384 components around 200 centres, as texts about as many topics have. Recall at ten is the share of the
exact ten that are found. With ``--datasets locomo realtalk`` the vectors are those of real turns, all of these sets
in one index, and the queries are every hundredth turn's first eight words; this takes some minutes of embedding.

Run: ``python tests/benchmarks/bench_index.py [--sizes 20000 100000] [--datasets locomo realtalk beam_100k]``
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

from memsys.embedding.contract import Vectors  # noqa: E402
from memsys.index.settings import IndexSettings  # noqa: E402
from memsys.index.vector import VectorIndex  # noqa: E402
from tests.support.composing import dataset_turns, embedder_of  # noqa: E402

DIMENSION, TOPICS, QUERIES, K = 384, 200, 100, 10
CHOICES = (
    IndexSettings(),
    IndexSettings(kind="hnsw"),
    IndexSettings(kind="ivf"),
    IndexSettings(kind="ivf", probes=8),
    IndexSettings(kind="ivf", lists=1024, probes=16, exact_below=40 * 1024),
)


def vectors(count: int, seed: int) -> Vectors:
    """Unit rows around centres that every seed shares."""
    centres = np.random.default_rng(0).standard_normal((TOPICS, DIMENSION))
    rng = np.random.default_rng(seed)
    rows = centres[rng.integers(0, TOPICS, count)] + rng.standard_normal((count, DIMENSION))
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def real_vectors(datasets: Sequence[str]) -> tuple[Vectors, Vectors]:
    """Embedded turns of data sets, and embedded queries."""
    texts = list(dict.fromkeys(turn.text for name in datasets for turn in dataset_turns(name) if turn.text.strip()))
    queries = [" ".join(text.split()[:8]) for text in texts[:: max(len(texts) // QUERIES, 1)]][:QUERIES]
    model = embedder_of("minilm")
    return asyncio.run(model.embed(texts)), asyncio.run(model.embed(queries))


def main() -> int:
    """Measure and print; fails where a default setting finds less than nine of ten."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000])
    parser.add_argument("--datasets", nargs="+", default=[], help="data sets whose turns are embedded instead")
    given = parser.parse_args()
    short = 0
    for size in [0] if given.datasets else given.sizes:
        stored, queries = real_vectors(given.datasets) if given.datasets else (vectors(size, 1), vectors(QUERIES, 2))
        size = len(stored)
        exact: list[set[str]] = []
        for settings in CHOICES:
            if settings.kind != "flat" and size <= settings.exact_below:
                continue  # it would search exactly
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
            short += recall < 0.9 and settings in CHOICES[:3] and not given.datasets
            probes = f" {settings.probes} of {settings.lists}" if settings.kind == "ivf" else ""
            times = f"search {ms:8.3f} ms  build {built:8.2f} s"
            sys.stdout.write(f"{size:>9} {settings.kind + probes:<18} {times}  recall@10 {recall:.3f}\n")
            sys.stdout.flush()
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
