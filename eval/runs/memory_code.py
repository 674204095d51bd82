"""The source of a memory system as a run finds it: a checksum that tells an edited system from the one that was run.

Commit and uncommitted changes are recorded too, but say little to a developer who edits a system between two runs, and
nothing of a plug-in.
"""

import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from baselines.external.config import ObjectConfig
from memsys.assets.paths import ROOT

#: Folders of many systems, in which a system is a package, or a module with files of the same name.
_SHARED = (ROOT / "memsys", ROOT / "baselines")
#: Modules, prompts, texts that are in YAML files, and the versions of a package's environment.
_SUFFIXES = (".py", ".txt", ".yaml", ".lock")
#: Files that say something about a system and do nothing in it.
_ABOUT = ("deviations.yaml", "entries.yaml", "expectations.yaml")

#: Begins the checksum of an object; earlier versions recorded that of the adapter's files.
_OF_OBJECT = "object:"


def is_other_code(recorded: str, config: object) -> bool:
    """Return whether a system's source is another one than that of a recorded checksum, where they can be compared.

    Args:
        recorded: by :func:`memory_code`.
        config: the memory's settings.
    """
    now = memory_code(config)
    comparable = now is None or recorded.startswith(_OF_OBJECT) == now.startswith(_OF_OBJECT)
    return comparable and recorded != now


def memory_code(config: object) -> str | None:
    """Return the sha256 of a system's own files, those of a gate's host with it; ``None`` where it has none.

    What several systems share (clients, indexes, prompts of facts and episodes) is not among them. Of a plug-in it is
    all modules, and the prompts next to the system's; of an object, its source and settings.

    Args:
        config: the memory's settings, whose class is in the system's module.
    """
    if isinstance(config, ObjectConfig):
        own = config.digest()
        return None if own is None else f"{_OF_OBJECT}{own}"
    digest = hashlib.sha256()
    for part in filter(None, (config, getattr(config, "host", None))):
        try:
            module = Path(inspect.getfile(type(part))).resolve()
        except (OSError, TypeError):  # made in an interpreter
            return None
        for source in sorted({*_sources(module, part), *_worker(part)}):
            digest.update(f"{source.name}\0".encode() + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(module: Path, config: object) -> Iterator[Path]:
    folder = module.parent
    if folder in _SHARED or not (folder / "__init__.py").is_file():
        found: Iterator[Path] = folder.glob(f"{module.stem}.*")
    elif any(folder.is_relative_to(shared) for shared in _SHARED):
        found = _of_package(folder, getattr(config, "package", None))
    else:
        return (path for paths in (_top(folder).rglob("*.py"), (folder / "prompts").glob("*.txt")) for path in paths)
    return (path for path in found if path.suffix in _SUFFIXES and not path.name.endswith(_ABOUT) and path.is_file())


def _worker(config: object) -> Iterator[Path]:
    """Yield the file that a package's worker runs, where the settings name another than the package's own."""
    named = getattr(config, "worker", None)
    if isinstance(named, str) and Path(named).is_file():
        yield Path(named)


def _of_package(folder: Path, chosen: object) -> Iterator[Path]:
    """Yield the files of a system's folder; of ``packages``, those of the chosen package alone."""
    alone = isinstance(chosen, str) and (folder / chosen).is_dir()
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if not alone or len(inside) == 1 or inside[0] == chosen:
            yield path


def _top(folder: Path) -> Path:
    """Return the top-level package of a folder."""
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder
