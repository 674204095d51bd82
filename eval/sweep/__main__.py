"""Plan a sweep, show the state of its cells, collect their numbers: ``memsys sweep plan|status|collect ...``.

The arguments are those of ``memsys run -m``, so that one line serves for all four. ``memsys sweep check
[FOLDER ...]`` compares the estimates of plans with real runs.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eval.commands.commands import EXIT_INCOMPLETE, explains_errors, program, start
from eval.commands.places import check_folder
from eval.commands.terminal import console, say, stage
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from eval.sweep.cells import Sweep


def plan(sweep: "Sweep", options: argparse.Namespace) -> int:
    """Say what a sweep will take."""
    from eval.sweep.costing import plan_sweep
    from eval.sweep.plan_report import show_plan

    show_plan(plan_sweep(sweep, gpu=options.gpu))
    return 0


def status(sweep: "Sweep", options: argparse.Namespace) -> int:
    """Print the state of every cell; 3 unless all are done."""
    from eval.sweep.report import show_status
    from eval.sweep.status import sweep_status

    statuses = sweep_status(sweep)
    show_status(statuses)
    return 0 if all(each.state == "done" for each in statuses) else EXIT_INCOMPLETE


def collect(sweep: "Sweep", options: argparse.Namespace) -> int:
    """Keep the numbers of every finished cell where `make tables` finds them; 3 unless all are done."""
    from eval.export import export_run
    from eval.sweep.report import summary_line
    from eval.sweep.status import sweep_status

    statuses = sweep_status(sweep)
    for each in statuses:
        if each.state == "done" and each.path is not None:
            say(f"collected: {export_run(each.path, options.out)}")
    console().print(f"{summary_line(statuses)}; `memsys tables` renders the tables", highlight=False)
    return 0 if all(each.state == "done" for each in statuses) else EXIT_INCOMPLETE


def check(folders: Sequence[str]) -> int:
    """Compare plans with the ledgers of real runs."""
    from eval.runs.folders import SUMMARIES
    from eval.sweep.checking import check_runs, show_checked

    show_checked(check_runs([Path(folder) for folder in folders] or [SUMMARIES]))
    return 0


COMMANDS = {"plan": plan, "status": status, "collect": collect}


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do as it says; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog=program("sweep"),
        description="A sweep before (plan), while (status) and after (collect) it runs; check: plans against runs.",
    )
    parser.add_argument("command", choices=(*COMMANDS, "check"))
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="KEY=VALUE",
        help="as for `memsys run -m`: +sweep=clag_table1 memory=rag,clag; check: folders of runs",
    )
    parser.add_argument("-m", "--multirun", action="store_true", help="no effect: as typed for `memsys run`")
    parser.add_argument("--gpu", help="plan: which GPU the hours are for (default: a100)")
    parser.add_argument("--out", type=Path, help="collect: folder of the summaries")
    options = parser.parse_intermixed_args(arguments)
    if options.command == "check":
        return check(options.overrides)
    from eval.config.command_line import one_sweep_each
    from eval.config.overrides import report_repeated
    from eval.runs.folders import SUMMARIES
    from eval.sweep.cells import Composer

    if options.out is not None and options.command != "collect":
        raise ConfigError(f"--out is for collect; {options.command} writes nothing")
    if options.gpu is not None and options.command != "plan":
        raise ConfigError(f"--gpu is for plan; {options.command} counts no hours")
    options.out, options.gpu = options.out or SUMMARIES, options.gpu or "a100"
    report_repeated(options.overrides)
    if options.command == "collect":
        check_folder(options.out)
    each, statuses = one_sweep_each(options.overrides), []
    for overrides in each:
        if len(each) > 1:
            console().print(overrides[-1], style="bold", highlight=False, markup=False)
        with stage("composing the cells"):
            sweep = Composer().sweep(overrides)
        statuses.append(COMMANDS[options.command](sweep, options))
    return max(statuses)


if __name__ == "__main__":
    start(main)
