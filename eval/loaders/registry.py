"""All data sets by name, for the scripts that go through them: every ``DatasetInfo`` in a module of this package."""

import importlib
import pkgutil
from collections.abc import Mapping

from eval import loaders
from eval.loaders.contract import DatasetInfo
from memsys.errors import ConfigError

#: Name of a data set for answers whose questions no loader has: questions and gold are those of the file of answers.
OWN = "own"


def find_datasets() -> dict[str, DatasetInfo]:
    """Import the modules of :mod:`eval.loaders` and collect the data sets that they declare, by key, sorted.

    Raises:
        ConfigError: two data sets have one key.
    """
    found: dict[str, DatasetInfo] = {}
    for entry in pkgutil.iter_modules(loaders.__path__, f"{loaders.__name__}."):
        if entry.name != __name__:
            for value in vars(importlib.import_module(entry.name)).values():
                if isinstance(value, DatasetInfo) and found.setdefault(value.key, value) is not value:
                    raise ConfigError(
                        f"{entry.name}: a data set with key {value.key!r} is there already; choose another"
                    )
    return dict(sorted(found.items()))


#: Key, as ``memsys data`` takes it -> facts.
DATASETS: Mapping[str, DatasetInfo] = find_datasets()


def info_of(preset: str) -> DatasetInfo | None:
    """Return the data set of a preset of ``conf/dataset``, by the key that begins its name; ``None`` if unknown."""
    keys = sorted((key for key in DATASETS if preset.startswith(key)), key=len, reverse=True)
    return DATASETS[keys[0]] if keys else None


def is_own(preset: str) -> bool:
    """Return whether questions and their categories are the user's own, not a published data set's."""
    return preset == OWN or info_of(preset) is DATASETS["custom"]
