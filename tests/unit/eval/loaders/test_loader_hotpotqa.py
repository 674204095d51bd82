"""HotpotQA-20: the released pools, pools built from the official set, one memory per question."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.loaders.contract import DatasetConfig
from eval.loaders.hotpotqa import HotpotqaConfig
from eval.loaders.hotpotqa_files import read_hub, read_official, read_released, records_of_rows
from eval.loaders.hotpotqa_pools import (
    ArticleParagraph,
    ParagraphPool,
    PoolEntry,
    one_memory_per_pool,
    one_memory_per_question,
)
from eval.loaders.locate import sample_path
from memsys.errors import ConfigError, DataError


def test_the_released_sample() -> None:
    config: DatasetConfig = HotpotqaConfig(sample=True)
    data = config.load()
    assert (data.counts["conversations"], data.counts["turns"], data.counts["questions"]) == (1, 28, 4)
    assert data.notes["yes_no_answers"] == 1
    assert data.notes["paragraphs_per_pool"] == [16]
    sample = data.samples[0]
    assert sample.conversation.speakers == ("System", "User")
    turn = sample.conversation.turns[1]
    assert (turn.turn_id, turn.session_id, turn.date_time) == ("0:1", "session_0", "")
    assert turn.text == "Title: Tarn Bridge\nContent:  It was designed by Hanna Orlik and opened in 1911."
    assert sample.references["hotpotqa20-0:own01"].evidence == ("0:0", "0:1", "0:2", "0:3")
    assert sample.questions[0].category == 4


def test_pools_built_from_the_official_set_hold_the_same_evidence() -> None:
    built = HotpotqaConfig(sample=True, source="distractor_file", pools=1, pool_questions=4).load().samples[0]
    released = HotpotqaConfig(sample=True).load().samples[0]

    def texts(sample: Any) -> dict[str, list[str]]:
        text = {turn.turn_id: turn.text for turn in sample.conversation.turns}
        return {key: sorted(text[i] for i in value.evidence) for key, value in sample.references.items()}

    assert texts(built) == texts(released)
    assert {turn.text for turn in built.conversation.turns} == {turn.text for turn in released.conversation.turns}
    assert len(built.conversation.turns) == 28, "a paragraph that two questions share is laid out once"


def test_supporting_facts_are_kept_beside_the_evidence() -> None:
    built = HotpotqaConfig(sample=True, source="distractor_file", pools=1, pool_questions=4).load().samples[0]
    text = {turn.turn_id: turn.text for turn in built.conversation.turns}
    facts = built.references["hotpotqa20-0:own04"].extra["supporting_facts"]
    assert [text[turn_id].partition("\n")[0] for turn_id in facts] == [
        "Title: Ilse Mirova",
        "Title: Corrie Observatory",
    ]


def test_the_seed_decides_the_pools() -> None:
    def ids(seed: int) -> list[str]:
        config = HotpotqaConfig(sample=True, source="distractor_file", pools=2, pool_questions=2, seed=seed)
        return [question.question_id for sample in config.load().samples for question in sample.questions]

    assert ids(1) == ids(1)
    assert len({tuple(ids(seed)) for seed in range(8)}) > 1
    assert sorted(name.partition(":")[2] for name in ids(3)) == ["own01", "own02", "own03", "own04"]


def test_one_memory_per_question_holds_its_gold_and_others() -> None:
    config = HotpotqaConfig(sample=True, layout="per_question", unit="paragraph", passages_per_question=5)
    data = config.load()
    assert data.counts["conversations"] == 4
    for sample in data.samples:
        assert len(sample.conversation.turns) == 5
        assert len({turn.text for turn in sample.conversation.turns}) == 5
        assert len(sample.references[sample.questions[0].question_id].evidence) == 2
    assert config.load() == data


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(2, 12))
def test_gold_texts_survive_shuffling(seed: int, passages: int) -> None:
    paragraphs = tuple(ArticleParagraph(f"T{n}", (f"a{n}.", f" b{n}.")) for n in range(12))
    pool = ParagraphPool(paragraphs, (PoolEntry("q", "?", "!", own=(3, 7), gold=(3, 7), facts=((7, 1),)),))
    sample = one_memory_per_question([pool], "sentence", passages, seed)[0]
    text = {turn.turn_id: turn.text for turn in sample.conversation.turns}
    reference = sample.references["hotpotqa20-0:q"]
    assert len(text) == 2 * passages
    assert sorted(text[i] for i in reference.evidence) == [
        "Title: T3\nContent:  b3.",
        "Title: T3\nContent: a3.",
        "Title: T7\nContent:  b7.",
        "Title: T7\nContent: a7.",
    ]
    assert [text[i] for i in reference.extra["supporting_facts"]] == ["Title: T7\nContent:  b7."]


def test_paragraph_turns_join_the_sentences() -> None:
    pool = ParagraphPool((ArticleParagraph("T", ("One.", " Two.")),), (PoolEntry("q", "?", "!", own=(0,), gold=(0,)),))
    turns = one_memory_per_pool([pool], "paragraph")[0].conversation.turns
    assert [turn.text for turn in turns] == ["Title: T\nContent: One. Two."]


BREAKAGES = [
    (lambda d: d["qa"][0]["gold_turn_ids"].append("0:99"), "[0].qa[0].gold_turn_ids: ['0:99'] name no turn"),
    (lambda d: d["qa"][0]["gold_turn_ids"].pop(), "[0].qa[0].gold_turn_ids: does not hold every sentence"),
    (lambda d: d["qa"][1].update(category=1), "[0].qa[1].category: unknown category 1"),
    (lambda d: d["qa"][1].pop("question_id"), "[0].qa[1].question_id: missing field"),
    (lambda d: d["conversation"]["session_0"][2].update(dia_id="0:0"), "session_0[2].dia_id: duplicate turn id '0:0'"),
    (lambda d: d["conversation"]["session_0"][2].update(text="x"), "session_0[2].text: expected 'Title: <title>'"),
]


@pytest.mark.parametrize(("damage", "message"), BREAKAGES, ids=[message for _, message in BREAKAGES])
def test_bad_released_files_are_refused(tmp_path: Path, damage: Any, message: str) -> None:
    data = json.loads(sample_path("hotpotqa20").read_text())
    damage(data[0])
    (tmp_path / "f.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match=re.escape(message)):
        read_released(tmp_path / "f.json")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d[0]["context"][0].append(1), "[0].context[0]: expected a pair, found 3 elements"),
        (lambda d: d[0]["supporting_facts"][0].__setitem__(0, "No"), "supporting_facts[0][0]: 'No' is not a title"),
        (lambda d: d[0]["context"][0].__setitem__(1, "No"), "[0].context[0][1]: expected array, found string"),
    ],
)
def test_bad_official_files_are_refused(tmp_path: Path, damage: Any, message: str) -> None:
    data = json.loads(sample_path("hotpotqa20", "sample_distractor.json").read_text())
    damage(data)
    (tmp_path / "f.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match=re.escape(message)):
        read_official(tmp_path / "f.json")


def test_the_hubs_columns_give_the_same_records() -> None:
    path = sample_path("hotpotqa20", "sample_distractor.json")
    rows = [
        {
            "id": item["_id"],
            "question": item["question"],
            "answer": item["answer"],
            "context": {"title": [t for t, _ in item["context"]], "sentences": [s for _, s in item["context"]]},
            "supporting_facts": {
                "title": [t for t, _ in item["supporting_facts"]],
                "sent_id": [n for _, n in item["supporting_facts"]],
            },
        }
        for item in json.loads(path.read_text())
    ]
    records, sha256 = records_of_rows(rows, "hub")
    assert records == read_official(path)[0]
    assert sha256 != records_of_rows(rows[1:], "hub")[1]


def test_the_hub_out_of_reach_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")

    def refuse(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no route")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    with pytest.raises(DataError, match=r"no route.*dataset.source=distractor_file"):
        read_hub("validation")


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"source": "web"}, "dataset.source='web' is unknown; choose one of released"),
        ({"layout": "x"}, "dataset.layout='x'"),
        ({"unit": "x"}, "dataset.unit='x'"),
        ({"sample": True, "source": "distractor_hub"}, "dataset.sample=true reads the project's own sample"),
        ({"pools": 0}, "dataset.pools=0 must be a whole number from 1"),
    ],
)
def test_bad_settings_are_refused(given_settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        HotpotqaConfig(**given_settings)


@pytest.mark.parametrize(
    ("file", "given_settings", "message"),
    [
        ("sample_distractor.json", {"source": "distractor_file"}, "need 200 questions, the source has 4"),
        ("sample.json", {"layout": "per_question", "passages_per_question": 1}, "the question's own 2 and the 16"),
        ("sample.json", {"layout": "per_question"}, "must lie between the question's own 2 and the 16"),
    ],
)
def test_what_the_file_cannot_give_is_refused(file: str, given_settings: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        HotpotqaConfig(path=str(sample_path("hotpotqa20", file)), **given_settings).load()


def test_the_date_is_the_one_asked_for() -> None:
    stamp = "2020-01-01 00:00:00"
    dated = HotpotqaConfig(sample=True, date_time=stamp).load().samples[0].conversation
    assert {turn.date_time for turn in dated.turns} == {stamp}
    with pytest.raises(ConfigError, match=r"dataset.date_time=2020 must be text"):
        HotpotqaConfig(sample=True, date_time=2020)  # type: ignore[arg-type]
