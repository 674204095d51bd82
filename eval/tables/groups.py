"""Runs that can be held against each other: the same questions, asked of the same backbone in the same words."""

from collections.abc import Iterable
from dataclasses import dataclass

from eval.tables.stored import StoredRun


@dataclass(frozen=True, slots=True)
class ComparableRuns:
    """Runs of one data set, backbone and wording that were asked the same questions.

    Attributes:
        dataset: name of the data set config.
        backbone: name of the backbone config.
        prompts: whose or which they are, see :func:`eval.configs.answer_prompts.prompts_of`.
        asked: ids of the questions, sorted.
        runs: in the order given.
    """

    dataset: str
    backbone: str
    prompts: str
    asked: tuple[str, ...]
    runs: tuple[StoredRun, ...]

    @property
    def setting(self) -> tuple[str, str, str]:
        """Everything but the questions; to sort by."""
        return self.dataset, self.backbone, self.prompts

    @property
    def key(self) -> str:
        """Names the group in files; the same for other questions of the same number."""
        return "_".join((self.dataset, self.backbone, str(len(self.asked)), *self.prompts.replace("'", "").split()))

    def title(self, before_backbone: str = "") -> str:
        """The group for people, with a word that says what the second part is."""
        parts = (self.dataset, f"{before_backbone}{self.backbone}", self.prompts, f"{len(self.asked)} questions")
        return ", ".join(filter(None, parts))


def comparable_runs(runs: Iterable[StoredRun]) -> list[ComparableRuns]:
    """Put runs together that can be compared, in the order of their first."""
    found: dict[tuple[str, str, str, tuple[str, ...]], list[StoredRun]] = {}
    for run in runs:
        asked = tuple(sorted(row.question_id for row in run.rows))
        found.setdefault((run.dataset, run.backbone, run.prompts, asked), []).append(run)
    return [ComparableRuns(*shared, tuple(members)) for shared, members in found.items()]
