"""Packages of others that add choices: memory systems, data sets, readers, metrics.

A plug-in is a package that is named by an entry point of the group ``memsys.plugins``, or in the variable
``MEMSYS_PLUGINS`` (names with commas between them). Its folder ``conf`` is searched as memsys's own is, so that
``memory=theirs`` works; the package is imported before anything is run or scored, so that it can register metrics.
"""

import os
import traceback
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from memsys.errors import ConfigError

GROUP, VARIABLE = "memsys.plugins", "MEMSYS_PLUGINS"


def plugin_packages() -> list[str]:
    """Return the names of the packages, sorted.

    Raises:
        ConfigError: the variable holds what no package can be called.
    """
    named = [name.strip() for name in os.environ.get(VARIABLE, "").split(",")]
    for name in filter(None, named):
        if not all(part.isidentifier() for part in name.split(".")):
            raise ConfigError(f"{VARIABLE}: plug-in {name} is not a name of a package; write it as in `import NAME`")
    return sorted({*filter(None, named), *(point.value for point in entry_points(group=GROUP))})


def plugin_versions() -> dict[str, str]:
    """Return the version of each package that is installed as a plug-in; empty for those that the variable names."""
    installed = {point.value: point.dist.version for point in entry_points(group=GROUP) if point.dist}
    return {name: installed.get(name, "") for name in plugin_packages()}


def plugin_folders() -> list[Path]:
    """Return the ``conf`` folders of the packages that have one, without importing any.

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
        ConfigError: a package cannot be imported, whatever its modules raise.
    """
    for name in plugin_packages():
        try:
            import_module(name)
        except ConfigError as error:  # what it registers does not fit
            raise ConfigError(f"plug-in {name}: {error}") from error
        except ImportError as error:
            raise ConfigError(
                f"plug-in {name} cannot be imported ({error}); correct the name, or install what it needs"
            ) from error
        except Exception as error:  # third-party modules may raise anything
            raise ConfigError(
                f"plug-in {name} cannot be imported ({raised(error)}); correct it, or leave it out"
            ) from error


def raised(error: BaseException) -> str:
    """Return the error that a plug-in's code raised, with file and line."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}:{error.lineno}"
        said = error.msg
    else:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "its code"
        said = str(error)
    return f"{type(error).__name__} at {place}: {said}".rstrip(": ")
