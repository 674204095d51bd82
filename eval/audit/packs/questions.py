"""Digests of a run's questions, and whether its texts may be passed on."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.inspect_data import read_config
from eval.loaders.contract import DatasetInfo
from eval.loaders.registry import info_of
from eval.runs.records import AnswerRecord, ReferenceRecord, RetrievalRecord, question_text
from memsys.errors import ConfigError, DataError
from memsys.vocabulary import Json

#: Licence of the samples, which were written for this project.
_OWN = "Apache-2.0, a sample that was written for memsys"


@dataclass(frozen=True, slots=True)
class PackedQuestion:
    """One question of a pack: digests, and where texts may be passed on, the texts.

    Attributes:
        question_id: unique in the run.
        question: sha256 of its text; empty where the run does not know the text.
        gold: sha256 of the gold answers and evidence.
        answer: sha256 of the system's answer; empty if there is none.
        context: sha256 of what the model was shown; empty where nothing was retrieved.
        text: of the question; empty where it may not be passed on.
        answers: gold answers; likewise.
    """

    question_id: str
    question: str
    gold: str
    answer: str
    context: str
    text: str = ""
    answers: Sequence[str] = ()


def digest_of(question_id: str, *texts: str | None) -> str:
    """Return the sha256 of texts about a question; of two questions it differs where the texts are the same."""
    return hashlib.sha256(json.dumps([question_id, *texts]).encode()).hexdigest()


def gold_digest(reference: ReferenceRecord) -> str:
    """Return the sha256 of what a question's answer and retrieval are scored against."""
    parts = (*reference.answers, "|", reference.adversarial_answer, "|", *reference.evidence)
    return digest_of(reference.question_id, *parts)


def packed_question(
    reference: ReferenceRecord, answer: AnswerRecord | None, retrieval: RetrievalRecord | None, *, texts: bool
) -> PackedQuestion:
    """Return what a pack says of a question.

    Args:
        reference: its gold.
        answer: of the system; ``None`` if there is none.
        retrieval: of the system; likewise.
        texts: whether texts may be passed on.
    """
    name, asked = reference.question_id, question_text(answer, retrieval)
    return PackedQuestion(
        question_id=name,
        question=digest_of(name, asked) if asked else "",
        gold=gold_digest(reference),
        answer="" if answer is None else digest_of(name, answer.prediction),
        context="" if retrieval is None else digest_of(name, retrieval.context),
        text=asked if texts else "",
        answers=list(reference.answers) if texts else [],
    )


def terms(record: Mapping[str, Any]) -> tuple[bool, str]:
    """Say whether the texts of a run's data may be passed on, and under which terms.

    They may where the data are the published file of a set whose licence allows it, or a sample of this project: by
    the checksum, whatever the settings say.

    Args:
        record: ``run.json``.
    """
    settings = record["config"].get("dataset") or {}
    data, name = record["data"], str(settings.get("name", ""))
    info = info_of(name)
    if settings.get("sample") and data.get("sha256") == _sample_sha256(name):
        return True, _OWN
    if info is None:
        return False, "not known"
    pinned = data.get("sha256") in {file.sha256 for file in info.files if file.sha256}
    return info.passed_on and pinned, _named(info)


def _named(info: DatasetInfo) -> str:
    return f"{info.licence}; {info.title}, {info.homepage}".rstrip("; ,")


def _sample_sha256(name: str) -> Json:
    """Return the checksum of a preset's sample; ``None`` where there is no such preset, or it has no sample."""
    try:
        return read_config(name, {"sample": True}).load().sha256
    except (ConfigError, DataError):
        return None
