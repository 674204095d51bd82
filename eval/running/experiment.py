"""One experiment from plan to summary: data, backbone, embedder, run directory, runner, scoring."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.cli.terminal import complain, console, say, stage
from eval.configs.prompt_choice import prompt_rows, wants_authors
from eval.loaders.contract import DatasetConfig, LoadedData
from eval.loaders.kinds import kind_of
from eval.papers.departures import run_departures
from eval.running.backbones import Backbones, BackboneSelection, Serving, connect, delegated_roles, make_engines
from eval.running.budgets import BudgetLimits, check_prices, make_meters, read_limits
from eval.running.clocks import LoadingEmbedder
from eval.running.loading import BACKBONE, EMBEDDER, Loading, tell_when_loaded
from eval.running.progress import DisplayState, LineProgress, RunTotals, TerminalProgress, TrafficSince, make_progress
from eval.running.reader import ReaderConfig
from eval.running.runner import Runner, RunOutcome, RunResources, Schedule, first_error
from eval.running.stopping import StopRequest
from eval.runs.provenance import commit, hardware, packages
from eval.runs.records import ReferenceRecord
from eval.runs.rundir import RunDirectory, RunRecord, identity_hash, now, without_name
from memsys.credentials import redacted, without_secrets
from memsys.embedding.contract import Embedder
from memsys.errors import BudgetSpentError, ConfigError, MemsysError, RunDirectoryError
from memsys.index.settings import FLAT, IndexSettings, using_index
from memsys.llm.config import BackboneConfig
from memsys.llm.none import NoBackbone
from memsys.protocol import MemoryConfig, NeedsAssets
from memsys.vocabulary import Json, Sample

MODES = ("answers", "retrieval_only")
TIMINGS = ("throughput", "latency")

#: Settings that cannot change an answer or a retrieval: where files lie, how work is spread, what is done afterwards.
NOT_IDENTITY = (
    "experiment", "run_dir", "runs_dir", "cache_dir", "use_cache", "cache_shared", "serving", "budget",
    "progress", "score", "scoring", "protocol", "schedule",
)  # fmt: skip
#: Parts of the configuration that only say how stored answers are scored and averaged.
EVALUATION = ("protocol", "scoring")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, in plain Python. ``settings`` is the whole resolved configuration, as recorded."""

    settings: Mapping[str, Json]
    backbone: BackboneConfig | None  # None: retrieval only
    second: BackboneConfig | None  # answers `second_roles`; None where the memory has none of them
    second_roles: tuple[str, ...]
    embedder: Any
    memory: MemoryConfig
    dataset: DatasetConfig
    reader: ReaderConfig
    protocol: Any
    scoring: Any
    schedule: Schedule
    experiment: str
    seed: int
    mode: str
    timing: str
    run_dir: Path | None
    runs_dir: Path
    cache_dir: Path
    use_cache: bool
    cache_shared: bool
    serving: Serving
    budget: BudgetLimits
    progress: str
    score: bool
    index: IndexSettings = FLAT


@dataclass(frozen=True, slots=True)
class RunResult:
    """Where a run lies and whether every question was answered."""

    path: Path
    complete: bool


def make_plan(settings: Mapping[str, Any], parts: Mapping[str, Any]) -> Plan:
    """Check the plain settings and put them beside the parts.

    Raises:
        ConfigError: a choice that does not exist.
    """
    for key, choices in (("mode", MODES), ("timing", TIMINGS), ("progress", ("auto", "bars", "lines"))):
        if settings[key] not in choices:
            raise ConfigError(f"{key}={settings[key]!r} is unknown; choose one of {', '.join(choices)}")
    index = IndexSettings(**settings.get("index", {}))
    if index.kind == "flat":  # what runs had before there was a choice
        settings = without(settings, ("index",))
    roles = delegated_roles(settings)
    schedule = Schedule(latency=settings["timing"] == "latency", **settings["schedule"])
    return Plan(
        settings=settings,
        schedule=schedule,
        experiment=str(settings["experiment"]),
        seed=whole_number("seed", settings["seed"]),
        mode=settings["mode"],
        timing=settings["timing"],
        run_dir=run_folder(settings["run_dir"]) if settings["run_dir"] else None,
        runs_dir=folder("runs_dir", settings["runs_dir"]),
        cache_dir=folder("cache_dir", settings["cache_dir"]),
        use_cache=flag("use_cache", settings["use_cache"]),
        cache_shared=flag("cache_shared", settings["cache_shared"]),
        serving=Serving(**{**settings["serving"], "folder": Path(settings["serving"]["folder"])}),
        budget=read_limits(settings.get("budget")),
        progress=settings["progress"],
        score=flag("score", settings["score"]),
        index=index,
        second_roles=roles,
        **{**parts, "second": parts["second"] if roles else None},
    )


