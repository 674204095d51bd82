"""A run as a record of Every Eval Ever, the shared schema of evaluation results (package ``every-eval-ever`` 0.3.0).

One JSON file for a run, at ``data/memsys_DATASET/DEVELOPER/MODEL/UUID.json``, where that project's collection has it.
It holds scores and no text of the data set.
"""

import hashlib
import json
import re
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from eval.loaders.registry import info_of
from eval.metrics.metric import Metric
from eval.metrics.registry import higher_is_better, listed
from eval.results.compare.rows import answer_metric, estimate, evidence_metrics
from eval.results.stored_run import StoredRun, engines_are_here
from eval.runs.files import write_atomic
from eval.scoring.inference import LEVEL
from eval.scoring.protocols import Protocol, recorded_protocol
from memsys.errors import ConfigError
from memsys.vocabulary import Json

SCHEMA_VERSION = "0.3.0"
#: A model as the collection files it: developer and name.
_MODEL_ID = re.compile(r"\w[\w.-]*/\w[\w.-]*")
_PERCENT = 100.0
#: Developer of what is scored where no model answered.
_OWN = "memsys"


def write_every_eval_ever(run: StoredRun, out: Path, model_id: str | None = None) -> Path:
    """Write the record of a run; the same run gives the same file.

    Args:
        run: complete and scored.
        out: folder that gets ``data/...``.
        model_id: of the backbone, as ``Qwen/Qwen2.5-Coder-0.5B-Instruct``.

    Raises:
        ConfigError: a model answered and has no such id.
    """
    record = every_eval_ever_record(run, model_id)
    name = uuid.UUID(bytes=hashlib.sha256(run.run_id.encode()).digest()[:16], version=4)
    path = out / "data" / f"memsys_{quote(run.dataset, safe='')}" / str(record["model_info"]["id"]) / f"{name}.json"
    write_atomic(path, (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode())
    return path


def every_eval_ever_record(run: StoredRun, model_id: str | None) -> dict[str, Any]:
    """Return the record of a run."""
    identifier = _model_id(run, model_id)
    ended = str(int(datetime.fromisoformat(run.record["finished"]).timestamp()))
    protocol = recorded_protocol(run.record["config"].get("protocol") or {})
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"memsys_{run.dataset}/{identifier}/{run.run_id}",
        "evaluation_timestamp": ended,
        "retrieved_timestamp": ended,
        "source_metadata": {
            "source_name": f"run {run.run_id}",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": _cost(run),
        },
        "eval_library": {
            "name": "memsys",
            "version": str(run.record["packages"]["memsys"]),
            "additional_details": {"commit": str(run.record.get("commit"))},
        },
        "model_info": _model(run, identifier),
        "evaluation_results": [
            result
            for metric, name in _metrics(run, protocol)
            if (result := _result(run, metric, name, protocol)) is not None
        ],
    }


def _model_id(run: StoredRun, given: str | None) -> str:
    found = given or (f"{_OWN}/{run.memory}" if run.backbone == "none" else "")
    if not _MODEL_ID.fullmatch(found):
        scored = run.memory if run.backbone == "none" else run.record["config"]["backbone"]["model"]
        raise ConfigError(
            f"{run.path} is a run of {scored}; name it as developer/model, as --model-id Qwen/Qwen2.5-0.5B-Instruct"
        )
    return found


def _model(run: StoredRun, identifier: str) -> dict[str, Json]:
    """Return what was scored: the backbone with its memory, or the memory alone."""
    answered = run.backbone != "none"
    here = answered and engines_are_here(run.record) and bool(run.processor)
    details = {
        "deployment_type": "self_deployed" if here else "unknown",
        "model_availability": "open_weights" if here else "unknown",
        "memory": run.memory,
        "embedder": run.embedder,
        **({"backbone": run.backbone, "reader": run.reader} if answered else {}),
    }
    name = str(run.record["config"]["backbone"]["model"]) if answered else run.memory
    return {"name": name, "id": identifier, "additional_details": dict(details)}


def _metrics(run: StoredRun, protocol: Protocol) -> list[tuple[Metric | None, str]]:
    shown: list[tuple[Metric | None, str]] = [(metric, metric.name) for metric in evidence_metrics(run)]
    if run.retrieval_only:
        return shown
    lead = answer_metric(protocol)[1]
    return [(None, lead), *((one, one.name) for one in listed(retrieval=False) if one.name != lead), *shown]


def _result(run: StoredRun, metric: Metric | None, name: str, protocol: Protocol) -> dict[str, Any] | None:
    """Return one mean with its interval; ``None`` where no question has the score, or it is not a share."""
    found = estimate(run, name, protocol)
    if found is None or not found.share:
        return None
    uncertainty: dict[str, Any] = {"num_samples": found.questions}
    if found.interval is not None:
        uncertainty["confidence_interval"] = {
            "lower": found.interval.low,
            "upper": found.interval.high,
            "confidence_level": LEVEL,
            "method": f"cluster t interval by {found.interval.by}",
        }
    return {
        "evaluation_result_id": f"{run.dataset}.{name}",
        "evaluation_name": f"{run.dataset} {metric.heading if metric else 'F1'}",
        "source_data": _source(run),
        "metric_config": {
            "metric_id": f"memsys.{name}",
            "metric_name": name,
            "metric_unit": "percent",
            "lower_is_better": not higher_is_better(name),
            "score_type": "continuous",
            "min_score": 0.0,
            "max_score": _PERCENT,
            "additional_details": {"adversarial": protocol.adversarial, "weighting": protocol.weighting},
        },
        "score_details": {"score": min(max(found.value, 0.0), _PERCENT), "uncertainty": uncertainty},
    }


def _source(run: StoredRun) -> dict[str, Json]:
    info = info_of(run.dataset)
    details = {"sha256": run.data_sha256, "preset": run.dataset}
    if info is None or run.of_sample or not info.homepage:
        return {"dataset_name": run.dataset, "source_type": "other", "additional_details": dict(details)}
    return {
        "dataset_name": info.title,
        "source_type": "url",
        "url": [info.homepage],
        "additional_details": {**details, "licence": info.licence},
    }


def _cost(run: StoredRun) -> dict[str, Json]:
    """Return questions, calls and tokens as texts."""
    total = (run.summary.get("calls") or {}).get("total") or {}
    counted = {name: str(total[name]) for name in ("calls", "prompt_tokens", "completion_tokens") if name in total}
    return {"questions": str(len(run.rows)), "seed": str(run.record["seed"]), **counted}
