"""Golden counts of CLAG's released HotpotQA-20 pools."""

import json
from collections import Counter
from pathlib import Path

import pytest

from eval.loaders.hotpotqa import HotpotqaConfig

pytestmark = pytest.mark.real_data


@pytest.fixture(scope="module")
def file(data_dir: Path) -> Path:
    path = data_dir / "hotpot_200.json"
    if not path.is_file():
        pytest.skip("hotpot_200.json is not in the data folder: run `memsys data hotpotqa20`")
    return path


def test_counts(file: Path) -> None:
    data = HotpotqaConfig(path=str(file)).load()
    assert data.notes == {
        "pinned": True,
        "sample": False,
        "yes_no_answers": 18,
        "paragraphs_per_pool": [200, 200, 200, 200, 195, 200, 200, 200, 192, 200],
    }
    assert data.counts["turns_per_conversation"] == [812, 769, 801, 890, 889, 899, 864, 808, 872, 871]
    assert data.counts["turns"] == 8475
    assert data.counts["questions_by_category"] == {"4": 200}
    sizes = [len(reference.evidence) for sample in data.samples for reference in sample.references.values()]
    assert (sum(sizes) / len(sizes), min(sizes), max(sizes)) == (6.68, 2, 15)


def test_turns_and_gold_ids_are_those_of_the_file(file: Path) -> None:
    data = HotpotqaConfig(path=str(file)).load()
    for sample, raw in zip(data.samples, json.loads(file.read_text()), strict=True):
        session = raw["conversation"]["session_0"]
        assert [(t.turn_id, t.text) for t in sample.conversation.turns] == [(t["dia_id"], t["text"]) for t in session]
        gold = [sorted(reference.evidence) for reference in sample.references.values()]
        assert gold == [sorted(item["gold_turn_ids"]) for item in raw["qa"]]


def test_read_literally(file: Path) -> None:
    data = HotpotqaConfig(path=str(file), layout="per_question", unit="paragraph").load()
    assert (data.counts["conversations"], data.counts["turns"]) == (200, 4000)
    sizes = Counter(len(ref.evidence) for sample in data.samples for ref in sample.references.values())
    assert sizes == {2: 200}
