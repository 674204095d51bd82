"""Helpers of workers that run authors' released files; imported by them as the module ``released_code``.

Runs under the package's own interpreter, as :mod:`memsys.workers.worker_loop` does, and needs nothing but the standard
library, and numpy where a worker searches vectors.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any


class AbsentModule(types.ModuleType):
    """Stub of a module that is not needed: every attribute of it is another stub."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return AbsentModule(f"{self.__name__}.{name}")

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Return the stub itself."""
        return self


class _AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that are left out, whatever is installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        """See :class:`importlib.abc.MetaPathFinder`."""
        if any(f"{fullname}.".startswith(f"{name}.") for name in self._names):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        """See :class:`importlib.abc.Loader`."""
        return AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: a stub has no code."""


def prepare(opening: Mapping[str, Any], unused: Sequence[str]) -> None:
    """Leave out modules, point openai's client to the opening's address, and send what is printed to the log.

    Args:
        opening: the request that a worker is made with.
        unused: modules that the released files import and that nothing here calls.
    """
    sys.stdout = sys.stderr  # unbuffered: what they print is in the log when this process is ended
    sys.meta_path.insert(0, _AbsentFinder(unused))
    os.environ |= {"OPENAI_BASE_URL": opening["llm"]["base_url"], "OPENAI_API_KEY": opening["llm"]["api_key"]}
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # on a busy machine its threads wait for each other, for minutes


def load(name: str, path: str) -> Any:
    """Import a file under a name: one of the authors' as their other files import it, or another worker's."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class ReleasedWorker:
    """Base of the workers that run authors' released files.

    Args:
        settings: of the opening; ``name`` is the release's.
    """

    lineage = "none"
    lineage_reason = "parity runs compare memories by their place"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings

    def describe(self) -> dict[str, str]:
        """Return the name of the release."""
        return {"package": self._settings["name"], "version": ""}


class ConversationWorker(ReleasedWorker):
    """Base of those whose driver wants a whole conversation at once.

    Args:
        settings: of the opening; ``speakers`` are the conversation's, in the data set's order.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__(settings)
        self._turns: list[dict[str, Any]] = []

    def add(self, unit: Mapping[str, Any]) -> list[dict[str, str]]:
        """Keep the turns."""
        self._turns += unit["turns"]
        return []

    def conversation(self) -> dict[str, Any]:
        """Return the turns in the shape of LoCoMo's file."""
        found: dict[str, Any] = dict(zip(("speaker_a", "speaker_b"), self._settings["speakers"], strict=True))
        for turn in self._turns:
            session = f"session_{turn['session']}"
            found.setdefault(f"{session}_date_time", turn["date"])
            found.setdefault(session, []).append({"speaker": turn["speaker"], "text": turn["text"]})
        return found


class EndpointEmbedder:
    """Vectors of the opening's embedder; a text is asked for once."""

    def __init__(self, opening: Mapping[str, Any]) -> None:
        self._url = opening["embedder"]["base_url"]
        self._known: dict[str, list[float]] = {}

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            body = json.dumps({"input": new}).encode()
            request = urllib.request.Request(f"{self._url}/embeddings", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request) as reply:
                rows = json.load(reply)["data"]
            self._known |= {text: row["embedding"] for text, row in zip(new, rows, strict=True)}
        return [self._known[text] for text in texts]


def nearest(rows: Sequence[Any], query: Sequence[float], count: int) -> list[tuple[int, float]]:
    """Return the places of the rows nearest to a query, best first, with their cosines to six decimals.

    Vector stores order by the last digits of a cosine, which depend on their version and on the machine. As in our
    index, cosines that agree to six decimals are ties, which go to the older row; else one neighbour would follow
    another, and all that comes after would differ.

    Args:
        rows: unit vectors, oldest first.
        query: unit vector.
        count: of rows.
    """
    import numpy as np  # not at the top: packages without it run other workers with this module

    if not rows:
        return []
    found = np.round(np.array(rows, dtype=np.float32).astype(np.float64) @ np.array(query, dtype=np.float32), 6)
    return [(int(place), float(found[place])) for place in np.argsort(-found, kind="stable")[:count]]


class ExactIndex:
    """Replacement of FAISS's ``IndexFlatIP``: exact inner products, best first, ties in the order of addition.

    Args:
        dimension: of the vectors.
    """

    def __init__(self, dimension: int) -> None:
        self._rows: Any = None

    def add(self, rows: Any) -> None:
        """Take the rows; the released files add them all at once."""
        self._rows = rows

    def search(self, queries: Any, k: int) -> tuple[Any, Any]:
        """Return the scores and the places of the best ``k`` rows for each query."""
        import numpy as np  # not at the top: packages without it run other workers with this module

        scores = queries @ self._rows.T
        places = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, places, axis=1), places


def set_attribute(target: Any, name: str, value: Any) -> None:
    """Give an attribute, by its dotted name, a value.

    Raises:
        ValueError: there is no such name.
    """
    *path, last = name.split(".")
    for one in path:
        target = getattr(target, one, None)
    if not hasattr(target, last):
        raise ValueError(f"the released code has no attribute {name}")
    setattr(target, last, value)
