"""Checksums of the files that a vLLM server reads: they can change its replies."""

import contextlib
from collections.abc import Sequence
from pathlib import Path

from memsys.assets.checksums import remembered_sha256
from memsys.vocabulary import Json


def folder_checksums(folder: Path) -> dict[str, Json]:
    """Return the checksums of a model's files by their names: weights, configuration, tokenizer, chat template, code.

    What no server reads is left out: model cards, and hidden files such as those that the hub's client leaves.
    """
    names = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        name.as_posix(): remembered_sha256(folder / name)
        for name in names
        if name.suffix != ".md" and not any(part.startswith(".") for part in name.parts)
    }


def argument_checksums(arguments: Sequence[str]) -> list[Json]:
    """Return the checksums of files and folders (of a model or tokenizer) that arguments name, in their order.

    Another folder, for example of a cache, is not read.

    Args:
        arguments: as ``--chat-template FILE``, ``--chat-template=FILE`` or ``--lora-modules NAME=FOLDER``.
    """
    found: list[Json] = []
    for path in filter(None, map(_named, arguments)):
        if path.is_file():
            found.append(remembered_sha256(path))
        elif any(path.glob("*config.json")):
            found.append(folder_checksums(path))
    return found


def _named(argument: str) -> Path | None:
    for name in (str(argument), str(argument).rpartition("=")[2]):
        with contextlib.suppress(OSError):  # too long for a name, as the text of a template may be
            if name and Path(name).exists():
                return Path(name)
    return None
