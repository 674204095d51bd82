"""Packages of others that add choices: memory systems, data sets, readers, metrics.

A plug-in is a package that is named by an entry point of the group ``memsys.plugins``, or in the variable
``MEMSYS_PLUGINS`` (names with commas between them). Its folder ``conf`` is searched as memsys's own is, so that
``memory=theirs`` works; the package is imported before anything is run or scored, so that it can register metrics.
"""

import os
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from memsys.errors import ConfigError

GROUP, VARIABLE = "memsys.plugins", "MEMSYS_PLUGINS"


def plugin_packages() -> list[str]:
    """Names of the packages, sorted."""
    named = [name.strip() for name in os.environ.get(VARIABLE, "").split(",")]
    return sorted({*filter(None, named), *(point.value for point in entry_points(group=GROUP))})


def plugin_folders() -> list[Path]:
    """The ``conf`` folders of the packages that have one; none of them is imported.

    Raises:
        ConfigError: a package cannot be found.
    """
    found = [Path(place) / "conf" for name in plugin_packages() for place in _places(name)]
    return [folder for folder in found if folder.is_dir()]


def _places(name: str) -> list[str]:
    try:
        spec = find_spec(name)
    except ImportError:
        spec = None
    if spec is None:
        raise ConfigError(f"plug-in {name}: there is no such package; install it, or correct {VARIABLE}")
    return list(spec.submodule_search_locations or ())


@cache
def load_plugins() -> None:
    """Import the packages, once.

    Raises:
        ConfigError: a package cannot be imported.
    """
    for name in plugin_packages():
        try:
            import_module(name)
        except ImportError as error:
            raise ConfigError(f"plug-in {name} cannot be imported ({error}); install what it needs") from error
