"""Provenance of the page's numbers: one card per run."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import fsum
from typing import Any

from eval.config.preset_settings import flat, overrides
from eval.config.presets import CONF
from eval.results.compare.rows import cost_estimates, distinct_names, dollars_per_question, price_dates
from eval.results.compare.seeds import with_seeds
from eval.results.stored_run import StoredRun
from eval.results.tables.groups import comparable_runs
from eval.results.tables.spec import NO_BACKBONE
from eval.results.tables.variants import label_of
from eval.runs.machine_paths import without_places
from eval.scoring.aggregate import mean_of
from eval.scoring.verdicts.agreement import agreement, majority
from memsys.vocabulary import Json

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
    names, boards = dataset_names(runs), board_names(runs)
    return [
        _card(run, name, texts) | {"board": boards[run.run_id]}
        for run, name, texts in zip(runs, names, with_texts, strict=True)
    ]


def board_names(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Return by run id the backbone, prompts, reader and questions that define the runs it can be ranked with."""
    sets = {run.run_id: name for run, name in zip(runs, dataset_names(runs), strict=True)}
    found: dict[str, str] = {}
    for group in comparable_runs(runs, lambda run: sets[run.run_id]):
        backbone = "no model" if group.backbone == NO_BACKBONE else group.backbone
        count = f"{len(group.asked):,} question{'' if len(group.asked) == 1 else 's'}{group.which}"
        found |= {run.run_id: ", ".join(filter(None, (backbone, group.prompt_set, count))) for run in group.runs}
    return found


def _card(run: StoredRun, dataset: str, has_texts: bool) -> Json:
    record = run.record
    costs = run_costs(run)
    return {
        "id": run.run_id,
        "system": label_of(run.memory, run.record),
        "backbone": run.backbone,
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


def group_labels(runs: Sequence[StoredRun], members: Sequence[int]) -> dict[int, str]:
    """Return the short names of a group's runs: the memory, and of several with one name what tells them apart."""
    repeated = Counter(runs[number].memory for number in members)
    own = [runs[number] for number in members]
    names = [label_of(run.memory, run.record) if repeated[run.memory] > 1 else run.memory for run in own]
    texts = zip(members, distinct_names(names, own), own, strict=True)
    return {number: with_seeds(text, run) for number, text, run in texts}


def run_costs(run: StoredRun) -> dict[str, float]:
    """Return what a question costs: context, calls, tokens; tokens per turn written; dollars where a price is known."""
    context = mean_of(row.metrics.get("context_tokens") for row in run.rows).value
    found = {name: one.value for name, one in cost_estimates(run.summary).items()}
    if context is not None:
        found["context"] = context
    dollars = dollars_per_question(run)
    if dollars is not None:
        found["dollars"] = dollars
    return {name: round(found[name], 6 if name == "dollars" else 2) for name in _COSTS if name in found}


def mean_costs(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the means over a system's seeds of what all of them recorded, as :func:`run_costs` rounds."""
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
    """Return the kind of a run without a backbone; empty for one that has one."""
    return "constant answer, no model" if run.floor else "retrieval only" if run.retrieval_only else ""


def _changed(config: Mapping[str, Any], part: str) -> list[list[Json]]:
    """Return the settings of a part that differ from its preset."""
    if part == "backbone" and config.get("mode") == "retrieval_only":
        return []
    settings = config.get(part) or {}
    return [[f"{part}.{key}", value] for key, value in overrides(settings, CONF / part).items()]


def _pairs(tree: Mapping[str, Any]) -> list[list[Json]]:
    return [[key, value] for key, value in flat(without_places(tree)).items()]


def _hardware(found: Mapping[str, Any]) -> str:
    return ", ".join(str(part) for part in [found.get("cpu", "unknown"), *(found.get("gpus") or [])])
