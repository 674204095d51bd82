"""One's own data: the format, what its validator says, conversions from other formats, and the example."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.convert_data import main as convert
from eval.inspect_data import main as inspect
from eval.loaders.custom import CustomConfig, number_kinds
from eval.loaders.custom_files import read_custom, schema
from eval.loaders.exports.formats import read_export
from eval.loaders.locate import sample_path
from eval.loaders.locomo import LocomoConfig
from eval.loaders.longmemeval import LongmemevalConfig
from eval.metrics.sessions import EVIDENCE_SESSIONS
from memsys.errors import ConfigError, DataError

ROOT = Path(__file__).resolve().parents[4]
TURN = {"conversation": "c", "session": "s", "id": "1", "speaker": "Ann", "text": "A cat."}
QUESTION = {"conversation": "c", "id": "q", "question": "What?", "answers": ["A cat"], "evidence": ["1"]}


def write(folder: Path, turns: Sequence[Any] = (TURN,), questions: Sequence[Any] = (QUESTION,)) -> Path:
    for name, rows in (("turns", turns), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in rows), encoding="utf-8")
    return folder


def test_every_field_arrives() -> None:
    data = CustomConfig(sample=True).load()
    first, second = data.samples
    assert [sample.conversation.conversation_id for sample in data.samples] == ["ines-and-tom", "support"]
    assert first.conversation.speakers == ("Ines", "Tom")
    turn = first.conversation.turns[2]
    assert (turn.turn_id, turn.session_id, turn.speaker) == ("3", "s1", "Ines")
    assert turn.date_time == "2024-03-02 18:09" and turn.caption.startswith("a blue enamel teapot")
    asked = [(question.question_id, question.kind, question.category) for question in first.questions]
    assert asked == [("q1", "single_hop", 4), ("q2", "temporal", 2), ("q3", "multi_hop", 1), ("q4", "adversarial", 5)]
    assert first.references["q2"].answers == ("19 March 2024", "2024-03-19")
    assert first.references["q3"].evidence == ("1", "6")
    assert first.references["q4"].answers == () and first.references["q4"].adversarial_answer == "He drove her home."
    assert [(ask.kind, ask.category, ask.question_date) for ask in second.questions] == [
        ("knowledge_update", 101, "2024-06-10 08:00"),
        ("opinion", 102, ""),
    ]
    assert data.category_names[101] == "knowledge-update" and data.counts["turns"] == 10


@pytest.mark.parametrize(
    ("said", "speakers"),
    [
        (["system", "user", "assistant", "user"], ("user", "assistant", "system")),
        (["assistant", "tool", "user"], ("user", "assistant", "tool")),
        (["Ben", "Ann"], ("Ben", "Ann")),
    ],
)
def test_the_user_of_a_chat_is_its_first_speaker(tmp_path: Path, said: list[str], speakers: tuple[str, ...]) -> None:
    """MemoryOS took the system message for the user, and the whole chat for one page."""
    turns = [{**TURN, "id": str(number), "speaker": name} for number, name in enumerate(said, start=1)]
    (sample,) = CustomConfig(data_dir=str(write(tmp_path, turns))).load().samples
    assert sample.conversation.speakers == speakers


def test_numbers_of_kinds_do_not_depend_on_the_order_of_the_file() -> None:
    assert number_kinds({"zebra", "temporal", "apple"}) == {"apple": 101, "temporal": 2, "zebra": 102}


def without(row: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}


@pytest.mark.parametrize(
    ("turns", "questions", "message"),
    [
        ([without(TURN, "text")], [QUESTION], "turns.jsonl: line 1: text: missing field"),
        ([{**TURN, "id": 1.5}], [QUESTION], "turns.jsonl: line 1: id: expected string, found number"),
        ([{**TURN, "id": True}], [QUESTION], "turns.jsonl: line 1: id: expected string, found"),
        ([{**TURN, "id": ""}], [QUESTION], "turns.jsonl: line 1: id: is empty"),
        ([{**TURN, "session": " "}], [QUESTION], "turns.jsonl: line 1: session: is empty"),
        ([{**TURN, "text": " "}], [QUESTION], "turns.jsonl: line 1: text: is empty; a turn has a text or a caption"),
        ([], [QUESTION], "turns.jsonl: holds no turn; write one a line"),
        ([{**TURN, "captoin": "x"}], [QUESTION], "turns.jsonl: line 1: captoin: unknown field; did you mean caption?"),
        ([TURN], [{"evidences": ["1"], **without(QUESTION, "evidence")}], "unknown field; did you mean evidence?"),
        ([TURN], [{**QUESTION, "kind": "tempral"}], "kind: 'tempral' is hardly a kind of its own; did you mean"),
        ([TURN], [{**QUESTION, "kind": "singlehop"}], "did you mean single_hop?"),
        ([["x"]], [QUESTION], "turns.jsonl: line 1: top level: expected object, found array"),
        ([TURN, TURN], [QUESTION], "turns.jsonl: line 3: id: duplicate turn id '1' in conversation 'c'"),
        (
            [TURN, {**TURN, "id": "2", "session": "t"}, {**TURN, "id": "3"}],
            [QUESTION],
            "turns.jsonl: line 5: session: session 's' ended before; keep the lines of a session together",
        ),
        ([TURN], [QUESTION, QUESTION], "questions.jsonl: line 3: id: duplicate question id 'q'"),
        ([TURN], [{**QUESTION, "answers": "cat"}], "questions.jsonl: line 1: answers: expected array, found string"),
        ([TURN], [{**QUESTION, "answers": ["a", 2]}], "questions.jsonl: line 1: answers[1]: expected string, found"),
        ([TURN], [{**QUESTION, "answers": []}], "questions.jsonl: line 1: answers: is empty; a question without"),
        ([TURN], [{**QUESTION, "evidence": ["1", "9"]}], "questions.jsonl: line 1: evidence[1]: conversation 'c' has"),
        (
            [TURN],
            [{**QUESTION, "evidence_sessions": ["t"]}],
            "questions.jsonl: line 1: evidence_sessions[0]: conversation 'c' has no session 't'",
        ),
        (
            [{**TURN, "id": "s:1"}, {**TURN, "id": "2"}],
            [{**QUESTION, "evidence": [], "evidence_sessions": ["s"]}],
            "line 1: evidence_sessions: needs turns that are called SESSION:PLACE; turn '2' is not",
        ),
        ([TURN], [{**QUESTION, "conversation": "d"}], "line 1: conversation: turns.jsonl has no conversation 'd'"),
        ([TURN], [{**QUESTION, "kind": "Multi-hop"}], "questions.jsonl: line 1: kind: 'Multi-hop' must be small"),
        ([TURN], [{**QUESTION, "false_answer": "dog"}], "false_answer: belongs to questions of kind adversarial alone"),
    ],
)  # fmt: skip
def test_a_fault_is_named_with_file_line_and_field(
    tmp_path: Path, turns: list[Any], questions: list[Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path, turns, questions)
    with pytest.raises(DataError, match=re.escape(message)):
        read_custom(folder)
    assert inspect(["dataset=custom", f"data_dir={folder}"]) == 2
    assert message[:40] in " ".join(capsys.readouterr().err.split())


def test_several_faults_are_listed_at_once_up_to_five(tmp_path: Path) -> None:
    folder = write(tmp_path, [without(TURN, "text")], [without(without(QUESTION, "id"), "answers")])
    with pytest.raises(DataError) as caught:
        read_custom(folder)
    assert str(caught.value).splitlines() == [
        "turns.jsonl: line 1: text: missing field",
        "  questions.jsonl: line 1: id: missing field",
        "  questions.jsonl: line 1: answers: missing field",
    ]
    with pytest.raises(DataError, match="and 2 more"):
        read_custom(write(tmp_path, [{"conversation": "c", "session": "s", "id": "1"}] * 7))


def test_a_line_of_broken_json_hides_no_other_fault(tmp_path: Path) -> None:
    folder = write(tmp_path, [TURN, without(TURN, "text"), {**TURN, "id": "2", "text": " "}], [QUESTION, QUESTION])
    with (folder / "turns.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"conversation": "c",\n')
    with pytest.raises(DataError) as caught:
        read_custom(folder)
    first, *others = str(caught.value).splitlines()
    assert "turns.jsonl: no valid JSON at line 7, column 22" in first
    assert others == [
        "  turns.jsonl: line 3: text: missing field",
        "  turns.jsonl: line 5: text: is empty; a turn has a text or a caption, else leave its line out",
        "  questions.jsonl: line 3: id: duplicate question id 'q'",
    ]


def test_what_a_broken_line_may_hold_is_not_reported_as_missing(tmp_path: Path) -> None:
    folder = write(tmp_path, [TURN], [{**QUESTION, "evidence": ["2"]}])
    with (folder / "turns.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"conversation": "c", "session": "s", "id": "2", "text": "A\n')
    with pytest.raises(DataError) as caught:
        read_custom(folder)
    assert "has no turn" not in str(caught.value)


def test_ids_may_be_numbers_and_turns_messages_of_openai(tmp_path: Path) -> None:
    turns = [
        {"conversation": 7, "session": 1, "id": number, "role": role, "content": "A cat.", "mood": "gay"}
        for number, role in enumerate(("user", "assistant"))
    ]
    questions = [{**QUESTION, "conversation": 7, "id": 0, "evidence": [1], "kind": "temporal_order", "level": 2}]
    data = CustomConfig(data_dir=str(write(tmp_path, turns, questions))).load()
    (sample,) = data.samples
    assert [(turn.turn_id, turn.speaker, turn.text) for turn in sample.conversation.turns] == [
        ("0", "user", "A cat."),
        ("1", "assistant", "A cat."),
    ]
    assert sample.references["0"].evidence == ("1",) and sample.questions[0].kind == "temporal_order"
    assert data.notes["unread_fields"] == ["turns.jsonl: mood", "questions.jsonl: level"]
    assert "unread_fields" not in CustomConfig(sample=True).load().notes


def test_own_kinds_are_picked_by_name(tmp_path: Path) -> None:
    rows = [
        {**QUESTION, "id": str(number), "kind": kind} for number, kind in enumerate(("temporal", "how_much", "why"))
    ]
    folder = str(write(tmp_path, [TURN], rows))
    data = CustomConfig(data_dir=folder, categories=["how-much", "temporal"]).load()
    assert [ask.kind for sample in data.samples for ask in sample.questions] == ["temporal", "how_much"]
    with pytest.raises(ConfigError, match=r"choose from 2 \(temporal\), 101 \(how_much\), 102 \(why\)"):
        CustomConfig(data_dir=folder, categories=["list"]).load()


def test_dates_that_cannot_be_read_are_named_by_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # no cell is folded
    dates = ["2024-05-03", "banana", "1:56 pm on 8 May, 2023", " ", "10:15", "30 February 2024", "x", "y", "z"]
    turns = [{**TURN, "id": str(number), "date": date} for number, date in enumerate(dates)]
    folder = write(tmp_path, turns, [{**QUESTION, "date": "soon"}])
    named = {3: "banana", 9: "10:15", 11: "30 February 2024", 13: "x", 15: "y"}
    unread = [*(f"turns.jsonl: line {line}: date {date!r}" for line, date in named.items()), "and 2 more"]
    assert CustomConfig(data_dir=str(folder)).load().notes["unread_dates"] == unread
    assert inspect(["dataset=custom", f"data_dir={folder}"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "unread dates" in shown and "turns.jsonl: line 3: date 'banana', turns" in shown and "cannot be parsed" in shown
    )
    assert "unread_dates" not in CustomConfig(sample=True).load().notes


def test_a_run_says_which_dates_cannot_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dates = ["2024年5月3日", "2024-05-03T10:15:00+02:00", "3 мая 2024"]
    turns = [{**TURN, "id": str(number), "date": date} for number, date in enumerate(dates, start=1)]
    CustomConfig(data_dir=str(write(tmp_path, turns))).load()
    (message,) = [record.getMessage() for record in caplog.records]
    assert "write them as 2024-05-03 10:15: turns.jsonl: line 5: date '3 мая 2024'" in message


def test_turns_without_questions_can_be_looked_at_and_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path, [TURN], [])
    assert inspect(["dataset=custom", f"data_dir={folder}"]) == 0
    shown = capsys.readouterr()
    assert "warning: questions.jsonl holds no question; memsys run needs one" in shown.err
    assert "memories that are built" in " ".join(shown.out.split())
    assert "There are no questions yet" in shown.out and "nothing to tell" not in shown.out
    assert inspect(["dataset=custom", f"data_dir={folder}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["counts"]["turns"], report["counts"]["questions"], report["categories"]) == (1, 0, [])
    with pytest.raises(DataError, match=re.escape("questions.jsonl: holds no question; write one a line")):
        CustomConfig(data_dir=str(folder)).load()
    (folder / "questions.jsonl").unlink()
    assert inspect(["dataset=custom", f"dataset.data_dir={folder}", "--json"]) == 0
    shown = capsys.readouterr()
    assert "memsys run needs one" in shown.err and list(json.loads(shown.out)["notes"]["files"]) == ["turns.jsonl"]
    with pytest.raises(DataError, match=r"questions\.jsonl: no such file; write one question a line \(docs/your_own"):
        CustomConfig(data_dir=str(folder)).load()


def test_null_is_as_good_as_a_field_that_is_not_there(tmp_path: Path) -> None:
    """Tables that programs write as JSON Lines have null where a cell is empty."""
    turn, question = {**TURN, "speaker": None, "date": None}, {**QUESTION, "kind": None, "evidence": None}
    [sample], *_ = read_custom(write(tmp_path, [turn], [question]))
    assert sample.conversation.turns[0].speaker == "" and sample.references["q"].evidence == ()
    with pytest.raises(DataError, match="text: expected string, found null"):
        read_custom(write(tmp_path, [{**TURN, "text": None}]))


def test_broken_lines_and_folders_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path)
    (folder / "questions.jsonl").write_text(json.dumps(QUESTION) + '\n{"conversation": "c",', encoding="utf-8")
    with pytest.raises(
        DataError, match=r"questions\.jsonl: no valid JSON at line 2, column 22 .*one whole JSON object"
    ):
        read_custom(folder)
    with pytest.raises(DataError, match=r"nothing: no such folder\. Write turns\.jsonl"):
        CustomConfig(data_dir=str(tmp_path / "nothing")).load()
    with pytest.raises(DataError, match=r"needs dataset\.data_dir=FOLDER"):
        CustomConfig().load()
    (folder / "turns.jsonl").unlink()
    with pytest.raises(DataError, match=r"turns\.jsonl: no such file; write one turn a line \(docs/your_own_data"):
        read_custom(folder)


@pytest.mark.parametrize("name", ["turns.jsonl", "questions.jsonl"])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("rows", [2, 1, 0])
def test_a_json_array_is_one_fault_with_the_command_that_converts_it(
    tmp_path: Path, name: str, indent: int | None, rows: int
) -> None:
    folder = write(tmp_path)
    row = TURN if name == "turns.jsonl" else QUESTION
    (folder / name).write_text(json.dumps([row] * rows, indent=indent), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_custom(folder)
    assert str(caught.value) == (
        f"{folder / name}: is one JSON array, where one JSON object a line is expected (JSON Lines); "
        f"convert it with: jq -c '.[]' {name} > new.jsonl"
    )


def test_a_file_that_only_begins_with_an_array_is_not_called_one(tmp_path: Path) -> None:
    folder = write(tmp_path)
    text = f'["x"]\n{json.dumps(TURN)}\n{{"cut"\n{{"cut"\n'
    (folder / "turns.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"line 3, column .+") as caught:
        read_custom(folder)
    assert "turns.jsonl: line 1: top level: expected object, found array" in str(caught.value)


def test_the_page_has_every_field_of_the_schema() -> None:
    page = (ROOT / "docs" / "your_own_data.md").read_text(encoding="utf-8")
    turns, questions = page.split("`questions.jsonl` has one line")
    for text, kind in ((turns, "turn"), (questions, "question")):
        shape = schema()["$defs"][kind]
        rows = dict(re.findall(r"^\| `(\w+)` \| (needed|) *\|", text, re.MULTILINE))
        assert set(rows) == set(shape["properties"])
        assert {name for name, needed in rows.items() if needed} == set(shape["required"])


OPENAI = [
    {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]},
    {"id": 7, "messages": [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}, {"type": "image_url"}]},
                           {"role": "assistant", "content": None}]},
]  # fmt: skip
SHAREGPT = [{"id": "x", "conversations": [{"from": "human", "value": "Hello"}, {"from": "gpt", "value": "Hi"}]}]


def _message(role: str, parts: list[Any], time: float | None = None) -> dict[str, Any]:
    return {"author": {"role": role}, "create_time": time, "content": {"content_type": "text", "parts": parts}}


CHATGPT = [
    {
        "id": "chat",
        "current_node": "d",
        "mapping": {
            "a": {"message": None, "parent": None},
            "b": {"message": _message("user", ["Hello"], 1714730400.5), "parent": "a"},
            "c": {"message": _message("assistant", ["left branch"]), "parent": "b"},
            "d": {"message": _message("assistant", ["Hi", {"image": 1}]), "parent": "t"},
            "t": {"message": _message("tool", ["search"]), "parent": "b"},
        },
    }
]
LONGMEMEVAL = [
    {
        "question_id": name, "question_type": "knowledge-update", "question": "Where?", "answer": 4,
        "question_date": "2023/05/30 (Tue) 23:40", "haystack_session_ids": ["s_a", "s_b"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 10:00"], "answer_session_ids": ["s_b"],
        "haystack_sessions": [[{"role": "user", "content": "Hello"}],
                              [{"role": "user", "content": "In Rome", "has_answer": name == "e1"},
                               {"role": "assistant", "content": "Nice"}]],
    }
    for name in ("e1", "e2_abs")
]  # fmt: skip


@pytest.mark.parametrize(
    ("form", "content", "turns"),
    [
        (
            "openai",
            OPENAI,
            [("1", "system", "Be brief.", ""), ("1", "user", "Hello", ""), ("7", "assistant", "Hi", "")],
        ),
        ("openai", OPENAI[0]["messages"], [("1", "system", "Be brief.", ""), ("1", "user", "Hello", "")]),
        (
            "openai",
            [OPENAI[0]["messages"], OPENAI[1]["messages"]],
            [("1", "system", "Be brief.", ""), ("1", "user", "Hello", ""), ("2", "assistant", "Hi", "")],
        ),
        ("sharegpt", SHAREGPT, [("x", "user", "Hello", ""), ("x", "assistant", "Hi", "")]),
        (
            "sharegpt",
            [{"items": SHAREGPT[0]["conversations"]}, {"conversations": OPENAI[0]["messages"]},
             {"items": [{"role": "human", "content": "Hello"}]}],
            [("1", "user", "Hello", ""), ("1", "assistant", "Hi", ""), ("2", "system", "Be brief.", ""),
             ("2", "user", "Hello", ""), ("3", "user", "Hello", "")],
        ),
        (
            "chatgpt",
            CHATGPT,
            [("chat", "user", "Hello", "2024-05-03 10:00"), ("chat", "assistant", "Hi", "")],
        ),
    ],
)  # fmt: skip
def test_chats_become_turns(
    tmp_path: Path, form: str, content: Any, turns: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "chat.json", tmp_path / "out"
    source.write_text(json.dumps(content), encoding="utf-8")
    assert convert([form, str(source), "--out", str(out)]) == 0
    assert "the export has no questions" in capsys.readouterr().out
    rows = [json.loads(line) for line in (out / "turns.jsonl").read_text().splitlines()]
    assert [(row["conversation"], row["speaker"], row["text"], row.get("date", "")) for row in rows] == turns
    asked = {**QUESTION, "conversation": rows[0]["conversation"]}
    (out / "questions.jsonl").write_text(json.dumps(asked) + "\n")
    assert CustomConfig(data_dir=str(out)).load().counts["turns"] == len(turns)
    assert convert([form, str(source), "--out", str(out)]) == 2
    assert "holds turns.jsonl and questions.jsonl already" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ([OPENAI[0]["messages"], OPENAI[0]["messages"]], ["1", "2"]),
        ([[OPENAI[0], OPENAI[0]]], ["1", "2"]),
        ([OPENAI[0]["messages"]], ["1"]),
    ],
)
def test_arrays_in_json_lines_are_converted(tmp_path: Path, lines: list[Any], names: list[str]) -> None:
    source, out = tmp_path / "chats.jsonl", tmp_path / "out"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert convert(["openai", str(source), "--out", str(out)]) == 0
    rows = [json.loads(line) for line in (out / "turns.jsonl").read_text().splitlines()]
    assert [row["conversation"] for row in rows] == [name for name in names for _ in range(2)]


def test_longmemeval_is_what_its_own_loader_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = LongmemevalConfig(sample=True).load()
    assert convert(["longmemeval", str(sample_path("longmemeval")), "--out", str(tmp_path)]) == 0
    assert "1 evidence ids name no turn and are left out" in capsys.readouterr().out
    after = CustomConfig(data_dir=str(tmp_path)).load()
    shown = ("sessions", "turns_per_conversation", "questions", "evidence_ids", "questions_without_evidence")
    assert {key: after.counts[key] for key in shown} == {key: before.counts[key] for key in shown}
    for old, new in zip(before.samples, after.samples, strict=True):
        assert new.conversation == old.conversation
        assert [replace(question, category=0) for question in new.questions] == [
            replace(question, category=0) for question in old.questions
        ]
        for name, gold in old.references.items():
            assert (new.references[name].answers, new.references[name].evidence) == (gold.answers, gold.evidence)
            assert new.references[name].extra.get(EVIDENCE_SESSIONS) == gold.extra.get(EVIDENCE_SESSIONS)


def test_longmemeval_as_json_lines(tmp_path: Path) -> None:
    source, out = tmp_path / "lme.jsonl", tmp_path / "out"
    source.write_text("".join(json.dumps(row) + "\n" for row in LONGMEMEVAL), encoding="utf-8")
    assert convert(["longmemeval", str(source), "--out", str(out)]) == 0
    known, absent = CustomConfig(data_dir=str(out)).load().samples
    (question,), reference = known.questions, known.references["e1"]
    assert (question.kind, question.question_date) == ("knowledge_update", "2023/05/30 (Tue) 23:40")
    assert (reference.answers, reference.evidence) == (("4",), ("s_b:1",))
    assert reference.extra == {"evidence_sessions": ["s_b"]}
    assert absent.questions[0].kind == "adversarial" and absent.references["e2_abs"].answers == ("4",)


def test_messages_without_text_are_no_turns_and_no_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "lme.json", tmp_path / "out"
    top = json.loads(json.dumps(LONGMEMEVAL[:1]))
    top[0]["haystack_sessions"][1][0]["content"] = " "
    source.write_text(json.dumps(top), encoding="utf-8")
    assert convert(["longmemeval", str(source), "--out", str(out)]) == 0
    assert "1 evidence ids name no turn and are left out" in capsys.readouterr().out
    (sample,) = CustomConfig(data_dir=str(out)).load().samples
    assert [turn.turn_id for turn in sample.conversation.turns] == ["s_a:1", "s_b:2"]


@pytest.mark.parametrize(
    ("form", "chats", "names"),
    [
        ("openai", [{**OPENAI[0], "id": "a"}] * 3, ["a", "a#2", "a#3"]),
        ("openai", [{**OPENAI[0], "id": 2}, OPENAI[0], {**OPENAI[0], "id": "2#2"}], ["2", "2#3", "2#2"]),
        ("sharegpt", SHAREGPT * 2, ["x", "x#2"]),
        ("sharegpt", [{**SHAREGPT[0], "id": " "}], ["1"]),
        ("chatgpt", CHATGPT * 2, ["chat", "chat#2"]),
    ],
)  # fmt: skip
def test_chats_of_one_id_get_different_ones(
    tmp_path: Path, form: str, chats: list[Any], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "chats.json", tmp_path / "out"
    source.write_text(json.dumps(chats), encoding="utf-8")
    assert convert([form, str(source), "--out", str(out)]) == 0
    renamed = [name for name in names[1:] if "#" in name and name != "2#2"]
    said = f"chats that had the id of an earlier one are now called {', '.join(renamed)}"
    assert (said in capsys.readouterr().out) == bool(renamed)
    assert inspect(["dataset=custom", f"data_dir={out}", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [row["conversation"] for row in report["conversations"]] == names


def test_two_questions_of_one_id_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "lme.json"
    source.write_text(json.dumps(LONGMEMEVAL[:1] * 2), encoding="utf-8")
    assert convert(["longmemeval", str(source), "--out", str(tmp_path / "out")]) == 2
    assert "duplicate conversation ids ['e1']" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_locomo_comes_through_with_questions_and_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = LocomoConfig(sample=True).load()
    assert convert(["locomo", str(sample_path("locomo")), "--out", str(tmp_path)]) == 0
    lost = before.counts["unresolved_evidence_ids"]
    said = " ".join(capsys.readouterr().out.split())
    assert f"{lost} evidence ids name no turn and are left out" in said
    assert "next: memsys inspect_data dataset=custom dataset.data_dir=" in said  # the form that a run takes too
    after = CustomConfig(data_dir=str(tmp_path)).load()
    shown = ("sessions", "turns", "questions_by_category", "captions", "evidence_ids", "questions_without_evidence")
    assert {key: after.counts[key] for key in shown} == {key: before.counts[key] for key in shown}
    for old, new in zip(before.samples, after.samples, strict=True):
        assert new.questions == old.questions


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("answers.csv", r"answers.csv: is a table \(.csv\), where openai expects JSON: objects with messages"),
        ("nofile.json", r"nofile.json: cannot be read \(No such file or directory\); check the path$"),
        ("broken.json", r"broken.json: no valid JSON at line 2, column 5 .*; correct it there; "),
    ],
)
def test_advice_fits_a_file_of_ones_own(tmp_path: Path, name: str, message: str) -> None:
    """It was to fetch the file again, or to check settings that the command does not have."""
    (tmp_path / "answers.csv").write_text("question,prediction\nWho?,Ann\n")
    (tmp_path / "broken.json").write_text('[{"role": "user",\n    content: "x"}]')
    with pytest.raises(DataError, match=message):
        read_export("openai", tmp_path / name)


@pytest.mark.parametrize(
    ("form", "text", "message"),
    [
        ("openai", '[{"messages": [{"content": "x"}]}]', r"chat.json: \[0\].messages\[0\].role: missing field"),
        ("openai", '{"a": 1}', "chat.json: top level: expected object with messages, or array of messages, "
                               "found object with a$"),
        ("openai", '[{"messages": []}, {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7}]',
         r"chat.json: \[1\]: expected object with messages, .+, found object with a, b, c, d, e and 2 more$"),
        ("openai", "[7]", r"chat.json: \[0\]: expected object with messages, or array of messages, found number$"),
        ("openai", '[{"messages": []}, {"messages": [{"role": "user", "contnt": "hi"}]}]',
         r"chat.json: \[1\].messages\[0\]: expected object with role and content, found object with role, contnt$"),
        ("openai", '{"role": "user", "contnt": "hi"}',
         "chat.json: top level: expected object with role and content, found object with role, contnt$"),
        ("openai", '[{"role": "assistant", "content": null}]',
         r"\[0\].content: expected text, found null; no message of the file has text$"),
        ("openai", '[{"messages": []}]', "holds no turn that could be converted from openai"),
        ("openai", "", "chat.json: is empty; expected objects with messages of role and content, or arrays"),
        ("chatgpt", "\ufeff \n", "chat.json: is empty; expected conversations.json of an export"),
        ("locomo", "", "chat.json: is empty; expected an array of conversations as in locomo10.json"),
        ("sharegpt", "[]", "holds no turn that could be converted from sharegpt; expected objects with conversations"),
        ("sharegpt", '[{"id": "x", "talk": []}]',
         r"chat.json: \[0\]: expected object with conversations or items, found object with id, talk$"),
        ("sharegpt", '[{"items": [{"from": "gpt", "text": "x"}]}]',
         r"\[0\].items\[0\]: expected object with from and value, or with role and content, "
         "found object with from, text$"),
        ("chatgpt", '[{"id": "x"}]', r"\[0\].mapping: missing field"),
        ("longmemeval", '[{"question_id": "x", "haystack_session_ids": [], "haystack_dates": [], '
                        '"haystack_sessions": [[]]}]', "0 ids, 0 dates, 1 sessions"),
    ],
)  # fmt: skip
def test_a_file_of_another_format_is_refused(
    tmp_path: Path, form: str, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chat.json").write_text(text, encoding="utf-8")
    assert convert([form, str(tmp_path / "chat.json"), "--out", str(tmp_path / "out")]) == 2
    assert re.search(message, " ".join(capsys.readouterr().err.split()))
    assert not (tmp_path / "out").exists()


def test_the_example_writes_checks_and_runs_in_under_thirty_lines(tmp_path: Path) -> None:
    example = ROOT / "examples" / "own_data.py"
    assert len(example.read_text().splitlines()) < 30
    subprocess.run(
        [sys.executable, example, tmp_path, "hashing"], cwd=ROOT, check=True, capture_output=True, timeout=240
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["counts"]["questions"] == 2
    alone = subprocess.run([sys.executable, example], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert alone.returncode == 1 and "Usage: python examples/own_data.py FOLDER" in alone.stderr.splitlines()[0]
