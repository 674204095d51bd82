"""From a paper to commands: its runs, those that fit a budget, and the steps around them."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from eval.commands.terminal import stage
from eval.sweep.cells import Composer, Sweep, SweepCell
from eval.sweep.costing import CellCost, group_costs, plan_sweep, sum_of_dollars
from eval.sweep.papers import PaperRuns, RunGroup
from memsys.assets.catalog import model_folder
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError, DataError

#: Commands of other programs.
PROGRAMS = ("make", "hf")
#: Settings with which answers are scored by a model of the hub.
_SCORED_BY = {"scoring=full": "roberta-large"}
#: How an override of the memory and of the prompts begins.
_MEMORY, _PROMPTS = "memory=", "prompts="


@dataclass(frozen=True, slots=True)
class PaperCell:
    """One run of a paper.

    Attributes:
        group: what it is for.
        job: its settings, as ``memsys run`` takes them.
        cell: composed.
        fell_back: it has our prompts because the authors' are not here.
    """

    group: RunGroup
    job: tuple[str, ...]
    cell: SweepCell
    fell_back: bool = False

    @property
    def prompts(self) -> str:
        """Whose prompts it has: ``authors`` or ``ours``."""
        return next(each.removeprefix(_PROMPTS) for each in self.job if each.startswith(_PROMPTS))


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a reproduction.

    Attributes:
        title: what it does.
        arguments: of ``memsys``, or of the program of :data:`PROGRAMS` that the first one names.
        cells: the runs that it makes; it is left out when all are done.
    """

    title: str
    arguments: tuple[str, ...]
    cells: tuple[PaperCell, ...] = ()

    @property
    def shown(self) -> str:
        """The command as a person types it."""
        return shlex.join(self.arguments if self.arguments[0] in PROGRAMS else ["memsys", *self.arguments])


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The chosen runs of a paper with their costs.

    Attributes:
        paper: which.
        cells: the runs that are made.
        costs: of each of them, in the same order.
        left_out: runs beyond the budget.
        gpu: kind of GPU that the hours are for.
    """

    paper: PaperRuns
    cells: tuple[PaperCell, ...]
    costs: tuple[CellCost, ...]
    left_out: tuple[PaperCell, ...]
    gpu: str

    @property
    def hours(self) -> float:
        """GPU hours of what is still to do, as ``memsys sweep plan`` counts them; those of hosted models are 0."""
        return gpu_hours(self.costs, self.gpu)

    @property
    def dollars(self) -> float:
        """US dollars of the calls to hosted models that are still to pay and have a price; a second backbone's too."""
        return hosted_dollars(self.costs)


def compose_paper(
    paper: PaperRuns,
    *,
    tables: Sequence[int] = (),
    rows: Sequence[str] = (),
    released: bool = False,
    ours: bool = False,
    extra: Sequence[str] = (),
) -> list[PaperCell]:
    """Compose the runs of a paper with the authors' prompts where there are such, each run once.

    Args:
        paper: which.
        tables: numbers of the tables to fill; all where none is named.
        rows: memory presets to run; all where none is named.
        released: run the presets of the authors' code as well.
        ours: run our prompts as well.
        extra: settings for every run.

    Raises:
        ConfigError: a table or a row does not exist, or a setting is wrong.
    """
    composer = Composer()
    found: dict[str, PaperCell] = {}
    known: set[str] = set()
    for group in paper.chosen(tuple(tables)):
        jobs = list(_jobs(composer, group, extra))
        code = [_with_memory(job, paper.released) for job in jobs if released and _memory(job) in paper.released]
        wanted = [(job, "authors") for job in (*jobs, *code)] + [(job, "ours") for job in jobs if ours]
        for job, prompts in wanted:
            known.add(_memory(job))
            if rows and _memory(job) not in rows:
                continue
            with stage(f"composing run {len(found) + 1}"):
                made = _compose(composer, group, job, prompts)
            found.setdefault(made.cell.key, made)
    if unknown := [row for row in rows if row not in known]:
        raise ConfigError(
            f"--rows {unknown[0]}: no run of {paper.name} has this memory; choose of {', '.join(sorted(known))}"
        )
    return list(found.values())


def _jobs(composer: Composer, group: RunGroup, extra: Sequence[str]) -> Iterator[tuple[str, ...]]:
    jobs, _ = composer.jobs([*group.run, *extra])
    for job in jobs:
        yield tuple(each for each in job if not each.startswith(_PROMPTS))


def _compose(composer: Composer, group: RunGroup, job: tuple[str, ...], prompts: str) -> PaperCell:
    """Compose a run; with our prompts where the authors' cannot be had."""
    settings = (*job, f"{_PROMPTS}{prompts}")
    cell = composer.cell(settings)
    if cell.plan is None and cell.problem.startswith(_PROMPTS):
        settings = (*job, f"{_PROMPTS}ours")
        return PaperCell(group, settings, composer.cell(settings), fell_back=True)
    return PaperCell(group, settings, cell)


