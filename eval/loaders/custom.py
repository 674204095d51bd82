"""Conversations and questions of your own: two JSON Lines files in a folder, ``turns.jsonl`` and ``questions.jsonl``.

The format is that of ``datasets/custom/schema.json``; ``docs/your_own_data.md`` explains it.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eval.loaders.contract import DatasetInfo, LoadedData
from eval.loaders.custom_files import PAGE, read_custom
from eval.loaders.locate import sample_path
from eval.loaders.question_types import BEFORE_KINDS
from eval.loaders.records import hash_of_files
from eval.loaders.selection import Selection, count
from memsys.errors import DataError

logger = logging.getLogger(__name__)

_KINDS = {number: BEFORE_KINDS[number] for number in range(1, 7)}

CUSTOM = DatasetInfo(
    key="custom",
    title="Your own conversations",
    homepage=PAGE,
    licence="that of your files",
    language="und",
    citation="-",
    files=(),
    category_names={number: kind.replace("_", "-") for number, kind in _KINDS.items()},
    kinds=_KINDS,
    note_meanings={
        "kinds": "what the questions ask, with the number that stands for it",
        "unread_fields": "fields that are not part of the format; left out",
        "unread_dates": "dates that cannot be parsed: shown as written, not used for ordering",
    },
    how_to_get=f"Write turns.jsonl and questions.jsonl ({PAGE}), or use `memsys convert_data`.",
)

#: Kinds with a number of their own in every data set; others are numbered from ``_FIRST_OWN`` in alphabetical order.
_NUMBERS = {kind: number for number, kind in _KINDS.items()}
_FIRST_OWN = 101


@dataclass(frozen=True, kw_only=True)
class CustomConfig(Selection):
    """Settings; see :class:`eval.loaders.selection.Selection`. ``data_dir``, or ``path``, is the folder of the files.

    Attributes:
        name: the preset's name.
    """

    name: str = "custom"

    @property
    def info(self) -> DatasetInfo:
        """Facts of the data set."""
        return CUSTOM

    def load(self) -> LoadedData:
        """Read the two files, and select."""
        loaded = self._load(questions_needed=True)
        if unread := loaded.notes.get("unread_dates"):
            logger.warning(
                "dates that cannot be parsed are not used for ordering; write them as 2024-05-03 10:15: %s", unread[0]
            )
        return loaded

    def survey(self) -> LoadedData:
        """Load the data as :meth:`load`, for inspection: there need be no question yet."""
        return self._load(questions_needed=False)

    def _load(self, questions_needed: bool) -> LoadedData:
        folder = sample_path("custom", "sample") if self.sample else self._folder()
        found, hashes, unread = read_custom(folder, questions_needed)
        numbers = number_kinds({question.kind for sample in found for question in sample.questions})
        names = {number: kind.replace("_", "-") for kind, number in sorted(numbers.items(), key=lambda item: item[1])}
        samples = self.apply([sample.numbered(numbers) for sample in found], names, questions_needed)
        notes = {"pinned": False, "sample": self.sample, "files": hashes, "kinds": dict(sorted(numbers.items()))}
        return LoadedData(
            samples=samples,
            sha256=hash_of_files(dict(sorted(hashes.items()))),
            source_name=folder.name,
            category_names=names,
            counts=count(samples),
            notes={**notes, **unread},
        )

    def _folder(self) -> Path:
        chosen = self.path or self.data_dir
        if chosen is None:
            raise DataError(f"dataset=custom needs dataset.data_dir=FOLDER. {CUSTOM.how_to_get}")
        folder = Path(chosen).expanduser()
        if folder.is_file():
            raise DataError(f"{folder} is a file; name the folder that holds turns.jsonl and questions.jsonl")
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder. {CUSTOM.how_to_get}")
        return folder


def number_kinds(kinds: set[str]) -> Mapping[str, int]:
    """Give every kind a category number: that of LoCoMo for LoCoMo's kinds, and one from 101 for others."""
    own = sorted(kinds - set(_NUMBERS))
    return {kind: _NUMBERS.get(kind) or _FIRST_OWN + own.index(kind) for kind in sorted(kinds)}
