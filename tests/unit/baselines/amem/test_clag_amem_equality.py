"""CLAG without clusters is A-Mem: same calls, links, hits and contexts (amem.md, sections 8 and 12 k)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from baselines.amem.config import AmemConfig
from baselines.amem.memory import AmemMemory
from memsys.protocol import MemorySystem, Parts
from tests.support.clag import evolution, joint, replying, unit
from tests.support.composing import CONF
from tests.support.fakes import FakeModel, WordEmbedder


def amem_config() -> AmemConfig:
    with initialize_config_dir(str(CONF), version_base=None):
        config = instantiate(compose(None, overrides=["+memory=amem"]).memory, _convert_="all")
    assert isinstance(config, AmemConfig)
    return config


def evolving() -> FakeModel:
    def reply(values: Mapping[str, str], key: str) -> dict[str, Any]:
        number, count = int(key.split(":")[1]), int(values["neighbour_count"])
        return evolution(
            should_evolve=number % 3 > 0,
            actions=["strengthen", "update_neighbor"],
            suggested_connections=list(range(number)),
            tags_to_update=[f"own{number}"],
            new_context_neighborhood=[f"since {number}"] * count,
            new_tags_neighborhood=[[f"tag{number}"]] * count,
        )

    return replying(evolve=reply)


def run(system: MemorySystem) -> list[Any]:
    async def steps() -> list[Any]:
        for number in range(30):
            await system.write(unit(number), await system.prepare(unit(number)))
        await system.consolidate()
        found = [await system.retrieve(question) for question in ("boat sea?", "oven w7?", "rose soil seed?")]
        return [(each.hits, each.context) for each in found]

    return asyncio.run(steps())


def test_clag_without_clusters_equals_amem_without_consolidation() -> None:
    models = evolving(), evolving()
    amem = AmemMemory(
        replace(amem_config(), reembed="never", consolidate_at_end=False), Parts("c", models[0], WordEmbedder(), seed=1)
    )
    config = joint(evolution_scope="global", retrieval_scope="global", buffer_size=10**6, reembed_global="never")
    clag = config.build(Parts("c", models[1], WordEmbedder(), seed=1))
    ours, theirs = run(clag), run(amem)
    assert ours == theirs
    assert models[0].calls == models[1].calls
    assert models[0].prompts == models[1].prompts
    assert clag.state()["notes"] == amem.state()["notes"]
    assert any(note["links"] for note in clag.state()["notes"])
