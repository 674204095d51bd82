"""Known wrong labels of LoCoMo: which questions they are, and a view of the data without them.

The list (``datasets/locomo/label_audit.json``) names questions by position and therefore holds for the published file
alone, which its checksum ensures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from eval.loaders.jsonfile import read_json
from eval.loaders.label_problems import LABEL_PROBLEM, MISCITED, answer_is_doubtful
from eval.loaders.locomo_category5 import ADVERSARIAL_AUDIT, AuditedQuestion
from memsys.assets.paths import shipped
from memsys.errors import ConfigError
from memsys.vocabulary import Reference, Sample

#: ``as_published`` asks everything; ``audited`` leaves out questions whose gold answer is wrong.
Labels = Literal["as_published", "audited"]


def read_audit(sha256: str) -> dict[str, str]:
    """Return question id -> kind of problem for the file with this checksum; empty for any other file.

    The list's source is CC BY-NC 4.0; where someone has taken it out, everything but ``audited`` works without it.
    """
    path = shipped("datasets", "locomo", "label_audit.json")
    if not path.exists():
        return {}
    top, _ = read_json(path)
    if top.get("sha256").text() != sha256:
        return {}
    return {question_id: kind.text() for question_id, kind in top.get("problems").members().items()}


def apply_audit(samples: Sequence[Sample], problems: Mapping[str, str], labels: Labels) -> list[Sample]:
    """Mark every known problem in ``Reference.extra``; with ``audited``, act on it.

    ``audited`` drops questions whose answer is wrong or debatable, and empties the evidence of those whose answer is
    right but whose evidence ids are not, so that evidence metrics skip them.

    Raises:
        ConfigError: ``audited`` is asked of a file that the audit does not cover.
    """
    if labels == "audited" and not problems:
        raise ConfigError(
            "dataset.labels=audited needs the published locomo10.json, the only file that the audit covers, and the "
            "audit itself (datasets/locomo/label_audit.json)"
        )
    return [_apply(sample, problems, labels == "audited") for sample in samples]


def mark_adversarial(samples: Sequence[Sample], audit: Mapping[str, AuditedQuestion]) -> list[Sample]:
    """Write the audit's code of each adversarial question into ``Reference.extra``."""
    return [
        replace(
            sample,
            references={
                question_id: replace(reference, extra={**reference.extra, ADVERSARIAL_AUDIT: audit[question_id].code})
                if question_id in audit
                else reference
                for question_id, reference in sample.references.items()
            },
        )
        for sample in samples
    ]


def _apply(sample: Sample, problems: Mapping[str, str], mask: bool) -> Sample:
    references = {
        question_id: _mark(reference, problems.get(question_id), mask)
        for question_id, reference in sample.references.items()
        if not (mask and answer_is_doubtful(problems.get(question_id)))
    }
    questions = tuple(question for question in sample.questions if question.question_id in references)
    return replace(sample, questions=questions, references=references)


def _mark(reference: Reference, kind: str | None, mask: bool) -> Reference:
    if kind is None:
        return reference
    marked = replace(reference, extra={**reference.extra, LABEL_PROBLEM: kind})
    return replace(marked, evidence=(), unresolved_evidence=()) if mask and kind == MISCITED else marked
