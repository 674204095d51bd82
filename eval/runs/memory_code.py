"""The source of a memory system as a run finds it: a checksum that tells an edited system from the one that was run.

Commit and uncommitted changes are recorded too, but say little to somebody who edits a system between two runs, and
nothing of a plug-in.
"""

import hashlib
import inspect
from collections.abc import Iterator
from pathlib import Path

from memsys.assets.paths import ROOT

#: Modules, prompts, and what stands in a system's YAML files.
_SUFFIXES = (".py", ".txt", ".yaml")
#: Folders of many systems, in which a system is a module of its own with files of the same name.
_SHARED = (ROOT / "memsys", ROOT / "baselines")


def memory_code(config: object) -> str | None:
    """Return the sha256 of a system's own files, those of a gate's host with it; ``None`` where it has none.

    What several systems share (clients, indexes, prompts of facts and episodes) is not among them.

    Args:
        config: the memory's settings, whose class stands in the system's module.
    """
    digest = hashlib.sha256()
    for part in filter(None, (config, getattr(config, "host", None))):
        try:
            file = Path(inspect.getfile(type(part))).resolve()
        except (OSError, TypeError):  # made in an interpreter
            return None
        for source in sorted(_sources(file)):
            digest.update(f"{source.name}\0".encode() + source.read_bytes() + b"\0")
    return digest.hexdigest()


def _sources(file: Path) -> Iterator[Path]:
    """The files of the package that a module belongs to; of a module that stands alone, those that share its name."""
    folder = file.parent
    package = folder not in _SHARED and (folder / "__init__.py").is_file()
    found = folder.rglob("*") if package else folder.glob(f"{file.stem}.*")
    return (path for path in found if path.suffix in _SUFFIXES and path.is_file())
