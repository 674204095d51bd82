"""Measured accuracy of judges on answers whose grade is known, by judge and backbone.

They are kept in one file and shown next to every column of that judge.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from eval.commands.places import RESULTS
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Table, columns
from eval.config.preset_settings import overrides
from eval.config.presets import CONF
from eval.runs.files import write_atomic
from memsys.errors import DataError
from memsys.vocabulary import Json

#: Figures of every judge that was measured.
FILE = RESULTS / "audit" / "judge_presets.csv"
#: What the answers are.
BY_PEOPLE, ON_PURPOSE, OF_GOLD = "labelled by people", "wrong on purpose", "gold answers by rubrics"
#: Pairs of events of BEAM's orders: the same one twice, or one of this chat and one of another.
OF_PAIRS = "pairs of gold events"
#: Settings that change no verdict on an answer: how often it is asked, what a half counts, and orders of events.
_NO_VERDICT = ("repeats", "halves", "order", "order_role")


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """Figures of a judge on one set of answers; shares are percent, ``None`` where nothing could be counted.

    Attributes:
        judge: name of its preset.
        backbone: model that judged.
        answers_of: :data:`BY_PEOPLE`, :data:`ON_PURPOSE`, :data:`OF_GOLD` or :data:`OF_PAIRS`.
        answers: how many got a verdict.
        unreadable: how many got none, or as many of one as of the other.
        right: share that is right.
        called_right: share that the judge calls right.
        accuracy: share on which the judge is right.
        one_verdict: accuracy of always giving the commoner verdict.
        kappa: agreement beyond chance (Cohen); ``None`` where all answers are wrong.
        wrong_accepted: share of the wrong answers that it calls right, with its 95 % interval (Wilson, by answer).
        wrong_accepted_low: lower end.
        wrong_accepted_high: upper end.
        right_rejected: share of the right answers that it calls wrong.
        prompt_sha256: of the prompt and the system message that were measured.
        model: the backbone's model, as its settings name it; one preset may serve many. Empty in older files.
    """

    judge: str
    backbone: str
    answers_of: str
    answers: int
    unreadable: int
    right: float | None
    called_right: float | None
    accuracy: float | None
    one_verdict: float | None
    kappa: float | None
    wrong_accepted: float | None
    wrong_accepted_low: float | None
    wrong_accepted_high: float | None
    right_rejected: float | None
    prompt_sha256: str
    model: str = ""


def keep(found: Sequence[JudgeFigures], path: Path) -> None:
    """Put figures into the file, in place of older ones of the same judge, backbone, model and answers."""
    replaced = {_key(replace(one, model="")) for one in found}
    kept = [one for one in stored_figures(path) if one.model or _key(one) not in replaced]
    rows = {_key(one): one for one in (*kept, *found)}
    shown = columns(one.name for one in fields(JudgeFigures))
    written = [[_written(value) for value in asdict(rows[key]).values()] for key in sorted(rows)]
    write_atomic(path, render_csv(Table("", shown, written)).encode())


def _key(one: JudgeFigures) -> tuple[str, str, str, str]:
    return one.backbone, one.judge, one.answers_of, one.model


def _written(value: str | int | float | None) -> str | int | None:
    return str(round(value, 4)) if isinstance(value, float) else value


def stored_figures(path: Path) -> list[JudgeFigures]:
    """Return the figures of every judge that was measured; none where there is no file.

    Raises:
        DataError: a column is missing or holds no number.
    """
    if not path.is_file():
        return []
    found = []
    for number, row in enumerate(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))), start=2):
        try:
            found.append(
                JudgeFigures(**{name: _read(name, row[name]) for name in _NAMES if name in row or name != "model"})
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"{path}: line {number}: {error}; delete the file and measure the judges again") from error
    return found


_NAMES = tuple(one.name for one in fields(JudgeFigures))
_TEXTS = ("judge", "backbone", "answers_of", "prompt_sha256", "model")
_COUNTS = ("answers", "unreadable")


def _read(name: str, text: str) -> Any:
    if name in _TEXTS:
        return text
    return int(text) if name in _COUNTS else float(text) if text else None


def settings_that_change_verdicts(judge: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that may change verdicts and differ from the preset of the judge's name."""
    kept = {key: value for key, value in judge.items() if key not in _NO_VERDICT}
    return overrides(kept, CONF / "judge")


def figures_for(entry: Mapping[str, Json]) -> dict[str, JudgeFigures]:
    """Return the figures of the judge of some verdicts, by set of answers; empty if it was not measured as it is.

    Args:
        entry: of a run's summary, see :func:`eval.scoring.verdicts.summary.judge_summary`.
    """
    identity = entry.get("identity") or {}
    if settings_that_change_verdicts(identity.get("judge") or {}):
        return {}
    return {one.answers_of: one for one in _figures_of_judge(entry, identity.get("prompt_sha256"))}


def pair_figures_for(entry: Mapping[str, Json]) -> JudgeFigures | None:
    """Return the figures of a judge on pairs of events; ``None`` if it was not measured as it is."""
    found = _figures_of_judge(entry, (entry.get("order") or {}).get("prompt_sha256"))
    return next((one for one in found if one.answers_of == OF_PAIRS), None)


def _figures_of_judge(entry: Mapping[str, Json], prompt_sha256: str | None) -> Iterator[JudgeFigures]:
    """Yield the stored figures of the same judge, prompt and, where both name one, model."""
    wanted = (entry["judge"], entry["backbone"], prompt_sha256)
    model = ((entry.get("identity") or {}).get("backbone") or {}).get("model")
    for one in stored_figures(FILE):
        same_model = not one.model or not model or one.model == model
        if (one.judge, one.backbone, one.prompt_sha256) == wanted and same_model:
            yield one


def corrected_share(raw: float, figures: JudgeFigures) -> float | None:
    """Return the share of right answers behind a share of accepted ones (Rogan and Gladen, 1978).

    ``(raw - a) / (b - a)`` with ``a`` the share of wrong and ``b`` the share of right answers that the judge accepts,
    cut at 0 and 1.

    Args:
        raw: share that the judge calls right, 0 to 1.
        figures: on answers labelled by people.

    Returns:
        The share, 0 to 1; ``None`` for a judge that accepts wrong answers as often as right ones.
    """
    if figures.wrong_accepted is None or figures.right_rejected is None:
        return None
    wrong, right = figures.wrong_accepted / 100, 1 - figures.right_rejected / 100
    return None if right <= wrong else min(1.0, max(0.0, (raw - wrong) / (right - wrong)))


def people_text(entry: Mapping[str, Json]) -> str:
    """Return the note of a judge's column: its agreement with people, or that it was not measured."""
    known = figures_for(entry)
    people, purpose, gold = known.get(BY_PEOPLE), known.get(ON_PURPOSE), known.get(OF_GOLD)
    if gold is not None and gold.accuracy is not None and gold.one_verdict is not None:
        return (
            f"right on {gold.accuracy:.1f} % of {gold.answers} gold answers by their own and by other questions' "
            f"rubrics (always one verdict: {gold.one_verdict:.1f})"
        )
    if people is None or people.accuracy is None:
        return "not measured against people"
    kappa = "undefined" if people.kappa is None else f"{people.kappa:.2f}"
    text = f"agrees with people on {people.accuracy:.1f} % of {people.answers} answers (kappa {kappa})"
    if purpose is None or purpose.wrong_accepted is None:
        return text
    return f"{text}, accepts {purpose.wrong_accepted:.1f} % of {purpose.answers} answers that are wrong on purpose"
