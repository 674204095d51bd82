"""Where the page's numbers come from: one card per run."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval.compare.rows import system_rows
from eval.explain.settings import leaves
from eval.protocols import load_protocol
from eval.tables.places import without_places
from eval.tables.stored import StoredRun
from eval.tables.variants import CONF, overrides, variant_label
from memsys.vocabulary import Json

_PARTS = ("dataset", "memory", "reader", "backbone")
_COSTS = ("context", "calls", "tokens", "write", "malformed")


def run_cards(runs: Sequence[StoredRun], with_texts: Sequence[bool]) -> list[Json]:
    """Describe runs for the page.

    Args:
        runs: all runs.
        with_texts: whether the page has the run's questions.
    """
    return [_card(run, texts) for run, texts in zip(runs, with_texts, strict=True)]


def _card(run: StoredRun, has_texts: bool) -> Json:
    record = run.record
    changed = overrides(record["config"].get("memory") or {})
    label = f"{run.memory} [{variant_label(changed)}]" if changed else run.memory
    costs = system_rows([run], load_protocol("clag"))[0].estimates
    return {
        "id": run.run_id,
        "system": label,
        "backbone": run.backbone,
        "dataset": run.dataset,
        "reader": "" if run.retrieval_only else run.reader,
        "questions": len(run.rows),
        "conversations": len(run.conversations),
        "seed": record.get("seed"),
        "finished": record.get("finished"),
        "commit": record.get("commit"),
        "dirty": record.get("dirty"),
        "dataSha256": record["data"].get("sha256"),
        "model": _pairs(record.get("model") or {}),
        "hardware": _hardware(record.get("hardware") or {}),
        "changed": [pair for part in _PARTS for pair in _changed(record["config"], part)],
        "costs": {name: round(costs[name].value, 2) for name in _COSTS if name in costs},
        "hasTexts": has_texts,
    }


def _changed(config: Mapping[str, Any], part: str) -> list[list[Json]]:
    """Settings of a part that differ from its preset."""
    if part == "backbone" and config.get("mode") == "retrieval_only":
        return []
    settings = config.get(part) or {}
    return [[f"{part}.{key}", value] for key, value in overrides(settings, CONF / part).items()]


def _pairs(tree: Mapping[str, Any]) -> list[list[Json]]:
    return [[key, value] for key, value in leaves(without_places(tree))]


def _hardware(found: Mapping[str, Any]) -> str:
    return ", ".join(str(part) for part in [found.get("cpu", "unknown"), *(found.get("gpus") or [])])
