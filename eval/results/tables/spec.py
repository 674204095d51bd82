"""Specification of a paper's tables: ``eval/results/tables/specs/<paper>.yaml``."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from eval.config.presets import CONF, find_preset, preset_names, read_settings
from eval.metrics.registry import scale_of
from eval.results.papers.printed import JUDGE
from memsys.errors import ConfigError, quoted
from memsys.field_types import declared_types, type_problem

FOLDER = Path(__file__).parent / "specs"

#: Rows belong together that share a backbone, or a backbone and a data set.
BlockBy = Literal["backbone", "dataset"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """A data set of a table.

    Attributes:
        label: as shown.
        runs: data set configs whose runs count, the paper's own first.
        conversations: how many the whole set has.
        questions: how many count under the paper's protocol.
        readers: where they are not the paper's readers of its other sets.
    """

    label: str
    runs: tuple[str, ...]
    conversations: int
    questions: int
    readers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemSpec:
    """A row of a table.

    Attributes:
        label: as shown.
        memory: memory configs whose runs may be in it.
        built: false where the paper has a system that is not in ``conf/memory`` yet.
    """

    label: str
    memory: tuple[str, ...]
    built: bool = True


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table.

    Attributes:
        title: what it shows.
        block: what its rows are grouped by.
        hardware: part of the name of the GPU that the paper measured on; latency on others is shown, not compared.
        further: show systems and backbones that the paper's table does not name; floors and ceilings are shown anyway.
        measured: false for settings and for counts that belong to the paper's own run.
        transpose: the paper's rows are metrics and its columns systems.
        paired: test the paper's own system against the others that were measured.
        remarks: what to know of the whole table.
        settings: rows that print a setting, each with the preset and the key that have it: ``memory=clag n_init``.
    """

    title: str
    block: BlockBy
    hardware: str = ""
    further: bool = True
    measured: bool = True
    transpose: bool = False
    paired: bool = False
    remarks: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.block not in get_args(BlockBy):
            raise ConfigError(f"block={self.block!r} is unknown; choose one of {', '.join(get_args(BlockBy))}")


@dataclass(frozen=True, slots=True)
class PaperSpec:
    """All tables of one paper, with the names they share; ``specs/clag.yaml`` explains the keys."""

    paper: str
    label: str
    own: str
    protocol: str
    readers: tuple[str, ...]
    embedder: str
    datasets: Mapping[str, DatasetSpec]
    systems: Mapping[str, SystemSpec]
    tables: Mapping[int, TableSpec]
    bertscore_model: str = "roberta-large"
    plain_metrics: frozenset[str] = frozenset()
    run_figures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    not_compared: Mapping[str, str] = field(default_factory=dict)
    backbones: Mapping[str, str] = field(default_factory=dict)
    further: Mapping[str, str] = field(default_factory=dict)
    embedder_by_backbone: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    judges: Mapping[str, str] = field(default_factory=dict)
    backbone_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    means: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    version: str = ""

    def scale(self, metric: str) -> float:
        """Return the factor from the stored unit to the table's: 100 for shares."""
        return 1.0 if metric in self.plain_metrics else scale_of(metric)

    def system_of(self, memory: str) -> str:
        """Return the row a memory config belongs to; its own name where the paper has none."""
        return next((name for name, system in self.systems.items() if memory in system.memory), memory)

    def memory_place(self, memory: str) -> int:
        """Return the position of a memory config in its row, the paper's own first; 0 where the paper has no row."""
        system = self.systems.get(self.system_of(memory))
        return system.memory.index(memory) if system else 0

    def readers_of(self, dataset: str) -> tuple[str, ...]:
        """Return the readers whose runs count on a data set, the paper's own first."""
        return self.datasets[dataset].readers or self.readers

    def embedder_of(self, backbone: str) -> str:
        """Return the embedder that the paper used with a backbone."""
        return self.embedder_by_backbone.get(backbone, self.embedder)

    def settings_of(self, part: str, backbone: str) -> Mapping[str, Any]:
        """Return the settings of a part in which the paper differs from the preset, by dotted key."""
        own = self.backbone_settings.get(backbone, {}) if part == "backbone" else {}
        return {**self.settings.get(part, {}), **own}

    def metric_of(self, metric: str, backbone: str) -> str:
        """Return the name in ``scores.jsonl``: of a judge's verdicts it depends on the judge and its backbone."""
        return self.judges.get(backbone, self.judges.get("default", metric)) if metric == JUDGE else metric

    def dataset_of(self, run: str) -> str | None:
        """Return the data set that a run's data set config represents, ``None`` when it is none of the paper's."""
        return next((name for name, dataset in self.datasets.items() if run in dataset.runs), None)

    def system_label(self, system: str) -> str:
        """Return the label of a row."""
        if system in self.systems:
            return self.systems[system].label
        return self.further.get(system) or str(preset_labels().get(system, system))

    def is_built(self, system: str) -> bool:
        """Return whether there is a memory config whose runs may be in a row."""
        return system not in self.systems or self.systems[system].built

    def backbone_label(self, backbone: str) -> str:
        """Return the label of a backbone."""
        return self.backbones.get(backbone) or str(preset_labels().get(backbone, backbone))


