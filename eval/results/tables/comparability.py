"""Settings of a run that differ from the paper's, so that its numbers are shown but not compared."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from eval.config.answer_prompts import answer_prompts, asks_with_ours, roles_in_ours
from eval.config.preset_settings import default_settings, flat, overrides
from eval.config.presets import CONF
from eval.results.stored_run import StoredRun
from eval.results.tables.spec import PaperSpec
from eval.results.tables.variants import variant_label, without_prompts
from eval.runs.machine_paths import PLACE
from eval.runs.run_json import has_random_weights

#: What part of the data set a run takes shows in its counts.
_SELECTION = (
    "path",
    "data_dir",
    "file",
    "sample",
    "conversations",
    "limit_conversations",
    "limit_questions",
    "categories",
)
#: Settings of a backbone that reach the model; the others say where and how fast it runs.
_SAMPLING = (
    "model", "prompt_mode", "thinking", "sampling", "temperature", "structured", "json_repair", "send_temperature",
    "engine.dtype", "engine.extra_args",  # which name the grammar's backend, and quantised weights
)  # fmt: skip
#: Parts of a run besides its memory: the settings that count (all, where none is named), and those that do not.
_PARTS: Mapping[str, tuple[Collection[str], Collection[str]]] = {
    "dataset": ((), _SELECTION),
    "backbone": (("name", *_SAMPLING), ()),
    "embedder": (("name", "model", "dimension", "max_word_pieces", "max_chars"), ()),
    "reader": ((), ()),
}
#: Where an engine's settings name the weights: by name, or by a path that ends in it.
_WEIGHTS = ("engine.model", "engine.model_file")

#: Not a value of any setting.
_UNNAMED = object()


def other_terms(run: StoredRun, dataset: str, spec: PaperSpec) -> tuple[str, ...]:
    """Name the settings of data set, reader, embedder and backbone that are not the paper's, and prompts of ours.

    Args:
        run: the run.
        dataset: data set of the spec that it represents.
        spec: the paper's tables.
    """
    config, found = run.record["config"], []
    if (run.record["data"].get("notes") or {}).get("pinned") is False:
        found.append("the data file is not the published one")
    if run.floor:
        return tuple(found)
    expected = spec.datasets[dataset].runs[0]
    if run.dataset != expected:
        found.append(f"data set config {run.dataset}, the paper's is {expected}")
    found += _changed("data set", run, "dataset", spec, leave_out=_SELECTION)
    own = spec.embedder_of(run.backbone)
    embedder = str((config.get("embedder") or {}).get("name") or own)
    if embedder != own:
        found.append(f"embedder {embedder}, the paper's is {own}")
    if not run.retrieval_only:
        reader = spec.readers_of(dataset)[0]
        if run.reader != reader:
            found.append(f"reader {run.reader}, the paper's is {reader}")
        found += _changed("reader", run, "reader", spec)
        found += _changed("backbone", run, "backbone", spec, only=_SAMPLING)
        found += _other_weights(run)
        found += ["random weights"] if has_random_weights(run.record) else []
    if run.unscored_questions:
        found.append(run.unanswered)
    roles = roles_in_ours(run.record)
    if roles and not asks_with_ours(run.record):  # the label of such a row says so
        found.append(f"our prompts of {', '.join(roles)}")
    return tuple(found)


def differing_parts(*runs: StoredRun) -> tuple[str, ...]:
    """Name what besides the memory differs between runs: a difference in scores is then not the memory's alone.

    A setting counts among the runs that have it: a constant answer has no backbone, and a setting that came with a
    later version leaves what was there as it was. Of runs over several seeds each counts.
    """
    asked = [run for run in runs if not run.floor]
    each = [one for run in asked for one in run.repeats or (run,)]
    parts = {"data": _several({"sha256": run.data_sha256} for run in runs)}
    for part, (only, leave_out) in _PARTS.items():
        parts[part] = _several(_settings(run, part, only, leave_out) for run in asked)
    parts["answer prompts"] = _several(answer_prompts(run.record) for run in asked)
    parts["engine"] = _several(map(engine_of, each))
    parts["processor"] = len({run.processor for run in each} - {""}) > 1
    parts["seed"] = _several({"seed": run.record.get("seed")} for run in asked)
    return tuple(part for part, differs in parts.items() if differs)


def unlike_settings(runs: Sequence[StoredRun]) -> str:
    """Return the note on ranked runs that differ in more than their memory; empty where none do.

    Seeds are not named: runs of several are averaged where they can be.
    """
    parts = [part for part in differing_parts(*runs) if part != "seed"]
    return f"some of them also differ in {' and '.join(parts)}" if parts else ""


def _several(settings: Iterable[Mapping[str, object]]) -> bool:
    """Return whether some setting has two values."""
    first: dict[str, object] = {}
    return any(first.setdefault(key, value) != value for one in settings for key, value in one.items())


def _settings(run: StoredRun, part: str, only: Collection[str], leave_out: Collection[str]) -> dict[str, Any]:
    if run.retrieval_only and part in ("backbone", "reader"):
        return {}
    return _named(flat(run.record["config"].get(part) or {}), only, leave_out)


def engine_of(run: StoredRun) -> dict[str, object]:
    """Return the program that ran the model, and its version: another one may answer otherwise at temperature 0."""
    found = (run.record.get("model") or {}).get("engine") or {}
    return {key: found[key] for key in ("engine", "version") if found.get(key) is not None}


def _other_weights(run: StoredRun) -> list[str]:
    """Return the weights that are called otherwise than the preset's; a path that a summary has masked says nothing."""
    own = flat(run.record["config"].get("backbone") or {})
    preset = default_settings(run.backbone, CONF / "backbone") or {}
    pairs = [(str(own[key]), str(preset[key])) for key in _WEIGHTS if own.get(key) and preset.get(key)]
    return [
        f"weights {PurePath(name).name}, the preset's are {PurePath(wanted).name}"
        for name, wanted in pairs
        if name != PLACE and "${" not in wanted and PurePath(name).name != PurePath(wanted).name
    ]


