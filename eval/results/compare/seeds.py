"""Runs that differ in their seed alone are one system: their scores are averaged question by question."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from statistics import stdev

from eval.config.answer_prompts import answer_prompts
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import averaged_rows
from eval.results.tables.judges import judge_groups
from eval.runs.records import ScoreRow
from eval.scoring.beam import order_columns, score_columns


@dataclass(frozen=True, slots=True)
class Repeats:
    """The runs of one system, one for each seed.

    Attributes:
        runs: sorted by seed.
        averaged: the first of them with the mean scores of all.
    """

    runs: tuple[StoredRun, ...]
    averaged: StoredRun

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds, sorted."""
        return tuple(seed_of(run) for run in self.runs)

    def spread(self, figure: Callable[[StoredRun], float | None]) -> float | None:
        """Return the standard deviation (n - 1) over seeds; ``None`` with one seed, or where one has no value."""
        values = [value for run in self.runs if (value := figure(run)) is not None]
        return stdev(values) if len(values) == len(self.runs) > 1 else None


def seed_of(run: StoredRun) -> int:
    """Return the seed of a run."""
    return int(run.record.get("seed") or 0)


def listed_seeds(seeds: Sequence[int]) -> str:
    """Return the seeds in rising order as ``0-2``, or ``0,2`` where some are left out."""
    whole = list(seeds) == list(range(seeds[0], seeds[-1] + 1))
    return f"{seeds[0]}-{seeds[-1]}" if whole and len(seeds) > 1 else ",".join(map(str, seeds))


def named_seeds(seeds: Sequence[int]) -> str:
    """Return ``seed 1``, or ``seeds 0-2``."""
    return f"seed{'' if len(seeds) == 1 else 's'} {listed_seeds(seeds)}"


def with_seeds(name: str, run: StoredRun) -> str:
    """Return a system's name, with the seeds that its scores are the means of."""
    return f"{name}, seeds {listed_seeds([seed_of(one) for one in run.repeats])}" if run.repeats else name


def group_repeats(runs: Sequence[StoredRun]) -> list[Repeats]:
    """Put runs together that differ in nothing but the seed, in the order of their first.

    Two runs with the same seed are two systems: something else must differ.
    """
    groups: list[list[StoredRun]] = []
    alike: dict[tuple[object, ...], list[list[StoredRun]]] = {}
    for run in runs:
        same = alike.setdefault(_key(run), [])
        home = next((group for group in same if seed_of(run) not in map(seed_of, group)), None)
        if home is None:
            home = []
            same.append(home)
            groups.append(home)
        home.append(run)
    return [_together(sorted(group, key=seed_of)) for group in groups]


def _key(run: StoredRun) -> tuple[object, ...]:
    config = run.record["config"]
    questions = frozenset(row.question_id for row in run.rows)
    prompts = run.prompts, tuple(sorted(answer_prompts(run.record).items()))  # a reworded text is in no setting
    asked = run.data_sha256, questions, prompts
    return run.settings_hash(), run.memory, run.record["mode"], config.get("timing"), run.gpus, asked


def _together(runs: Sequence[StoredRun]) -> Repeats:
    if len(runs) == 1:
        return Repeats(tuple(runs), runs[0])
    rows = _without(_columns_of_no_one_judge(runs), averaged_rows(runs))
    return Repeats(tuple(runs), replace(runs[0], rows=rows, repeats=tuple(runs)))


def _columns_of_no_one_judge(runs: Sequence[StoredRun]) -> Set[str]:
    """Return the columns of judges that did not grade all runs with the same settings and model."""
    groups = judge_groups(runs)
    whole = {group.metric for group in groups if {run.run_id for run in runs} <= group.runs}
    partial = {group.metric for group in groups} - whole
    return partial | {column for judge in partial for column in (*score_columns(judge), *order_columns(judge))}


def _without(columns: Set[str], rows: tuple[ScoreRow, ...]) -> tuple[ScoreRow, ...]:
    if not columns:
        return rows
    return tuple(
        replace(row, metrics={name: value for name, value in row.metrics.items() if name not in columns})
        for row in rows
    )


def fewer_seeds(ours: Repeats, theirs: Repeats) -> tuple[int, ...]:
    """Return the seeds that two systems are paired over, sorted, where one of them has others too; else empty."""
    shared = sorted(set(ours.seeds) & set(theirs.seeds))
    return () if len(shared) == len(ours.runs) == len(theirs.runs) else tuple(shared)


def paired_rows(ours: Repeats, theirs: Repeats) -> tuple[Sequence[ScoreRow], Sequence[ScoreRow]]:
    """Return the scores of two systems over the seeds that both ran; over all of each where they share none."""
    shared = fewer_seeds(ours, theirs)
    if not shared:
        return ours.averaged.rows, theirs.averaged.rows

    def of(system: Repeats) -> tuple[ScoreRow, ...]:
        return averaged_rows([run for run in system.runs if seed_of(run) in shared])

    return of(ours), of(theirs)
