"""REALTALK: what differs from LoCoMo, on a chat of our own whose gold is worked out by hand."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.loaders.locate import sample_path
from eval.loaders.realtalk import REALTALK, RealtalkConfig, chat_files
from eval.loaders.realtalk_evidence import TurnIds, resolve
from memsys.errors import ConfigError, DataError
from memsys.vocabulary import Turn

CHAT = "Chat_1_Rosa_Mirko"


def test_turns_have_dates_of_their_own_and_pictures() -> None:
    (sample,) = RealtalkConfig(sample=True).load().samples
    turns = {turn.turn_id: turn for turn in sample.conversation.turns}
    assert sample.conversation.conversation_id == CHAT and sample.conversation.speakers == ("Rosa", "Mirko")
    assert list(turns)[:4] == ["D1:1", "D1:2", "D1:4", "D1:5"] and len(turns) == 13
    assert turns["D1:2"].date_time == "04.03.2024, 19:05:40" and turns["D1:1"].date_time == "04.03.2024, 19:02:11"
    assert turns["D1:4"].caption == "a brown dog lying on a green carpet" and turns["D1:4"].extra == {"img_url": True}
    assert turns["D2:3"].extra == {"img_url": True} and turns["D1:5"].extra == {}
    assert turns["D2:2"].text.endswith("weekend.\nBiscuit comes along.") and turns["D3:1"].session_id == "session_3"


def test_evidence_is_resolved_as_worked_out_by_hand() -> None:
    data = RealtalkConfig(sample=True).load()
    (sample,) = data.samples
    found = {key.removeprefix(f"{CHAT}:"): reference for key, reference in sample.references.items()}
    assert {key: reference.evidence for key, reference in found.items()} == {
        "q000": ("D2:1", "D3:2"),
        "q001": ("D1:6", "D2:2"),  # two ids in one string
        "q002": ("D1:4",),  # D1:3 is the picture that the file merged into D1:4
        "q003": ("D2:1",),
        "q004": ("D3:1", "D3:2", "D3:3", "D3:4"),  # a range, and one of it again
        "q005": ("D3:4",),
        "q006": ("D1:4",),
        "q007": ("D2:3",),  # a blank in the id, and the picture's own number
    }
    assert found["q005"].unresolved_evidence == ("D3:40",)
    kinds = [(question.category, question.kind) for question in sample.questions]
    assert Counter(kinds) == {(1, "multi_hop"): 4, (2, "temporal"): 2, (3, "open_domain"): 2}
    notes = {key: value for key, value in data.notes.items() if key.startswith("evidence")}
    assert notes == {
        "evidence_strings": 14, "evidence_strings_irregular": 7, "evidence_strings_repaired": 5, "evidence_ranges": 1,
        "evidence_strings_empty": 1, "evidence_of_pictures": 2, "evidence_repeated": 2, "evidence_ids_unresolved": 1,
    }  # fmt: skip


def chat(*places: tuple[int, int, bool]) -> TurnIds:
    return TurnIds.of(
        Turn(f"D{session}:{number}", f"session_{session}", "A", "x", extra={"img_url": True} if picture else {})
        for session, number, picture in places
    )


@pytest.mark.parametrize(
    ("ids", "string", "found", "lost"),
    [
        (chat((1, 1, True), (1, 3, False)), "D1:2", ("D1:1",), ()),
        (chat((1, 1, False), (1, 3, True)), "D1:2", ("D1:3",), ()),
        (chat((1, 1, True), (1, 3, True)), "D1:2", (), ("D1:2",)),  # either may hold it
        (chat((1, 1, False), (1, 3, False)), "D1:2", (), ("D1:2",)),
        (chat((1, 1, True), (1, 4, False)), "D1:2", (), ("D1:2",)),  # two are missing
        (chat((1, 1, True)), "D1:2", (), ("D1:2",)),  # beyond the session's end
        (chat((1, 2, True)), "D1:1", ("D1:2",), ()),  # before its first turn
        (chat((1, 1, False), (2, 1, False)), "D1:1. D2:1", ("D1:1", "D2:1"), ()),
        (chat((1, 1, False), (1, 2, False)), "D1:1-D1:2", ("D1:1", "D1:2"), ()),
        (chat((1, 1, False), (2, 2, False)), "D1:1-D2:2", (), ("D1:1-D2:2",)),  # over two sessions: no range
        (chat((1, 7, False)), "D1;7", ("D1:7",), ()),
        (chat((1, 1, False)), "D:56", (), ("D:56",)),
        (chat((1, 1, False)), " ", (), ()),
        (chat((1, 1, False)), f"D1:{'9' * 9}", (), (f"D1:{'9' * 9}",)),
    ],
)
def test_one_evidence_string(ids: TurnIds, string: str, found: tuple[str, ...], lost: tuple[str, ...]) -> None:
    assert resolve([string], ids, Counter()) == (found, lost)


Damage = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: d["qa"][3].pop("evidence"), "qa[3].evidence: missing field"),
        (lambda d: d["session_1"][0].pop("clean_text"), "session_1[0].clean_text: missing field"),
        (lambda d: d["session_1"][1].update(dia_id="D1:1"), "session_1[1].dia_id: duplicate turn id 'D1:1'"),
        (lambda d: d["qa"][0].update(category=5), "qa[0].category: unknown category 5; known are 1 multi-hop, 2"),
        (lambda d: d.update(session_2={}), "session_2: expected array, found object"),
        (lambda d: d["session_1"][0].update(img_file="x"), "session_1[0].img_file: expected array, found string"),
    ],
)
def test_a_fault_is_named_with_file_and_place(tmp_path: Path, damage: Damage, message: str) -> None:
    data = json.loads((sample_path("realtalk", "sample") / f"{CHAT}.json").read_text())
    damage(data)
    (tmp_path / f"{CHAT}.json").write_text(json.dumps(data))
    with pytest.raises(DataError, match=f"^{CHAT}.json: {re.escape(message)}"):
        RealtalkConfig(path=str(tmp_path)).load()


def test_chats_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        (tmp_path / f"Chat_{number}_A_B.json").write_text("{}")
    assert [path.name for path in chat_files(tmp_path)] == [f"Chat_{number}_A_B.json" for number in (1, 2, 10)]
    assert chat_files(tmp_path / "Chat_2_A_B.json") == [tmp_path / "Chat_2_A_B.json"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"holds no Chat_<number>_<names>\.json of REALTALK"):
        RealtalkConfig(path=str(tmp_path / "empty")).load()
    with pytest.raises(ConfigError, match="not in this data set; choose from Chat_1_Rosa_Mirko"):
        RealtalkConfig(sample=True, conversations=["Chat_9"]).load()


@pytest.mark.real_data
def test_the_published_chats(data_dir: Path) -> None:
    data = RealtalkConfig(data_dir=str(data_dir)).load()
    assert data.notes["pinned"] is True and len(data.notes["files"]) == 10
    assert data.counts == {
        "conversations": 10, "sessions": 219, "turns": 8944,
        "turns_per_conversation": [476, 453, 422, 410, 1548, 1511, 1162, 1044, 1256, 662],
        "questions": 728, "questions_by_category": {"1": 301, "2": 319, "3": 108},
        "captions": 313, "captions_with_img_url": 313,
        "evidence_ids": 1802, "unresolved_evidence_ids": 12, "questions_without_evidence": 2,
    }  # fmt: skip
    assert dict(REALTALK.question_counts) == {1: 301, 2: 319, 3: 108}
    lost = Counter(
        one for sample in data.samples for ref in sample.references.values() for one in ref.unresolved_evidence
    )
    assert lost == {"D20:1": 3, "D3:11": 1, "D1:41": 1, "D1:42": 1, "D10:12": 1, "D8:13": 1, "D:56": 1, "D58": 1,
                    "D19:29": 1, "23:29": 1}  # fmt: skip
    assert (data.notes["evidence_of_pictures"], data.notes["evidence_ranges"]) == (125, 22)
