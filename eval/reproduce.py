"""Reproduce a paper: plan, fetch what is missing, run, judge, collect, tables: ``memsys reproduce PAPER``.

Every step is a command of its own, which ``--dry-run`` prints. Run again, it resumes: finished runs, verdicts and
files are kept. The authors' prompts run; ``--released`` adds the presets of their code and ``--ours`` our prompts,
each as a second row.

Exit status: 0 when all runs are done, 3 when some are not, 2 when a step fails.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from eval.commands.asking import can_ask, confirmed
from eval.commands.commands import EXIT_DONE, EXIT_ERROR, EXIT_INCOMPLETE, explains_errors, program, start
from eval.commands.counting import duration
from eval.commands.int_options import count
from eval.commands.rendering.table import Cell, Table, columns
from eval.commands.rendering.terminal import show
from eval.commands.terminal import complain, console, say
from eval.runs.folders import short_path
from eval.scoring.equivalence import MINIMUM_RUNS
from eval.sweep.costing import GPUS, CellCost
from eval.sweep.papers import PaperRuns, load_paper, load_papers
from eval.sweep.plan_report import problems
from eval.sweep.reproduction import (
    PROGRAMS,
    PaperCell,
    Reproduction,
    Step,
    collecting,
    compose_paper,
    fetching,
    gpu_hours,
    hosted_dollars,
    running,
    within_budget,
)
from eval.sweep.status import cell_status
from eval.sweep.verdicts import Judging, judgings
from eval.tables import OUT
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do as it says; returns the exit status."""
    parser = _parser()
    options = parser.parse_intermixed_args(arguments)
    if options.gpu not in GPUS:
        raise ConfigError(f"--gpu {options.gpu} is unknown; choose one of {', '.join(GPUS)}")
    paper = load_paper(options.paper)
    cells = _compose(paper, options)
    fetches = fetching(cells)
    if fetches and not options.dry_run:
        for step in fetches:
            if (status := _perform(step)) != EXIT_DONE:
                complain(f"`{step.shown}` ended with status {status}; runs that do not depend on it continue")
        cells = _compose(paper, options)
    plan = within_budget(paper, cells, options.gpu, options.budget_hours)
    verdicts = judgings(paper, plan.cells, plan.gpu)
    _show_plan(plan, verdicts)
    steps = _steps(plan, verdicts)
    if options.dry_run:
        _show_steps([*fetches, *steps])
        return EXIT_DONE
    _confirm(plan, verdicts, options.yes)
    return _reproduce(plan, steps)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program("reproduce"),
        description="Run everything that a paper's tables need, and show which numbers hold. Run again to resume.",
        epilog="A sample of it, without a GPU: memsys reproduce clag --table 5 dataset=locomo_sample "
        "backbone=smollm2_135m. On a cluster: hydra/launcher=slurm.",
    )
    parser.add_argument("paper", help=", ".join(load_papers()))
    parser.add_argument(
        "settings", nargs="*", metavar="KEY=VALUE", help="settings for every run, as of `memsys run -m`"
    )
    parser.add_argument("--table", type=count(1), action="append", help="number of a table; repeatable (default: all)")
    parser.add_argument("--rows", help="memory presets, with commas (default: all of the tables)")
    parser.add_argument(
        "--released", action="store_true", help="run the presets of the authors' code too: a second row"
    )
    parser.add_argument("--ours", action="store_true", help="run our prompts too: a second row")
    parser.add_argument("--gpu", default="a100", help=f"which GPU the hours are for: {', '.join(GPUS)} (default: a100)")
    parser.add_argument("--budget-hours", type=float, help="skip runs that do not fit into this many GPU hours")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and every command, and stop")
    parser.add_argument("--yes", action="store_true", help="start without a question")
    return parser


def _compose(paper: PaperRuns, options: argparse.Namespace) -> list[PaperCell]:
    return compose_paper(
        paper,
        tables=options.table or (),
        rows=[row.strip() for row in (options.rows or "").split(",") if row.strip()],
        released=options.released,
        ours=options.ours,
        extra=options.settings,
    )


def _show_plan(plan: Reproduction, verdicts: Sequence[Judging]) -> None:
    rows: list[list[Cell]] = []
    for group in dict.fromkeys(each.group for each in plan.cells):
        own = [cost for each, cost in zip(plan.cells, plan.costs, strict=True) if each.group == group]
        rows.append([group.title, *_sums(own, plan.gpu, ())])
    for each in verdicts:
        title = f"verdicts of {each.backbone}"
        rows.append([title, "", "", f"{each.calls.calls:,.0f}", f"{each.hours:.1f}", f"{each.dollars:.2f}"])
    rows.append(["all", *_sums(plan.costs, plan.gpu, verdicts)])
    headings = ("runs for", "runs", "done", "calls to pay", f"{plan.gpu.upper()} hours", "dollars")
    show(Table(f"{plan.paper.name} reproduced", columns(headings), rows))
    for line in problems(plan.costs):
        say(line)
    if any(cost.problem for cost in plan.costs):
        say("+ ?: what runs without their data will take is not known")
    if plan.left_out:
        say(f"beyond the budget: {len(plan.left_out)} runs, such as {plan.left_out[0].cell.label}")
    other = [each for each in plan.cells if each.prompts == "ours"]
    if other:
        say(f"{len(other)} of {len(plan.cells)} runs have our prompts, such as {other[0].cell.label}")
    seeds = {each.cell.plan.seed for each in plan.cells if each.cell.plan}
    if 0 < len(seeds) < MINIMUM_RUNS:
        some = "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
        say(f"{some}: where replies are sampled, a cell has a verdict from {MINIMUM_RUNS} on (seed=0,1,2)")