def _memory(job: Sequence[str]) -> str:
    return next((each.removeprefix(_MEMORY) for each in job if each.startswith(_MEMORY)), "")


def _with_memory(job: tuple[str, ...], released: Mapping[str, str]) -> tuple[str, ...]:
    """Return a job with the preset of the authors' code, where there is one."""
    name = _memory(job)
    chosen = released.get(name, name)
    return tuple(f"{_MEMORY}{chosen}" if each == f"{_MEMORY}{name}" else each for each in job)


def hosted_dollars(costs: Sequence[CellCost]) -> float:
    """Return the US dollars of the calls to hosted models that are still to pay and have a price."""
    return sum_of_dollars(costs) or 0.0


def gpu_hours(costs: Sequence[CellCost], gpu: str) -> float:
    """Return the GPU hours of runs that share the servers of their backbones."""
    return sum(group.hours or 0.0 for group in group_costs(costs, gpu))


def within_budget(
    paper: PaperRuns, cells: Sequence[PaperCell], gpu: str, budget_hours: float | None = None
) -> Reproduction:
    """Estimate the runs and choose, in the order of the tables, those that fit into a budget of GPU hours.

    Raises:
        ConfigError: the GPU is unknown.
    """
    folder = cells[0].cell.folder if cells else Path()
    costs = plan_sweep(Sweep(tuple(each.cell for each in cells), folder), gpu).cells
    chosen: list[PaperCell] = []
    kept: list[CellCost] = []
    left_out: list[PaperCell] = []
    for one, cost in zip(cells, costs, strict=True):
        if budget_hours is not None and gpu_hours([*kept, cost], gpu) > budget_hours:
            left_out.append(one)
        else:
            chosen.append(one)
            kept.append(cost)
    return Reproduction(paper, tuple(chosen), tuple(kept), tuple(left_out), gpu)


def fetching(cells: Sequence[PaperCell]) -> list[Step]:
    """Return the commands that fetch what is missing: data sets, the authors' prompts, the serving environment."""
    steps = [Step(f"fetch {key}", ("data", key)) for key in _missing_data(cells)]
    if any(each.fell_back for each in cells) and (ROOT / "scripts" / "fetch_prompts.py").is_file():
        steps.append(Step("fetch the authors' prompts", ("make", "prompts")))
    answering = [each for each in cells if each.cell.plan and each.cell.plan.backbone]
    scorers = {model for each in answering for setting, model in _SCORED_BY.items() if setting in each.job}
    steps += [
        Step(f"fetch {model}, which scores answers", ("hf", "download", model))
        for model in sorted(scorers)
        if not model_folder(model).is_dir()
    ]
    if (
        any(_is_vllm(each.cell) for each in answering)
        and (ROOT / "Makefile").is_file()
        and not (ROOT / ".venv-serve").exists()
    ):
        steps.append(Step("make the environment of vLLM", ("make", "serve-env")))
    return steps


def _is_vllm(cell: SweepCell) -> bool:
    from memsys.llm.engines.vllm import VllmEngineConfig

    backbone = cell.valid_plan().backbone
    return backbone is not None and isinstance(backbone.engine, VllmEngineConfig)


def _missing_data(cells: Sequence[PaperCell]) -> list[str]:
    missing: dict[str, None] = {}
    for each in cells:
        if each.cell.plan is not None:
            try:
                each.cell.data  # noqa: B018
            except DataError:
                missing[each.cell.plan.dataset.info.key] = None
    return list(missing)


def running(cells: Sequence[PaperCell]) -> list[Step]:
    """Return the commands that make the runs, one for each set of runs that is a product of settings."""
    steps = []
    groups = dict.fromkeys(each.group for each in cells)
    for group in groups:
        own = {each.job: each for each in cells if each.group == group}
        for line, jobs in _products(list(own)):
            steps.append(Step(group.title, ("run", "-m", *line), tuple(own[job] for job in jobs)))
    return steps


def collecting(steps: Sequence[Step]) -> list[Step]:
    """Return the commands that keep the numbers of finished runs."""
    return [
        replace(step, title=f"keep {step.title}", arguments=("sweep", "collect", *step.arguments[2:])) for step in steps
    ]


def _products(jobs: Sequence[tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return command lines that make just these jobs, each with its jobs; few where the jobs are products of values."""
    values: list[list[str]] = [list(dict.fromkeys(column)) for column in zip(*jobs, strict=True)]
    if set(product(*values)) == set(jobs):
        return [(tuple(map(_swept, values)), list(jobs))]
    column = next(place for place, found in enumerate(values) if len(found) > 1)
    parts = ([job for job in jobs if job[column] == value] for value in values[column])
    return [line for part in parts for line in _products(part)]


def _swept(values: Sequence[str]) -> str:
    """Return one override of several values: ``memory=rag,clag``."""
    key = values[0].partition("=")[0]
    return f"{key}={','.join(value.partition('=')[2] for value in values)}"
