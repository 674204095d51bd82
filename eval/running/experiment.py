"""One experiment from plan to summary: data, backbone, embedder, run directory, runner, scoring."""

import asyncio
import shlex
import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from eval.commands.commands import program
from eval.commands.terminal import announced, complain, say, stage
from eval.loaders.contract import LoadedData
from eval.loaders.question_types import kind_of
from eval.running.budgets import check_prices
from eval.running.completeness import (
    check_prompt_files,
    check_resumed,
    finished,
    note_changed_code,
    note_changed_prompts,
    run_totals,
    whole,
)
from eval.running.faults import fault_line, first_fault
from eval.running.loading import Loading, report_when_loaded
from eval.running.models import (
    backbone_traffic,
    booked,
    counting_cut_texts,
    embedder_for,
    load_models,
    make_resources,
    paid_parts,
    run_meters,
)
from eval.running.plan import EVALUATION, Plan, identity_of, run_path
from eval.running.preflight import check_backbones, check_memory_has_model
from eval.running.progress import DisplayState, LineProgress, TerminalProgress, make_progress
from eval.running.recording import make_record, recordable, reference_records, updates_records
from eval.running.runner import Runner, RunOutcome, RunResources
from eval.running.stopping import StopRequest
from eval.running.unanswered import UnansweredWatch
from eval.runs.run_json import RunRecord, now
from eval.runs.rundir import RunDirectory
from memsys import event_loop
from memsys.assets.paths import workplace
from memsys.credentials import redacted
from memsys.errors import AssetError, BudgetSpentError, ConfigError, MemoryRaisedError, MemsysError, first_error
from memsys.index.settings import using_index
from memsys.llm.accepted import Adaptation
from memsys.protocol import NeedsAssets
from memsys.vocabulary import Json


@dataclass(frozen=True, slots=True)
class RunResult:
    """Folder of a run, and whether every question was answered."""

    path: Path
    complete: bool


def run_experiment(plan: Plan, *, lock_wait_s: float = 0.0) -> RunResult:
    """Run a plan to its end, or take it up where it stopped.

    Args:
        plan: what to run.
        lock_wait_s: seconds to wait for a run directory that is in use: a job that was requeued may start before
            the disk knows that its first process is gone.

    Raises:
        MemsysError: bad settings, data, models or run directory, each with what to do.
        KeyboardInterrupt: interrupted; the run directory says so and resumes.
    """
    with announced(f"loading the data set {plan.dataset.name}"):
        data = plan.dataset.load()
    identity = identity_of(plan, data.sha256)
    path = run_path(plan, identity)
    new = not (path / "run.json").is_file()
    if new:  # one that cannot begin leaves no folder
        check_before_models(plan, data)
    directory = RunDirectory(path, wait_s=lock_wait_s)
    try:
        note_changed_code(directory, identity, plan.memory)
        if finished(directory, identity) and whole(directory, data.samples, plan.mode):
            check_prompt_files(directory, plan.settings)
            say(f"{path}: complete, nothing to run")
            note_changed_prompts(directory)
            note_evaluation(plan, directory)
            complete = True
        else:
            if not new:
                check_resumed(directory)
                check_before_models(plan, data)
            complete = _run_to_end(plan, data, identity, directory)
        if complete and plan.score:
            score_and_show(plan, path)
        return RunResult(path, complete)
    finally:
        directory.close()


def note_evaluation(plan: Plan, directory: RunDirectory) -> None:
    """Record how a finished run is to be averaged and scored where the settings now say otherwise than it does.

    Neither can change an answer; what is shown and compared from now on follows them.
    """
    asked = recordable(plan.settings)
    changed = directory.change_config({key: asked[key] for key in EVALUATION if key in asked})
    for line in changed:
        say(f"evaluated again, {line}")


