"""A config finds the module that ties its system, and so does one that somebody derives from it elsewhere."""

from dataclasses import dataclass

import pytest

from baselines.memgpt import system as memgpt
from baselines.memgpt.code_config import MemGptCodeConfig
from baselines.pruned import system as pruned
from baselines.pruned.config import PrunedRagConfig
from baselines.rag import system as rag
from baselines.rag.config import RagConfig
from memsys.errors import ConfigError
from memsys.system_config import SystemConfig, system_module


@dataclass(frozen=True)
class Derived(RagConfig):
    """In a package without a module `system`."""


class Untied(SystemConfig):
    """Nowhere near one."""


def test_the_system_is_found_beside_the_config_or_its_nearest_base() -> None:
    assert system_module(RagConfig) is rag and system_module(Derived) is rag
    assert system_module(PrunedRagConfig) is pruned and system_module(MemGptCodeConfig) is memgpt


def test_a_config_without_a_system_is_told_what_it_lacks() -> None:
    with pytest.raises(ConfigError, match=r"test_system_config\.Untied: its package has no module `system` with build"):
        system_module(Untied)
