"""Files that a run writes before it starts: its record and the gold of its questions."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.commands.plugins import plugin_versions
from eval.config.prompt_choice import prompt_rows
from eval.config.recorded_deviations import run_deviations
from eval.loaders.contract import LoadedData
from eval.running.loading import embeds
from eval.running.plan import Plan
from eval.runs.identity import without
from eval.runs.memory_code import memory_code
from eval.runs.provenance import commit, hardware, packages
from eval.runs.records import ReferenceRecord, UpdatesRecord
from eval.runs.run_json import RunRecord, now
from memsys.credentials import without_secrets
from memsys.index.words import TOKENIZER
from memsys.llm.thoughts import RULES
from memsys.vocabulary import Json, Sample


def make_record(plan: Plan, data: LoadedData, identity: Mapping[str, Json], path: Path) -> RunRecord:
    """Return the content of ``run.json`` at the start of a run."""
    code = commit()
    return RunRecord(
        run_id=f"{path.parent.name}/{path.name}" if plan.run_dir is None else path.resolve().name,
        experiment=plan.experiment,
        seed=plan.seed,
        mode=plan.mode,
        config=recordable(plan.settings),
        identity=identity,
        data={
            "name": plan.dataset.name,
            "source": data.source_name,
            "sha256": data.sha256,
            **data.counts,
            "notes": dict(data.notes),
        },
        model=identity["model"] or {},
        commit=code["commit"],
        dirty=code["dirty"],
        packages={**packages(), **plugin_versions()},
        hardware=hardware(),
        started=now(),
        departures=run_deviations(plan.settings["memory"]),
        prompt_sources=prompt_rows(plan.settings),
        memory_code=memory_code(plan.memory),
        embeds=embeds(plan.memory),
        tokenizer=TOKENIZER,
        reply_rules=list(RULES),
        row_checksums="chained",
    )


def recordable(settings: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the resolved configuration without paths of this machine and without keys."""
    kept = without(settings, ("run_dir", "runs_dir", "cache_dir", "serving", "dataset.path", "dataset.data_dir"))
    return json.loads(json.dumps(without_secrets(kept)))  # type: ignore[no-any-return]


def reference_records(samples: Sequence[Sample]) -> list[ReferenceRecord]:
    """Return the gold of every question in the order of the data set."""
    records = []
    for sample in samples:
        turns = {turn.turn_id: turn for turn in sample.conversation.turns}
        for question in sample.questions:
            gold = sample.references[question.question_id]
            records.append(
                ReferenceRecord(
                    question_id=question.question_id,
                    conversation_id=question.conversation_id,
                    category=question.category,
                    answers=list(gold.answers),
                    adversarial_answer=gold.adversarial_answer,
                    evidence=list(gold.evidence),
                    unresolved_evidence=list(gold.unresolved_evidence),
                    evidence_texts=[turns[turn_id].text for turn_id in gold.evidence],
                    extra=dict(gold.extra),
                    kind=question.kind,
                    evidence_sessions=len({turns[turn_id].session_id for turn_id in gold.evidence}),
                )
            )
    return records


def updates_records(samples: Sequence[Sample]) -> list[UpdatesRecord]:
    """Return the overruled turns of every conversation for which the data set names them."""
    return [
        UpdatesRecord(sample.conversation.conversation_id, sample.updates)
        for sample in samples
        if sample.updates is not None
    ]
