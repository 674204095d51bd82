"""Verdicts that a paper takes: the commands that ask for them, and their calls, GPU hours and dollars."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.config.preset_settings import default_settings
from eval.config.presets import CONF
from eval.config.prices import load_prices
from eval.loaders.question_types import ADVERSARIAL
from eval.loaders.shapes import shape_of
from eval.runs.folders import short_path
from eval.runs.load import load_summary
from eval.scoring.verdicts.store import column_of
from eval.sweep.costing import GPUS, CostTotals, busy_hours, parameters_of
from eval.sweep.papers import PaperRuns
from eval.sweep.reproduction import PaperCell, Step
from eval.sweep.status import cell_status
from memsys.errors import DataError

#: Tokens of one verdict: the rubric's text with question and two answers, and a sentence with the verdict.
_VERDICT = CostTotals(1, 250, 50)
#: Verdicts that one server answers at a time.
_IN_FLIGHT = 64


@dataclass(frozen=True, slots=True)
class Judging:
    """Verdicts by one judge.

    Attributes:
        settings: of ``memsys judge``.
        cells: runs that it grades.
        calls: those that are still to pay.
        gpu: kind of GPU that the hours are for.
    """

    settings: tuple[str, ...]
    cells: tuple[PaperCell, ...]
    calls: CostTotals
    gpu: str

    @property
    def backbone(self) -> str:
        """The preset of the judge's model."""
        return _setting(self.settings, "backbone")

    @property
    def hours(self) -> float:
        """GPU hours; 0 at a hosted model."""
        model = (default_settings(self.backbone, CONF / "backbone") or {}).get("model", "")
        size = parameters_of(str(model))
        if self.backbone in load_prices() or size is None:
            return 0.0
        return busy_hours(self.calls, size, _IN_FLIGHT, GPUS[self.gpu])

    @property
    def dollars(self) -> float:
        """US dollars at a hosted model that has a price."""
        price = load_prices().get(self.backbone)
        return price.of(self.calls.prompt, self.calls.reply) if price else 0.0

    @property
    def step(self) -> Step:
        """The command that asks for the verdicts."""
        folders = dict.fromkeys(_folder(each) for each in self.cells)
        return Step(f"judge {len(folders)} runs with {self.backbone}", ("judge", "--yes", *folders, *self.settings))


def judgings(paper: PaperRuns, cells: Sequence[PaperCell], gpu: str) -> list[Judging]:
    """Return the verdicts that the tables of a paper take, one for each judge."""
    by_judge: dict[tuple[str, ...], list[PaperCell]] = {}
    for each in cells:
        backbone = each.cell.plan.backbone if each.cell.plan else None
        if set(each.group.tables) & set(paper.judged) and backbone is not None:
            settings = paper.judges.get(backbone.name, paper.judges["default"])
            by_judge.setdefault(settings, []).append(each)
    return [
        Judging(settings, tuple(own), sum((_verdicts(each, settings) for each in own), CostTotals()), gpu)
        for settings, own in by_judge.items()
    ]


def _verdicts(each: PaperCell, settings: Sequence[str]) -> CostTotals:
    """Return the calls that grade a run: one for each question that has an answer; none where they were made."""
    path = cell_status(each.cell).path
    column = column_of(_setting(settings, "judge"), _setting(settings, "backbone"))
    if path is not None and column in (load_summary(path).get("judges") or {}):
        return CostTotals()
    try:
        shape = shape_of(each.cell.valid_plan().dataset, each.cell.data)
    except DataError:
        return CostTotals()
    asked = shape.asked - shape.questions.get(ADVERSARIAL, 0)
    return CostTotals(asked, asked * _VERDICT.prompt, asked * _VERDICT.reply)


def _setting(settings: Sequence[str], key: str) -> str:
    return next((each.partition("=")[2] for each in settings if each.startswith(f"{key}=")), "")


def _folder(each: PaperCell) -> str:
    path = cell_status(each.cell).path
    return short_path(path) if path is not None else f"RUN[{each.cell.label}]"
