"""An audit of LoCoMo's adversarial questions: which of them the conversation answers after all.

The list (``datasets/locomo/category5_audit.tsv``) has one row per question: the codes of two independent readers, the
code that counts, and a column in which a person can overrule it. The readers were language models, not people; the data
card says so. Question ids are positions in the published file, so the list holds for that file alone.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memsys.assets.paths import shipped
from memsys.errors import DataError

PATH = shipped("datasets", "locomo", "category5_audit.tsv")
#: Key of ``Reference.extra`` that holds the code.
ADVERSARIAL_AUDIT = "adversarial_audit"

#: Code -> what it says of the question.
CODES: Mapping[str, str] = {
    "answerable": "the conversation answers it as asked",
    "other_speaker": "true of the other speaker, so not answerable as asked",
    "premise_false": "presupposes what the conversation contradicts or lacks",
    "ambiguous": "a careful reader could defend both",
    "fine": "not answerable for another reason",
}
Verdict = Literal["sound", "unsound", "unclear"]
_COLUMNS = ("question_id", "reader_a", "reader_b", "code", "person", "note")


@dataclass(frozen=True, slots=True)
class AuditedQuestion:
    """One row of the audit.

    Attributes:
        question_id: as the loader names it.
        reader_a: code of the first reader.
        reader_b: code of the second reader, who did not see the first's.
        code: the readers' code where they agree, else the adjudicated one; a person's where there is one.
        note: why a disagreement was decided so, or what else is wrong with the question.
    """

    question_id: str
    reader_a: str
    reader_b: str
    code: str
    note: str

    @property
    def verdict(self) -> Verdict:
        """Whether the question is adversarial, as the data set claims."""
        return "unsound" if self.code == "answerable" else "unclear" if self.code == "ambiguous" else "sound"


def read_category5(path: Path = PATH) -> dict[str, AuditedQuestion]:
    """Read the audit by question id; empty where someone has taken the file out.

    Raises:
        DataError: a column is missing, a code is unknown or a question occurs twice.
    """
    if not path.exists():
        return {}
    found: dict[str, AuditedQuestion] = {}
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, delimiter="\t")
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise DataError(f"{path}: line 1: the columns must be {', '.join(_COLUMNS)}")
        for row in reader:
            question = _row(row, f"{path}: line {reader.line_num}")
            if question.question_id in found:
                raise DataError(f"{path}: line {reader.line_num}: {question.question_id} occurs twice")
            found[question.question_id] = question
    return found


def _row(row: Mapping[str, str | None], place: str) -> AuditedQuestion:
    cells = {name: row.get(name) for name in _COLUMNS}
    if any(value is None for value in cells.values()):
        raise DataError(f"{place}: {len(_COLUMNS)} columns separated by tabs are needed")
    text = {name: str(value) for name, value in cells.items()}
    for name in ("reader_a", "reader_b", "code", "person"):
        if text[name] not in CODES and (text[name] or name != "person"):
            raise DataError(f"{place}: {name} is {text[name]!r}; known codes are {', '.join(CODES)}")
    return AuditedQuestion(
        question_id=text["question_id"],
        reader_a=text["reader_a"],
        reader_b=text["reader_b"],
        code=text["person"] or text["code"],
        note=text["note"],
    )
