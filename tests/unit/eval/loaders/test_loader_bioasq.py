"""BioASQ-20: which questions are usable, how snippets become turns, how pools are cut."""

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.loaders.bioasq import BioasqConfig, read_batches, split_sentences
from eval.loaders.contract import DatasetConfig
from eval.loaders.locate import sample_path
from memsys.errors import ConfigError, DataError

SMALL: Any = {"sample": True, "pools": 2, "pool_questions": 4}


def test_the_sample_has_every_quirk() -> None:
    config: DatasetConfig = BioasqConfig(**SMALL)
    data = config.load()
    assert data.counts["questions_by_category"] == {"4": 5, "6": 3}
    assert data.counts["turns"] == 16
    notes = {key: value for key, value in data.notes.items() if key != "files"}
    assert notes == {
        "pinned": False,
        "sample": True,
        "usable_questions": 8,
        "usable_by_category": {"4": 5, "6": 3},
        "repeated_snippets_dropped": 2,
        "skipped_summary": 1,
        "skipped_without_answer": 1,
        "skipped_without_snippets": 1,
        "skipped_yesno": 1,
    }


def test_the_plain_build_keeps_repeated_snippets() -> None:
    data = BioasqConfig(**SMALL, build="plain").load()
    assert data.counts["turns"] == 16 + 2 + 2
    assert "repeated_snippets_dropped" not in data.notes


def test_answers_are_first_synonyms_joined_and_synonyms_are_kept() -> None:
    data = BioasqConfig(**SMALL).load()
    references = {key.partition(":")[2]: ref for sample in data.samples for key, ref in sample.references.items()}
    assert references["own07"].answers == ("malleus ; incus ; stapes",)
    assert references["own07"].extra["answer_items"] == [["malleus", "hammer"], ["incus", "anvil"], ["stapes"]]
    assert references["own10"].answers == ("calcium",)


def test_evidence_is_every_sentence_of_the_own_snippets_first_wording_kept() -> None:
    for sample in BioasqConfig(**SMALL).load().samples:
        text = {turn.turn_id: turn.text for turn in sample.conversation.turns}
        for question in sample.questions:
            evidence = [text[turn_id] for turn_id in sample.references[question.question_id].evidence]
            if question.question_id.endswith("own01"):
                assert question.text == "Which vitamin prevents scurvy?"
                assert evidence == ["Scurvy follows a long lack of vitamin C.", "Sailors were cured with citrus fruit."]
        covered = [turn_id for reference in sample.references.values() for turn_id in reference.evidence]
        assert covered == list(text), "a pool holds its own questions' snippets and nothing else"


def test_the_shuffle_is_the_one_of_the_published_builder() -> None:
    records, _, _ = read_batches(sample_path("bioasq20", "sample"), keep_repeats=False)
    order = list(range(8))
    random.seed(7)
    random.shuffle(order)
    data = BioasqConfig(**SMALL, seed=7).load()
    asked = [question.question_id.partition(":")[2] for sample in data.samples for question in sample.questions]
    assert asked == [records[index].source_id for index in order]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!  Three?\nFour", ["One.", "Two!", "Three?", "Four"]),
        ("p = 0.05 in vitro", ["p = 0.05 in vitro"]),
        ("e.g. this", ["e.g.", "this"]),
        ("  ", []),
    ],
)
def test_sentences(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text(alphabet="ab .!?\n\t", max_size=60))
def test_splitting_loses_no_word(text: str) -> None:
    assert " ".join(split_sentences(text)).split() == text.split()


BREAKAGES = [
    (lambda d: d.pop("questions"), "10B1_golden.json: questions: missing field"),
    (lambda d: d["questions"][0].pop("body"), "10B1_golden.json: questions[0].body: missing field"),
    (lambda d: d["questions"][1].update(id="own01"), "questions[1].id: duplicate question id 'own01'"),
    (lambda d: d["questions"][0].update(exact_answer="x"), "questions[0].exact_answer: expected array, found string"),
    (lambda d: d["questions"][0]["snippets"][0].pop("text"), "questions[0].snippets[0].text: missing field"),
]


@pytest.mark.parametrize(("damage", "message"), BREAKAGES, ids=[message for _, message in BREAKAGES])
def test_bad_files_are_refused(tmp_path: Path, damage: Any, message: str) -> None:
    folder = tmp_path / "batches"
    shutil.copytree(sample_path("bioasq20", "sample"), folder)
    data = json.loads((folder / "10B1_golden.json").read_text())
    damage(data)
    (folder / "10B1_golden.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match=re.escape(message)):
        BioasqConfig(path=str(folder), pools=1, pool_questions=1).load()


def test_an_empty_folder_says_that_registration_is_needed(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no 10B\*_golden.json. Register"):
        BioasqConfig(path=str(tmp_path)).load()


def test_too_few_questions_and_bad_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="need 200 questions, the source has 8 usable ones"):
        BioasqConfig(path=str(sample_path("bioasq20", "sample"))).load()
    with pytest.raises(ConfigError, match=r"dataset.build='x' is unknown; choose one of gold_context, plain"):
        BioasqConfig(build="x")  # type: ignore[arg-type]
