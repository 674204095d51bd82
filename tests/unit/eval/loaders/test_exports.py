"""Exports of chats as people have them, each format on its sample in datasets/custom/exports."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from eval.convert_data import main as convert
from eval.loaders.custom import CustomConfig
from eval.loaders.exports import sources
from eval.loaders.exports.chatgpt import without_marks
from eval.loaders.exports.formats import FORMATS, read_export
from eval.loaders.exports.slack import without_references
from eval.loaders.exports.whatsapp import date_order
from eval.loaders.locate import sample_path
from memsys.errors import DataError

SAMPLES = sample_path("custom", "exports")
#: Format -> its sample.
SAMPLE = {
    "chatgpt": "chatgpt.json", "claude": "claude.json", "slack": "slack", "openai": "openai.jsonl",
    "sharegpt": "sharegpt.json", "whatsapp": "whatsapp_android.txt",
}  # fmt: skip


def _convert(out: Path, form: str, source: Path, *options: str) -> list[dict[str, str]]:
    assert convert([form, str(source), "--out", str(out), *options]) == 0
    return [json.loads(line) for line in (out / "turns.jsonl").read_text(encoding="utf-8").splitlines()]


def _zip(path: Path, members: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _shown(rows: Sequence[Mapping[str, str]]) -> list[tuple[str, str, str]]:
    return [(row["session"], row["speaker"], row["text"]) for row in rows]


def test_chatgpt_without_what_was_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hidden messages and calls of tools were turns, citation marks stayed, and an empty chat vanished."""
    rows = _convert(tmp_path / "out", "chatgpt", SAMPLES / "chatgpt.json")
    assert _shown(rows) == [
        ("Bees in the garden", "user", "I keep bees. How much honey does a hive give?"),
        ("Bees in the garden", "assistant", "About 20 kg a year, more in Graz."),
        ("A name for a cat", "user", "Help me name my grey cat."),
        ("A name for a cat", "user", "She likes to sleep on my keyboard."),
        ("A name for a cat", "assistant", "How about Pixel?"),
    ]
    assert [row["conversation"] for row in rows] == ["c-bees"] * 2 + ["c-cat"] * 3
    said = " ".join(capsys.readouterr().out.split())
    for reason in (
        "hidden messages (3)",
        "calls of tools (1)",
        "messages of tool (1)",
        "chats without a message (1)",
        "messages of other branches (1)",
        "thoughts, code and tools (thoughts) (1)",
        "without text (1)",
    ):
        assert reason in said  # fmt: skip


