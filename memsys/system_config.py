"""The base of configs whose system is in several modules of one package.

``config.py`` holds the settings and their checks, ``memory.py`` and ``calls.py`` import it, and ``system.py`` ties
them. Only that last module knows the memory of a config, so that no import goes back from the settings to the memory.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from memsys.call_model import DataShape, ExpectedCalls
from memsys.errors import ConfigError
from memsys.protocol import MemorySystem, Parts


def system_module(config: type) -> ModuleType:
    """Import the module ``system`` of the package that holds a config's class, or else the nearest of its bases.

    Raises:
        ConfigError: there is none.
    """
    for base in config.__mro__:
        package = base.__module__.rpartition(".")[0]
        if package and find_spec(f"{package}.system"):
            return import_module(f"{package}.system")
    raise ConfigError(
        f"{config.__module__}.{config.__name__}: its package has no module `system` with build, expected_calls and "
        "context_tokens; add it, or write these methods in the config"
    )


class SystemConfig:
    """A :class:`memsys.protocol.MemoryConfig` and :class:`memsys.call_model.PlansCalls` by the package's ``system``."""

    def build(self, parts: Parts) -> MemorySystem:
        """Make the empty memory of one conversation."""
        memory: MemorySystem = system_module(type(self)).build(self, parts)
        return memory

    def expected_calls(self, shape: DataShape) -> Sequence[ExpectedCalls] | None:
        """Return the calls of each role over a data set; ``None`` where a part of the system does not say."""
        calls: Sequence[ExpectedCalls] | None = system_module(type(self)).expected_calls(self, shape)
        return calls

    def context_tokens(self, shape: DataShape) -> float:
        """Return the mean tokens of the context that the reader is shown for a question."""
        tokens: float = system_module(type(self)).context_tokens(self, shape)
        return tokens
