"""The page's first view: what the runs of a group scored, whether a difference can be claimed, and what it costs.

Baseline, tests, sentence and the mark of each row are those of ``memsys compare`` (:mod:`eval.results.compare`), so
that the page says of the same runs what a comparison says.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from eval.report.groups import GroupRows, Scored
from eval.report.scores import PAGE_DECIMALS
from eval.results.compare.baseline import choose_baseline
from eval.results.compare.conclusion import conclusion
from eval.results.compare.pairs import declared_tests, tests
from eval.results.compare.rows import ComparisonEstimate, SystemRow, single_row
from eval.results.compare.seeds import Repeats
from eval.results.compare.tiers import tiers
from eval.results.own.stages import weighted_protocol
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import unlike_settings
from eval.results.tables.judges import judge_faults
from eval.results.tables.pairs import Pair
from eval.results.tables.run_groups import RunGroup
from eval.scoring.inference import resampling_units
from eval.scoring.protocols import Adversarial, Protocol
from memsys.vocabulary import Json

#: Treatments of category 5, which is left out unless the reader of the page says otherwise.
ADVERSARIAL_TREATMENTS: tuple[Adversarial, ...] = (
    "exclude",
    *(way for way in get_args(Adversarial) if way != "exclude"),
)


@dataclass(frozen=True, slots=True)
class Board:
    """Data that a group's boards share.

    Attributes:
        runs: all runs.
        labels: name of each of the group's runs.
        costs: figures of each run, ``tokens`` among them.
        dataset: name of the group's data set.
    """

    runs: Sequence[StoredRun]
    labels: Mapping[int, str]
    costs: Sequence[dict[str, Any]]
    dataset: str


def group_answer(group: RunGroup, board: Board, metrics: Sequence[str], columns: Sequence[str]) -> Json:
    """Return one group: a board per metric and treatment of questions without an answer, and means of other scores.

    Args:
        group: which runs.
        board: what its boards need.
        metrics: to rank and test by.
        columns: of the means, which are on the questions that the first board is on.
    """
    rows = GroupRows(board.runs, group)
    boards: dict[str, dict[str, Json]] = {}
    for metric in metrics:
        for treatment in ADVERSARIAL_TREATMENTS if rows.unanswerable else ADVERSARIAL_TREATMENTS[:1]:
            found = rows.scored(metric, treatment)
            if found is not None:
                boards.setdefault(metric, {})[treatment] = _board(found, group, board, metric, treatment)
    treatment = ADVERSARIAL_TREATMENTS[0]  # the first of every board
    return {
        "labels": {str(number): board.labels[number] for number in group.members},
        "members": list(group.members),
        "systems": list(group.systems),
        "asked": group.asked,
        "boards": boards,
        "means": {name: means for name in columns if (means := _means(rows.scored(name, treatment)))},
    }


def _means(found: Scored | None) -> dict[str, float]:
    """Return mean of each run that was scored, by its number."""
    if found is None:
        return {}
    means = found.values.mean(axis=0)
    return {str(number): round(float(mean), PAGE_DECIMALS) for number, mean in zip(found.runs, means, strict=True)}


def _board(found: Scored, group: RunGroup, board: Board, metric: str, treatment: Adversarial) -> Json:
    runs = [board.runs[number] for number in found.runs]
    column, rule, note = _tests_of(runs, metric, treatment)
    asked = frozenset(row.question_id for row in found.rows)
    rows = [
        single_row(board.labels[number], _repeats(board.runs[number], asked), column, metric, rule)
        for number in found.runs
    ]
    baseline = choose_baseline(rows, column)
    pairs = {pair.system: pair for pair in tests(baseline, rows, column, metric, rule)}
    fault = judge_faults(runs).get(metric, "")
    by, _ = resampling_units([row.conversation_id for row in found.rows])
    ranked = [row for row in rows if not row.run.reference]
    placed = tiers(ranked, column, metric, rule) if metric == rule.primary and not fault else {}
    return {
        "sentence": _sentence(rows, baseline, list(pairs.values()), column, fault),
        "setting": _setting(found, group, board, treatment) + note,
        "fault": fault,
        "column": column,
        "questions": len(found.rows),
        "by": by,
        "runs": list(found.runs),
        "ranked": sum(number in group.systems for number in found.runs),
        "figures": [_figures(row.estimates[column]) for row in rows],
        "against": rows.index(baseline),
        "tests": [_test(pairs.get(row.label)) for row in rows],
        "tiers": [placed.get(row.label) for row in rows] if len(set(placed.values())) > 1 else [],
    }


def _tests_of(runs: Sequence[StoredRun], metric: str, treatment: Adversarial) -> tuple[str, Protocol, str]:
    """Return column and rule of a board's tests, and what to say of them where they are of no declared family."""
    protocol = weighted_protocol(runs[0])
    families = declared_tests(runs, protocol)
    unanswerable = any(run.asks_unanswerable for run in runs)
    for column, (name, rule) in families.items():
        if name == metric and name == rule.primary and (rule.adversarial == treatment or not unanswerable):
            return column, rule, ""
    declared = [column for column, (name, rule) in families.items() if name == rule.primary]
    decides = f"; exploratory, what decides is {' and '.join(declared)}" if declared else "; exploratory"
    return metric, replace(protocol, adversarial=treatment, primary=""), decides


def _repeats(run: StoredRun, asked: frozenset[str]) -> Repeats:
    """Return a run and those that differ in the seed alone, as in a comparison, cut to the board's questions."""
    whole, *seeds = (replace(one, rows=one.columns.of_questions(asked)) for one in (run, *run.repeats))
    return Repeats(tuple(seeds) or (whole,), whole)


def _sentence(rows: Sequence[SystemRow], baseline: SystemRow, pairs: Sequence[Pair], column: str, fault: str) -> str:
    if fault:
        return f"These scores cannot tell which memory is better: {fault}."
    best_first = sorted(rows, key=lambda row: -row.estimates[column].value)
    return conclusion(best_first, baseline, pairs, column)


def _setting(found: Scored, group: RunGroup, board: Board, treatment: str) -> str:
    """Return what the board is on: which questions, and in what the runs differ besides the memory."""
    count = len(found.rows)
    left_out = ", without those that have no answer" if treatment == "exclude" and count < len(group.questions) else ""
    runs = "that the run answered" if len(found.runs) == 1 else f"that all {len(found.runs)} runs answered"
    unlike = unlike_settings([board.runs[number] for number in found.runs])
    alone = f"; {unlike}, so a difference need not be the memory's alone" if unlike else ""
    return f"{count:,} of {group.asked:,} questions, those {runs}{left_out}{alone}"


def _figures(found: ComparisonEstimate) -> Json:
    """Return mean of a system with the ends of its interval; those of a share are shown from 0 to 100."""
    interval = found.shown_interval
    ends = () if interval is None else (interval.low, interval.high)
    return [round(value, PAGE_DECIMALS) for value in (found.value, *ends)]


def _test(pair: Pair | None) -> Json:
    """Return the test of a row against the baseline; ``None`` for the baseline, and if there is none."""
    if pair is None:
        return None
    result, interval = pair.result, pair.result.interval
    ends = (
        (None, None) if interval is None else (round(interval.low, PAGE_DECIMALS), round(interval.high, PAGE_DECIMALS))
    )
    return {
        "value": round(result.difference, PAGE_DECIMALS), "low": ends[0], "high": ends[1], "p": result.p_value,
        "adjusted": pair.adjusted, "gained": result.wins, "lost": result.losses, "verdict": pair.verdict,
    }  # fmt: skip