def test_chats_are_the_sessions_of_one_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each chat was a memory of its own."""
    rows = _convert(tmp_path / "out", "chatgpt", SAMPLES / "chatgpt.json", "--one-memory")
    assert list(dict.fromkeys(row["session"] for row in rows)) == ["A name for a cat", "Bees in the garden"]
    assert {row["conversation"] for row in rows} == {"chatgpt"} and [row["id"] for row in rows] == [*"12345"]
    assert "1 conversations, 2 sessions, 5 turns" in " ".join(capsys.readouterr().out.split())
    (tmp_path / "out" / "questions.jsonl").write_text(
        '{"conversation": "chatgpt", "id": "q", "question": "The cat?", "answers": ["Pixel"], "evidence": ["3"]}\n'
    )
    assert CustomConfig(data_dir=str(tmp_path / "out")).load().counts["sessions"] == 2
    rows = _convert(tmp_path / "undated", "openai", SAMPLES / "openai.jsonl", "--one-memory")
    assert [row["session"] for row in rows] == ["s1", "s1", "s1", "s2"]
    assert "in the order of the file, as some have no date" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("So \ue200cite\ue202turn0search1\ue202turn1view0\ue201.", "So."),
        ("\ue200image_group\ue202{\"query\": [\"x\"]}\ue201Then", "Then"),
        ("In \ue200entity\ue202[\"city\",\"Graz\",\"Austria\"]\ue201 now", "In Graz now"),
        ("See \ue200link_title\ue202The page\ue202turn0\ue201", "See The page"),
        ("A \ue203span\ue204 and 【12†source】 end", "A span and end"),
        ("【brackets】 stay", "【brackets】 stay"),
    ],
)  # fmt: skip
def test_marks_of_citations_go(text: str, left: str) -> None:
    assert without_marks(text) == left


def test_claude(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = _convert(tmp_path / "out", "claude", SAMPLES / "claude.json")
    assert [(row["conversation"], row["speaker"], row["text"], row["date"]) for row in rows] == [
        ("k-move", "user", "Hi, I am Eve. My sister moved to Oslo.", "2025-01-02 03:04"),
        ("k-move", "assistant", "Hello Eve, when did she move?", "2025-01-02 03:04"),
        ("k-move", "user", "Last week.", "2025-01-02 03:05"),
        ("k-tea", "user", "I drink green tea only.", "2024-12-24 10:00"),
        ("k-tea", "assistant", "Noted.", "2024-12-24 10:00"),
    ]
    said = " ".join(capsys.readouterr().out.split())
    for reason in (
        "parts that are thoughts or tools (2)",
        "attached files (1)",
        "messages of other branches (1)",
        "chats without a message (1)",
    ):
        assert reason in said  # fmt: skip


def test_slack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = _convert(tmp_path / "out", "slack", SAMPLES / "slack")
    assert [(row["conversation"], *shown) for row, shown in zip(rows, _shown(rows), strict=True)] == [
        ("Ann, Ben Roe", "2024-05-03", "Ben Roe", "Lunch?"),
        ("garden", "2024-05-03", "Ann",
         "Who waters the tomatoes & beans, @Ben Roe? See the plan (https://garden.example/plan)"),
        ("garden", "2024-05-03", "Ben Roe", "I do, every Friday."),
        ("garden", "2024-05-03", "Ben Roe", "The bees are back in #garden @here"),
        ("garden", "2024-05-04", "Ann", "Hello again"),
    ]  # fmt: skip
    said = " ".join(capsys.readouterr().out.split())
    assert "messages without text (1), messages of bots (1), joins and other notices (1)" in said
    together = _convert(tmp_path / "one", "slack", SAMPLES / "slack", "--one-memory")
    assert list(dict.fromkeys(row["session"] for row in together)) == [
        "garden 2024-05-03", "Ann, Ben Roe 2024-05-03", "garden 2024-05-04"
    ]  # fmt: skip


def test_references_of_slack_are_named() -> None:
    text = "<@U1> <@U9|guest> <#C1|general> <!subteam^S1|@crew> <mailto:a@b.c|a@b.c> <https://x.y> 1 &lt; 2"
    assert without_references(text, {"U1": "Ann"}) == "@Ann @guest #general @crew a@b.c https://x.y 1 < 2"


def test_whatsapp_of_android(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = _convert(tmp_path / "out", "whatsapp", SAMPLES / "whatsapp_android.txt")
    assert [(row["speaker"], row["text"], row["date"]) for row in rows] == [
        ("Ann", "My grey cat is called Pixel\nand sleeps on the sofa: all day", "2024-05-03 10:15"),
        ("Ben Roe", "My sister moved to Oslo", "2024-05-13 18:06"),
    ]
    assert "left out: notices of the program (2), media (2), deleted messages (1)" in capsys.readouterr().out


def test_whatsapp_of_ios(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = _convert(tmp_path / "out", "whatsapp", SAMPLES / "whatsapp_ios.txt")
    assert [(row["speaker"], row["text"], row["date"]) for row in rows] == [
        ("Ann", "My grey cat is called Pixel", "2024-05-03 10:15"),
        ("Ben Roe", "My sister moved to Oslo", "2024-05-04 21:05"),
    ]
    assert "media, and notices in place of a message (2)" in " ".join(capsys.readouterr().out.split())
    members = {"_chat.txt": (SAMPLES / "whatsapp_ios.txt").read_bytes(), "0001-PHOTO.jpg": b"x"}
    members |= {"__MACOSX/._chat.txt": b"Mac OS X", "._notes.txt": b"Mac OS X"}
    packed = _zip(tmp_path / "WhatsApp Chat - Ben.zip", members)
    assert {row["conversation"] for row in _convert(tmp_path / "zip", "whatsapp", packed)} == {"Ben"}


@pytest.mark.parametrize(
    ("line", "text", "date"),
    [
        ("12/31/23, 12:05\u202fAM - A: x", "x", "2023-12-31 00:05"),
        ("31.12.23, 12:05 - A: x", "x", "2023-12-31 12:05"),
        ("2023-12-31, 12:05 - A: x", "x", "2023-12-31 12:05"),
        ("[31/12/2023, 1:05:06 p. m.] A: x: y", "x: y", "2023-12-31 13:05"),
        ("\u200e[31/12/2023, 13:05:06] \u202a+43 1\u202c: x", "x", "2023-12-31 13:05"),
        ("31/12/2023, 13:05 - A: IMG-20231231-WA0001.jpg (archivo)\nThe garden", "The garden", "2023-12-31 13:05"),
        ("[31/12/2023, 13:05:06] A: The garden \u200e<attached: 1.jpg>", "The garden", "2023-12-31 13:05"),
        ("[٣١‏/١٢‏/٢٠٢٣، ١:٠٥:٠٦ م] A: x", "x", "2023-12-31 13:05"),
        ("[2023. 12. 31. 오후 1:05:06] A: x", "x", "2023-12-31 13:05"),
        ("[31/12/2023 下午1:05:06] A: x", "x", "2023-12-31 13:05"),
        ("31/12/2023, 13:05 - A: see notes.txt (mine)", "see notes.txt (mine)", "2023-12-31 13:05"),
    ],
)
def test_lines_of_whatsapp(tmp_path: Path, line: str, text: str, date: str) -> None:
    (tmp_path / "chat.txt").write_text(line, encoding="utf-8")
    (chat,) = read_export("whatsapp", tmp_path / "chat.txt").chats
    (message,) = chat.sessions[0].messages
    assert (message.text, message.date) == (text, date)


@pytest.mark.parametrize(
    ("dates", "sign", "order"),
    [
        ([(13, 1, 24)], "/", "dmy"), ([(1, 13, 24)], "/", "mdy"), ([(2024, 1, 2)], "-", "ymd"),
        ([(1, 2, 24), (12, 2, 24), (1, 3, 24)], "/", "dmy"), ([(1, 2, 24), (1, 12, 24), (2, 1, 24)], "/", "mdy"),
        ([(1, 2, 24)], ".", "dmy"),
    ],
)  # fmt: skip
def test_the_whole_file_shows_the_order_of_day_and_month(
    dates: list[tuple[int, int, int]], sign: str, order: str
) -> None:
    assert date_order(dates, sign, Path("chat.txt")) == order


def test_an_order_that_does_not_show_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for lines in (
        "03/05/24, 10:15 - A: x\n04/05/24, 10:15 - A: x\n",
        "13/05/24, 10:15 - A: x\n04/15/24, 1:15 - A: x\n",
    ):
        (tmp_path / "chat.txt").write_text(lines)
        assert convert(["whatsapp", str(tmp_path / "chat.txt"), "--out", str(tmp_path / "out")]) == 2
        assert "--date-order dmy or --date-order mdy" in " ".join(capsys.readouterr().err.split())
    (tmp_path / "chat.txt").write_text("03/05/24, 10:15 - A: x\n")
    rows = _convert(tmp_path / "out", "whatsapp", tmp_path / "chat.txt", "--date-order", "mdy")
    assert rows[0]["date"] == "2024-03-05 10:15"


def test_tools_of_sharegpt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``function_call`` and ``observation`` were speakers."""
    rows = _convert(tmp_path / "out", "sharegpt", SAMPLES / "sharegpt.json")
    assert [row["speaker"] for row in rows] == ["user", "tool", "assistant"]
    assert "left out: calls of tools (1)" in capsys.readouterr().out


