"""CLAG's own cost per write and per retrieval, without backbone and embedder, as its memory grows.

Half of the writes evolve and rewrite all five neighbours, the dearest case. Budgets at 10,000 notes: 3 ms per write,
2 ms per retrieval (medians; a write is measured between the embedder's calls).

Run: ``python tests/benchmarks/bench_clag.py [--notes 10000] [--scope cluster|global]``
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from memsys.clag.memory import ClagMemory  # noqa: E402
from memsys.embedding.contract import Vectors  # noqa: E402
from memsys.llm.contract import Reply, Role  # noqa: E402
from memsys.protocol import Parts  # noqa: E402
from memsys.vocabulary import Completion  # noqa: E402
from tests.support.clag import evolution, joint, sensible, unit  # noqa: E402

COMPLETION = Completion(text="", prompt_tokens=1, completion_tokens=1, seconds=0.0, finish_reason="stop")
QUESTIONS = 200


class InstantModel:
    """Replies at once; every other note rewrites its neighbours."""

    context_length = 8192

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Answer."""
        return Reply(self._value(role.name, values, key), "", COMPLETION)

    def _value(self, role: str, values: Mapping[str, str], key: str) -> Any:
        if role != "evolve" or int(key.split(":")[1]) % 2:
            return sensible(role, values, key)
        count = int(values["neighbour_count"])
        contexts, tags = [f"since {key}"] * count, [["tag", key]] * count
        actions = ["strengthen", "update_neighbor"]
        return evolution(actions=actions, new_context_neighborhood=contexts, new_tags_neighborhood=tags)

    async def count_tokens(self, text: str) -> int:
        """Count characters."""
        return len(text)


class PooledEmbedder:
    """Draws unit vectors from a pool; counts its own seconds."""

    name, dimension = "pool", 384

    def __init__(self) -> None:
        pool = np.random.default_rng(0).standard_normal((50_000, self.dimension)).astype(np.float32) + 0.5
        self.pool = pool / np.linalg.norm(pool, axis=1, keepdims=True)
        self.seconds = 0.0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts."""
        start = time.perf_counter()
        vectors = self.pool[[hash(text) % len(self.pool) for text in texts]]
        self.seconds += time.perf_counter() - start
        return np.asarray(vectors, dtype=np.float32)


async def measure(notes: int, scope: str) -> None:
    """Fill a memory and time its last writes, its retrievals and its consolidation."""
    embedder = PooledEmbedder()
    config = replace(joint(), consolidate_every=10**9, evolution_scope=scope, retrieval_scope=scope)  # type: ignore[arg-type]
    memory = ClagMemory(config, Parts("bench", InstantModel(), embedder, seed=0))
    writes, reads = [], []
    for number in range(notes):
        turn = unit(number)
        prepared = await memory.prepare(turn)
        start, embedding = time.perf_counter(), embedder.seconds
        await memory.write(turn, prepared)
        writes.append(time.perf_counter() - start - (embedder.seconds - embedding))
    for number in range(QUESTIONS):
        start, embedding = time.perf_counter(), embedder.seconds
        await memory.retrieve(f"boat sea w{number}")
        reads.append(time.perf_counter() - start - (embedder.seconds - embedding))
    start = time.perf_counter()
    await memory.consolidate()
    sys.stdout.write(
        f"{notes} notes, {memory.statistics()['clusters']} clusters, scope {scope}: "
        f"write {1e3 * median(writes[-1000:]):.2f} ms, retrieve {1e3 * median(reads):.2f} ms, "
        f"consolidate {time.perf_counter() - start:.2f} s\n"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--scope", choices=("cluster", "global"), default="cluster")
    options = parser.parse_args()
    asyncio.run(measure(options.notes, options.scope))
