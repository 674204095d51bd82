"""Memories as users give them: an object, a class or function that makes one, or a function that searches."""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from memsys.errors import ConfigError
from memsys.vocabulary import Json

#: Names that a method that adds goes by, most telling first.
ADDS = ("add", "add_texts", "add_episode", "insert", "add_documents")
#: Names of parameters that take a user.
USERS = ("user_id", "user", "conversation_id", "group_id", "namespace", "agent_id", "session_id", "run_id")
#: Parameters of what makes a memory that take the address of the run's models; the first of them asks for it.
LENT = ("base_url", "api_key", "model", "dimension")


def find_object(name: str, given: Any = None) -> Any:
    """Return the object of the settings, as a program gave it, or imported by its name, also from the current folder.

    Raises:
        ConfigError: it cannot be imported.
    """
    if given is not None:
        return given
    module, _, path = name.partition(":")
    here = str(Path.cwd())
    if not {"", here} & set(sys.path):  # the command memsys, other than python -m, begins without it
        sys.path.append(here)
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"memory.object={name} cannot be imported ({type(error).__name__}: {error}); write "
            "package.module:Class, of a module in the current folder or on PYTHONPATH"
        ) from error
    return found


def is_search_function(given: object) -> bool:
    """Return whether this is a function of a conversation and a query, rather than one that makes a memory."""
    if inspect.isclass(given) or not callable(given) or is_memory(given):
        return False
    return len(set(needed_by(given)) - {*USERS, *LENT}) >= 2


def asks_for_models(given: Any, arguments: Mapping[str, Json] | None) -> bool:
    """Return whether what makes a memory takes the address of the run's models, in a ``base_url`` that has no value."""
    if is_memory(given) and not inspect.isclass(given):
        return False
    declared = parameters_of(given).get(LENT[0]) if callable(given) else None
    return (
        declared is not None
        and declared.default in (inspect.Parameter.empty, None, "")
        and LENT[0] not in (arguments or {})
    )


def is_memory(given: object) -> bool:
    """Return whether this has a method that adds."""
    return any(callable(getattr(given, name, None)) for name in ADDS)


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that have a name; none where a function of C does not say."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: each for name, each in found.items() if each.kind not in variable}


def needed_by(function: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters without a default."""
    return [name for name, each in parameters_of(function).items() if each.default is inspect.Parameter.empty]
