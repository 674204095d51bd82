"""Memory systems for language-model agents, and the harness that measures them.

``import memsys`` shows the types that a conversation is made of and a few functions to start with:

* :func:`open_memory`, :func:`open_async_memory`: run one memory over one's own conversation,
* :func:`evaluate`: measure a memory of one's own on a data set, next to others,
* :func:`endpoint`: settings of a model behind any server that speaks the OpenAI protocol,
* :func:`load_run`: read the record of a run; :func:`load_results`: the scores of many runs as a data frame.

This package is the library: vocabulary, memory protocol, backbone client, embedding, indexes and the papers' memory
systems. It does not import the harness; the functions above live in the package ``eval``, which knows the
configuration, and are looked up there when they are first used.
"""

import sys
from importlib import import_module
from typing import Any

from memsys.errors import ConfigError, MemsysError
from memsys.vocabulary import Conversation, Hit, Question, Retrieval, Turn

#: Name -> module of the harness that holds it.
_OF_THE_HARNESS = {
    "AsyncMemory": "eval.api",
    "Evaluation": "eval.api",
    "Memory": "eval.api",
    "Run": "eval.results.frame",
    "endpoint": "eval.api",
    "evaluate": "eval.api",
    "load_results": "eval.api",
    "load_run": "eval.results.frame",
    "open_async_memory": "eval.api",
    "open_memory": "eval.api",
}

__all__ = [
    "AsyncMemory",
    "ConfigError",
    "Conversation",
    "Evaluation",
    "Hit",
    "Memory",
    "MemsysError",
    "Question",
    "Retrieval",
    "Run",
    "Turn",
    "endpoint",
    "evaluate",
    "load_results",
    "load_run",
    "open_async_memory",
    "open_memory",
]


def __getattr__(name: str) -> Any:
    """Look up what the harness holds, and the version."""
    if name == "__version__":
        from memsys.extras import installed_version

        return installed_version("memsys")
    if name not in _OF_THE_HARNESS:
        raise AttributeError(f"module 'memsys' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    return getattr(import_module(_OF_THE_HARNESS[name]), name)


def __dir__() -> list[str]:
    """Return the public names, for completion and for Python's ``Did you mean``."""
    return sorted({*__all__, *globals()})
