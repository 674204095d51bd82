"""Cells that count a data set's questions: any run's record says how many there are, so no run has to be in them."""

from eval.results.papers.printed import PrintedNumber
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import Candidates
from eval.results.tables.measure import Measured
from eval.results.tables.spec import DatasetSpec

#: Metrics of such cells: a number of questions, and its share of all of them.
QUESTIONS, QUESTIONS_SHARE = "questions", "questions_share"
_SOURCE = "counted in the data set"


def count_questions(found: Candidates, printed: PrintedNumber, spec: DatasetSpec) -> Measured | None:
    """Count the questions of a category, or of all.

    Args:
        found: the paper's runs by row and data set.
        printed: the cell; its category says what is counted.
        spec: its data set; a run on a part of it counts for nothing.

    Returns:
        The count, or the share from 0 to 1; ``None`` for a cell of another kind, or without a run on the whole set.
    """
    if printed.metric not in (QUESTIONS, QUESTIONS_SHARE):
        return None
    runs = [run for by_dataset in found.values() for run in by_dataset.get(printed.dataset, ())]
    whole = [run for run in runs if (run.record.get("data") or {}).get("questions") == spec.questions]
    return _counted(min(whole, key=lambda run: run.run_id), printed) if whole else None


def _counted(run: StoredRun, printed: PrintedNumber) -> Measured:
    data = run.record["data"]
    total, by_category = int(data["questions"]), data["questions_by_category"]
    count = total if printed.category is None else int(by_category.get(str(printed.category), 0))
    value = count / total if printed.metric == QUESTIONS_SHARE else float(count)
    return Measured(
        value=value,
        interval=None,
        detectable=None,
        questions=total,
        covered=total,
        conversations=run.conversations,
        seeds=(),
        runs=(run.run_id,),
        caveats=(),
        by_run=(value,),
        repeats_exactly=_SOURCE,
        metric=printed.metric,
    )
