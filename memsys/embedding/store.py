"""Vectors kept on disk, so that no text is embedded twice by the runs that share a cache folder.

Append-only files of rows of one length, one file per writing process: any number of processes can share the folder and
none can damage another's file. A process reads all files when it opens the folder. A process that is killed leaves at
worst a part of a last row, which is left out; a row that was altered is found by its checksum, left out and its text
embedded again.
"""

import hashlib
import json
import logging
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memsys.assets.checksums import remembered_sha256
from memsys.embedding.contract import Vectors
from memsys.extras import installed_version
from memsys.unique_names import segment_name

_log = logging.getLogger(__name__)

_KEY_BYTES = 16
_SUM_BYTES = 8


class _Place(NamedTuple):
    """A row of a file, counted from 0."""

    file: Path
    number: int


class VectorStore:
    """The vectors of one embedder by text; about 200 bytes a vector in memory. Not thread-safe by itself.

    Args:
        folder: of this embedder alone: see :func:`fingerprint`. Made with the first vector.
        dimension: length of a vector.

    Attributes:
        corrupt: rows that had been altered and were left out.
    """

    def __init__(self, folder: Path, dimension: int) -> None:
        self.corrupt = 0
        self._folder = folder
        self._row = np.dtype(
            [("key", f"V{_KEY_BYTES}"), ("vector", np.float32, (dimension,)), ("sum", f"V{_SUM_BYTES}")]
        )
        self._places: dict[bytes, _Place] = {}
        self._own: Path | None = None
        self._own_rows = 0
        self._writable = True
        for file in sorted(folder.glob("*.vectors")):
            for number, key in enumerate(self._keys(file)):
                # of a key the last row is read, as one before it may have been altered
                self._places[key.tobytes()] = _Place(file, number)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, text: str) -> bool:
        return _key(text) in self._places

    def get(self, text: str) -> NDArray[np.float32] | None:
        """Read the vector of a text; ``None`` if there is none or its row was altered."""
        key = _key(text)
        place = self._places.get(key)
        if place is None:
            return None
        vector = self._read(key, place)
        if vector is None:
            self.corrupt += 1
            del self._places[key]
            _log.warning("a row of the vectors in %s was altered; its text is embedded again", self._folder)
        return vector

    def put(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Keep vectors. They can always be computed again: a disk that is full ends the keeping, with one warning.

        Args:
            texts: any number.
            vectors: theirs, shape (texts, dimension).
        """
        rows = np.zeros(len(texts), dtype=self._row)
        keys = [_key(text) for text in texts]
        for number, (key, vector) in enumerate(zip(keys, vectors, strict=True)):
            rows[number] = (key, vector, _checksum(key, vector))
        if self._writable:
            self._append(rows, keys)

    def _append(self, rows: NDArray[Any], keys: Sequence[bytes]) -> None:
        try:
            own = self._own or self._new_file()
            with own.open("ab", buffering=0) as stream:
                if (stream.write(rows.tobytes()) or 0) < rows.nbytes:  # what follows would not begin where a row begins
                    raise OSError("the disk is full")
        except OSError as error:
            self._writable = False
            _log.warning("vectors are no longer kept in %s: %s", self._folder, error.strerror or error)
            return
        self._places.update((key, _Place(own, self._own_rows + number)) for number, key in enumerate(keys))
        self._own_rows += len(rows)

    def _new_file(self) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._own = self._folder / segment_name(".vectors")
        return self._own

    def _keys(self, file: Path) -> NDArray[Any]:
        """Return the keys of a file's whole rows and close it: a folder may hold more files than may be open."""
        whole = file.stat().st_size // self._row.itemsize
        if not whole:
            return np.zeros(0, self._row)["key"]
        return np.array(np.memmap(file, self._row, mode="r", shape=(whole,))["key"])

    def _read(self, key: bytes, place: _Place) -> NDArray[np.float32] | None:
        """Read a row; ``None`` where it was altered or is gone."""
        try:
            with place.file.open("rb") as stream:
                stream.seek(place.number * self._row.itemsize)
                row = np.frombuffer(stream.read(self._row.itemsize), self._row)[0]
        except (OSError, ValueError):
            return None
        vector: NDArray[np.float32] = np.array(row["vector"])
        return vector if row["sum"].tobytes() == _checksum(key, vector) else None


def fingerprint(settings: Mapping[str, Any], folder: Path | None = None) -> str:
    """Name the folder for the vectors of an embedder: a hash of all that can change one of their bits.

    Args:
        settings: that the vectors depend on.
        folder: of a model that is computed here; its files, the libraries' versions and the processor then count too.
    """
    parts: dict[str, Any] = dict(settings)
    if folder is not None:
        files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".md")
        parts["files"] = {str(file.relative_to(folder)): remembered_sha256(file) for file in files}
        parts["libraries"] = {name: installed_version(name) for name in ("onnxruntime", "torch")}
        parts["processor"] = _processor()
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()


def _processor() -> str:
    """Say what the kernels of matrix products are chosen by."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    flags = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return f"{platform.machine()} {flags}"


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


def _checksum(key: bytes, vector: NDArray[np.float32]) -> bytes:
    return hashlib.blake2b(key + vector.tobytes(), digest_size=_SUM_BYTES).digest()
