"""Views of disputed labels: the same answers against the printed gold, without disputed questions, or corrected.

The corrected gold answers stay outside the project (:mod:`eval.loaders.locomo_corrections`). A run that was scored
where they lay keeps its scores against them under the metric's name and :data:`CORRECTED`; every other question has
one gold answer. Which adversarial questions are in doubt is read each time (:mod:`eval.loaders.locomo_category5`),
so that a line which a person overrules counts at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, get_args

from eval.loaders.label_problems import DOUBTFUL_ANSWER, DOUBTFUL_EVIDENCE
from eval.loaders.locomo import LOCOMO
from eval.loaders.locomo_category5 import read_category5
from eval.metrics.registry import METRICS
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import without_flagged
from eval.scoring.answers import CORRECTED
from eval.scoring.config import is_verdict
from memsys.errors import ConfigError, ScoringError

#: ``printed``: the published gold; ``masked``: without questions whose gold answer is disputed, and without the scores
#: of evidence where the gold evidence is; ``corrected``: these against the answer that an audit of the labels gives, by
#: words alone, without what a judge or a model said of the printed one; ``adversarial_masked``: without the adversarial
#: questions that the audit of category 5 calls answerable or ambiguous. Its readers were language models, not people.
LabelView = Literal["printed", "masked", "corrected", "adversarial_masked"]
VIEW_TEXT: Mapping[str, str] = {
    "printed": "labels as printed",
    "masked": "without questions with a disputed label",
    "corrected": "disputed labels corrected",
    "adversarial_masked": "without adversarial questions that language models read as answerable or ambiguous",
}
#: For the help of commands.
VIEW_HELP = " | ".join(get_args(LabelView))


def check_view(view: str) -> None:
    """Refuse a view that there is not.

    Raises:
        ConfigError: no such view.
    """
    if view not in get_args(LabelView):
        raise ConfigError(f"labels={view!r}; choose one of {', '.join(get_args(LabelView))}")


def under(rows: Sequence[ScoreRow], view: LabelView, name: str = "the run", data_sha256: str = "") -> list[ScoreRow]:
    """Return the rows of a run under a view.

    Args:
        rows: as scored.
        view: which.
        name: of the run, for messages.
        data_sha256: checksum of the run's data; the audit of category 5 holds for the published LoCoMo alone.

    Raises:
        ConfigError: no such view.
        ScoringError: ``corrected`` is asked of a run that was scored without the corrections.
    """
    check_view(view)
    if view == "printed":
        return list(rows)
    if view == "masked":
        return [_without_doubtful_evidence(row) for row in without_flagged(rows, DOUBTFUL_ANSWER)]
    if view == "adversarial_masked":
        left_out = doubtful_adversarial() if data_sha256 == LOCOMO.files[0].sha256 else frozenset()
        return [row for row in rows if row.question_id not in left_out]
    disputed = any(row.metrics.get(DOUBTFUL_ANSWER) and _answered(row) for row in rows)
    found = [_corrected(row) for row in rows]
    if disputed and all(one is row for one, row in zip(found, rows, strict=True)):
        raise ScoringError(
            f"{name} was scored without the corrected labels; fetch them with `memsys recorded fetch` "
            "(or set MEMSYS_RECORDED) and run `memsys score` again"
        )
    return found


@cache
def doubtful_adversarial() -> frozenset[str]:
    """Return the adversarial questions of the published LoCoMo that its audit calls answerable or ambiguous."""
    return frozenset(name for name, question in read_category5().items() if question.verdict != "sound")


def _answered(row: ScoreRow) -> bool:
    return any(name in METRICS and METRICS[name].lexical for name in row.metrics)


def _corrected(row: ScoreRow) -> ScoreRow:
    own = {key.removesuffix(CORRECTED): value for key, value in row.metrics.items() if key.endswith(CORRECTED)}
    if not own:
        return row
    printed = {name: None for name in row.metrics if _by_a_model(name)}
    return replace(row, metrics={**row.metrics, **printed, **own})


def _by_a_model(name: str) -> bool:
    """Return whether a score was given by a judge or an encoder, which saw the printed answer and no corrected one."""
    return METRICS[name].neural if name in METRICS else is_verdict(name)


def _without_doubtful_evidence(row: ScoreRow) -> ScoreRow:
    if not row.metrics.get(DOUBTFUL_EVIDENCE):
        return row
    evidence = {name: None for name in row.metrics if name in METRICS and "retrievals" in METRICS[name].needs}
    return replace(row, metrics={**row.metrics, **evidence})
