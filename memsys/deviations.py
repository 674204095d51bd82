"""Deviations of a memory system from its paper or its authors' code: one ``deviations.yaml`` next to each system.

A system is found by the ``_target_`` of its presets: ``baselines.amem.config.AmemConfig`` keeps its list in
``baselines/amem/deviations.yaml``, ``baselines.full_context.FullContextConfig``, which is one module and no package, in
``baselines/full_context.deviations.yaml``. The run's record, the list in ``results/tables`` and parity checks read it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args

from memsys.errors import ConfigError
from memsys.yaml_files import read_yaml

FILE = "deviations.yaml"
#: In ``presets``: every preset of the system.
ALL = "all"

Origin = Literal["paper", "release"]
Difference = Literal["prompt", "calls", "store", "context", "answer", "setting"]

#: Keys of an entry in the file; ``from`` is a word of Python's own.
KEYS = ("id", "presets", "from", "where", "what", "why", "option", "parity")
#: Key that an entry may have besides.
MATCH = "match"

#: How far a difference goes: ``wording``, where both sides show the same things in other words or another layout;
#: ``order``, where they show them in another order; ``tie``, where contexts differ in memories that are equally near to
#: the question; or ``content``.
Extent = Literal["wording", "order", "tie", "content"]


@dataclass(frozen=True, slots=True)
class Match:
    """Differences of a parity run (:mod:`eval.parity`) that a deviation explains; all conditions must hold.

    Attributes:
        kind: of the difference.
        extent: ``wording`` alone unless said otherwise: a deviation seldom explains that other things are shown.
        roles: of the calls, for differences of prompts and calls; empty for all.
        place: pattern of the place, as in ``clusters.*.summary``; ``*`` represents anything.
        rule: name of a further test (:mod:`eval.parity.rules`) of the two values.
        prompts: ``ours`` or ``authors``, where it holds with one choice of prompts alone.
    """

    kind: Difference
    extent: Extent = "wording"
    roles: tuple[str, ...] = ()
    place: str = "*"
    rule: str | None = None
    prompts: Literal["ours", "authors"] | None = None


@dataclass(frozen=True, slots=True)
class Deviation:
    """One way in which a system differs from what it reproduces.

    Attributes:
        id: unique among all systems, snake_case.
        presets: presets of ``conf/memory`` that it applies to; ``("all",)`` for every preset of the system.
        origin: what is deviated from (``from`` in the file).
        where: place in the paper, or path and line in the release.
        what: one sentence: what we do, and what they do.
        why: one sentence.
        option: setting that restores their behaviour (``memory.k_local``, ``backbone.json_repair``), if there is one.
        parity: kinds of differences that a parity run shows because of it.
        match: which of these a parity run recognises (``match`` in the file, which may be left out: none).
    """

    id: str
    presets: tuple[str, ...]
    origin: Origin
    where: str
    what: str
    why: str
    option: str | None
    parity: tuple[Difference, ...]
    match: tuple[Match, ...] = ()

    def applies_to(self, preset: str) -> bool:
        """Return whether it applies to a preset of the system."""
        return ALL in self.presets or preset in self.presets


def module_of(target: str) -> str:
    """Return the package, or the module, of the system that a preset's ``_target_`` configures.

    ``baselines.amem.config.AmemConfig`` gives ``baselines.amem``.
    """
    return ".".join(target.split(".")[:-1][:2])


def system_of(target: str, file: str = FILE) -> tuple[str, Path]:
    """Find the system that a preset configures.

    Args:
        target: its ``_target_``, such as ``baselines.amem.config.AmemConfig``.
        file: name of the file that the system keeps next to its code; a system of one module puts its name before it.

    Returns:
        The system's name and the place of that file, which need not exist.

    Raises:
        ConfigError: there is no such package or module.
    """
    module = module_of(target)
    try:
        spec = find_spec(module) if module else None
    except (ModuleNotFoundError, ValueError):
        spec = None
    if spec is None:
        raise ConfigError(f"_target_={target}: there is no module {module}; name a class of a memory system's package")
    folders = list(spec.submodule_search_locations or ())
    source = Path(spec.origin or "")
    place = Path(folders[0]) / file if folders else source.with_name(f"{source.stem}.{file}")
    return module.rpartition(".")[2], place


def read_deviations(path: Path) -> tuple[Deviation, ...]:
    """Read the deviations of a system, most consequential first.

    Raises:
        ConfigError: the file is missing or no list, or an entry has an unknown or missing key, a wrong value, or an id
            that occurred before.
    """
    entries = read_yaml(path, "every memory system states its deviations there")
    if not isinstance(entries, list):
        raise ConfigError(f"{path} must hold a list of deviations, not {type(entries).__name__}")
    found = tuple(_deviation(entry, f"{path}: entry {number}") for number, entry in enumerate(entries, start=1))
    _check_unique([entry.id for entry in found], path)
    return found


def _check_unique(names: Sequence[str], path: Path) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigError(f"{path}: id {', '.join(repeated)} occurs more than once; give each deviation its own")


def _deviation(entry: Any, place: str) -> Deviation:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{place} must hold {', '.join(KEYS)}, not {type(entry).__name__}")
    place = f"{place} ({entry.get('id', 'no id')})"
    unknown = [str(key) for key in entry if key not in (*KEYS, MATCH)]
    missing = [key for key in KEYS if key not in entry]
    if unknown or missing:
        parts = [f"has unknown {', '.join(unknown)}"] if unknown else []
        parts += [f"lacks {', '.join(missing)}"] if missing else []
        raise ConfigError(f"{place} {' and '.join(parts)}; the keys are {', '.join(KEYS)}")
    values = {("origin" if key == "from" else key): entry[key] for key in KEYS}
    values["presets"] = _names(values["presets"], place)
    values["parity"] = _list(values["parity"], "parity", place)
    values["match"] = tuple(_match(one, f"{place}: match") for one in _list(entry.get(MATCH, []), MATCH, place))
    deviation = Deviation(**values)
    _check(deviation, place)
    return deviation


def _match(value: Any, place: str) -> Match:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place}: each entry must hold settings by name, not {value!r}")
    try:
        match = Match(**{**value, "roles": tuple(value.get("roles", ()))})
    except TypeError as error:
        known = ", ".join(field.name for field in fields(Match))
        raise ConfigError(f"{place}: {error}; settings are {known}") from error
    for key, allowed in (("kind", Difference), ("extent", Extent)):
        if getattr(match, key) not in get_args(allowed):
            raise ConfigError(f"{place}: {key}={getattr(match, key)!r}; choose one of {', '.join(get_args(allowed))}")
    return match


def _names(value: Any, place: str) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else _list(value, "presets", place)
    if not names:
        raise ConfigError(f"{place}: presets is empty; name presets of conf/memory, or {ALL}")
    return names


def _list(value: Any, key: str, place: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ConfigError(f"{place}: {key} must be a list, not {value!r}")
    return tuple(value)


def _check(deviation: Deviation, place: str) -> None:
    texts = ("id", "origin", "where", "what", "why") + (("option",) if deviation.option is not None else ())
    for field in fields(Deviation):
        value = getattr(deviation, field.name)
        if field.name in texts and not (isinstance(value, str) and value.strip()):
            raise ConfigError(f"{place}: {field.name} must be a text, not {value!r}")
    if not (deviation.id.isidentifier() and deviation.id.islower()):
        raise ConfigError(f"{place}: id={deviation.id} must be words in lower case, joined by underscores")
    if deviation.origin not in get_args(Origin):
        raise ConfigError(f"{place}: from={deviation.origin!r}; choose one of {', '.join(get_args(Origin))}")
    for kind in deviation.parity:
        if kind not in get_args(Difference):
            raise ConfigError(f"{place}: parity={kind!r}; choose from {', '.join(get_args(Difference))}")
    for match in deviation.match:
        if match.kind not in deviation.parity:
            raise ConfigError(f"{place}: match is of kind {match.kind}, which parity does not name; add it there")
