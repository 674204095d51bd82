"""Deviations of a run from the paper: every setting that differs, not only the first few."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eval.config.preset_settings import default_settings, flat, overrides
from eval.config.presets import CONF
from eval.results.stored_run import StoredRun
from eval.results.tables.spec import PaperSpec
from eval.runs.machine_paths import without_places


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """One setting: its path in the configuration, the paper's value, the run's."""

    setting: str
    paper: Any
    run: Any


def differences(run: StoredRun, dataset: str, system: str, spec: PaperSpec) -> list[SettingDifference]:
    """Compare a run with the presets that represent the paper.

    Args:
        run: the run.
        dataset: data set of the spec.
        system: row of the spec; one that the paper does not have is compared with its own preset.
        spec: the paper's tables.
    """
    config = run.record["config"]
    own = spec.systems[system].memory[0] if system in spec.systems else run.memory
    presets = {"dataset": spec.datasets[dataset].runs[0], "memory": own}
    if not (run.retrieval_only or run.floor):
        presets |= {"reader": spec.readers_of(dataset)[0], "backbone": run.backbone}
    found = []
    for part, preset in presets.items():
        found += _part(config.get(part) or {}, part, preset, spec.settings_of(part, run.backbone))
    embedder, expected = (config.get("embedder") or {}).get("name"), spec.embedder_of(run.backbone)
    if embedder and embedder != expected:
        found.append(SettingDifference("embedder.name", expected, embedder))
    return found


def _part(settings: Mapping[str, Any], part: str, preset: str, named: Mapping[str, Any]) -> list[SettingDifference]:
    """Compare one part with its preset, and with the paper's own name for it (``named``)."""
    name = str(settings.get("name"))
    found = [] if name == preset else [SettingDifference(f"{part}.name", preset, name)]
    defaults = default_settings(preset, CONF / part)
    if defaults is None:
        return found
    own, expected = flat(settings), {**defaults, **named}
    changed = {*overrides({**settings, "name": preset}, CONF / part), *_added(own, defaults), *named}
    return found + [
        SettingDifference(f"{part}.{key}", without_places(expected.get(key)), without_places(own[key]))
        for key in sorted(changed)
        if key in own and own[key] != expected.get(key)
    ]


def _added(own: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """Return the settings that the preset leaves to their default. An engine's are in a file of their own."""
    return [key for key in own if key not in defaults and key.partition(".")[0] not in ("engine", "_target_")]