def _run_to_end(plan: Plan, data: LoadedData, identity: dict[str, Json], directory: RunDirectory) -> bool:
    """Run the loop; tasks raise in groups, a user reads one message."""
    stop = StopRequest()
    try:
        with using_index(plan.index):
            return event_loop.run(_run(plan, data, identity, directory, stop))
    except asyncio.CancelledError as error:
        directory.close()
        stop.hand_over()
        raise KeyboardInterrupt from error
    except BaseExceptionGroup as group:
        ours = group.subgroup(MemsysError)
        if ours is None:
            raise first_fault(group) from None
        first = _found(ours, BudgetSpentError) or first_error(ours)
        if isinstance(first, MemoryRaisedError):  # the lines of its cause say where
            first = first.with_traceback(None)
        raise first from first.__cause__


def check_before_models(plan: Plan, data: LoadedData) -> None:
    """Refuse what cannot work while it costs nothing: before a server starts or a model is loaded.

    Raises:
        ConfigError: the reader lacks a prompt for a category that is asked, a prompt or the embedder is not usable,
            dollars are limited and a price is not known, a key is missing, or the memory asks a model
            and there is none.
        AssetError: a file or a package that the memory or the backbone needs is missing.
    """
    check_memory_has_model(plan, data)
    embedder_for(plan)
    check_prices(plan.budget, paid_parts(plan))
    if plan.backbone is not None:
        kinds = {
            question.category: kind_of(question.kind, question.category)
            for sample in data.samples
            for question in sample.questions
        }
        asked = {number: (data.category_names.get(number, ""), kinds[number]) for number in sorted(kinds)}
        plan.reader.check(plan.dataset.name, asked)
        plan.reader.build(plan.seed)
    check_backbones(plan)
    if isinstance(plan.memory, NeedsAssets):
        plan.memory.check_assets()


async def _run(
    plan: Plan, data: LoadedData, identity: dict[str, Json], directory: RunDirectory, stop: StopRequest
) -> bool:
    loading = Loading()
    async with AsyncExitStack() as stack:
        stack.enter_context(stop.watched())
        meters = run_meters(plan, directory)
        watch = UnansweredWatch(plan.unanswered)
        directory.on_call = watch.see
        backbone, loaded = await load_models(plan, directory, stack, loading, meters)
        identity = {**identity, "model": backbone.fingerprint() if backbone else None}
        record = make_record(plan, data, identity, directory.path)
        record.servers = list(backbone.servers) if backbone else []
        directory.begin(record)
        check_prompt_files(directory, plan.settings)
        record.loading = loading.seconds  # the very mapping: saved again when the run ends, it has the embedder too
        directory.write_references(reference_records(data.samples))
        directory.write_updates(updates_records(data.samples))
        paid = partial(booked, directory=directory, meters=meters)
        if backbone is not None:
            backbone.on_adapted(partial(_note_adaptation, record, directory))
        resources = make_resources(plan, backbone, record.prompts, loading, loaded, paid)
        counted = counting_cut_texts(plan, resources.embedder, partial(_note_cut_texts, record))
        resources = replace(resources, embedder=counted, save_prompts=partial(directory.save, record))
        shown = DisplayState(
            title=f"{plan.memory.name} on {plan.dataset.name}",
            traffic=backbone_traffic(backbone),
            loading=plan.embedder.name if loaded and not loaded.done() else "",
        )
        complete = await _drive(plan, data, directory, record, Driven(resources, shown, loaded))
        watch.close()
        if meters.excess:
            say(meters.excess, style="yellow")
        return complete


def _note_cut_texts(record: RunRecord, count: int) -> None:
    record.cut_texts = max(record.cut_texts, count)


def _note_adaptation(record: RunRecord, directory: RunDirectory, adaptation: Adaptation) -> None:
    """Record immediately what a server refused and what replaced it."""
    noted = asdict(adaptation)
    if noted not in record.adaptations:
        record.adaptations.append(noted)
        directory.save(record)


@dataclass(frozen=True, slots=True)
class Driven:
    """A run with its progress display.

    Attributes:
        resources: the run's parts.
        shown: for the display.
        loaded: the embedder's loading; ``None`` where nothing loads.
    """

    resources: RunResources
    shown: DisplayState
    loaded: "Future[float] | None"


