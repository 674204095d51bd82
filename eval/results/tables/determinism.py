"""Reasons why a run would repeat its value; none where sampling or batching may change it."""

from collections.abc import Iterator, Mapping
from typing import Any

from eval.metrics.registry import METRICS
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import LATENCY_METRICS, RECORDED_JUDGE, asks_the_question, is_retrieval
from eval.scoring.config import is_verdict

#: Parts of a configuration whose roles ask a model.
_PARTS = ("memory", "reader")


def repeats_exactly(run: StoredRun, metric: str) -> str:
    """Name what makes a value of a run deterministic; empty where it varies from run to run.

    Args:
        run: the run.
        metric: name in ``scores.jsonl``, or of a figure of ``summary.json``.
    """
    if run.recorded and metric.startswith(RECORDED_JUDGE):
        return "the verdicts that are recorded with the answers"
    if metric in LATENCY_METRICS or not _scored_without_sampling(metric):
        return ""
    if run.recorded:
        return "recorded answers, scored again"
    if run.floor:
        return "constant answers"
    if run.retrieval_only or (is_retrieval(metric) and asks_the_question(run)):
        return "retrieval by the question, no model"
    return "greedy, batch-invariant" if _greedy(run.record["config"]) else ""


def search_reading(run: StoredRun, metric: str) -> str:
    """Return the query and the indexed part of a turn of a memory that only retrieves."""
    memory = run.record["config"].get("memory") or {}
    if not is_retrieval(metric) or "query" not in memory or "date_in_index" not in memory:
        return ""
    return f"by {memory['query']}, {'dates' if memory['date_in_index'] else 'no dates'} in the index"


def _scored_without_sampling(metric: str) -> bool:
    return metric in METRICS or not is_verdict(metric)


def _greedy(config: Mapping[str, Any]) -> bool:
    """Return whether every call was at temperature 0 on engines whose replies do not depend on the batch."""
    backbones = [config.get("backbone") or {}, *([config["second"]] if config.get("second") else [])]
    return all(_decodes_greedily(backbone, config) for backbone in backbones)


def _decodes_greedily(backbone: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    if not (backbone.get("engine") or {}).get("batch_invariant") or not backbone.get("send_temperature", True):
        return False
    if backbone.get("temperature") is not None:
        return float(backbone["temperature"]) == 0.0
    found = list(_temperatures({part: config.get(part) for part in _PARTS}))
    return bool(found) and not any(found)


def _temperatures(tree: object) -> Iterator[float]:
    if isinstance(tree, Mapping):
        for key, value in tree.items():
            if key == "temperature" and isinstance(value, int | float):
                yield float(value)
            else:
                yield from _temperatures(value)