COLUMNS = ("text=body", "speaker=who", "date=when", "conversation=room")


def test_columns_of_a_table_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = _convert(tmp_path / "out", "table", SAMPLES / "table.csv", "--map", *COLUMNS)
    assert [(row["conversation"], *shown) for row, shown in zip(rows, _shown(rows), strict=True)] == [
        ("kitchen", "2024-05-03", "Ann", "My grey cat is called Pixel"),
        ("kitchen", "2024-05-05", "Ann", "Is it cold there?"),
        ("hall", "2024-05-04", "Ben", "My sister moved to Oslo"),
    ]
    assert "left out: messages without text (1)" in capsys.readouterr().out
    assert _convert(tmp_path / "commas", "table", SAMPLES / "table.csv", "--map", ",".join(COLUMNS)) == rows
    (tmp_path / "a.jsonl").write_text('{"text": "x", "speaker": 7}\n{"text": "y", "speaker": null}\n')
    rows = _convert(tmp_path / "lines", "table", tmp_path / "a.jsonl")
    assert [(row["conversation"], row.get("speaker")) for row in rows] == [("a", "7"), ("a", None)]


def test_a_row_without_a_date_is_of_the_session_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,date\nx,2024-01-01\ny,\nz,2024-01-01\n", encoding="utf-8")
    rows = _convert(tmp_path / "out", "table", tmp_path / "a.csv")
    assert [row["text"] for row in rows] == ["x", "y", "z"] and len({row["session"] for row in rows}) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "say which column holds what was said, --map text=COLUMN; it has 'when', 'who', 'room', 'body'"),
        (["--map", "text=boddy"], "has no column 'boddy'; it has 'when', 'who'"),
        (["--map", "txt=body"], "--map txt=: a turn has no such field; there are text, speaker, date"),
        (["--map", "text"], "--map text: write FIELD=COLUMN"),
    ],
)
def test_a_column_that_is_not_there_is_said(
    tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(["table", str(SAMPLES / "table.csv"), "--out", str(tmp_path / "out"), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("form", ["chatgpt", "claude"])
def test_the_archive_that_was_sent_is_read(tmp_path: Path, form: str) -> None:
    """It was "not UTF-8 text; fetch it again"."""
    content = (SAMPLES / f"{form}.json").read_bytes()
    packed = _zip(tmp_path / "export.zip", {"user.json": b"{}", "conversations.json": content, "chat.html": b"x"})
    assert read_export(form, packed) == read_export(form, SAMPLES / f"{form}.json")
    chats = json.loads(content)
    parts = {f"data/conversations-00{n}.json": json.dumps([chat]).encode() for n, chat in enumerate(chats)}
    assert read_export(form, _zip(tmp_path / "parts.zip", parts)).chats == read_export(form, packed).chats


def test_the_archive_of_slack_is_its_folder(tmp_path: Path) -> None:
    members = {
        path.relative_to(SAMPLES / "slack").as_posix(): path.read_bytes() for path in SAMPLES.rglob("slack/**/*.json")
    }
    assert read_export("slack", _zip(tmp_path / "export.zip", members)) == read_export("slack", SAMPLES / "slack")


@pytest.mark.parametrize(("form", "sample"), SAMPLE.items())
def test_each_format_has_a_sample_that_is_read(form: str, sample: str) -> None:
    assert read_export(form, SAMPLES / sample).chats and form in FORMATS


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"inner.zip": b"PK"}, "holds another archive, 'inner.zip'; unpack that one"),
        ({"a.txt": b"x"}, "holds no file with chats of this format; there are 1 files, 'a.txt'"),
        ({"../conversations.json": b"[]"}, "holds a file outside of itself, '../conversations.json'"),
        ({"/etc/conversations.json": b"[]"}, "holds a file outside of itself"),
        ({"a\\..\\..\\conversations.json": b"[]"}, "holds a file outside of itself"),
        ({"conversations.json": b"[" + b" " * 5000 + b"]"}, "holds 0 MiB of text unpacked, more than the 0 MiB"),
        ({f"{number}.png": b"" for number in range(9)}, "holds 9 files, more than the 8 of any export"),
        ({"conversations.json": b"[}"}, "conversations.json: no valid JSON at line 1"),
    ],
)
def test_an_archive_is_no_trap(
    tmp_path: Path, members: dict[str, bytes], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "_MOST_MEMBERS", 8)
    monkeypatch.setattr(sources, "_MOST_BYTES", 4000)
    before = set(tmp_path.parent.rglob("*"))
    with pytest.raises(DataError, match=r"export\.zip") as raised:
        read_export("chatgpt", _zip(tmp_path / "export.zip", members))
    assert said in str(raised.value)
    assert set(tmp_path.parent.rglob("*")) - before == {tmp_path / "export.zip"}


