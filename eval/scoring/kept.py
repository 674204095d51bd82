"""Scores of earlier scorings of the same answers: scoring adds metrics and removes none."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from eval.metrics.ordering import SEMANTIC_ORDER_METRICS
from eval.metrics.registry import METRICS
from eval.runs.load import SCORES_META, changed_inputs, load_json, score_rows
from eval.scoring.config import ScoringConfig
from memsys.errors import MemsysError


@dataclass(frozen=True, slots=True)
class _ModelMetrics:
    """Metrics that one model computes: their names, and the settings and entry of ``models`` that say which it was."""

    names: frozenset[str]
    settings: tuple[str, ...]
    model: str


_MODELS = (
    _ModelMetrics(
        frozenset({"bert_f1", "bert_precision", "bert_recall"}),
        ("bertscore_model", "bertscore_layers", "bertscore_rescaled"),
        "bertscore",
    ),
    _ModelMetrics(frozenset({"sbert", *SEMANTIC_ORDER_METRICS}), ("sbert_model",), "sbert"),
)


@dataclass(frozen=True, slots=True)
class KeptScores:
    """Scores that a new scoring does not make itself.

    Attributes:
        metrics: their names.
        rows: question id -> all of its earlier scores.
        config: settings of the models behind them.
        sources: metric -> where its definition comes from.
        models: fingerprints of these models.
    """

    metrics: Collection[str] = ()
    rows: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)

    def of(self, question_id: str) -> dict[str, float | None]:
        """Return the kept scores of one question; ``None`` where it had none."""
        earlier = self.rows.get(question_id, {})
        return {name: earlier.get(name) for name in self.metrics}


def kept_scores(
    run_dir: Path,
    inputs: Mapping[str, str | None],
    made: Collection[str],
    config: ScoringConfig,
    models: Mapping[str, Any],
) -> KeptScores:
    """Find the scores of an earlier scoring that stay valid.

    Args:
        run_dir: directory of the run.
        inputs: checksums of what is scored now; scores of other answers are not kept.
        made: metrics that are scored now.
        config: what they are scored with.
        models: fingerprints of the models that ran now. Scores by a former model are not kept next to scores by
            another: ``scores_meta.json`` can name one.

    Returns:
        What is kept; nothing where there was no earlier scoring, its files are damaged, or its answers were others.
    """
    meta, rows = _earlier(run_dir)
    if not rows or "inputs" not in meta or changed_inputs(meta["inputs"], inputs):
        return KeptScores()
    names = {name for scores in rows.values() for name in scores if name in METRICS} - set(made)
    kept_config: dict[str, Any] = {}
    kept_models: dict[str, Any] = {}
    for group in _MODELS:
        if group.names & set(made) and not _same_model(group, meta, config, models):
            names -= group.names
        if group.names & names:
            kept_config |= {key: meta["config"][key] for key in group.settings if key in meta.get("config", {})}
            kept_models |= {key: value for key, value in meta.get("models", {}).items() if key == group.model}
    return KeptScores(names, rows, kept_config, {name: METRICS[name].source for name in sorted(names)}, kept_models)


def _same_model(
    group: _ModelMetrics, meta: Mapping[str, Any], config: ScoringConfig, models: Mapping[str, Any]
) -> bool:
    """Return whether the earlier scores of a group were made by the model that runs now, with the same settings."""
    before, now = meta.get("config", {}), asdict(config)
    if meta.get("models", {}).get(group.model) != models.get(group.model):
        return False
    return all(before.get(key) == now[key] for key in group.settings)


def _earlier(run_dir: Path) -> tuple[dict[str, Any], dict[str, Mapping[str, float | None]]]:
    """Return the earlier scores' description and the scores by question id; nothing where a file is damaged."""
    try:
        meta = load_json(run_dir / SCORES_META) if (run_dir / SCORES_META).is_file() else {}
        rows = {row.question_id: row.metrics for row in score_rows(run_dir)}
    except MemsysError:
        return {}, {}
    whole = all(isinstance(meta.get(key, {}), Mapping) for key in ("inputs", "config", "models"))
    return (meta, rows) if whole else ({}, {})
