"""Let a language model grade answers, and grade the judge on a probe set: ``memsys judge RUN...``.

Arguments after the runs: ``judge=NAME``, ``backbone=NAME`` and any ``KEY=VALUE`` of ``conf/judging.yaml``.
Without a run it grades the probe set alone; with ``--people N`` it grades N answers that people labelled and N that
are wrong on purpose, and keeps the figures in ``results/audit/judge_presets.csv``; with ``--known N`` it does so with
the gold answers of N questions of BEAM-100K, by their own rubrics and by others, and under ``judge.order=model`` with
N events of its orders instead, paired with themselves and with others. Run again, it continues where it stopped;
verdicts that are there cost nothing, and ``--again`` asks for those that could not be read. A hosted model's costs are
said first, with a question at a terminal that ``--yes`` answers. Composes ``conf/judging.yaml``.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from eval.commands.commands import (
    EXIT_ERROR,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    program,
    start,
    terminated_as_interrupted,
)
from eval.commands.int_options import count
from memsys.errors import BackboneError, BudgetSpentError, ConfigError, MemsysError

if TYPE_CHECKING:
    from eval.judge.work import JudgePlan


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, judge, show; returns the exit status."""
    from eval.commands.terminal import complain

    options = _parser().parse_args(arguments)
    runs = [Path(text) for text in options.given if "=" not in text]
    settings = [text for text in options.given if "=" in text]
    try:
        with terminated_as_interrupted():
            plan = make_plan(settings, agreed=options.yes)
            if options.people or options.known:
                _measure(plan, options.people, options.known, runs)
            else:
                _judge(plan, runs, again=options.again)
    except BackboneError as error:
        complain(f"{error}; verdicts so far are kept; run the same command again to continue")
        return EXIT_INCOMPLETE
    except BudgetSpentError as error:
        complain(f"{error}; verdicts so far are kept")
        return EXIT_INCOMPLETE
    except MemsysError as error:
        complain(str(error))
        return EXIT_ERROR
    except KeyboardInterrupt:
        complain("interrupted; verdicts so far are kept; run the same command again to continue")
        return EXIT_INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    from eval.config.presets import CONF, preset_names

    judges = ", ".join(preset_names(CONF / "judge"))
    parser = argparse.ArgumentParser(
        prog=program("judge"),
        description="Grade the answers of runs with a language model; without a run, grade the probe set alone.",
        epilog=f"judges: {judges}. Example: {program('judge')} RUN judge=strict backbone=qwen3_8b judge.repeats=3",
    )
    parser.add_argument(
        "given", nargs="*", metavar="RUN | KEY=VALUE", help="run directories; settings of conf/judging.yaml"
    )
    parser.add_argument("--again", action="store_true", help="ask again for verdicts that could not be read")
    parser.add_argument("--yes", action="store_true", help="pay a hosted model without a question")
    measured = parser.add_mutually_exclusive_group()
    measured.add_argument(
        "--known",
        type=count(2),
        metavar="N",
        help="measure a judge of rubrics on gold answers of N questions of BEAM-100K, by their own and other rubrics; "
        "with judge.order=model on N events, each paired with its own copy and with another event",
    )
    measured.add_argument(
        "--people",
        type=count(2),
        metavar="N",
        help="measure the judge on N answers labelled by people and N wrong ones (files of `memsys recorded fetch`)",
    )
    return parser


def _measure(plan: "JudgePlan", people: int | None, known: int | None, runs: Sequence[Path]) -> None:
    from eval.commands.terminal import say
    from eval.judge.gold import measure_by_rubrics
    from eval.judge.gold_pairs import measure_by_pairs
    from eval.judge.people import check_name_is_its_own, measure_judge
    from eval.judge.report import show_people
    from eval.scoring.verdicts.figures import FILE, keep

    if runs:
        option = "--people" if people else "--known"
        raise ConfigError(f"{option} measures the judge alone; leave {runs[0]} out, or {option}")
    check_name_is_its_own(plan)
    if people:
        found = measure_judge(plan, people)
    elif plan.judge.order == "model":
        found = measure_by_pairs(plan, known or 0)
    else:
        found = measure_by_rubrics(plan, known or 0)
    _say_spent(plan)
    keep(found, FILE)
    show_people(f"judge {plan.judge.name} on {plan.backbone.name}", found)
    say(f"kept in {FILE}")


