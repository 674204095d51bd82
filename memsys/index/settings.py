"""Settings of dense search: exact, or one of FAISS's approximate indexes; one choice for a whole run."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Literal, get_args

from memsys.errors import ConfigError

IndexKind = Literal["flat", "hnsw", "ivf"]
IndexDevice = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """A kind of dense index and its parameters (``index`` of ``conf/config.yaml``).

    Attributes:
        kind: ``flat`` compares with every vector and is exact. ``hnsw`` (Malkov and Yashunin 2018) walks a graph of
            neighbours, ``ivf`` compares within the cells of a k-means partition that are nearest to the query; both
            may miss neighbours and need memory besides the vectors. A removal rebuilds ``hnsw``.
        exact_below: vectors up to which any kind searches exactly; an ``ivf`` index is trained on the first N.
        neighbours: ``hnsw``: edges of a vector.
        build_depth: ``hnsw``: candidates while an edge is chosen.
        search_depth: ``hnsw``: candidates of a search.
        lists: ``ivf``: cells.
        probes: ``ivf``: cells that a search looks into.
        device: where vectors are compared in full: ``cuda`` is the first GPU. Approximate searches run in main memory.
    """

    kind: IndexKind = "flat"
    exact_below: int = 10_000
    neighbours: int = 32
    build_depth: int = 200
    search_depth: int = 128
    lists: int = 256
    probes: int = 32
    device: IndexDevice = "cpu"

    def __post_init__(self) -> None:
        if self.kind not in get_args(IndexKind):
            raise ConfigError(f"index.kind={self.kind!r} is unknown; choose one of {', '.join(get_args(IndexKind))}")
        if self.device not in get_args(IndexDevice):
            choices = ", ".join(get_args(IndexDevice))
            raise ConfigError(f"index.device={self.device!r} is unknown; choose one of {choices}")
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("kind", "device") and (
                isinstance(value, bool) or not isinstance(value, int) or value < 1
            ):
                raise ConfigError(f"index.{field.name}={value!r} must be a whole number from 1")
        if self.kind == "ivf" and self.probes > self.lists:
            raise ConfigError(f"index.probes={self.probes} must be at most index.lists={self.lists}: there are no more")
        if self.kind == "ivf" and self.exact_below < self.lists:
            raise ConfigError(
                f"index.exact_below={self.exact_below} must be at least index.lists={self.lists}: training the cells "
                "needs that many vectors"
            )


#: What every run did before there was a choice.
FLAT = IndexSettings()
_CHOSEN: ContextVar[IndexSettings] = ContextVar("index_settings")


def chosen_index() -> IndexSettings:
    """Return the chosen index settings; exact search where none were chosen."""
    return _CHOSEN.get(FLAT)


@contextmanager
def using_index(settings: IndexSettings) -> Iterator[None]:
    """Make every dense index that is made inside search this way."""
    token = _CHOSEN.set(settings)
    try:
        yield
    finally:
        _CHOSEN.reset(token)
