"""Golden counts of the BioASQ-20 builds."""

from pathlib import Path

import pytest

from eval.loaders.bioasq import BioasqConfig

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    path = data_dir / "bioasq10b"
    if not path.is_dir():
        pytest.skip("bioasq10b/ is not in the data folder: see datasets/bioasq20/README.md")
    return path


def test_the_gold_context_build(folder: Path) -> None:
    data = BioasqConfig(path=str(folder)).load()
    assert data.notes["pinned"] is True
    assert data.notes["usable_by_category"] == {"4": 166, "6": 85}
    assert data.counts["questions_by_category"] == {"4": 140, "6": 60}
    assert data.counts["turns"] == 2724
    assert data.counts["turns_per_conversation"] == [300, 326, 362, 134, 142, 415, 265, 238, 282, 260]
    sizes = [len(reference.evidence) for sample in data.samples for reference in sample.references.values()]
    assert (sum(sizes) / len(sizes), min(sizes), max(sizes)) == (13.62, 1, 58)


def test_the_plain_build(folder: Path) -> None:
    data = BioasqConfig(path=str(folder), build="plain").load()
    assert data.counts["questions_by_category"] == {"4": 140, "6": 60}
    assert data.counts["turns"] == 2775


def test_pool_lengths_in_characters_over_four(folder: Path) -> None:
    """CLAG prints contexts of 5-16k tokens (median 10.7k); the pools of the plain build give this range."""
    data = BioasqConfig(path=str(folder), build="plain").load()
    tokens = sorted(sum(len(turn.text) for turn in sample.conversation.turns) / 4 for sample in data.samples)
    assert 5_000 < tokens[0] < 5_300
    assert 15_000 < tokens[-1] < 15_700
    assert 10_300 < (tokens[4] + tokens[5]) / 2 < 10_800
