"""Plan of a run: its parts and settings, their identity, and the run's folder."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eval.config.former_constants import without_former_constants
from eval.config.prompt_choice import wants_authors
from eval.loaders.contract import DatasetConfig
from eval.loaders.selection import category_numbers
from eval.loaders.stress import StressedDataset, StressSettings
from eval.running.backbones import Serving
from eval.running.budgets import BudgetLimits, read_limits
from eval.running.reader import ReaderConfig
from eval.running.roles import check_raw_roles, delegated_roles
from eval.running.schedule import Schedule
from eval.running.unanswered import UNANSWERED, UnansweredLimits, read_unanswered
from eval.runs.identity import NOT_IDENTITY, as_written, identity_hash, without, without_name
from memsys.errors import ConfigError, quoted
from memsys.files import path_problem
from memsys.index.settings import FLAT, IndexSettings
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import MOST_REQUESTS, SendsBatches
from memsys.protocol import MemoryConfig
from memsys.settings import check_mapping, check_name
from memsys.vocabulary import Json

MODES = ("answers", "retrieval_only")
TIMINGS = ("throughput", "latency")
#: Settings that hold settings, and how one of these is written.
SECTIONS = {"index": "kind=hnsw", "schedule": "warmup=0", "serving": "shared=true", "budget": "tokens=100000",
            "unanswered": "stop_share=null", "context": "budget=1024", "stress": "kind=noise"}  # fmt: skip
#: Largest seed that files of a run hold.
LAST_SEED = 2**63 - 1
#: Parts of the configuration that only say how stored answers are scored and averaged.
EVALUATION = ("protocol", "scoring")


@dataclass(frozen=True, slots=True)
class Plan:
    """Parts of a run, in plain Python. ``settings`` is the whole resolved configuration, as recorded."""

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
    show_answers: int
    index: IndexSettings = FLAT
    unanswered: UnansweredLimits = UNANSWERED
    context_budget: int | None = None


def make_plan(settings: Mapping[str, Any], parts: Mapping[str, Any]) -> Plan:
    """Check the plain settings and put them next to the parts.

    Raises:
        ConfigError: a choice that does not exist.
    """
    for key, choices in (("mode", MODES), ("timing", TIMINGS), ("progress", ("auto", "bars", "lines"))):
        if settings[key] not in choices:
            raise ConfigError(f"{key}={settings[key]!r} is unknown; choose one of {', '.join(choices)}")
    for key, example in SECTIONS.items():
        check_mapping(key, settings.get(key, {}), example)
    index = IndexSettings(**settings.get("index", {}))
    if index == FLAT:  # what runs had before there was a choice
        settings = without(settings, ("index",))
    context_budget = read_context_budget(settings.get("context", {}))
    if context_budget is None:  # likewise
        settings = without(settings, ("context",))
    seed = whole_number("seed", settings["seed"], least=0, most=LAST_SEED)
    settings, parts = with_stress(settings, parts, seed)
    roles = delegated_roles(settings)
    check_raw_roles(settings["memory"], parts, roles)
    for part in ("memory", "embedder"):
        check_name(f"{part}.name", parts[part].name)
    schedule = Schedule(latency=settings["timing"] == "latency", **settings["schedule"])
    if parts.get("backbone") is not None and isinstance(parts["backbone"].engine, SendsBatches):
        schedule = replace(schedule, questions_in_flight=max(schedule.questions_in_flight, MOST_REQUESTS))
    schedule = in_turn(schedule, parts["dataset"])
    return Plan(
        settings=settings,
        schedule=schedule,
        experiment=experiment_name(settings["experiment"]),
        seed=seed,
        mode=settings["mode"],
        timing=settings["timing"],
        run_dir=run_folder(settings["run_dir"]) if settings["run_dir"] else None,
        runs_dir=folder("runs_dir", settings["runs_dir"]),
        cache_dir=working_folder("cache_dir", settings["cache_dir"]),
        use_cache=flag("use_cache", settings["use_cache"]),
        cache_shared=flag("cache_shared", settings["cache_shared"]),
        serving=Serving(
            **{**settings["serving"], "folder": working_folder("serving.folder", settings["serving"]["folder"])}
        ),
        budget=read_limits(settings.get("budget")),
        unanswered=read_unanswered(settings.get("unanswered")),
        progress=settings["progress"],
        score=flag("score", settings["score"]),
        show_answers=whole_number("show_answers", settings["show_answers"], least=0),
        index=index,
        context_budget=context_budget,
        second_roles=roles,
        **{**parts, "second": parts["second"] if roles else None},
    )


def experiment_name(value: object) -> str:
    """Read ``experiment``: the name of a folder under ``runs_dir``.

    Raises:
        ConfigError: it is not such a name.
    """
    if isinstance(value, Mapping):
        raise ConfigError(
            "experiment holds settings, where a name belongs: the file that +experiment=NAME chooses needs "
            "`# @package _global_` in its first lines"
        )
    name = "" if value is None else str(value)
    if problem := path_problem(name):
        raise ConfigError(
            f"experiment={quoted(value)} must be the name of a folder under runs_dir that {problem}; +experiment=NAME "
            "chooses a file"
        )
    return name


def folder(key: str, value: object) -> Path:
    """Read a setting that names a folder.

    Raises:
        ConfigError: it is not text, or there is a file of this name.
    """
    if not isinstance(value, str):
        raise ConfigError(f"{key}={value!r} must be the name of a folder")
    if not value.strip():
        raise ConfigError(f"{key}={value!r} names no folder; write . for the current one")
    if Path(value).is_file():
        raise ConfigError(f"{key}={value} is a file; name a folder")
    return Path(value)


def working_folder(key: str, value: object) -> Path:
    """Read a setting that names a folder which is made when something is first written there, maybe hours later.

    Raises:
        ConfigError: it is not text, or it or a folder that it lies in is a file.
    """
    path = folder(key, value)
    for above in path.parents:
        if above.exists() and not above.is_dir():
            raise ConfigError(f"{key}={value}: {above} is a file; name a folder")
    return path


def run_folder(value: object) -> Path:
    """Read ``run_dir``: a new folder, an empty one, or one that holds a run.

    Raises:
        ConfigError: it is not a folder, or holds files of something else.
    """
    path = folder("run_dir", value)
    if path.is_dir() and not (path / "run.json").is_file():
        others = sorted(entry.name for entry in path.iterdir() if not _is_of_a_run(entry))
        if others:
            found = ", ".join(others[:3])
            raise ConfigError(f"run_dir={value} holds other files ({found}); name an empty or a new folder")
    return path


def _is_of_a_run(entry: Path) -> bool:
    """Return whether a file may be left by a run that had not yet written its record."""
    return entry.name.startswith(".") or entry.suffix == ".jsonl" or entry.name in ("logs", "snapshots")


def flag(key: str, value: object) -> bool:
    """Read a setting that is true or false.

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(value, bool):
        raise ConfigError(f"{key}={value!r} must be true or false")
    return value


