"""Coverage of a candidate by stored memories: kernel density on the sphere (SAGE, section 3.3).

Every memory has a von Mises-Fisher kernel ``exp(kappa * cosine)``. The score is the logarithm of their mean divided
by kappa, so that it stays on the scale of the cosine: ``max - ln(N) / kappa <= score <= max``. A large kappa gives the
greatest cosine, kappa towards 0 the mean one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsys.embedding.contract import Vectors
from memsys.index.vector import VectorIndex

#: Equal vectors have mean resultant length 1, where the estimate of kappa has a pole.
_POLE = 1e-6


@dataclass(frozen=True, slots=True)
class KappaRule:
    """Settings of the estimate of the concentration.

    Attributes:
        cap: upper bound; ``None`` for the printed formula. The official code caps at 50, which real stores exceed
            almost always: in it kappa is a constant.
        floor: lower bound, above 0.
    """

    cap: float | None
    floor: float

    def concentration(self, resultant: float, dimension: int) -> float:
        """Estimate kappa from the mean resultant length (Banerjee et al. 2005): ``R (d - R^2) / (1 - R^2)``."""
        length = min(max(resultant, 0.0), 1.0 - _POLE)
        kappa = length * (dimension - length**2) / max(1.0 - length**2, _POLE)
        return max(kappa if self.cap is None else min(kappa, self.cap), self.floor)


def vmf_score(cosines: NDArray[np.floating[Any]], kappa: float) -> float:
    """Return the log-mean-exp of cosines (n,), n at least 1, divided by kappa; in [-1, 1].

    The greatest cosine is taken out first, so that no kappa overflows and the mean lies between 1/n and 1.
    """
    wide = cosines.astype(np.float64)
    greatest = float(wide.max())
    score = greatest + log(float(np.exp(kappa * (wide - greatest)).mean())) / kappa
    return min(max(score, -1.0), 1.0)


@dataclass(frozen=True, slots=True)
class Support:
    """Support of a candidate by a scope: score, greatest cosine, and the id of the memory that has it."""

    score: float
    cosine: float
    nearest: str


class VmfScope:
    """Vectors of one scope with their mean resultant length, which is kept up to date as they come and change.

    Args:
        dimension: length of a vector.
        rule: how kappa is estimated.
    """

    def __init__(self, dimension: int, rule: KappaRule) -> None:
        self.index = VectorIndex(dimension)
        self._dimension = dimension
        self._rule = rule
        self._sum: NDArray[np.float64] = np.zeros(dimension)

    def __len__(self) -> int:
        return len(self.index)

    @property
    def total(self) -> NDArray[np.float64]:
        """Sum of the vectors (d,); not to be changed."""
        return self._sum

    @property
    def resultant(self) -> float:
        """Mean resultant length: the norm of the mean unit vector; 0 for an empty scope."""
        return float(np.sqrt(self._sum @ self._sum)) / len(self) if len(self) else 0.0

    @property
    def kappa(self) -> float:
        """Concentration under the rule."""
        return self._rule.concentration(self.resultant, self._dimension)

    @property
    def kappa_uncapped(self) -> float:
        """Concentration as printed, without the cap."""
        return KappaRule(None, self._rule.floor).concentration(self.resultant, self._dimension)

    def add(self, item: str, vector: Vectors) -> None:
        """Append a memory with its unit vector (d,)."""
        self.index.add([item], vector[None])
        self._sum += vector

    def replace(self, item: str, vector: Vectors) -> None:
        """Give a memory another unit vector (d,)."""
        self._sum += vector.astype(np.float64) - self.index.vectors([item])[0]
        self.index.replace([item], vector[None])

    def support(self, vector: Vectors) -> Support:
        """Score a unit vector (d,) against the scope, which must not be empty."""
        score = vmf_score(self.index.products(vector), self.kappa)
        ((nearest, cosine),) = self.index.search(vector, 1)
        return Support(score, cosine, nearest)

    def rows(self, items: Sequence[str] | None = None) -> Vectors:
        """Return a copy of the vectors (n, d), all of them or some."""
        return self.index.vectors(self.index.ids if items is None else items)

    def state(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {"index": self.index.state(), "sum": self._sum.copy()}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot of :meth:`state`."""
        self.index.load_state(state["index"])
        self._sum = np.array(state["sum"], dtype=np.float64)
