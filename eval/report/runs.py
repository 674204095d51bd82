"""Where the page's numbers come from: one card per run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from eval.compare.rows import system_rows
from eval.configs.presets import CONF
from eval.judge.agreement import agreement, majority
from eval.scoring.protocols import load_protocol
from eval.tables.places import without_places
from eval.tables.stored import StoredRun
from eval.tables.variants import flat, overrides, variant_label
from memsys.vocabulary import Json

_PARTS = ("dataset", "memory", "reader", "backbone")
_COSTS = ("context", "calls", "tokens", "write", "malformed", "cached")


def dataset_names(runs: Sequence[StoredRun]) -> list[str]:
    """Name of each run's data set: presets that read the same file are one set, called by the shortest name."""
    presets: dict[str, str] = {}
    for run in runs:
        checksum = _checksum(run)
        presets[checksum] = min(presets.get(checksum, run.dataset), run.dataset, key=lambda name: (len(name), name))
    repeated = Counter(presets.values())
    names = {checksum: f"{name} {checksum[:6]}" if repeated[name] > 1 else name for checksum, name in presets.items()}
    return [names[_checksum(run)] for run in runs]


def _checksum(run: StoredRun) -> str:
    return str(run.record["data"].get("sha256"))


def run_cards(runs: Sequence[StoredRun], with_texts: Sequence[bool]) -> list[Json]:
    """Describe runs for the page.

    Args:
        runs: all runs.
        with_texts: whether the page has the run's questions.
    """
    names = dataset_names(runs)
    return [_card(run, name, texts) for run, name, texts in zip(runs, names, with_texts, strict=True)]


def _card(run: StoredRun, dataset: str, has_texts: bool) -> Json:
    record = run.record
    changed = overrides(record["config"].get("memory") or {})
    label = f"{run.memory} [{variant_label(changed)}]" if changed else run.memory
    costs = system_rows([run], load_protocol("clag"))[0].estimates
    return {
        "id": run.run_id,
        "system": label,
        "backbone": run.backbone,
        "without": _without(run),
        "dataset": dataset,
        "preset": run.dataset,
        "reader": "" if run.retrieval_only else run.reader,
        "questions": len(run.rows),
        "conversations": len(run.conversations),
        "seed": record.get("seed"),
        "finished": record.get("finished"),
        "commit": record.get("commit"),
        "dirty": record.get("dirty"),
        "dataSha256": _checksum(run),
        "model": _pairs(record.get("model") or {}),
        "hardware": _hardware(record.get("hardware") or {}),
        "changed": [pair for part in _PARTS for pair in _changed(record["config"], part)],
        "costs": {name: round(costs[name].value, 2) for name in _COSTS if name in costs},
        "agreements": _agreements(run),
        "hasTexts": has_texts,
    }


def _agreements(run: StoredRun) -> list[list[Json]]:
    """Each two judges of a run: names, answers that both decided, share on which they agree, Cohen's kappa."""
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
    """What a run without a backbone is; empty for one that has one."""
    return "constant answer, no model" if run.floor else "retrieval only" if run.retrieval_only else ""


def _changed(config: Mapping[str, Any], part: str) -> list[list[Json]]:
    """Settings of a part that differ from its preset."""
    if part == "backbone" and config.get("mode") == "retrieval_only":
        return []
    settings = config.get(part) or {}
    return [[f"{part}.{key}", value] for key, value in overrides(settings, CONF / part).items()]


def _pairs(tree: Mapping[str, Any]) -> list[list[Json]]:
    return [[key, value] for key, value in flat(without_places(tree)).items()]


def _hardware(found: Mapping[str, Any]) -> str:
    return ", ".join(str(part) for part in [found.get("cpu", "unknown"), *(found.get("gpus") or [])])
