"""Memories from their presets in ``conf/memory``."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from eval.config.compose import choice_settings
from eval.config.presets import MEMORY, preset_names
from memsys.embedding.contract import Embedder
from memsys.protocol import MemoryConfig, MemorySystem, Parts
from memsys.vocabulary import Conversation, Turn
from tests.support.fakes import FakeModel, WordEmbedder

CONF = Path(__file__).resolve().parents[2] / "conf"

#: Names of all presets of memories that are complete: those from outside need to be told where they are.
PRESETS = tuple(name for name in preset_names(MEMORY) if name not in ("object", "http", "mcp"))

#: Those of packages, which run in environments of their own (`scripts/make_package_env.py`): tests that need the
#: package are in tests/contract/test_package_workers.py, for each whose environment is there.
PACKAGES = tuple(
    name for name in PRESETS if str(choice_settings("memory", name)["_target_"]).startswith("baselines.packages.")
)

#: Presets that run within this process.
IN_PROCESS = tuple(name for name in PRESETS if name not in PACKAGES)


@lru_cache
def composed(name: str) -> Mapping[str, Any]:
    """Compose the preset of this name; ``gated+amem`` is the preset ``gated`` with that host."""
    from omegaconf import OmegaConf

    preset, _, host = name.partition("+")
    settings = choice_settings("memory", preset)
    if host:
        settings["host"] = choice_settings("memory", host)
    container: Any = OmegaConf.to_container(OmegaConf.create({"memory": settings}), resolve=True)
    return {str(key): value for key, value in container["memory"].items()}


def preset_name(name: str) -> str:
    """Return the name that a preset's config bears: a gate's is completed by its host's, unless its file names one."""
    gate, given, _ = name.partition("+")
    host = composed(name).get("host")
    return f"{gate}_{host['name']}" if host and (given or gate == "gated") else name


def memory_config(name: str, **changes: Any) -> MemoryConfig:
    """Make the config of a preset, some of its settings changed."""
    return _made({**composed(name), **changes})


def check_settings(name: str) -> None:
    """Check that a preset names every setting, and that none has a default in code."""
    settings = dict(composed(name))
    settings.pop("_target_")
    config = memory_config(name)
    assert dataclasses.is_dataclass(config)
    assert set(settings) == {field.name for field in dataclasses.fields(config)}
    assert config.name == preset_name(name)
    defaults = [field.name for field in dataclasses.fields(config) if field.default is not dataclasses.MISSING]
    assert defaults == [], "a default in code hides a setting from the YAML"


def without_reading(roles: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return a preset's roles without how their replies are read."""
    return {name: {key: value for key, value in role.items() if key != "reading"} for name, role in roles.items()}


def _made(settings: dict[str, Any]) -> MemoryConfig:
    from hydra.utils import get_class

    if isinstance(settings.get("host"), Mapping):
        settings["host"] = _made(dict(settings["host"]))
    config: MemoryConfig = get_class(settings.pop("_target_"))(**settings)
    return config


def parts(model: FakeModel, **changes: Any) -> Parts:
    """Give a memory its parts: fakes where nothing else is said."""
    return Parts(**{"conversation_id": "c", "llm": model, "embedder": WordEmbedder(), "seed": 1, **changes})


def ingest(memory: MemorySystem, conversation: Conversation) -> None:
    """Write a conversation unit by unit, then consolidate."""

    async def run() -> None:
        for unit in memory.units(conversation):
            await memory.write(unit, await memory.prepare(unit))
        await memory.consolidate()

    asyncio.run(run())


def conversation(*sessions: Sequence[str]) -> Conversation:
    """Make a conversation of two people from the texts of its sessions; session n is on the n-th of May."""
    turns = [
        Turn(f"D{session}:{n}", f"session_{session}", ("Ann", "Ben")[n % 2], text, date_time=f"{session} May 2023")
        for session, texts in enumerate(sessions, start=1)
        for n, text in enumerate(texts)
    ]
    return Conversation("c", tuple(turns), ("Ann", "Ben"))


def dataset_turns(name: str) -> list[Turn]:
    """All turns of a data set of ``conf/dataset``, in order."""
    return [turn for sample in _choice("dataset", name).load().samples for turn in sample.conversation.turns]


def embedder_of(name: str) -> Embedder:
    """Load an embedder of ``conf/embedder``."""
    built: Embedder = _choice("embedder", name).build()
    return built


def _choice(group: str, name: str) -> Any:
    from hydra import compose, initialize_config_dir
    from hydra.utils import instantiate

    with initialize_config_dir(str(CONF), version_base=None):
        return instantiate(compose("config", overrides=[f"{group}={name}"])[group], _convert_="all")