def other_judge_terms(run: StoredRun, column: str) -> tuple[str, ...]:
    """Name the settings of a judge that are not its preset's: a column is called by judge and backbone alone."""
    identity = ((run.summary.get("judges") or {}).get(column) or {}).get("identity") or {}
    changed = {
        part: _named(overrides(identity.get(part) or {}, CONF / part), only)
        for part, only in (("judge", ()), ("backbone", _SAMPLING))
    }
    return tuple(f"judge's {part} settings {variant_label(kept)}" for part, kept in changed.items() if kept)


def _changed(
    name: str, run: StoredRun, part: str, spec: PaperSpec, only: Collection[str] = (), leave_out: Collection[str] = ()
) -> list[str]:
    """Return the settings of a part that are neither the preset's nor, where the spec names one, the paper's."""
    settings, expected = run.record["config"].get(part) or {}, spec.settings_of(part, run.backbone)
    changed, own = overrides(settings, CONF / part), flat(settings)
    if part == "reader":
        changed = without_prompts(changed, settings, run.record)
    differing = {key: value for key, value in changed.items() if expected.get(key, _UNNAMED) != value}
    differing |= {key: own[key] for key, value in expected.items() if key in own and own[key] != value}
    kept = _named(differing, only, leave_out)
    return [f"{name} settings {variant_label(kept)}"] if kept else []


def _named(settings: Mapping[str, Any], only: Collection[str], leave_out: Collection[str] = ()) -> dict[str, Any]:
    """Return the settings that are wanted, by group or key (all, where ``only`` is empty), and not left out, sorted."""
    return {
        key: settings[key]
        for key in sorted(settings)
        if (group := key.partition(".")[0]) not in leave_out and (not only or group in only or key in only)
    }
