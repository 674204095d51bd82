"""Known wrong labels: marked always, masked on request."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from eval.loaders.locate import sample_path
from eval.loaders.locomo import LOCOMO, LocomoConfig, read_locomo
from eval.loaders.locomo_labels import apply_audit, read_audit
from memsys.errors import ConfigError

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


def test_the_list_names_its_source_and_licence_and_quotes_nothing() -> None:
    document = json.loads(sample_path("locomo", "label_audit.json").read_text())
    assert "locomo-audit, commit ded8d0f" in document["source"]
    assert "CC BY-NC 4.0" in document["source"]
    assert set(document) == {"about", "source", "sha256", "problems"}
    assert all(re.fullmatch(r"conv-\d+:q\d{3}", question_id) for question_id in document["problems"])
    card = (sample_path("locomo").parent / "README.md").read_text()
    assert "locomo-audit" in card and "CC BY-NC 4.0" in card


def test_everything_but_the_audited_view_works_without_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = sample_path("locomo")
    monkeypatch.setattr("eval.loaders.locomo_labels.shipped", lambda *parts: tmp_path.joinpath(*parts))
    assert read_audit(LOCOMO.files[0].sha256) == {}
    assert LocomoConfig(path=str(sample)).load().notes["label_problems"] == {}
    with pytest.raises(ConfigError, match=r"datasets/locomo/label_audit.json"):
        LocomoConfig(path=str(sample), labels="audited").load()
