"""The audit of LoCoMo's adversarial questions: one row each, agreement, a person's word last."""

from collections import Counter
from pathlib import Path

import pytest

from eval.loaders.locomo import LocomoConfig
from eval.loaders.locomo_category5 import CODES, read_category5
from eval.metrics.locomo import CATEGORY_5
from eval.scoring.verdicts.agreement import cohen_kappa
from memsys.errors import DataError

HEADER = "question_id\treader_a\treader_b\tcode\tperson\tnote\n"


def test_every_disagreement_is_decided_and_noted() -> None:
    questions = read_category5()
    assert len(questions) == 446
    apart = [each for each in questions.values() if each.reader_a != each.reader_b]
    assert len(apart) == 12 and all(each.note for each in apart)
    assert all(each.code == each.reader_a for each in questions.values() if each.reader_a == each.reader_b)
    assert Counter(each.verdict for each in questions.values()) == {"sound": 421, "unclear": 14, "unsound": 11}


def test_agreement_of_the_committed_audit() -> None:
    found = read_category5().values()
    kappa = cohen_kappa([each.reader_a for each in found], [each.reader_b for each in found])
    assert kappa == pytest.approx(0.9385, abs=1e-4)


def test_a_person_overrules_the_readers(tmp_path: Path) -> None:
    path = tmp_path / "audit.tsv"
    path.write_text(HEADER + "conv-1:q000\tfine\tfine\tfine\tanswerable\t\n")
    question = read_category5(path)["conv-1:q000"]
    assert (question.code, question.verdict) == ("answerable", "unsound")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("question\tcode\n", "line 1: the columns must be"),
        (HEADER + "q\tfine\tfine\tgood\t\t\n", r"line 2: code is 'good'; known codes are answerable"),
        (HEADER + "q\tfine\tfine\tfine\tmaybe\t\n", "line 2: person is 'maybe'"),
        (HEADER + "q\tfine\tfine\n", "line 2: 6 columns"),
        (HEADER + "q\tfine\tfine\tfine\t\t\n" * 2, "line 3: q occurs twice"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "audit.tsv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_category5(path)


def test_without_the_file_nothing_is_audited(tmp_path: Path) -> None:
    assert read_category5(tmp_path / "none.tsv") == {}


@pytest.mark.real_data
def test_the_audit_names_every_adversarial_question_of_the_published_file(locomo_file: Path) -> None:
    samples = LocomoConfig(path=str(locomo_file)).load().samples
    asked = {each.question_id for sample in samples for each in sample.questions if each.category == CATEGORY_5}
    assert asked == set(read_category5())
    extra = {key: each.extra for sample in samples for key, each in sample.references.items()}
    assert all(extra[question_id]["adversarial_audit"] in CODES for question_id in asked)
