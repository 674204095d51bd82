"""Groups of comparable runs: same part of the same data, backbone, reader and prompts, common questions."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from eval.results.stored_run import StoredRun


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs on the same questions.

    Attributes:
        systems: numbers of the runs that are ranked.
        references: numbers of the runs that are shown as lines.
        questions: ids that every one of them answered, sorted.
        asked: most questions that any one of them answered.
    """

    systems: tuple[int, ...]
    references: tuple[int, ...]
    questions: tuple[str, ...]
    asked: int

    @property
    def members(self) -> tuple[int, ...]:
        """All runs, ranked ones first."""
        return self.systems + self.references


def find_groups(
    runs: Sequence[StoredRun], *, backbones_apart: bool = True, left_out: Collection[int] = ()
) -> list[RunGroup]:
    """Sort runs into groups; floors join each group on their data file that they cover.

    Args:
        runs: complete runs.
        backbones_apart: runs with different backbones are no group.
        left_out: numbers of runs that are in no group.

    Returns:
        Groups, those about most conversations first, then with most questions and systems.
    """
    members: dict[tuple[object, ...], list[int]] = {}
    floors = [number for number, run in enumerate(runs) if run.floor]
    for number, run in enumerate(runs):
        if not run.floor and number not in left_out:
            members.setdefault((*_scope(run), run.backbone if backbones_apart else ""), []).append(number)
    found = [_group(runs, numbers, floors) for numbers in members.values()]
    return sorted(found, key=lambda group: _place(runs, group))


def _place(runs: Sequence[StoredRun], group: RunGroup) -> tuple[bool, int, int, int]:
    conversations = len(runs[group.members[0]].conversations)
    return _only_retrieves(runs, group), -conversations, -len(group.questions), -len(group.systems)


def _only_retrieves(runs: Sequence[StoredRun], group: RunGroup) -> bool:
    return all(runs[number].retrieval_only for number in group.members)


def _scope(run: StoredRun) -> tuple[object, ...]:
    """Return the key of comparable runs: data file, numbers of turns and conversations, reader and prompts.

    Runs that time a few questions are apart: the others would be left with these few in common.
    """
    data = run.record["data"]
    part = (run.data_sha256, data.get("turns"), data.get("conversations"))
    return *part, run.asked_by, run.prompts, run.times_questions


def _group(runs: Sequence[StoredRun], numbers: Sequence[int], floors: Sequence[int]) -> RunGroup:
    answered = {number: {row.question_id for row in runs[number].rows} for number in (*numbers, *floors)}
    common = frozenset.intersection(*(frozenset(answered[number]) for number in numbers))
    checksum = runs[numbers[0]].data_sha256
    joining = [
        number for number in floors if common and runs[number].data_sha256 == checksum and common <= answered[number]
    ]
    if runs[numbers[0]].retrieval_only:
        joining = []
    return RunGroup(
        systems=tuple(number for number in numbers if not runs[number].reference),
        references=(*(number for number in numbers if runs[number].reference), *joining),
        questions=tuple(sorted(common)),
        asked=max(len(answered[number]) for number in numbers),
    )
