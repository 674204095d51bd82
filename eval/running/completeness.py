"""Completeness of a run directory: whether anything of the run is missing."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.commands.terminal import complain, console, say
from eval.config.answer_prompts import OTHER, prompts_of, reworded_roles
from eval.config.memory_parts import memory_parts
from eval.running.progress import RunTotals
from eval.running.recording import reference_records, updates_records
from eval.runs.load import lost_calls
from eval.runs.memory_code import is_other_code
from eval.runs.rundir import RunDirectory
from memsys.errors import RunDirectoryError
from memsys.llm.prompt import Prompt
from memsys.prompt_packs.local import is_reference
from memsys.protocol import MemoryConfig
from memsys.vocabulary import Json, Sample

#: Ends a warning that a run was made with something else than there is now.
_ANEW = "its answers are kept; to run it again, delete that folder or name another with run_dir="


def finished(directory: RunDirectory, identity: Mapping[str, Json]) -> bool:
    """Return whether the directory holds this run, complete, so that no model needs to load."""
    stored = directory.stored_record()
    return stored is not None and stored["status"] == "complete" and _same_run(stored, identity)


def _same_run(stored: Mapping[str, Any], identity: Mapping[str, Json]) -> bool:
    """Return whether ``run.json`` is of this run, apart from the fingerprint of a model not yet loaded."""
    return {**stored["identity"], "model": None} == {**identity, "model": None}


def note_changed_code(directory: RunDirectory, identity: Mapping[str, Json], memory: MemoryConfig) -> None:
    """Say that this run, or its beginning, was made by other code of the memory system than that of now."""
    stored = directory.stored_record()
    if stored is None or not stored.get("memory_code") or not _same_run(stored, identity):
        return
    if is_other_code(stored["memory_code"], memory):
        say(
            f"warning: the source of memory={memory.name} has changed since {directory.path} was made; {_ANEW}",
            style="yellow",
        )


def note_changed_prompts(directory: RunDirectory) -> None:
    """Say that a complete run was asked with other answer prompts than those that its reader has now."""
    stored = directory.stored_record()
    if stored is not None and prompts_of(stored) == OTHER:
        roles = ", ".join(reworded_roles(stored))
        say(
            f"warning: the answer prompt of {roles} is not the one that {directory.path} was made with; {_ANEW}",
            style="yellow",
        )


def check_prompt_files(directory: RunDirectory, settings: Mapping[str, Any]) -> None:
    """Refuse a stored run whose settings name a prompt's file that has changed since: its answers are of the former.

    A resumed run may not ask every role again; for the roles that it asks, it also notices changed prompts of ours.

    Raises:
        RunDirectoryError: names the role.
        ConfigError: a file is gone.
    """
    known = (directory.stored_record() or {}).get("prompts") or {}
    for name, file in _prompt_files(settings):
        if name in known and Prompt.load(Path(file)).sha256 != known[name]:
            raise RunDirectoryError(
                f"{directory.path}: {file} is not the prompt of role {name} that this run was made with; restore it or "
                "choose another run_dir"
            )


def _prompt_files(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the roles as ``run.json`` names them, with the file that the settings name for their prompts."""
    memory, reader = (settings.get(part) or {} for part in ("memory", "reader"))
    groups = [(memory.get("name"), part) for _, part in memory_parts(memory)]
    for group, part in (*groups, ("reader", reader)):
        for role, own in (part.get("roles") or {}).items():
            file = own.get("prompt") if isinstance(own, Mapping) else None
            if isinstance(file, str) and file and not is_reference(file):
                yield f"{group}.{role}", file


def whole(directory: RunDirectory, samples: Sequence[Sample], mode: str) -> bool:
    """Return whether the files of a complete run are all there; report what is missing.

    Gold is written again from the data set, whose checksum is the run's.

    Raises:
        RunDirectoryError: a row or a snapshot cannot be read.
    """
    _check_ledger(directory)
    done = directory.finished_questions(mode)
    ids = [sample.conversation.conversation_id for sample in samples if not _is_settled(sample, directory)]
    snapshots, ingested = directory.snapshots(ids), directory.ingested_conversations()
    snapshots.check_earlier()
    missing = {
        "questions": sum(question.question_id not in done for sample in samples for question in sample.questions),
        "conversation records": sum(name not in ingested for name in ids),
        "snapshots": sum(map(snapshots.lacks, ids)),
    }
    written = {
        "references.jsonl": directory.write_references(reference_records(samples)),
        "updates.jsonl": directory.write_updates(updates_records(samples)),
    }
    for name in (name for name, lacking in written.items() if lacking):
        console().print(f"{directory.path}: {name} did not match the data set and is written again", highlight=False)
    lost = ", ".join(f"{count} {name}" for name, count in missing.items() if count)
    if lost:
        complain(f"{directory.path} is marked complete, but its files lack {lost}; the run is resumed")
    return not lost


def _is_settled(sample: Sample, directory: RunDirectory) -> bool:
    """Return whether all questions of a conversation are closed without an answer, so that it may be missing."""
    return bool(sample.questions) and all(q.question_id in directory.settled for q in sample.questions)


def check_resumed(directory: RunDirectory) -> None:
    """Refuse to take up a run whose ledger has lost the calls of answers that are stored.

    Raises:
        RunDirectoryError: naming how many, and what to do.
    """
    if lost := directory.answers_without_calls():
        raise RunDirectoryError(
            f"{directory.path / 'calls.jsonl'} lacks the calls of {len(lost)} stored answers (the first: {lost[0]}), "
            "and costs would be wrong; restore the file, or delete the run directory and start again: replies come "
            "from the cache"
        )


def _check_ledger(directory: RunDirectory) -> None:
    """Refuse a complete run whose ledger has lost calls."""
    if lost := lost_calls(directory.path, directory.booked_calls, directory.stored_record() or {}):
        raise RunDirectoryError(lost)


def run_totals(samples: Sequence[Sample], directory: RunDirectory, mode: str) -> RunTotals:
    """Return the run's total work and the part done before it started, for a progress display."""
    done, ingested = directory.finished_questions(mode), directory.ingested_conversations()
    whole = [
        sample
        for sample in samples
        if sample.conversation.conversation_id in ingested and all(q.question_id in done for q in sample.questions)
    ]
    return RunTotals(
        turns=sum(len(sample.conversation.turns) for sample in samples),
        questions=sum(len(sample.questions) for sample in samples),
        turns_done=sum(len(sample.conversation.turns) for sample in whole),
        questions_done=len(done),
    )