async def _drive(plan: Plan, data: LoadedData, directory: RunDirectory, record: RunRecord, driven: Driven) -> bool:
    """Run, and leave ``run.json`` saying how it ended, whatever happens."""
    totals = run_totals(data.samples, directory, plan.mode)
    try:
        with make_progress(plan.progress, totals, driven.shown) as progress:
            outcome = await _run_while_loading(plan, data, directory, driven, progress)
    except BaseException:
        record.status, record.finished = "interrupted", now()
        if problem := _problem(sys.exception(), directory.path):
            record.status, record.problems = "incomplete", [problem]
        directory.save(record)
        raise
    return _close(directory, record, data, plan, outcome)


def _problem(error: BaseException | None, folder: Path) -> str:
    """Return the error of a failed run in one line; empty where it was stopped from outside.

    Of an error that is not ours only its class is kept: its message may quote anything, and its traceback is shown.
    """
    if error is None or isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
        return ""
    ours = _found(error, BudgetSpentError, ConfigError, AssetError) or _found(error, MemsysError)
    if ours is None:
        return fault_line(error)
    text = " ".join(redacted(str(ours)).split())
    return text.replace(f"{folder}/", "").replace(f"{workplace()}/", "")  # no place of this machine


def _found(error: BaseException | None, *kinds: type[MemsysError]) -> BaseException | None:
    """Return the first error of some types, alone or inside a group of errors; ``None`` if there is none."""
    if isinstance(error, BaseExceptionGroup):
        group = error.subgroup(kinds)
        error = error if group is None else first_error(group)
    return error if isinstance(error, kinds) else None


async def _run_while_loading(
    plan: Plan,
    data: LoadedData,
    directory: RunDirectory,
    driven: Driven,
    progress: TerminalProgress | LineProgress,
) -> RunOutcome:
    async with asyncio.TaskGroup() as group:
        if driven.shown.loading and driven.loaded is not None:
            group.create_task(report_when_loaded(driven.loaded, progress.loaded))
        runner = Runner(driven.resources, plan.schedule, directory, progress)
        outcome = group.create_task(runner.run(data.samples))
    return outcome.result()


def _close(directory: RunDirectory, record: RunRecord, data: LoadedData, plan: Plan, outcome: RunOutcome) -> bool:
    wanted = sum(len(sample.questions) for sample in data.samples)
    done = len(directory.finished_questions(plan.mode))
    booked = {"calls": directory.booked_calls, "settled": len(directory.settled)}
    record.counts = {**record.counts, "questions": wanted, "questions_done": done, **booked}
    record.problems = [redacted(f"{name}: {message}") for name, message in sorted(outcome.failures.items())]
    record.status = "complete" if done == wanted and not outcome.failures else "incomplete"
    record.finished = now()
    directory.save(record)
    for problem in record.problems:
        complain(problem)
    return record.status == "complete"


def score_and_show(plan: Plan, path: Path) -> None:
    """Score a complete run and print its row."""
    from eval.scoring.remarks import remarks
    from eval.scoring.run_files import RunFiles
    from eval.scoring.score_run import score_run
    from eval.scoring.summary import summarise

    with announced("scoring"):
        files = RunFiles(path)
        score_run(path, plan.scoring, files)
        summary = summarise(path, files)
    say(f"scored: {path}")
    for remark in remarks(summary):
        say(remark, style="yellow")


def compare_runs(paths: Sequence[Path], out_dir: Path, answers: int = 0) -> None:
    """Print and write one table and plot over runs, and print this many questions with all answers."""
    from eval.results.compare import ComparisonChoices, compare

    with stage("comparing the runs"):
        compare(paths, out_dir, ComparisonChoices(answers=answers))
    runs = shlex.quote(str(out_dir.parent))
    say(f"each question, what was found for it and the answer: {program('report')} --runs {runs}")
