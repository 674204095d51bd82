"""CLAG in tests: presets from their YAML, a backbone that replies sensibly, and conversations."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from memsys.clag.cluster import Cluster, Partition
from memsys.clag.config import ClagConfig
from memsys.clag.memory import ClagMemory
from memsys.index.vector import VectorIndex
from memsys.protocol import Parts
from memsys.vocabulary import Turn, Unit
from tests.support.composing import composed
from tests.support.fakes import FakeModel, WordEmbedder

TOPICS = ("sea boat sail harbour", "cake oven sugar flour", "guitar song drum band", "garden rose soil seed")


def preset(name: str = "clag", **changes: Any) -> ClagConfig:
    """Make the config of a preset with some fields changed."""
    settings = {**composed(name), **changes}
    settings.pop("_target_")
    return ClagConfig(**settings)


#: Buffered notes evolve, one call per note, and what the code does at consolidation alone: what most tests script.
JOINT: Mapping[str, Any] = {
    "cold_start": "evolve",
    "neighbour_query": "content",
    "evolution_calls": "joint",
    "new_cluster_evolution": "global",
    "split_when": "consolidate",
    "profile_update": "consolidate",
}


def joint(name: str = "clag", **changes: Any) -> ClagConfig:
    """Make the config of a preset with :data:`JOINT` and some fields changed."""
    return preset(name, **{**JOINT, **changes})


def candidate_ids(values: Mapping[str, str]) -> list[str]:
    """Return the cluster ids that a prompt shows."""
    return re.findall(r"^id: (\S+)$", values["candidates"], flags=re.MULTILINE)


def evolution(**changes: Any) -> dict[str, Any]:
    """Make a reply of the role ``evolve``: yes, but nothing to do."""
    return {
        "should_evolve": True,
        "actions": [],
        "suggested_connections": [],
        "tags_to_update": [],
        "new_context_neighborhood": [],
        "new_tags_neighborhood": [],
        **changes,
    }


def sensible(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
    """Reply as a dutiful backbone: no evolution, the nearest cluster, all candidates searched."""
    if role == "analyse":
        words = values["content"].split()
        return {"keywords": words[-2:], "context": f"On {words[-1]}", "tags": [words[-1]]}
    if role == "evolve":
        return evolution(should_evolve=False)
    if role == "link":
        return {"suggested_connections": []}
    if role == "rewrite":
        return {"update": False, "context": "", "tags": []}
    if role == "router":
        return {"choice": candidate_ids(values)[0]}
    if role == "profile":
        return {"summary": f"Summary {key}", "tags": ["one", "two words", "one", "three", "four"]}
    if role == "selector":
        return {"selected_clusters": candidate_ids(values)}
    return {"keywords": ", ".join(values["question"].rstrip("?").split())}


def replying(**replies: Any) -> FakeModel:
    """Make a model that is :func:`sensible` but for some roles: a reply, or a function of values and key."""

    def function(role: str, values: Mapping[str, str], key: str) -> Mapping[str, Any] | str:
        reply = replies.get(role)
        if reply is None:
            return sensible(role, values, key)
        return reply(values, key) if callable(reply) else reply  # type: ignore[no-any-return]

    return FakeModel(function)


def unit(number: int, text: str | None = None) -> Unit:
    """Make the unit of the n-th turn; topics take turns."""
    words = TOPICS[number % len(TOPICS)].split()
    spoken = text or f"{words[number % 3]} {words[(number + 1) % 4]} w{number}"
    return Unit(f"D1:{number}", (Turn(f"D1:{number}", "1", "Ann", spoken, date_time="1 May"),))


def memory(config: ClagConfig, model: FakeModel | None = None) -> ClagMemory:
    """Make an empty memory on fakes."""
    return ClagMemory(config, Parts("c", model or replying(), WordEmbedder(), seed=1))


def write_all(system: ClagMemory, units: Sequence[Unit]) -> None:
    """Write units in order."""

    async def run() -> None:
        for each in units:
            await system.write(each, await system.prepare(each))

    asyncio.run(run())


def partition_of(**centroids: list[float]) -> Partition:
    """Make a partition of one-note clusters with the given centroids."""
    partition = Partition()
    for name, centroid in centroids.items():
        vector = np.array(centroid, dtype=np.float32)
        index = VectorIndex(len(centroid))
        index.add([f"note of {name}"], vector[None])
        partition.put(Cluster(name, "", [], vector, index))
    return partition
