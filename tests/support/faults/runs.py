"""Small runs of any preset against the stub server, and what must not depend on what happened to them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from eval.running.plan import Plan
from eval.runs.files import read_json_lines
from memsys.assets.paths import ROOT
from tests.support.composing import composed
from tests.support.small import small_config, small_settings
from tests.support.stub_process import attached

#: Overrides of ``eval.run`` for every run: two sessions of each conversation, three questions.
SETTINGS = (
    "dataset=locomo_clag", "dataset.limit_sessions=2", "dataset.limit_questions=3", "embedder=hashing", "memory=rag",
    "progress=lines", "score=false", "schedule.checkpoint_every=4", "backbone.timeout_s=30", "backbone.backoff_s=0.001",
    "backbone.transport_retries=1",
)  # fmt: skip


def write_data(path: Path, conversations: int) -> None:
    """One or two conversations in LoCoMo's form: the project's sample, and the same with another first speaker."""
    (sample,) = json.loads((ROOT / "datasets" / "locomo" / "sample.json").read_text(encoding="utf-8"))
    other = json.loads(json.dumps(sample).replace(sample["conversation"]["speaker_a"], "Xenia"))
    both = [sample, {**other, "sample_id": f"{sample['sample_id']}-b"}]
    path.write_text(json.dumps(both[:conversations]), encoding="utf-8")


@cache
def _base(data: Path, url: str) -> Plan:
    from eval.running.composed import compose_plan

    plan: Plan = compose_plan([*SETTINGS, *attached(url), f"dataset.path={data}"])
    return plan


def small_plan(preset: str, folder: Path, url: str, address: str = "", **changes: Any) -> Plan:
    """The plan of a small run.

    Args:
        preset: of ``conf/memory``.
        folder: holds ``data.json``; run and cache come to lie in it.
        url: of the stub server, with ``/v1``.
        address: part of the server's address that asks for bad replies, e.g. ``fault/analyse/html/2``.
        changes: other fields of the plan.
    """
    base = _base(folder.parent / "data.json", url)
    settings: Mapping[str, Any] = {**base.settings, "memory": {**composed(preset), **small_settings(preset)}}
    backbone = base.backbone
    assert backbone is not None
    if address:
        engine: Any = backbone.engine
        where = url.replace("/v1", f"/{address}/v1")
        patience = 1.0 if "hang" in address else backbone.timeout_s
        backbone = replace(backbone, engine=replace(engine, urls=(where,)), timeout_s=patience)
    return replace(
        base, memory=small_config(preset), settings=settings, backbone=backbone, run_dir=folder / "run",
        cache_dir=folder / "cache", **changes,
    )  # fmt: skip


def outcome(run: Path) -> dict[str, Any]:
    """What must not depend on a kill: answers, contexts and hits of each question."""
    answers = list(read_json_lines(run / "answers.jsonl"))
    retrievals = {row["question_id"]: row for row in read_json_lines(run / "retrievals.jsonl")}
    assert len({row["question_id"] for row in answers}) == len(answers), "a question is answered twice"
    return {
        "answers": {row["question_id"]: (row["prediction"], row["raw"], row["options"]) for row in answers},
        "contexts": {name: row["context"] for name, row in retrievals.items()},
        "hits": {
            name: [(hit["memory_id"], hit["turn_ids"]) for hit in row["hits"]] for name, row in retrievals.items()
        },
    }


def booked(run: Path) -> set[tuple[Any, ...]]:
    """The calls of the ledger, each of which stands there once."""
    rows = list(read_json_lines(run / "calls.jsonl"))
    calls = [(row["conversation_id"], row["phase"], row["role"], row["key"], row["attempt"]) for row in rows]
    assert len(set(calls)) == len(calls), "a call is booked twice"
    return set(calls)


def unlike(run: Path, whole: Path) -> str:
    """Name what differs between a run and the undisturbed one; empty when nothing does."""
    try:
        found, wanted = outcome(run), outcome(whole)
        extra, missing = booked(run) - booked(whole), booked(whole) - booked(run)
    except AssertionError as error:
        return str(error)
    for name, rows in wanted.items():
        for question in {*rows, *found[name]}:
            if found[name].get(question) != rows.get(question):
                return f"{name} of question {question} differ from those of the undisturbed run"
    if extra or missing:
        return f"booked calls differ: {sorted(extra)[:2]} more, {sorted(missing)[:2]} less"
    return ""