def _sums(costs: Sequence[CellCost], gpu: str, verdicts: Sequence[Judging]) -> list[Cell]:
    """Return how many runs there are and are done, and their calls, hours and dollars; "?" for runs without data."""
    calls = sum(cost.to_pay.calls for cost in costs) + sum(each.calls.calls for each in verdicts)
    hours, dollars = _totals(costs, gpu, verdicts)
    done = sum(cost.state == "done" for cost in costs)
    planned = [f"{calls:,.0f}", f"{hours:.1f}", f"{dollars:.2f}"]
    unknown = sum(bool(cost.problem) for cost in costs)
    if unknown:
        planned = ["?"] * 3 if unknown == len(costs) else [f"{figure} + ?" for figure in planned]
    return [len(costs), done, *planned]


def _steps(plan: Reproduction, verdicts: Sequence[Judging]) -> list[Step]:
    """Return all commands after what is fetched, in order."""
    runs = running(plan.cells)
    judge = [each.step for each in verdicts]
    tables = Step("write the tables", ("tables", "--paper", plan.paper.name))
    return [*runs, *judge, *collecting(runs), tables]


def _totals(costs: Sequence[CellCost], gpu: str, verdicts: Sequence[Judging]) -> tuple[float, float]:
    """Return GPU hours and dollars of runs and verdicts."""
    hours = gpu_hours(costs, gpu) + sum(each.hours for each in verdicts)
    return hours, hosted_dollars(costs) + sum(each.dollars for each in verdicts)


def _show_steps(steps: Sequence[Step]) -> None:
    for number, step in enumerate(steps, start=1):
        console().print(f"# {number} of {len(steps)}: {step.title}", style="dim", highlight=False, markup=False)
        console().print(step.shown, highlight=False, markup=False, soft_wrap=True)


def _confirm(plan: Reproduction, verdicts: Sequence[Judging], yes: bool) -> None:
    """Ask before anything is paid.

    Raises:
        ConfigError: the answer is no, or there is no terminal to ask.
    """
    left = sum(cost.state != "done" and not cost.problem for cost in plan.costs)
    if yes or not left:
        return
    hours, dollars = _totals(plan.costs, plan.gpu, verdicts)
    question = f"start {left} runs, {hours:.1f} GPU hours and {dollars:.2f} dollars of hosted models by the plan?"
    if not can_ask():
        raise ConfigError(f"{question} There is no terminal to ask: add --yes, or --dry-run to see the commands")
    if not confirmed(question):
        raise ConfigError("not started")


def _reproduce(plan: Reproduction, steps: Sequence[Step]) -> int:
    costs = {each.cell.key: cost for each, cost in zip(plan.cells, plan.costs, strict=True)}
    incomplete = False
    for number, step in enumerate(steps, start=1):
        if step.arguments[0] == "run" and all(_is_done(each) for each in step.cells):
            say(f"{number} of {len(steps)}: {step.title}: done")
            continue
        left = [each for other in steps[number - 1 :] if other.arguments[0] == "run" for each in other.cells]
        rest = gpu_hours([costs[each.cell.key] for each in left], plan.gpu)
        ahead = f", about {duration(3600 * rest)} of GPU time ahead by the plan" if rest else ""
        console().print(f"{number} of {len(steps)}: {step.title}{ahead}", style="bold", highlight=False, markup=False)
        status = _perform(step)
        if status not in (EXIT_DONE, EXIT_INCOMPLETE) and step.arguments[0] != "run":
            complain(f"`{step.shown}` ended with status {status}; fix the cause and run the same command again")
            return EXIT_ERROR
        incomplete |= status != EXIT_DONE
    done = sum(_is_done(each) for each in plan.cells)
    page = OUT / f"{plan.paper.name}.md"
    say(f"{done} of {len(plan.cells)} runs are done; what holds: {short_path(page)}")
    return EXIT_INCOMPLETE if incomplete or done < len(plan.cells) else EXIT_DONE


def _is_done(each: PaperCell) -> bool:
    return cell_status(each.cell).state == "done"


def _perform(step: Step) -> int:
    """Run a step's command; returns its exit status."""
    console().print(step.shown, style="dim", highlight=False, markup=False, soft_wrap=True)
    if step.arguments[0] in PROGRAMS:
        program = shutil.which(step.arguments[0], path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if program is None:
            complain(f"there is no program {step.arguments[0]}; install it, or run `{step.shown}` elsewhere")
            return EXIT_ERROR
        variables = {**os.environ, "HF_HUB_OFFLINE": "0"}  # this step is there to fetch
        return subprocess.run([program, *step.arguments[1:]], cwd=Path(ROOT), env=variables, check=False).returncode
    return subprocess.run([sys.executable, "-m", "eval", *step.arguments], check=False).returncode


if __name__ == "__main__":
    start(main)