def folder(key: str, value: object) -> Path:
    """Read a setting that names a folder.

    Raises:
        ConfigError: it is no text, or there is a file of this name.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{key}={value!r} must be the name of a folder")
    if Path(value).is_file():
        raise ConfigError(f"{key}={value} is a file; name a folder")
    return Path(value)


def run_folder(value: object) -> Path:
    """Read ``run_dir``: a new folder, an empty one, or one that holds a run.

    Raises:
        ConfigError: it is no folder, or holds files of something else.
    """
    path = folder("run_dir", value)
    if path.is_dir() and not (path / "run.json").is_file():
        others = sorted(entry.name for entry in path.iterdir() if not _is_of_a_run(entry))
        if others:
            found = ", ".join(others[:3])
            raise ConfigError(f"run_dir={value} holds other files ({found}); name an empty or a new folder")
    return path


def _is_of_a_run(entry: Path) -> bool:
    """Whether a run may have left this before it wrote its record."""
    return entry.name.startswith(".") or entry.suffix == ".jsonl" or entry.name in ("logs", "snapshots")


def flag(key: str, value: object) -> bool:
    """Read a setting that is true or false.

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{key}={value!r} must be true or false")
    return value


def whole_number(key: str, value: object) -> int:
    """Read a setting that is a whole number.

    Raises:
        ConfigError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError(f"{key}={value!r} must be a whole number")
    return value


def identity_of(plan: Plan, data_sha256: str) -> dict[str, Json]:
    """The settings that can change an answer, with the checksum of the data in place of its path."""
    kept = {key: value for key, value in plan.settings.items() if key not in NOT_IDENTITY}
    if not wants_authors(plan.settings):
        kept.pop("prompts", None)  # our wording is what runs had before there was a choice
    kept["dataset"] = without(kept["dataset"], ("path", "data_dir", "file"))
    kept["embedder"] = without(kept["embedder"], sorted(getattr(plan.embedder, "RUNTIME_FIELDS", ())))
    if plan.backbone is None:
        kept = without(kept, ("backbone", "reader"))
    else:
        kept["backbone"] = without(kept["backbone"], sorted(plan.backbone.runtime_fields()))
    if plan.second is None:
        kept = without(kept, ("second", "second_roles"))
    else:
        kept["second"] = without(kept["second"], sorted(plan.second.runtime_fields()))
    kept = without_secrets({key: without_name(value) for key, value in kept.items()})
    kept["data_sha256"] = data_sha256
    return json.loads(json.dumps(kept))  # type: ignore[no-any-return]


def without(node: Mapping[str, Any], dotted: Sequence[str]) -> dict[str, Any]:
    """Copy a tree without some of its keys; ``engine.port`` names a key of a child."""
    copy = {key: dict(value) if isinstance(value, Mapping) else value for key, value in node.items()}
    for name in dotted:
        parent, _, child = name.rpartition(".")
        target = copy.get(parent) if parent else copy
        if isinstance(target, dict):
            target.pop(child, None)
    return copy


def run_path(plan: Plan, identity: Mapping[str, Json]) -> Path:
    """Where the run lies: ``run_dir``, or a name that differs whenever a result could.

    A run of the same settings under another name of the memory or the backbone is the same run.
    """
    if plan.run_dir is not None:
        return plan.run_dir
    backbone = "retrieval" if plan.backbone is None else plan.backbone.name
    ending = f"-s{plan.seed}-{identity_hash(identity)}"
    path = plan.runs_dir / plan.experiment / f"{plan.memory.name}-{backbone}{ending}"
    others = [] if path.is_dir() else sorted(path.parent.glob(f"*{ending}/"))
    return others[0] if others else path


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
    with _told(f"loading the data set {plan.dataset.name}"):
        data = plan.dataset.load()
    identity = identity_of(plan, data.sha256)
    path = run_path(plan, identity)
    directory = RunDirectory(path, wait_s=lock_wait_s)
    try:
        if finished(directory, identity) and whole(directory, data.samples, plan.mode):
            console().print(f"{path}: complete, nothing to run", highlight=False)
            note_evaluation(plan, directory)
            complete = True
        else:
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
    asked = _recordable(plan.settings)
    changed = directory.change_config({key: asked[key] for key in EVALUATION if key in asked})
    for line in changed:
        say(f"evaluated anew, {line}")


def _run_to_end(plan: Plan, data: LoadedData, identity: dict[str, Json], directory: RunDirectory) -> bool:
    """Run the loop; tasks raise in groups, a user reads one message."""
    check_before_models(plan, data)
    stop = StopRequest()
    try:
        with using_index(plan.index):
            return asyncio.run(_run(plan, data, identity, directory, stop))
    except asyncio.CancelledError as error:
        directory.close()
        stop.hand_over()
        raise KeyboardInterrupt from error
    except BaseExceptionGroup as group:
        ours = group.subgroup(MemsysError)
        if ours is None:
            raise
        raise _budget_error(ours) or first_error(ours) from group


def check_before_models(plan: Plan, data: LoadedData) -> None:
    """Refuse what cannot work while it costs nothing: before a server starts or a model is loaded.

    Raises:
        ConfigError: the reader lacks a prompt for a category that is asked, a prompt or the embedder is not usable, or
            dollars are limited and a price is not known.
    """
    if plan.backbone is not None:
        check_prices(plan.budget, plan.backbone, plan.second)
        kinds = {
            question.category: kind_of(question.kind, question.category)
            for sample in data.samples
            for question in sample.questions
        }
        asked = {number: (data.category_names.get(number, ""), kinds[number]) for number in sorted(kinds)}
        plan.reader.check(plan.dataset.name, asked)
        plan.reader.build(plan.seed)
    embedder_for(plan)


def finished(directory: RunDirectory, identity: Mapping[str, Json]) -> bool:
    """Whether the directory holds this very run, complete: then neither model nor embedder need to load."""
    stored = directory.stored_record()
    if stored is None or stored["status"] != "complete":
        return False
    return {**stored["identity"], "model": None} == {**identity, "model": None}


def whole(directory: RunDirectory, samples: Sequence[Sample], mode: str) -> bool:
    """Whether the files of a run that says it is complete hold all of it; says what is missing where they do not.

    Gold is written again from the data set, whose checksum is the run's.

    Raises:
        RunDirectoryError: a row or a snapshot cannot be read.
    """
    _check_ledger(directory)
    ids = [sample.conversation.conversation_id for sample in samples]
    snapshots, ingested = directory.snapshots(ids), directory.ingested_conversations()
    snapshots.check_earlier()
    done = directory.finished_questions(mode)
    missing = {
        "questions": sum(question.question_id not in done for sample in samples for question in sample.questions),
        "conversation records": sum(name not in ingested for name in ids),
        "snapshots": sum(map(snapshots.lacks, ids)),
    }
    if directory.write_references(reference_records(samples)):
        console().print(
            f"{directory.path}: references.jsonl was not the data set's and is written again", highlight=False
        )
    lost = ", ".join(f"{count} {name}" for name, count in missing.items() if count)
    if lost:
        complain(f"{directory.path} says that it is complete, but its files lack {lost}; the run is taken up again")
    return not lost


def _check_ledger(directory: RunDirectory) -> None:
    """Refuse a complete run whose ledger has lost calls: which they were, no other file says."""
    wanted = ((directory.stored_record() or {}).get("counts") or {}).get("calls", 0)
    if directory.booked_calls < wanted:
        raise RunDirectoryError(
            f"{directory.path / 'calls.jsonl'} holds {directory.booked_calls} of the {wanted} calls that "
            "run.json counts; restore the file that is not this run's or has lost rows, or delete the run directory "
            "and start again: replies come from the cache"
        )


async def _run(
    plan: Plan, data: LoadedData, identity: dict[str, Json], directory: RunDirectory, stop: StopRequest
) -> bool:
    if isinstance(plan.memory, NeedsAssets):
        plan.memory.check_assets()
    loading = Loading()
    async with AsyncExitStack() as stack:
        stack.enter_context(stop.watched())
        backbone, loaded = await load_models(plan, directory, stack, loading)
        identity = {**identity, "model": backbone.fingerprint() if backbone else None}
        record = directory.begin(_record(plan, data, identity, directory.path))
        record.loading = loading.seconds  # the very mapping: saved again when the run ends, it has the embedder too
        directory.write_references(reference_records(data.samples))
        resources = make_equipment(plan, backbone, record.prompts, loaded)
        shown = DisplayState(
            title=f"{plan.memory.name} on {plan.dataset.name}",
            traffic=backbone_traffic(backbone),
            loading=plan.embedder.name if loaded and not loaded.done() else "",
        )
        return await _drive(plan, data, directory, record, Driven(resources, shown, loaded))


async def load_models(
    plan: Plan, directory: RunDirectory, stack: AsyncExitStack, loading: Loading
) -> "tuple[Backbones | None, Future[float] | None]":
    """Load backbone and embedder beside each other; returns when the backbone is there.

    A memory whose first calls need no vector then has its first reply while the embedder's model is still loading. In
    latency mode both are waited for: what is timed one at a time is timed on a quiet machine.

    Returns:
        The open backbone, and the embedder's loading, ``None`` where there is none.
    """
    if plan.backbone is not None:
        make_engines(_choice(plan, plan.backbone))  # first: see memsys.llm.engines.llamacpp.LlamaCppEngine
    loaded = loading.start_embedder(embedder_for(plan), plan.memory)
    with _told(f"loading {' and '.join(parts)}") if (parts := _parts_to_load(plan, loaded)) else nullcontext():
        if plan.backbone is not None:
            with loading.of(BACKBONE):
                backbone = await open_backbones(plan, directory, stack)
        else:
            backbone = None
        if loaded is not None and (plan.timing == "latency" or backbone is None):
            await asyncio.wrap_future(loaded)
    return backbone, loaded


def _parts_to_load(plan: Plan, loaded: "Future[float] | None") -> list[str]:
    backbone = [f"{BACKBONE} {plan.backbone.name}"] if plan.backbone is not None else []
    return backbone + ([f"{EMBEDDER} {plan.embedder.name}"] if loaded is not None else [])


@contextmanager
def _told(line: str) -> Iterator[None]:
    """Say what is done while it is: with a spinner, or in a line where that would not stay to be read."""
    _tell(line)
    with stage(line):
        yield


def _tell(line: str) -> None:
    """Write a line where a spinner would not stay to be read: in logs."""
    if not console().is_terminal:
        say(line)


def backbone_traffic(backbone: Backbones | None) -> Callable[[], TrafficSince]:
    """Counters of the backbone, for a progress display."""
    return (lambda: TrafficSince(*backbone.traffic())) if backbone else (lambda: TrafficSince(0, 0, 0, 0))


@dataclass(frozen=True, slots=True)
class Driven:
    """What is run and shown.

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
    totals = _totals(data.samples, directory, plan.mode)
    try:
        with make_progress(plan.progress, totals, driven.shown) as progress:
            outcome = await _run_beside_loading(plan, data, directory, driven, progress)
    except BaseException:
        record.status, record.finished = "interrupted", now()
        if (spent := _budget_error(sys.exception())) is not None:
            record.status, record.problems = "incomplete", [str(spent)]
        directory.save(record)
        raise
    return _close(directory, record, data, plan, outcome)


