"""Memory snapshots: a state tree of JSON values with numpy arrays as leaves, in one file, without pickle."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eval.runs.files import misfit, write_atomic
from eval.runs.manifest import check_file
from memsys.errors import MemoryProtocolError, RunDirectoryError

_ARRAY = "__array__"
#: What reading a damaged file raises: of its zip, of an array's header, of the tree's JSON. ``NotImplementedError`` and
#: ``RecursionError`` are kinds of ``RuntimeError``.
_DAMAGED = (ValueError, KeyError, OSError, EOFError, RuntimeError, zipfile.BadZipFile)


def save_snapshot(path: Path, tree: Any) -> None:
    """Write a state tree atomically.

    Raises:
        RunDirectoryError: the disk is full.
        MemoryProtocolError: the tree holds something that is neither JSON nor a numpy array.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    plain = _take_arrays(tree, arrays)
    try:
        text = json.dumps(plain, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise MemoryProtocolError(
            f"{misfit(plain, allow_nan=True)} cannot be kept in a snapshot ({error}); state() of a memory must give "
            "JSON values and numpy arrays"
        ) from error
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, tree=np.frombuffer(text, dtype=np.uint8), **arrays)
    write_atomic(path, buffer.getvalue())


def load_snapshot(path: Path) -> Any | None:
    """Read a state tree; ``None`` when there is none.

    Raises:
        RunDirectoryError: the file is damaged.
    """
    return _load(path, _put_arrays)


def load_texts(path: Path) -> Any | None:
    """Read a state tree without its arrays, which stay placeholders; ``None`` when there is none.

    Raises:
        RunDirectoryError: the file is damaged.
    """
    return _load(path, lambda tree, archive: tree)


def _load(path: Path, finish: Callable[[Any, Any], Any]) -> Any | None:
    check_file(path)
    if not path.is_file():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as archive:
            return finish(json.loads(archive["tree"].tobytes()), archive)
    except _DAMAGED as error:
        message = f"memory snapshot {path} is damaged ({error}); delete it and start the same command again"
        raise RunDirectoryError(message) from error


def _take_arrays(node: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(node, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = node
        return {_ARRAY: name}
    if isinstance(node, dict):
        return {str(key): _take_arrays(value, arrays) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_take_arrays(value, arrays) for value in node]
    if isinstance(node, np.generic):
        return node.item()
    return node


def _put_arrays(node: Any, archive: Any) -> Any:
    if isinstance(node, dict):
        if set(node) == {_ARRAY}:
            return archive[node[_ARRAY]]
        return {key: _put_arrays(value, archive) for key, value in node.items()}
    if isinstance(node, list):
        return [_put_arrays(value, archive) for value in node]
    return node
