"""JSON nodes: every complaint names file and place."""

from pathlib import Path

import pytest

from eval.loaders.jsonfile import JsonNode, read_json, read_whole_lines
from memsys.errors import DataError


@pytest.mark.parametrize(
    ("value", "method", "message"),
    [
        (3, "text", "f.json: a.b: expected string, found number"),
        (None, "text", "f.json: a.b: expected string, found null"),
        (True, "integer", "f.json: a.b: expected whole number, found boolean"),
        ("3", "integer", "f.json: a.b: expected whole number, found string"),
        (2.5, "integer", "f.json: a.b: expected whole number, found number"),
        ({}, "elements", "f.json: a.b: expected array, found object"),
        ([], "members", "f.json: a.b: expected object, found array"),
        (["x", 1], "texts", r"f.json: a.b\[1\]: expected string, found number"),
        (False, "text_or_number", "f.json: a.b: expected string or number, found boolean"),
    ],
)
def test_wrong_types_name_file_path_and_both_types(value: object, method: str, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}$"):
        getattr(JsonNode(value, "a.b", "f.json"), method)()


def test_paths_grow_with_every_step() -> None:
    top = JsonNode([{"qa": [{"question": 4}]}], "", "f.json")
    with pytest.raises(DataError, match=r"^f.json: \[0\].qa\[0\].question: expected string, found number$"):
        top.elements()[0].get("qa").elements()[0].get("question").text()
    with pytest.raises(DataError, match=r"^f.json: \[0\].answer: missing field$"):
        top.elements()[0].get("answer")
    assert top.elements()[0].find("answer") is None


def test_numbers_become_the_text_they_were() -> None:
    assert [JsonNode(value, "", "").text_or_number() for value in (2022, 3.5, "x")] == ["2022", "3.5", "x"]


def test_a_cut_off_file_says_where_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('[{"a": "b"')
    with pytest.raises(
        DataError, match=r"cut.json: .* at line 1, column 11 .*10 bytes.*; correct it there; .*fetch it"
    ):
        read_json(path)


def test_unreadable_and_non_text_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_json(tmp_path)
    (tmp_path / "latin.json").write_bytes('["é"]'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin.json: line 1: not UTF-8 text at byte 2; .*: fetch it again$"):
        read_json(tmp_path / "latin.json")
    (tmp_path / "turns.jsonl").write_bytes('{"text": "tea"}\n{"text": "caf\u00e9"}\n'.encode("latin-1"))
    with pytest.raises(DataError, match=r"turns.jsonl: line 2: not UTF-8 text at byte 29; save the file as UTF-8$"):
        read_whole_lines(tmp_path / "turns.jsonl")


def test_checksum_is_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"[]")
    _, sha256 = read_json(tmp_path / "x.json")
    assert sha256 == "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"