def _budget_error(error: BaseException | None) -> BudgetSpentError | None:
    """The spent budget that an error is about, alone or in a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        group = error.subgroup(BudgetSpentError)
        error = error if group is None else first_error(group)
    return error if isinstance(error, BudgetSpentError) else None


async def _run_beside_loading(
    plan: Plan,
    data: LoadedData,
    directory: RunDirectory,
    driven: Driven,
    progress: TerminalProgress | LineProgress,
) -> RunOutcome:
    async with asyncio.TaskGroup() as group:
        if driven.shown.loading and driven.loaded is not None:
            group.create_task(tell_when_loaded(driven.loaded, progress.loaded))
        runner = Runner(driven.resources, plan.schedule, directory, progress)
        outcome = group.create_task(runner.run(data.samples))
    return outcome.result()


def _close(directory: RunDirectory, record: RunRecord, data: LoadedData, plan: Plan, outcome: RunOutcome) -> bool:
    wanted = sum(len(sample.questions) for sample in data.samples)
    done = len(directory.finished_questions(plan.mode))
    booked = {"calls": directory.booked_calls}
    record.counts = {**record.counts, "questions": wanted, "questions_done": done, **booked}
    record.problems = [redacted(f"{name}: {message}") for name, message in sorted(outcome.failures.items())]
    record.status = "complete" if done == wanted and not outcome.failures else "incomplete"
    record.finished = now()
    directory.save(record)
    for problem in record.problems:
        complain(problem)
    return record.status == "complete"


def _totals(samples: Sequence[Sample], directory: RunDirectory, mode: str) -> RunTotals:
    done, ingested = directory.finished_questions(mode), directory.ingested_conversations()
    whole = [
        sample
        for sample in samples
        if sample.conversation.conversation_id in ingested and all(q.question_id in done for q in sample.questions)
    ]
    return RunTotals(
        turns=sum(len(sample.conversation.turns) for sample in samples),
        questions=sum(len(sample.questions) for sample in samples),
        turns_done=sum(len(sample.conversation.turns) for sample in whole),
        questions_done=len(done),
    )


def _record(plan: Plan, data: LoadedData, identity: Mapping[str, Json], path: Path) -> RunRecord:
    code = commit()
    return RunRecord(
        run_id=f"{path.parent.name}/{path.name}" if plan.run_dir is None else path.name,
        experiment=plan.experiment,
        seed=plan.seed,
        mode=plan.mode,
        config=_recordable(plan.settings),
        identity=identity,
        data={
            "name": plan.dataset.name,
            "source": data.source_name,
            "sha256": data.sha256,
            **data.counts,
            "notes": dict(data.notes),
        },
        model=identity["model"] or {},
        commit=code["commit"],
        dirty=code["dirty"],
        packages=packages(),
        hardware=hardware(),
        started=now(),
        departures=run_departures(plan.settings["memory"]),
        prompt_sources=prompt_rows(plan.settings),
    )


def _recordable(settings: Mapping[str, Json]) -> Mapping[str, Json]:
    """The resolved configuration without paths of this machine and without keys."""
    kept = without(settings, ("run_dir", "runs_dir", "cache_dir", "serving", "dataset.path", "dataset.data_dir"))
    return json.loads(json.dumps(without_secrets(kept)))  # type: ignore[no-any-return]


def reference_records(samples: Sequence[Sample]) -> list[ReferenceRecord]:
    """Gold of every question in the order of the data set."""
    records = []
    for sample in samples:
        texts = {turn.turn_id: turn.text for turn in sample.conversation.turns}
        for question in sample.questions:
            gold = sample.references[question.question_id]
            records.append(
                ReferenceRecord(
                    question_id=question.question_id,
                    conversation_id=question.conversation_id,
                    category=question.category,
                    answers=list(gold.answers),
                    adversarial_answer=gold.adversarial_answer,
                    evidence=list(gold.evidence),
                    unresolved_evidence=list(gold.unresolved_evidence),
                    evidence_texts=[texts[turn_id] for turn_id in gold.evidence],
                    extra=dict(gold.extra),
                    kind=question.kind,
                )
            )
    return records


async def open_backbones(plan: Plan, directory: RunDirectory, stack: AsyncExitStack) -> Backbones | None:
    """Open the plan's backbones on the stack; ``None`` for a retrieval-only run."""
    from memsys.llm.cache import ReplyCache

    if plan.backbone is None:
        return None

    def make_cache() -> ReplyCache | None:
        return ReplyCache(plan.cache_dir, shared=plan.cache_shared) if plan.use_cache else None

    meters = make_meters(plan.budget, plan.backbone, plan.second, plan.second_roles, directory.path / "calls.jsonl")
    return await connect(_choice(plan, plan.backbone), stack, directory, make_cache, meters)


