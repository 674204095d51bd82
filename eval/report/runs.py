"""Names, settings and costs of runs: one card each, and the settings in which the runs of a group differ."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any

from eval.config.preset_settings import flat, overrides
from eval.config.presets import CONF
from eval.loaders.registry import info_of
from eval.results.compare.rows import cost_estimates, distinct_names, dollars_per_question, price_dates
from eval.results.compare.seeds import with_seeds
from eval.results.stored_run import NO_BACKBONE, StoredRun
from eval.results.tables.variants import label_of
from eval.runs.machine_paths import without_places
from eval.scoring.aggregate import mean_of
from eval.scoring.verdicts.agreement import agreement, majority
from memsys.vocabulary import Json

#: Characters shown of a setting.
_LONGEST = 40
_PARTS = ("dataset", "memory", "reader", "backbone")
_COSTS = ("context", "calls", "tokens", "write", "malformed", "cached", "dollars")


def dataset_names(runs: Sequence[StoredRun]) -> list[str]:
    """Name of each run's data set: presets that read the same file are one set, called by the shortest name."""
    presets: dict[str, str] = {}
    for run in runs:
        checksum = run.data_sha256
        presets[checksum] = min(presets.get(checksum, run.dataset), run.dataset, key=lambda name: (len(name), name))
    repeated = Counter(presets.values())
    names = {checksum: f"{name} {checksum[:6]}" if repeated[name] > 1 else name for checksum, name in presets.items()}
    return [names[run.data_sha256] for run in runs]


def run_cards(runs: Sequence[StoredRun], with_texts: Sequence[bool]) -> list[Json]:
    """Describe runs for the page.

    Args:
        runs: all runs.
        with_texts: whether the page has the run's questions.
    """
    return [_card(*one) for one in zip(runs, dataset_names(runs), with_texts, strict=True)]


def _card(run: StoredRun, dataset: str, has_texts: bool) -> Json:
    record = run.record
    costs = run_costs(run)
    return {
        "id": run.run_id,
        "system": label_of(run.memory, run.record),
        "backbone": run.backbone,
        "modelName": model_name(run),
        "without": _without(run),
        "dataset": dataset,
        "preset": run.dataset,
        "reader": "" if run.retrieval_only else run.reader,
        "questions": len(run.rows),
        "conversations": len(run.conversations),
        "unanswered": run.unanswered,
        "seed": record.get("seed"),
        "finished": record.get("finished"),
        "commit": record.get("commit"),
        "dirty": record.get("dirty"),
        "dataSha256": run.data_sha256,
        "model": _pairs(record.get("model") or {}),
        "hardware": _hardware(record.get("hardware") or {}),
        "changed": [pair for part in _PARTS for pair in _changed(record["config"], part)],
        "costs": costs,
        "prices": price_dates([run]),
        "reference": run.reference,
        "agreements": _agreements(run),
        "hasTexts": has_texts,
    }


def model_name(run: StoredRun) -> str:
    """Return what the model of a run is called, without where it lies; the preset where nothing names a model."""
    model = (run.record["config"].get("backbone") or {}).get("model") if run.backbone != NO_BACKBONE else None
    return str(model).rpartition("/")[2] if model else run.backbone


def data_title(run: StoredRun, name: str) -> str:
    """Return the title of a run's data set, with its name on the page where that says more."""
    info = info_of(run.dataset)
    if info is None or run.of_own_data:
        return name
    return f"{info.title.partition(' (')[0]}{name.removeprefix(info.key).replace('_', ' ')}"


def differing_settings(runs: Sequence[StoredRun]) -> list[list[Json]]:
    """Return the settings that several runs have and that are not the same in all of them.

    Returns:
        Of each its name and its value in every run, ``None`` where a run does not have it.
    """
    settings = [_settings(run) for run in runs]
    found = []
    for key in sorted({key for own in settings for key in own}):
        values = [_shown(own.get(key)) for own in settings]
        if len({value for value in values if value is not None}) > 1:
            found.append([key, values])
    return found


def _settings(run: StoredRun) -> dict[str, Any]:
    """Return settings that a reader can change, by dotted key; those of constants are none."""
    config = {} if run.floor else run.record["config"]
    parts = {part: without_places(config.get(part) or {}) for part in (*_PARTS, "embedder")}
    own = {key: value for key, value in flat(parts).items() if not _is_text(key, value)}
    return {**own, "seed": run.record.get("seed"), "processor": run.processor or None}


def _is_text(key: str, value: Json) -> bool:
    """Return whether a setting is a name, or a text that a model reads."""
    return key.endswith(("_target_", ".name")) or (isinstance(value, str) and " " in value)


def _shown(value: Json) -> str | None:
    text = value if isinstance(value, str) or value is None else json.dumps(value)
    return text if text is None or len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def group_labels(runs: Sequence[StoredRun], members: Sequence[int]) -> dict[int, str]:
    """Return short names of a group's runs: the memory, and the settings in which several of one name differ."""
    repeated = Counter(runs[number].memory for number in members)
    own = [runs[number] for number in members]
    names = [label_of(run.memory, run.record) if repeated[run.memory] > 1 else run.memory for run in own]
    texts = zip(members, distinct_names(names, own), own, strict=True)
    return {number: with_seeds(text, run) for number, text, run in texts}


def run_costs(run: StoredRun) -> dict[str, float]:
    """Return what a question costs: context, calls, tokens; tokens per turn written; dollars where a price is known."""
    context = mean_of(run.columns.with_any(["context_tokens"]).column("context_tokens").tolist()).value
    found = {name: one.value for name, one in cost_estimates(run.summary).items()}
    if context is not None:
        found["context"] = context
    dollars = dollars_per_question(run)
    if dollars is not None:
        found["dollars"] = dollars
    return {name: round(found[name], 6 if name == "dollars" else 2) for name in _COSTS if name in found}


def mean_costs(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return means over a system's seeds of what all of them recorded, as :func:`run_costs` rounds."""
    shared = [name for name in costs[0] if all(name in cost for cost in costs)]
    return {
        name: round(fsum(cost[name] for cost in costs) / len(costs), 6 if name == "dollars" else 2) for name in shared
    }


def _agreements(run: StoredRun) -> list[list[Json]]:
    """Return each two judges of a run: names, answers that both decided, share on which they agree, Cohen's kappa."""
    shares = {
        judge: {row.question_id: row.metrics.get(judge) for row in run.rows}
        for judge in run.summary.get("judges") or ()
    }
    found = []
    for one, two in combinations(sorted(shares), 2):
        both = agreement(majority(shares[one]), majority(shares[two]))
        found.append([one, two, both.answers, both.agree, both.kappa])
    return found


def _without(run: StoredRun) -> str:
    """Return what a run without a backbone is; empty for one that has one."""
    return "constant answer, no model" if run.floor else "retrieval only" if run.retrieval_only else ""


def _changed(config: Mapping[str, Any], part: str) -> list[list[Json]]:
    """Return settings of a part that differ from its preset."""
    if part == "backbone" and config.get("mode") == "retrieval_only":
        return []
    settings = config.get(part) or {}
    return [[f"{part}.{key}", value] for key, value in overrides(settings, CONF / part).items()]


def _pairs(tree: Mapping[str, Any]) -> list[list[Json]]:
    return [[key, value] for key, value in flat(without_places(tree)).items()]


def _hardware(found: Mapping[str, Any]) -> str:
    return ", ".join(str(part) for part in [found.get("cpu", "unknown"), *(found.get("gpus") or [])])
