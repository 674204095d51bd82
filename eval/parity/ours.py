"""Our side of a parity run: one conversation through ``eval.run``'s own loop, against the deterministic backbone."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.runs.load import load_answers, load_retrievals
from eval.runs.records import AnswerRecord, RetrievalRecord
from eval.runs.snapshot import load_snapshot
from eval.runs.snapshots import snapshot_name
from memsys.errors import ConfigError, RunDirectoryError
from memsys.vocabulary import Json, Sample


@dataclass(frozen=True, slots=True)
class Answered:
    """One side's results for one question.

    Attributes:
        question: its text.
        context: what the answer prompt shows of the memory.
        prediction: the answer that is scored.
        scores: of the hits of our side, by their texts: a rewritten memory may be found by its old vector.
    """

    question: str
    context: str
    prediction: Json
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SideResult:
    """One side's results for a conversation.

    Attributes:
        store: the final memory, in the form that both sides share.
        answers: by question id.
    """

    store: Mapping[str, Json]
    answers: Mapping[str, Answered] = field(default_factory=dict)


def one_sample(samples: Sequence[Sample]) -> Sample:
    """Return the conversation of a parity run.

    Raises:
        ConfigError: the data set's settings choose none or several.
    """
    if len(samples) != 1:
        raise ConfigError(
            f"a parity run takes one conversation and {len(samples)} were chosen; name it: conversation=ID"
        )
    return samples[0]


def run_ours(plan: Any, sample: Sample, store_of: Any) -> SideResult:
    """Run our side from the beginning and read what it left.

    Args:
        plan: of the run; its ``run_dir`` is emptied first.
        sample: the one conversation of the plan's data set.
        store_of: turns the memory's state into the form that both sides share.

    Raises:
        MemsysError: the run failed or stayed incomplete.
    """
    from eval.running.experiment import run_experiment

    folder: Path = plan.run_dir
    if (folder / "run.json").is_file():
        shutil.rmtree(folder)
    result = run_experiment(plan)
    if not result.complete:
        raise RunDirectoryError(f"our side did not get to its end; {folder / 'run.json'} says why")
    return read_ours(folder, sample, store_of)


def read_ours(folder: Path, sample: Sample, store_of: Any) -> SideResult:
    """Read what a run of ours left."""
    name = sample.conversation.conversation_id
    snapshot = load_snapshot(folder / "snapshots" / snapshot_name(name))
    assert snapshot is not None
    answers, retrievals = load_answers(folder), load_retrievals(folder)
    found = {
        one.question_id: _answered(answers[one.question_id], retrievals[one.question_id]) for one in sample.questions
    }
    return SideResult(store_of(snapshot["memory"]), found)


def _answered(answer: AnswerRecord, retrieval: RetrievalRecord) -> Answered:
    scores = {hit.text: hit.score for hit in retrieval.hits}
    return Answered(answer.question, retrieval.context, answer.prediction, scores)
