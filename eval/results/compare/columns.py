"""The columns of a comparison: names, decimals, and what each says."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eval.metrics.evidence import SUBSTRING
from eval.metrics.metric import Metric
from eval.metrics.registry import METRICS, listed, matching
from eval.metrics.sessions import BY_SESSION
from eval.results.stored_run import StoredRun
from eval.results.tables.judges import JudgeGroup, judge_groups, unlike_judges
from eval.scoring.beam import meaning, missing_kinds, score_columns, title

#: Column and metric of evidence recall by the text of the gold turns, for memories that turn ids do not apply to.
TEXT_RECALL = f"R@10 ({SUBSTRING[1:]})", f"recall@10{SUBSTRING}"
#: F1 without the questions that have no answer, which some protocols score against a false one.
ANSWERABLE = "F1 answerable"
_UNLIKE = "; not with the settings or the model of the other judge of this name"


@dataclass(frozen=True, slots=True)
class ComparisonColumn:
    """One column of the comparison: name, decimals, what it says; ``matching``: how it finds evidence."""

    name: str
    digits: int
    meaning: str
    matching: str = ""

    @property
    def heading(self) -> str:
        """The name with what tells it from a column of another definition."""
        return f"{self.name} ({self.matching})" if self.matching else self.name


#: Evidence is found here by the ids of the turns a memory came from; CLAG looks for their text instead.
_LINEAGE = matching("recall@10")


def answer_columns() -> tuple[ComparisonColumn, ...]:
    """Return the columns of answers: F1 as the protocol defines it, every listed metric of answers, abstentions."""
    return (
        ComparisonColumn("F1", 1, "token F1, percent"),
        ComparisonColumn(ANSWERABLE, 1, "token F1 without unanswerable questions (LoCoMo: category 5), percent"),
        *(_column(metric) for metric in listed(retrieval=False)),
        ComparisonColumn(
            "abstain",
            1,
            'unanswerable questions that were declined ("not mentioned", "no information available"), percent',
        ),
    )


def lead_column(name: str, metric: str) -> tuple[ComparisonColumn, ...]:
    """Return the column of a protocol's primary metric, for one that no comparison has by itself."""
    if any(column.name == name for column in columns()):
        return ()
    return (replace(_column(METRICS[metric]), name=name, matching=""),)


def evidence_columns() -> tuple[ComparisonColumn, ...]:
    """Return the columns of retrievals: every listed metric of evidence by turn, and the size of the context."""
    columns = (_column(metric) for metric in listed(retrieval=True) if metric.name not in BY_SESSION)
    return (*columns, ComparisonColumn("context", 0, "tokens of retrieved context per question"))


def text_columns() -> tuple[ComparisonColumn, ...]:
    """Return the column of evidence by substring, shown where results of some system cannot be traced to turns."""
    name, metric = TEXT_RECALL
    return (replace(_column(METRICS[metric]), name=name, matching=""),)


def session_columns() -> tuple[ComparisonColumn, ...]:
    """Return the columns of retrievals where the data set names the sessions that hold the evidence."""
    return tuple(_column(metric) for metric in listed(retrieval=True) if metric.name in BY_SESSION)


def _column(metric: Metric) -> ComparisonColumn:
    direction = "" if metric.higher_is_better else ", lower is better"
    meaning = f"{metric.name} ({metric.source}), {metric.unit}{direction}"
    return ComparisonColumn(metric.heading, 1, meaning, matching(metric.name))


AUDITED_COLUMNS = (
    ComparisonColumn("F1 audited", 1, "token F1 without the questions with a disputed gold answer, percent"),
    ComparisonColumn("R@10 audited", 1, "evidence recall without the questions with disputed gold, percent", _LINEAGE),
)
UNANSWERED_COLUMNS = (
    ComparisonColumn("unanswered", 0, "questions without a whole answer: empty, malformed, withheld or failed"),
)
COST_COLUMNS = (
    ComparisonColumn("calls", 1, "calls of the backbone per question"),
    ComparisonColumn("tokens", 0, "prompt and completion tokens per question"),
    ComparisonColumn("write", 0, "prompt and completion tokens per turn written"),
    ComparisonColumn("dollars", 3, "dollars of reading per 1,000 questions asked, by conf/prices.yaml"),
    ComparisonColumn("malformed", 1, "replies that did not parse, percent of calls"),
    ComparisonColumn("cached", 1, "prompt tokens that the server reused from an earlier call, percent"),
)


def columns() -> tuple[ComparisonColumn, ...]:
    """Return the columns that every comparison may have; those of judges depend on the runs."""
    answers = (*answer_columns(), *UNANSWERED_COLUMNS)
    return (*answers, *evidence_columns(), *text_columns(), *session_columns(), *AUDITED_COLUMNS, *COST_COLUMNS)


def judge_columns(runs: Sequence[StoredRun]) -> dict[ComparisonColumn, JudgeGroup]:
    """Return a column per judge, settings and model that graded any of the runs, and those of BEAM's score."""
    groups = judge_groups(runs)
    repeated = set(unlike_judges(runs))
    names = ["judge"] if len(groups) == 1 else [f"judge {number}" for number in range(1, len(groups) + 1)]
    found: dict[ComparisonColumn, JudgeGroup] = {}
    for name, group in zip(names, groups, strict=True):
        doubts = _doubts(group, group.metric in repeated)
        found[ComparisonColumn(name, 1, f"answers called right, percent, by {group.text}{doubts}")] = group
        found |= _beam_columns(runs, name.removeprefix("judge"), group, unlike=group.metric in repeated)
    return found


def _beam_columns(
    runs: Sequence[StoredRun], number: str, group: JudgeGroup, *, unlike: bool
) -> dict[ComparisonColumn, JudgeGroup]:
    """Return the columns of BEAM's score by one judge; kinds that any of its runs lacks are named."""
    found = {}
    own = [run for run in runs if run.run_id in group.runs]
    for metric in score_columns(group.metric):
        if any(metric in run.columns.names for run in own):
            lacking = missing_kinds([run.columns for run in own], metric)
            own_group = group.of(metric)
            text = f"{meaning(metric, lacking)}, by {own_group.text}{_doubts(own_group, unlike)}"
            found[ComparisonColumn(f"{title(metric)}{number}", 1, text)] = own_group
    return found


def _doubts(group: JudgeGroup, unlike: bool) -> str:
    fault = f"; no ranking: {group.fault}" if group.fault else ""
    return f"{fault}{_UNLIKE if unlike else ''}"
