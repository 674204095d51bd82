"""What a run did on other terms than the paper: every setting that differs, not only the first few."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from eval.tables.places import without_places
from eval.tables.spec import PaperSpec
from eval.tables.stored import StoredRun
from eval.tables.variants import CONF, default_settings, overrides


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting: its path in the configuration, the paper's value, the run's."""

    setting: str
    paper: Any
    run: Any


def differences(run: StoredRun, dataset: str, system: str, spec: PaperSpec) -> list[Difference]:
    """Compare a run with the presets that stand for the paper.

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
    found = [
        difference for part, preset in presets.items() for difference in _part(config.get(part) or {}, part, preset)
    ]
    embedder, expected = (config.get("embedder") or {}).get("name"), spec.embedder_of(run.backbone)
    if embedder and embedder != expected:
        found.append(Difference("embedder.name", expected, embedder))
    return found


def _part(settings: Mapping[str, Any], part: str, preset: str) -> list[Difference]:
    folder = CONF / part
    name = settings.get("name")
    found = [Difference(f"{part}.name", preset, name)] if name != preset else []
    defaults = default_settings(preset, folder)
    if defaults is None:
        return found
    changed = {**overrides({**settings, "name": preset}, folder), **_added(settings, defaults)}
    return found + [
        Difference(f"{part}.{key}", without_places(defaults.get(key)), value) for key, value in sorted(changed.items())
    ]


def _added(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that the preset leaves to their default. An engine's stand in a file of their own."""
    return {
        key: without_places(value)
        for key, value in leaves(settings)
        if key not in defaults and value is not None and key.partition(".")[0] not in ("engine", "_target_")
    }


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a configuration with their dotted names."""
    for key, value in tree.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from leaves(value, name)
        else:
            yield name, value