def _choice(plan: Plan, main: BackboneConfig) -> BackboneSelection:
    return BackboneSelection(main, plan.second, plan.second_roles, plan.serving, plan.seed)


def make_equipment(
    plan: Plan, backbone: Backbones | None, prompts: dict[str, str], loaded: "Future[float] | None" = None
) -> RunResources:
    """Make the runner's resources from a plan, its open backbone and the loading of its embedder, if that loads."""
    nobody = NoBackbone(plan.memory.name)
    embedder = embedder_for(plan)
    return RunResources(
        memory=plan.memory,
        embedder=embedder if loaded is None else LoadingEmbedder(embedder, loaded),
        turn_format=plan.dataset.turn_format,
        seed=plan.seed,
        bind=backbone.bind if backbone else lambda conversation_id: nobody,
        reader=plan.reader.build(plan.seed) if backbone else None,
        prompts=prompts,
        count_context=backbone is not None,
    )


_EMBEDDERS: dict[str, Embedder] = {}


def embedder_for(plan: Plan) -> Embedder:
    """The embedder; loaded once per process. Latency runs get one without a cache of vectors."""
    config = plan.embedder
    if plan.timing == "latency" and hasattr(config, "cache_entries"):
        config = replace(config, cache_entries=0)
    key = repr(config)
    if key not in _EMBEDDERS:
        _EMBEDDERS[key] = config.build()
    return _EMBEDDERS[key]


def score_and_show(plan: Plan, path: Path) -> None:
    """Score a complete run and print its row."""
    from eval.scoring.rows import score_run
    from eval.scoring.summary import summarise

    with _told("scoring"):
        score_run(path, plan.scoring)
        summarise(path)
    console().print(f"scored: {path}", highlight=False)


def compare_runs(paths: Sequence[Path], out_dir: Path) -> None:
    """Print and write one table and plot over runs."""
    from eval.compare import compare

    with stage("comparing the runs"):
        compare(paths, out_dir)