@cache
def preset_labels() -> Mapping[str, Any]:
    """Return the names of memory presets and backbones that a paper does not print, by preset."""
    return read_settings(CONF / "names.yaml")


def spec_names() -> tuple[str, ...]:
    """Return the papers whose tables can be built, sorted."""
    return preset_names(FOLDER)


def load_spec(paper: str, folder: Path = FOLDER) -> PaperSpec:
    """Read the tables of one paper.

    Raises:
        ConfigError: there is no such paper, or a setting is missing, unknown or wrong.
    """
    path = find_preset(paper, folder, "paper")
    return _paper(read_settings(path), path)


def _paper(settings: dict[str, Any], path: Path) -> PaperSpec:
    _check_keys(settings, path)
    _check_types(PaperSpec, settings, f"{path}: ")
    for number in settings["tables"]:
        if not isinstance(number, int):
            raise ConfigError(f"{path}: tables has {number!r}, which is not a number of a table")
    figures = {metric: tuple(paths) for metric, paths in settings.get("run_figures", {}).items()}
    return PaperSpec(
        **{
            **settings,
            "readers": tuple(settings["readers"]),
            "plain_metrics": frozenset(settings.get("plain_metrics", ())),
            "run_figures": figures,
            "datasets": _parts(DatasetSpec, settings["datasets"], path),
            "systems": _parts(SystemSpec, settings["systems"], path),
            "tables": _parts(TableSpec, settings["tables"], path),
            "means": {name: tuple(parts) for name, parts in settings.get("means", {}).items()},
            "elsewhere": tuple(settings.get("elsewhere", ())),
        }
    )


def _check_keys(settings: Mapping[str, Any], path: Path) -> None:
    known = {item.name: item.default is MISSING and item.default_factory is MISSING for item in fields(PaperSpec)}
    missing = [name for name, needed in known.items() if needed and name not in settings]
    unknown = [str(name) for name in settings if name not in known]
    if missing or unknown:
        problem = [f"lacks {', '.join(missing)}"] if missing else []
        problem += [f"has unknown settings: {', '.join(unknown)}"] if unknown else []
        raise ConfigError(f"{path} {' and '.join(problem)}; settings are {', '.join(known)}")


def _parts(kind: type[T], settings: Mapping[Any, Mapping[str, Any]], path: Path) -> dict[Any, T]:
    found = {}
    for name, values in settings.items():
        if not isinstance(values, dict):
            raise ConfigError(f"{path}: {name}: must be a mapping of settings, not {quoted(values, 60)}")
        _check_types(kind, values, f"{path}: {name}: ")
        frozen = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
        try:
            found[name] = kind(**frozen)
        except (TypeError, ConfigError) as error:
            raise ConfigError(f"{path}: {name}: {error}") from error
    return found


def _check_types(kind: type, values: Mapping[str, Any], where: str) -> None:
    """Refuse values that are not of their field's type; a text where a list belongs would be a list of letters.

    Raises:
        ConfigError: names the place, the value, and what it must be.
    """
    for name, declared in declared_types(kind).items():
        as_in_yaml = Sequence if get_origin(declared) in (tuple, frozenset) else declared
        if name in values and (problem := type_problem(as_in_yaml, values[name])):
            raise ConfigError(f"{where}{name}={quoted(values[name], 60)} {problem}")
