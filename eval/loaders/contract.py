"""Interface of data sets: a configuration that loads into samples, and the checksums of its files."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from memsys.turns import TurnFormat
from memsys.vocabulary import Json, Sample


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """One published file: its name below the data folder, where it comes from and what it must hash to.

    ``url`` is empty where the file cannot be had without registration; ``sha256`` is empty where no copy was at hand
    to pin it. ``parquet``: at ``url`` lie the rows as Parquet, and the file is their JSON array, indented by two.
    """

    name: str
    sha256: str
    size: int
    url: str = ""
    parquet: bool = False


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """Facts of a data set that do not depend on any setting."""

    key: str
    title: str
    homepage: str
    licence: str
    citation: str
    files: tuple[PinnedFile, ...]
    category_names: Mapping[int, str]
    #: Category number -> kind of question, see :mod:`eval.loaders.question_types`.
    kinds: Mapping[int, str] = field(default_factory=dict)
    #: Key of ``LoadedData.notes`` -> what it means, for people who look at the data.
    note_meanings: Mapping[str, str] = field(default_factory=dict)
    #: Questions per category of the whole published set; weights of means in the lens. Empty where it has one category.
    question_counts: Mapping[int, int] = field(default_factory=dict)
    #: Preset on which constant answers are scored by default (:mod:`eval.floors`); empty for none.
    floor_preset: str = ""
    #: How to get the files where no download is possible.
    how_to_get: str = ""
    #: Folder below ``datasets/`` with the card; empty where it is the key.
    card: str = ""
    #: Whether its licence permits redistribution of its texts, for any purpose, with attribution
    #: (:mod:`eval.audit.packs`).
    passed_on: bool = False
    #: ISO 639-3 code of the language of what it holds in Latin letters; ``und``: unknown.
    language: str = "eng"


@dataclass(frozen=True, slots=True)
class LoadedData:
    """A data set as a run uses it.

    Attributes:
        samples: the conversations selected, in the order of the file.
        sha256: of the file as read; of the sorted ``sha256  name`` lines where the set has several files.
        source_name: name of the file, or of the folder.
        category_names: category number -> name.
        counts: sizes of what was selected (conversations, sessions, turns, questions, questions per category, ...).
        notes: what the loader met in the whole file: ``pinned`` (the checksum is the published one) and how often
            each irregularity was repaired.
    """

    samples: tuple[Sample, ...]
    sha256: str
    source_name: str
    category_names: Mapping[int, str]
    counts: Mapping[str, Json] = field(default_factory=dict)
    notes: Mapping[str, Json] = field(default_factory=dict)


class DatasetConfig(Protocol):
    """Every ``conf/dataset/*.yaml`` instantiates to one of these: a frozen dataclass."""

    @property
    def name(self) -> str:
        """Name of the preset; ``info.key`` is the data set's, which several presets share."""

    @property
    def turn_format(self) -> TurnFormat:
        """How a turn becomes text, for every system of the run."""

    @property
    def info(self) -> DatasetInfo:
        """Source, licence, checksums, category names."""

    def load(self) -> LoadedData:
        """Read, check and select.

        Raises:
            DataError: the file is missing, truncated or of the wrong shape.
            ConfigError: the selection names what the data set does not have.
        """
