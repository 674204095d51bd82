"""Runs that are compared: the same questions about the same data, asked of one backbone by one reader."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from eval.results.stored_run import StoredRun

#: Conversations that a title names; more are counted.
_NAMED = 4
#: Characters of a group's name in files; disks take 255 bytes.
_LONGEST_KEY = 120

#: Data set, backbone, prompts and questions of a group; reader and checksum of the data distinguish further ones.
_Shared = tuple[str, str, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ComparableRuns:
    """Runs of one data set, backbone, reader and prompt set that were asked the same questions.

    Attributes:
        dataset: name of the data set config.
        backbone: name of the backbone config.
        prompts: whose or which they are, see :func:`eval.config.answer_prompts.prompts_of`.
        asked: ids of the questions, sorted.
        runs: in the order given.
        which: which questions they are, for people; empty where setting and number of questions tell the group apart.
        data: checksum of the data; empty where no other group has the same setting and questions, as data of two
            folders have that are read with one preset (``dataset=custom``).
        reader: that asked the questions; empty where no other asked the same ones of the same backbone.
    """

    dataset: str
    backbone: str
    prompts: str
    asked: tuple[str, ...]
    runs: tuple[StoredRun, ...]
    which: str = ""
    data: str = ""
    reader: str = ""

    @property
    def setting(self) -> tuple[str, ...]:
        """Everything but the questions; to sort by."""
        return self.dataset, self.backbone, self.prompts, *filter(None, [self.reader])

    @property
    def key(self) -> str:
        """Names the group in files; with a checksum where another group would have the same name."""
        return "_".join((self.short_key, *([self.checksum] if self.which else [])))

    @property
    def short_key(self) -> str:
        """Setting and number of questions in letters of file names: a recorded backbone may have any name."""
        words = f"{self.prompts} {self.reader}".replace("'", "").split()
        parts = (self.dataset, self.backbone, str(len(self.asked)), *words)
        return re.sub(r"[^\w.+-]+", "_", "_".join(parts))[:_LONGEST_KEY]

    @property
    def checksum(self) -> str:
        """First eight digits of the sha256 of the setting, the questions' ids and :attr:`data` if any, one a line."""
        parts = (*self.setting, *self.asked, *filter(None, [self.data]))
        return sha256("\n".join(parts).encode()).hexdigest()[:8]

    @property
    def conversations(self) -> str:
        """Names of the conversations asked about; many are counted."""
        names = self.runs[0].conversations
        return ", ".join(names) if len(names) <= _NAMED else f"{len(names)} conversations"

    def title(self, before_backbone: str = "") -> str:
        """Return the group for people, with a word that says what the second part is."""
        parts = (self.dataset, f"{before_backbone}{self.backbone}", self.prompt_set, f"{len(self.asked)} questions")
        return ", ".join(filter(None, parts)) + self.which

    @property
    def prompt_set(self) -> str:
        """Whose or which prompts, and the reader where there are several."""
        return ", ".join(filter(None, (self.prompts, self.reader and f"reader {self.reader}")))


def comparable_runs(runs: Iterable[StoredRun]) -> list[ComparableRuns]:
    """Put complete runs together that can be compared, in the order of their first."""
    found: dict[tuple[_Shared, str, str], list[StoredRun]] = {}
    for run in runs:
        asked = tuple(sorted(row.question_id for row in run.rows))
        shared = (run.dataset, run.backbone, run.prompts, asked)
        found.setdefault((shared, run.data_sha256, run.asked_by), []).append(run)
    sets = Counter(shared for shared, _ in {(shared, data) for shared, data, _ in found})
    readers = Counter((shared, data) for shared, data, _ in found)
    groups = [
        ComparableRuns(
            *shared,
            tuple(members),
            data=data if sets[shared] > 1 else "",
            reader=reader if readers[shared, data] > 1 else "",
        )
        for (shared, data, reader), members in found.items()
    ]
    return _distinct(groups)


def _distinct(groups: list[ComparableRuns]) -> list[ComparableRuns]:
    """Name the questions of groups that differ in their questions alone."""
    equal = Counter(group.short_key for group in groups)
    about = Counter((group.short_key, group.conversations) for group in groups)
    return [
        replace(group, which=_which(group, about[group.short_key, group.conversations]))
        if equal[group.short_key] > 1
        else group
        for group in groups
    ]


def _which(group: ComparableRuns, about_the_same: int) -> str:
    return f" of {group.conversations}" + (f" (checksum {group.checksum})" if about_the_same > 1 else "")
