"""One call that measures your memory: ``memsys.evaluate(MyMemory, "locomo", backbone=...)``."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from baselines.external.config import ObjectConfig
from baselines.external.digests import UNPICKLABLE, digest_of
from eval.api.parts import composed, given_backbone
from eval.commands.terminal import console
from eval.results.frame import load_results
from eval.running.composed import make_plan
from eval.running.experiment import run_experiment
from eval.running.plan import Plan, identity_of
from eval.runs.exports import exported_runs
from eval.runs.folders import SUMMARIES
from eval.runs.identity import identity_hash
from memsys.errors import ConfigError
from memsys.llm.config import BackboneConfig
from memsys.vocabulary import Json

if TYPE_CHECKING:
    from pandas import DataFrame

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: Name of the experiment, which is the folder of the runs.
_EXPERIMENT = "evaluate"
_COMPARISON = "comparison"
#: Characters of an error that is quoted.
_LONGEST = 120


@dataclass(frozen=True)
class Evaluation:
    """Result of :func:`evaluate`.

    Attributes:
        path: run directory of the memory.
        others: run directories, or committed exports, of the systems next to it.
        complete: whether every question was answered; the same call continues otherwise.
    """

    path: Path
    others: Sequence[Path]
    complete: bool

    @cached_property
    def frame(self) -> "DataFrame":
        """Scores of every question of every system; see :func:`memsys.load_results`."""
        return load_results(self.path, *self.others)

    @cached_property
    def table(self) -> str:
        """The comparison as Markdown: scores with intervals, evidence, cost; written next to the run."""
        self._compare(shown=False)
        return (self.path / _COMPARISON / "compare.md").read_text(encoding="utf-8")

    def _compare(self, *, shown: bool) -> None:
        from eval.results.compare import compare

        compare([self.path, *self.others], self.path / _COMPARISON, shown=shown)

    def _repr_markdown_(self) -> str:
        return self.table if self.complete else str(self)

    def __str__(self) -> str:
        if not self.complete:
            return f"{self.path}: not complete; the same call continues"
        from rich.text import Text

        with console().capture() as captured:
            self._compare(shown=True)
        return Text.from_ansi(captured.get()).plain.strip("\n")


def evaluate(  # noqa: PLR0913 - what a memory is measured on, by and next to
    memory: Any,
    dataset: str = "locomo_sample",
    *,
    backbone: str | BackboneConfig | None = None,
    name: str | None = None,
    k: int = 10,
    unit: str = "turn",
    baselines: str | Sequence[str] = ("rag",),
    settings: str | Sequence[str] = (),
) -> Evaluation:
    """Measure a memory on a data set, next to others on the same questions.

    A run of the same settings and the same source is continued, or taken as it is; an edited class is a new run. What
    a hosted backbone will cost is said and not asked: ``settings=["budget.dollars=5"]`` stops at a sum.

    Args:
        memory: a class, or a function without arguments, that makes the memory of one conversation; an object with
            ``add`` and ``search``, which is copied for each conversation unless both take a user's name; a function of
            messages and query; or the name of a preset of ``conf/memory``. What is returned may be texts, mappings or
            objects; ids in them, or in what ``add`` returned, say which turns they came from, else their text does.
        dataset: a preset of ``conf/dataset``.
        backbone: answers the questions: a preset of ``conf/backbone``, or :func:`memsys.endpoint`; ``None`` measures
            what is found alone.
        name: of the memory in tables; that of its class by default.
        k: results that a search of an object is asked for; a preset has its own.
        unit: what one ``add`` of an object gets: ``turn`` or ``session``.
        baselines: presets of ``conf/memory`` to compare with, which ask the backbone, and pay a hosted one, as well; a
            committed run of the same settings is not run again.
        settings: further settings as on the command line, such as ``["dataset.limit_questions=20", "runs_dir=out"]``.

    Raises:
        MemsysError: a name or setting does not exist, or the object cannot be a memory.
    """
    if memory is None:
        raise ConfigError("memory=None: give a class or an object with add and search, or the name of a preset")
    shared = [f"dataset={dataset}", *_of_backbone(backbone), *_listed(settings)]
    plans = [_plan_of(memory, name, [f"memory.k={k}", f"memory.unit={unit}"], shared)]
    plans += [_composed([f"memory={preset}", *shared]) for preset in _listed(baselines)]
    results = _in_own_loop(lambda: [_run(plan) for plan in plans])
    (path, complete), *others = results
    return Evaluation(path, [other for other, whole in others if whole], complete)


def _listed(given: str | Sequence[str]) -> Sequence[str]:
    """Return one text as a list of it; Python takes it for a list of letters."""
    return [given] if isinstance(given, str) else given


def _plan_of(memory: Any, name: str | None, choices: Sequence[str], shared: Sequence[str]) -> Plan:
    if isinstance(memory, str):
        return _composed([f"memory={memory}", *shared])
    about = _described(memory)
    own = [f"memory.{key}={_quoted(value)}" for key, value in about.items()]
    plan = _composed(["memory=object", *own, *choices, f"memory.name={_quoted(name or _name_of(memory))}", *shared])
    assert isinstance(plan.memory, ObjectConfig)
    return replace(plan, memory=replace(plan.memory, given=memory))


def _composed(overrides: Sequence[str]) -> Plan:
    """Return the plan of some overrides, in the folder of this experiment."""
    from omegaconf import open_dict

    config = composed(overrides)
    with open_dict(config):
        del config["hydra"]  # its settings are those of a command line
    plan: Plan = make_plan(config, overrides)
    return replace(plan, experiment=_EXPERIMENT, settings={**plan.settings, "experiment": _EXPERIMENT})


def _described(memory: Any) -> dict[str, Json]:
    """Return the record of an object: the import path of its class, and a digest of its source and settings.

    Settings that cannot be compared with those of an earlier run make every run a new one.
    """
    kind, source = _kind_of(memory), ""
    try:
        source = digest_of(memory)
    except UNPICKLABLE as error:
        said = " ".join(str(error).split())[:_LONGEST]
        logger.warning("%s: its settings cannot be compared with those of earlier runs (%s); this is a new run",
                       _name_of(memory), said)  # fmt: skip
    return {"object": f"{kind.__module__}:{kind.__qualname__}", "source": (source or uuid4().hex)[:12]}


def _name_of(memory: Any) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in _kind_of(memory).__name__).strip("_") or "memory"


def _kind_of(memory: Any) -> Any:
    """Return the class or function that a memory is, or the class of an object."""
    while isinstance(memory, partial):
        memory = memory.func
    return memory if inspect.isclass(memory) or inspect.isroutine(memory) else type(memory)


def _of_backbone(backbone: str | BackboneConfig | None) -> list[str]:
    if backbone is None:
        return ["mode=retrieval_only"]
    if isinstance(backbone, str):
        return [f"backbone={backbone}"]
    return given_backbone(backbone)


def _quoted(value: Json) -> str:
    """Return a value of an override in Hydra's quotation marks."""
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _run(plan: Plan) -> tuple[Path, bool]:
    """Run a plan, unless the same run is committed; returns where its record lies and whether it is complete."""
    committed = None if isinstance(plan.memory, ObjectConfig) else _committed(plan)
    if committed is not None:
        return committed, True
    from eval.sweep.expense import confirm_run  # reads prices and data

    confirm_run(plan, agreed=True)
    result = run_experiment(plan)
    return result.path, result.complete


def _committed(plan: Plan) -> Path | None:
    """Find a committed run of the same settings, data and seed, by the hash of its identity."""
    if not SUMMARIES.is_dir():
        return None
    ending = identity_hash(identity_of(plan, plan.dataset.load().sha256))
    experiments = [folder for folder in sorted(SUMMARIES.iterdir()) if folder.is_dir()]
    found = (run for folder in experiments for run in exported_runs(folder) if run.name.endswith(f"-{ending}"))
    return next(found, None)


def _in_own_loop(work: Callable[[], T]) -> T:
    """Do blocking work that starts an event loop; in a thread where one is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