def whole_number(key: str, value: object, least: int, most: int | None = None) -> int:
    """Read a setting that is a whole number.

    Args:
        key: name of the setting.
        value: as it was composed.
        least: smallest number that is taken.
        most: largest number that is taken; ``None`` for no limit.

    Raises:
        ConfigError: it is not a whole number, too small or too large.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        bounds = f"from {least} on" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{key}={value!r} must be a whole number {bounds}")
    return value


def read_context_budget(section: Mapping[str, Any]) -> int | None:
    """Read ``context``, whose one setting is the tokens of context that every memory may give.

    Raises:
        ConfigError: it has another setting, or the budget is not a number of tokens.
    """
    if unknown := sorted(set(section) - {"budget"}):
        raise ConfigError(f"context.{unknown[0]} is not a setting; context has budget alone")
    budget = section.get("budget")
    return None if budget is None else whole_number("context.budget", budget, least=1)


def with_stress(
    settings: Mapping[str, Any], parts: Mapping[str, Any], seed: int
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Change the data set as ``stress`` says, under a name of its own, so that no table takes it for the data set.

    Returns:
        Settings and parts; without a change those given, and no ``stress`` among the settings.

    Raises:
        ConfigError: there is no such change, or it has no twin.
    """
    chosen = settings.get("stress") or {}
    if chosen.get("kind") is None:
        return without(settings, ("stress",)), parts
    if unknown := sorted(set(chosen) - {"kind", "twin", "amount"}):
        raise ConfigError(f"stress.{unknown[0]} is not a setting; stress has kind, twin and amount")
    changed = StressedDataset(parts["dataset"], StressSettings(**chosen), seed)
    return {**settings, "dataset": {**settings["dataset"], "name": changed.name}}, {**parts, "dataset": changed}


def in_turn(schedule: Schedule, dataset: DatasetConfig) -> Schedule:
    """Return a schedule with one conversation at a time where one is asked for what another user said before."""
    two_users = isinstance(dataset, StressedDataset) and dataset.settings.kind == "two_users"
    return replace(schedule, conversations_in_flight=1) if two_users else schedule


def identity_of(plan: Plan, data_sha256: str) -> dict[str, Json]:
    """Return the settings that can change an answer, with the checksum of the data in place of its path."""
    kept = {key: value for key, value in plan.settings.items() if key not in NOT_IDENTITY}
    if not wants_authors(plan.settings):
        kept.pop("prompts", None)  # runs had our prompts before there was a choice
    kept["memory"] = without_former_constants(kept["memory"])
    kept["dataset"] = without(_by_number(kept["dataset"], plan), ("path", "data_dir", "file"))
    kept["embedder"] = without(kept["embedder"], sorted(getattr(plan.embedder, "RUNTIME_FIELDS", ())))
    kept = without(kept, ("index",) if plan.index.kind == "flat" else ("index.device",))  # scores are exact on both
    if plan.backbone is None:
        kept = without(kept, ("backbone", "reader"))
    else:
        kept["backbone"] = without(kept["backbone"], sorted(plan.backbone.runtime_fields()))
    if plan.second is None:
        kept = without(kept, ("second", "second_roles"))
    else:
        kept["second"] = without(kept["second"], sorted(plan.second.runtime_fields()))
    return {**as_written({key: without_name(value) for key, value in kept.items()}), "data_sha256": data_sha256}


def _by_number(dataset: Mapping[str, Any], plan: Plan) -> Mapping[str, Any]:
    """Return the settings of the data set with categories by number, so that name and number give one run.

    A kind that only the files of a data set of one's own name stays as it is written.
    """
    categories, info = dataset.get("categories"), plan.dataset.info
    if not categories or not any(isinstance(item, str) for item in categories):
        return dataset
    try:
        return {**dataset, "categories": category_numbers(categories, info.category_names, info.kinds)}
    except ConfigError:
        return dataset


def run_path(plan: Plan, identity: Mapping[str, Json]) -> Path:
    """Return the run's folder: ``run_dir``, or a name that differs whenever results could.

    A run of the same settings under another name of the memory or the backbone is the same run.
    """
    if plan.run_dir is not None:
        return plan.run_dir
    backbone = "retrieval" if plan.backbone is None else plan.backbone.name
    ending = f"-s{plan.seed}-{identity_hash(identity)}"
    path = plan.runs_dir / plan.experiment / f"{plan.memory.name}-{backbone}{ending}"
    others = [] if path.is_dir() else sorted(path.parent.glob(f"*{ending}/"))
    return others[0] if others else path
