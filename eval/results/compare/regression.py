"""One run against an earlier one of the same questions: whether it got worse, by the tests of every comparison."""

from dataclasses import dataclass

from eval.results.compare.conclusion import conclusion
from eval.results.compare.pairs import declared_tests, on_the_same_data, tests
from eval.results.compare.rows import single_row
from eval.results.compare.seeds import Repeats
from eval.results.stored_run import StoredRun
from eval.results.tables.comparability import unlike_settings
from eval.results.tables.pairs import Pair
from eval.scoring.protocols import Protocol, recorded_protocol
from eval.scoring.remarks import untraced
from memsys.errors import RunDirectoryError

#: Names of the two in the sentence.
BASELINE, NEW = "the baseline", "this run"


@dataclass(frozen=True, slots=True)
class Regression:
    """Result of a test against an earlier run.

    Attributes:
        sentence: of the score that got worse, else of the one that leads comparisons.
        worse: scores of which the whole interval of the difference is below the margin, each with its difference.
        unlike: in what the two runs differ besides the memory; empty where in nothing.
    """

    sentence: str
    worse: tuple[str, ...]
    unlike: str


def regression(baseline: StoredRun, run: StoredRun, margin: float = 0.0) -> Regression:
    """Test a run against an earlier one, with the tests that its protocol declares.

    It got worse where a difference is confirmed and its 95 % interval is as a whole below the margin; where both asked
    about one conversation, the interval is over its questions, and nothing is said of other conversations.

    Args:
        baseline: the earlier run.
        run: the new one.
        margin: points of a score that may be lost.

    Raises:
        RunDirectoryError: they are not about the same questions, or share no score.
    """
    _check_questions(baseline, run)
    found = {
        column: _pair(baseline, run, column, metric, rule)
        for column, (metric, rule) in declared_tests(
            [run, baseline], recorded_protocol(run.record["config"].get("protocol") or {})
        ).items()
    }
    tested = {column: (pair, sentence) for column, (pair, sentence) in found.items() if pair is not None}
    if not tested:
        why = [
            f"of {name} {text}" for name, one in ((NEW, run), (BASELINE, baseline)) for text in untraced(one.summary)
        ]
        reason = "; ".join(why) or "score both runs (`memsys score RUN`)"
        raise RunDirectoryError(f"{run.path}: shares no {' nor '.join(found)} with the baseline; {reason}")
    worse = {column: pair for column, (pair, _) in tested.items() if _is_worse(pair, margin)}
    shown = next(iter(worse), next(iter(tested)))
    return Regression(
        tested[shown][1],
        tuple(f"{column} {pair.result.difference:+.1f}" for column, pair in worse.items()),
        unlike_settings([baseline, run]),
    )


def _check_questions(baseline: StoredRun, run: StoredRun) -> None:
    if not on_the_same_data(run, baseline):
        raise RunDirectoryError(
            f"{run.path}: ran on other data ({run.dataset}, sha256 {run.data_sha256[:12]}) than the baseline "
            f"({baseline.dataset}, {baseline.data_sha256[:12]}); make a baseline on these data"
        )
    asked = {row.question_id for row in baseline.rows}
    lacking = sorted(asked - {row.question_id for row in run.rows})
    if lacking:
        raise RunDirectoryError(
            f"{run.path}: lacks {len(lacking)} of the {len(asked)} questions of the baseline (first: {lacking[0]}); "
            "run it on the same questions"
        )


def _pair(baseline: StoredRun, run: StoredRun, column: str, metric: str, rule: Protocol) -> tuple[Pair | None, str]:
    """Return the test of one score, and its sentence; the runs of equal settings are two systems here."""
    rows = [
        single_row(label, Repeats((one,), one), column, metric, rule)
        for label, one in ((BASELINE, baseline), (NEW, run))
    ]
    pairs = tests(rows[0], rows, column, metric, rule)
    if not pairs or any(column not in row.estimates for row in rows):
        return None, ""
    best_first = sorted(rows, key=lambda row: -row.estimates[column].value)
    return pairs[0], conclusion(best_first, rows[0], pairs, column)


def _is_worse(pair: Pair, margin: float) -> bool:
    interval = pair.result.interval
    return interval is not None and pair.verdict in ("below", "") and interval.high < -margin