def _judge(plan: "JudgePlan", runs: Sequence[Path], *, again: bool) -> None:
    from eval.commands.terminal import say
    from eval.judge.expense import confirm_calls, of_probe, of_run
    from eval.judge.report import show, show_probe
    from eval.judge.work import check_run, is_judged, judge_runs, unreadable
    from eval.scoring.summary import summarise
    from eval.scoring.verdicts.store import load_judged

    for run in runs:
        check_run(run)
    left = [run for run in runs if not is_judged(plan, run) or (again and unreadable(plan, run))]
    if left or not runs:
        confirm_calls(plan, chain(of_probe(plan), *(of_run(plan, run, again=again) for run in left)), fresh=again)
        title = f"judge {plan.judge.name} on {plan.backbone.name}"
        judge_runs(plan, left, partial(show_probe, title), again=again)
        _say_spent(plan)
    for run in runs:
        show(str(run), summarise(run)["judges"], load_judged(run))
        if left_over := unreadable(plan, run):
            say(
                f"{run}: {left_over} of the judge's replies contain no verdict; run the same command with --again to "
                "ask again"
            )


def _say_spent(plan: "JudgePlan") -> None:
    """Say what the command has spent on a judge that has a price."""
    from eval.commands.terminal import say
    from eval.config.prices import load_prices

    price, spent = load_prices().get(plan.backbone.name), plan.budget
    if price is not None and spent.spent_tokens:
        tokens, day = f"{spent.spent_tokens:,} tokens", price.date or "no date"
        say(f"spent: {tokens}, ${spent.spent_dollars:.4f} (list prices of {day})")


def make_plan(overrides: Sequence[str], *, agreed: bool = False) -> "JudgePlan":
    """Compose ``conf/judging.yaml`` with overrides.

    Args:
        overrides: settings of it.
        agreed: pay a hosted model without a question.

    Raises:
        ConfigError: an unknown choice or key, or a part that does not accept its settings.
    """
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from eval.config.checker import Checker
    from eval.config.compose import compose, config_loader, without_hydra
    from eval.judge.work import JudgePlan
    from eval.running.budgets import PaidParts, check_prices, read_limits
    from eval.running.composed import given_settings, make_part
    from eval.running.plan import LAST_SEED, flag, whole_number, working_folder
    from memsys.llm.budget import Budget
    from memsys.llm.engines.contract import MOST_REQUESTS, SendsBatches
    from memsys.settings import check_mapping

    checker = Checker(name="judging")
    parsed = checker.parse(overrides)
    checker.check_choices(parsed)
    checker.check_keys(parsed, multirun=False)
    try:
        config = without_hydra(compose(config_loader(), overrides, name="judging"))
        settings = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(" ".join(str(error).split())) from error
    assert isinstance(settings, dict)
    backbone = replace(make_part(config, "backbone"), explicit=given_settings("backbone", overrides))
    in_flight = whole_number("verdicts_in_flight", config.verdicts_in_flight, least=1)
    check_mapping("budget", settings["budget"], "dollars=5")
    limits = read_limits(settings["budget"])
    check_prices(limits, PaidParts(backbone))
    return JudgePlan(
        settings={str(key): value for key, value in settings.items()},
        judge=make_part(config, "judge"),
        backbone=backbone,
        seed=whole_number("seed", config.seed, least=0, most=LAST_SEED),
        cache_dir=working_folder("cache_dir", config.cache_dir),
        use_cache=flag("use_cache", config.use_cache),
        budget=Budget(limits.tokens, limits.dollars),
        agreed=agreed,
        in_flight=max(in_flight, MOST_REQUESTS) if isinstance(backbone.engine, SendsBatches) else in_flight,
    )


if __name__ == "__main__":
    start(main)
