"""Views of disputed labels: the same answers against the printed gold, without disputed questions, or corrected.

The corrected gold answers stay outside the project (:mod:`eval.recorded.labels`). A run that was scored where they lay
keeps its scores against them under the metric's name and :data:`CORRECTED`; every other question has one gold answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

from eval.loaders.label_problems import DOUBTFUL_ANSWER
from eval.scoring.aggregate import undoubted
from eval.scoring.rows import CORRECTED, ScoreRow
from memsys.errors import ConfigError, ScoringError

#: ``printed``: the published gold; ``masked``: without questions whose gold answer is disputed; ``corrected``: these
#: against the answer that an audit of the labels gives.
LabelView = Literal["printed", "masked", "corrected"]
VIEW_TEXT: Mapping[str, str] = {
    "printed": "labels as printed",
    "masked": "without questions whose label is disputed",
    "corrected": "disputed labels corrected",
}


def under(rows: Sequence[ScoreRow], view: LabelView, name: str = "the run") -> list[ScoreRow]:
    """Rows of a run under a view.

    Args:
        rows: as scored.
        view: which.
        name: of the run, for messages.

    Raises:
        ConfigError: no such view.
        ScoringError: ``corrected`` is asked of a run that was scored without the corrections.
    """
    if view not in get_args(LabelView):
        raise ConfigError(f"labels={view!r}; choose one of {', '.join(get_args(LabelView))}")
    if view == "printed":
        return list(rows)
    if view == "masked":
        return undoubted(rows, DOUBTFUL_ANSWER)
    disputed = any(row.metrics.get(DOUBTFUL_ANSWER) for row in rows)
    found = [_corrected(row) for row in rows]
    if disputed and all(one is row for one, row in zip(found, rows, strict=True)):
        raise ScoringError(
            f"{name} was scored without the corrected labels; fetch them with `make recorded` (or set MEMSYS_RECORDED) "
            "and run `python -m eval.score` again"
        )
    return found


def _corrected(row: ScoreRow) -> ScoreRow:
    own = {key.removesuffix(CORRECTED): value for key, value in row.metrics.items() if key.endswith(CORRECTED)}
    return replace(row, metrics={**row.metrics, **own}) if own else row
