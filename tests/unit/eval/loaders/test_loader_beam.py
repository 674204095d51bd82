"""BEAM: ten kinds of questions with fields of their own, ids in four shapes, and the real files where they are."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.beam import BeamConfig
from eval.loaders.locate import sample_path
from memsys.errors import ConfigError, DataError


def test_the_sample_has_every_irregularity() -> None:
    data = BeamConfig(sample=True).load()
    assert data.counts["turns_per_conversation"] == [22, 4]
    assert data.counts["questions_by_category"] == {str(n): 2 if n in (34, 39) else 1 for n in range(31, 41)}
    assert data.notes == {
        "pinned": False,
        "sample": True,
        "files": 6,
        "half_sources": 1,
        "markers": 10,
        "nested_source_ids": 1,
        "questions_without_source": 1,
        "repeated_source_ids": 1,
        "source_ids_as_text": 1,
        "unresolved_source_ids": 1,
    }


def test_a_chat_is_read_batch_by_batch_with_dates() -> None:
    first, second = BeamConfig(sample=True, markers="removed").load().samples
    turns = first.conversation.turns
    assert [turn.turn_id for turn in turns] == [str(n) for n in range(22)]
    assert (turns[0].speaker, turns[0].date_time, turns[0].session_id) == ("User", "March 04, 2024", "batch_1")
    assert turns[0].text.endswith("Where do I begin?")
    assert turns[5].extra == {"record": "batch_1/3"}
    assert [turn.session_id for turn in second.conversation.turns] == ["plan-1:batch_1"] * 2 + ["plan-3:batch_1"] * 2


def test_gold_of_each_kind() -> None:
    first, second = BeamConfig(sample=True).load().samples
    gold = {name.removeprefix("beam-1:"): reference for name, reference in first.references.items()}
    assert gold["contradiction_resolution:0"].extra["sources"] == {"first_statement": ["8"], "second_statement": ["14"]}
    assert gold["event_ordering:0"].evidence == ("0", "12", "18")
    assert gold["event_ordering:0"].extra["ordered_items"][1] == "Slug traps"
    assert gold["instruction_following:0"].answers == ()
    assert "litres" in gold["instruction_following:0"].extra["expected_compliance"]
    assert gold["summarization:0"].unresolved_evidence == ("99",)
    assert gold["knowledge_update:0"].evidence == ("10",)
    assert [reference.evidence for reference in second.references.values()] == [("0",), ("0", "2")]
    assert first.questions[0].kind == "adversarial" and gold["abstention:0"].evidence == ()


@pytest.mark.parametrize(
    ("file", "spoil", "message"),
    [
        ("chat.json", lambda top: top[0]["turns"][0][0].update(role="bot"), r"1/chat.json: \[0\].turns\[0\]\[0\].role"),
        ("chat.json", lambda top: top[0]["turns"][0][0].pop("content"), "content: missing field"),
        ("chat.json", list.clear, "no message in any batch"),
        ("probing_questions/probing_questions.json", lambda top: top.update(riddles=[]), "unknown kind of question"),
        (
            "probing_questions/probing_questions.json",
            lambda top: top["abstention"][0].pop("rubric"),
            r"abstention\[0\].rubric: missing field",
        ),
    ],
)
def test_bad_files_are_named_with_place(tmp_path: Path, file: str, spoil: Callable[[Any], Any], message: str) -> None:
    folder = tmp_path / "chats"
    shutil.copytree(sample_path("beam", "sample"), folder)
    path = folder / "1" / file
    top = json.loads(path.read_text())
    spoil(top)
    path.write_text(json.dumps(top))
    with pytest.raises(DataError, match=message):
        BeamConfig(path=str(folder)).load()


def test_plans_that_each_count_from_0_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    shutil.copytree(sample_path("beam", "sample"), folder)
    path = folder / "2" / "chat.json"
    top = json.loads(path.read_text())
    for number, message in enumerate(top[2]["plan-3"][0]["turns"][0]):
        message["id"] = number
    path.write_text(json.dumps(top))
    with pytest.raises(DataError, match=r"2/chat.json: .*message id 0 occurs in plan-1:batch_1 and in plan-3:batch_1"):
        BeamConfig(path=str(folder)).load()


def test_bad_settings_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="choose one of kept, removed"):
        BeamConfig(markers="some")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="holds no folder 1, 2"):
        BeamConfig(path=str(tmp_path)).load()


def test_the_cut_chat_is_read_where_it_exists(tmp_path: Path) -> None:
    shutil.copytree(sample_path("beam", "sample"), tmp_path / "chats")
    top = json.loads((tmp_path / "chats/1/chat.json").read_text())
    (tmp_path / "chats/1/chat_trunecated.json").write_text(json.dumps(top[:2]))
    data = BeamConfig(path=str(tmp_path / "chats"), chat_file="chat_trunecated.json").load()
    assert data.counts["turns_per_conversation"] == [16, 4]


def test_the_published_files(data_dir: Path) -> None:
    if not (data_dir / "beam_100k").is_dir():
        pytest.skip("BEAM is not in the data folder: run `memsys data beam`")
    data = BeamConfig(data_dir=str(data_dir)).load()
    assert data.notes["pinned"] is True
    wanted = {"conversations": 20, "sessions": 90, "turns": 5732, "questions": 400, "evidence_ids": 1094}
    assert {name: data.counts[name] for name in wanted} == wanted
    assert set(data.counts["questions_by_category"].values()) == {40}
    assert data.counts["questions_without_evidence"] == 45
    assert [data.notes[name] for name in ("markers", "half_sources", "unresolved_source_ids")] == [2155, 1, 0]
