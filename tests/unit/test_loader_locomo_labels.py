"""Known wrong labels: marked always, masked on request."""

from collections import Counter

import pytest

from eval.loaders.locate import sample_path
from eval.loaders.locomo import LOCOMO, LocomoConfig, read_locomo
from eval.loaders.locomo_labels import apply_audit, read_audit

PROBLEMS = {"sample-1:q000": "hallucination", "sample-1:q001": "citation", "sample-1:q002": "citation_repaired"}


def test_the_audit_counts_what_its_report_counts() -> None:
    kinds = Counter(read_audit(LOCOMO.files[0].sha256).values())
    assert kinds == {
        "hallucination": 33,
        "temporal_error": 26,
        "attribution_error": 24,
        "ambiguous": 13,
        "incomplete": 3,
        "citation": 54,
        "citation_repaired": 3,
    }


def test_the_audit_holds_for_the_published_file_alone() -> None:
    assert read_audit("0" * 64) == {}
    data = LocomoConfig(sample=True).load()
    assert not any(reference.extra for sample in data.samples for reference in sample.references.values())


@pytest.mark.parametrize("labels", ["as_published", "audited"])
def test_problems_are_marked_and_masked(labels: str) -> None:
    samples, _, _ = read_locomo(sample_path("locomo"))
    before = samples[0]
    after = apply_audit(samples, PROBLEMS, labels)[0]  # type: ignore[arg-type]
    masked = labels == "audited"
    assert len(after.questions) == len(before.questions) - masked
    assert ("sample-1:q000" in after.references) is not masked
    assert after.references["sample-1:q001"].extra == {"label_problem": "citation"}
    assert after.references["sample-1:q001"].evidence == (() if masked else ("D1:3",))
    assert after.references["sample-1:q002"].evidence == ("D1:8",)
    assert after.references["sample-1:q003"] == before.references["sample-1:q003"]
    assert after.conversation == before.conversation