def test_archives_that_cannot_be_read_are_one_message(tmp_path: Path) -> None:
    packed = _zip(tmp_path / "export.zip", {"conversations.json": b"[]" * 99}).read_bytes()
    locked = bytearray(packed)
    locked[6] |= 1
    locked[packed.index(b"PK\x01\x02") + 8] |= 1
    wrong = {"is encrypted; unpack it": bytes(locked), "is not a whole zip archive": packed[: len(packed) // 2]}
    wrong["fetch it again"] = packed.replace(packed[60:66], b"xxxxxx")
    for said, content in wrong.items():
        (tmp_path / "export.zip").write_bytes(content)
        with pytest.raises(DataError, match=said):
            read_export("claude", tmp_path / "export.zip")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["claud", "claude.json"], "format 'claud' is unknown; did you mean claude?; choose one of openai, chatgpt"),
        (["chatgpt", "claude.json"], "[0].mapping: missing field; it looks like claude: memsys convert_data claude"),
        (["openai", "chatgpt.json"], "it looks like chatgpt"),
        (["claude", "slack"], "it looks like slack"),
        (["chatgpt", "whatsapp_ios.txt"], "no valid JSON"),
        (["whatsapp", "claude.json"], "no line begins as WhatsApp's do"),
        (["slack", "claude.json"], "holds no file CHANNEL/YYYY-MM-DD.json"),
        (["chatgpt", "chatgpt.json", "--map", "text=x"], "--map names the columns of a table; chatgpt has none"),
        (["chatgpt", "chatgpt.json", "--date-order", "dmy"], "--date-order is for whatsapp"),
        (["chatgpt", "x" * 400], "cannot be read (File name too long)"),
    ],
)
def test_a_mistake_is_one_message(
    tmp_path: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    form, name, *more = options
    assert convert([form, str(SAMPLES / name), "--out", str(tmp_path / "out"), *more]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_nothing_but_what_is_left_out_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chats: list[dict[str, Any]] = json.loads((SAMPLES / "chatgpt.json").read_text(encoding="utf-8"))
    (tmp_path / "a.json").write_text(json.dumps(chats[2:]))
    assert convert(["chatgpt", str(tmp_path / "a.json"), "--out", str(tmp_path / "out")]) == 2
    assert "left out: hidden messages (1), chats without a message (1)" in " ".join(capsys.readouterr().err.split())


def test_json_lines_may_have_another_ending(tmp_path: Path) -> None:
    for name in ("a.json", "a.txt"):
        (tmp_path / name).write_bytes((SAMPLES / "openai.jsonl").read_bytes())
        assert read_export("openai", tmp_path / name) == read_export("openai", SAMPLES / "openai.jsonl")


def test_sizes_are_checked_before_a_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_BYTES", 4000)
    (tmp_path / "a.json").write_bytes(io.BytesIO(b" " * 5000).read())
    with pytest.raises(DataError, match="convert it in parts"):
        read_export("chatgpt", tmp_path / "a.json")
