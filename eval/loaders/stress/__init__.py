"""Data sets that are changed on purpose, by seed: the same conversations with noise, contradictions or poison.

Each kind of change has a benign twin (``twin``): as many turns at the same places without what harms, or the data as
they are (:data:`NO_TWIN`). Questions keep their gold, so that every score has its meaning; what an attack put
there is in ``Reference.extra["attack"]`` and scored by lineage (:mod:`eval.metrics.attacks`).
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from eval.loaders.contract import DatasetConfig, DatasetInfo, LoadedData
from eval.loaders.selection import count
from eval.loaders.stress import attacks, changes
from eval.loaders.stress.making import Making
from memsys.errors import ConfigError
from memsys.seeding import generator
from memsys.settings import check_flags, check_minimum
from memsys.turns import TurnFormat
from memsys.vocabulary import Sample

#: Kind of change -> the function that makes it.
KINDS: Mapping[str, Callable[[Making], list[Sample]]] = {
    "duplicates": changes.duplicates,
    "near_duplicates": changes.near_duplicates,
    "noise": changes.noise,
    "other_scripts": changes.other_scripts,
    "shuffled_sessions": changes.shuffled_sessions,
    "missing_dates": changes.missing_dates,
    "swapped_speakers": changes.swapped_speakers,
    "long_gaps": changes.long_gaps,
    "contradicted": attacks.contradicted,
    "withdrawn": attacks.withdrawn,
    "poison": attacks.poison,
    "two_users": attacks.two_users,
}
#: What a kind needs of the data where it is not turns alone.
_NEEDS: Mapping[str, str] = {
    "duplicates": "turns that are no evidence",
    "near_duplicates": "turns that are no evidence",
    "shuffled_sessions": "two sessions",
    "missing_dates": "dates",
    "swapped_speakers": "two sessions and two named speakers",
    "long_gaps": "two sessions and dates with years",
    "contradicted": "a question with its answer in a single gold turn",
    "withdrawn": "a question with its answer in a single gold turn",
}
#: Versions of the changes that have made other data before; they are part of the data's checksum.
VERSIONS: Mapping[str, int] = {
    "contradicted": 3, "withdrawn": 2, "poison": 3, "two_users": 2, "long_gaps": 2, "shuffled_sessions": 2,
}  # fmt: skip
#: Kinds without harmless turns of their own: their twin is the data as they are.
NO_TWIN = frozenset({"noise", "shuffled_sessions", "missing_dates", "swapped_speakers", "long_gaps"})


class InapplicableError(ConfigError):
    """A change for which the data have nothing that it changes."""


@dataclass(frozen=True, slots=True)
class StressSettings:
    """A change of a data set (``stress`` of a run's settings).

    Attributes:
        kind: one of :data:`KINDS`.
        twin: make the benign twin of the change.
        amount: turns of noise for each turn of the conversation; 1 for all other kinds.
    """

    kind: str
    twin: bool = False
    amount: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError(f"stress.kind={self.kind!r} is unknown; choose one of {', '.join(KINDS)}")
        check_flags(self, "stress", "twin")
        if self.twin and self.kind in NO_TWIN:
            raise ConfigError(f"stress.twin=true: the twin of {self.kind} is the data as they are; leave stress out")
        check_minimum(self, "stress", amount=1)
        if self.amount != 1 and self.kind != "noise":
            raise ConfigError(f"stress.amount={self.amount} counts turns of noise; leave it out for {self.kind}")

    @property
    def name(self) -> str:
        """End of the name of the changed data set."""
        amount = f"_{self.amount}x" if self.kind == "noise" else ""
        return f"stress_{self.kind}{amount}{'_twin' if self.twin else ''}"


@dataclass(frozen=True)
class StressedDataset:
    """A data set with a change; see :class:`eval.loaders.contract.DatasetConfig`."""

    of: DatasetConfig
    settings: StressSettings
    seed: int

    @property
    def name(self) -> str:
        """Name of the data set, and of its change."""
        return f"{self.of.name}_{self.settings.name}"

    @property
    def turn_format(self) -> TurnFormat:
        """That of the data set."""
        return self.of.turn_format

    @property
    def info(self) -> DatasetInfo:
        """That of the data set."""
        return self.of.info

    def load(self) -> LoadedData:
        """Load the data set and change every conversation.

        Raises:
            DataError: see :meth:`eval.loaders.contract.DatasetConfig.load`.
            InapplicableError: no conversation has what the change needs.
        """
        data, kind = self.of.load(), self.settings.kind
        samples: list[Sample] = []
        for sample in data.samples:
            drawn = generator(self.seed, "stress", kind, sample.conversation.conversation_id)
            samples += KINDS[kind](Making(sample, drawn, self.settings.twin, self.settings.amount))
        if kind in attacks.ATTACKS:
            applies = any(attacks.attacked(sample) for sample in samples)
        else:
            applies = samples != list(data.samples)
        if not applies:
            lacks = _NEEDS.get(kind, "conversations")
            raise InapplicableError(f"stress.kind={kind} changes nothing in {self.of.name}, which lacks {lacks}")
        version = f" version {VERSIONS[kind]}" if kind in VERSIONS else ""
        text = f"{data.sha256} {self.settings} {self.seed}{version}"
        return replace(
            data,
            samples=tuple(samples),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            counts=count(samples),
            notes={**data.notes, "pinned": False},
        )
