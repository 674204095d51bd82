"""Appending, atomic writing, snapshots: what a kill or a full disk leaves behind."""

import errno
import os
import re
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval.runs.files import JsonLines, read_json_lines, write_atomic, write_json
from eval.runs.snapshot import load_snapshot, save_snapshot
from memsys.errors import RunDirectoryError


def test_cut_last_line_is_dropped_on_opening(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a":1}\n{"a":2}\n{"a":')
    assert list(read_json_lines(path)) == [{"a": 1}, {"a": 2}]
    file = JsonLines(path)
    file.append({"a": 3})
    file.close()
    assert list(read_json_lines(path)) == [{"a": 1}, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize("cut", [0, 1, 200_000])
def test_the_end_of_a_large_file_is_found_without_reading_all_of_it(tmp_path: Path, cut: int) -> None:
    path, size = tmp_path / "rows.jsonl", 8_000_000
    path.write_bytes(b"x" * (size - 1) + b"\n" + b"y" * cut)
    tracemalloc.start()
    JsonLines(path).close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size == size and peak < 1_000_000


@pytest.mark.parametrize("size", [0, 1, 200_000])
def test_a_file_without_a_whole_line_is_emptied(tmp_path: Path, size: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"x" * size)
    JsonLines(path).close()
    assert path.stat().st_size == 0


def test_damaged_middle_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a":1}\nnonsense\n{"a":2}\n')
    with pytest.raises(RunDirectoryError, match=r"rows\.jsonl:2 is not JSON"):
        list(read_json_lines(path))


def test_no_flipped_bit_changes_a_row(tmp_path: Path) -> None:
    """In an answer or an id it is still valid JSON: such a row was taken for what the run had written."""
    path, rows = tmp_path / "rows.jsonl", [{"id": "conv-26:0", "f1": 0.5, "hits": ["D1:3"]}, {"id": "é", "hits": []}]
    file = JsonLines(path)
    for row in rows:
        file.append(row)
    file.close()
    data = path.read_bytes()
    assert list(read_json_lines(path)) == rows
    for place in range(len(data)):
        for bit in range(8):
            path.write_bytes(data[:place] + bytes([data[place] ^ 1 << bit]) + data[place + 1 :])
            try:
                read = list(read_json_lines(path))
            except RunDirectoryError as error:
                assert f"{path}:" in str(error)
                continue
            known = [{name: value for name, value in row.items() if name in rows[0]} for row in read]
            # A letter of "crc32" makes a field that no record has; without its newline the last row counts as cut.
            assert known == rows if place < len(data) - 1 else known == rows[:1]


def test_a_changed_row_is_named_and_a_row_without_checksum_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    file = JsonLines(path)
    file.append({"a": 1})
    file.close()
    written = path.read_text()
    assert written == '{"a":1,"crc32":"561bacaf"}\n'  # zlib.crc32(b'{"a":1}')
    for changed in (written.replace("1,", "2,"), '{"a": 1, "crc32": "561bacaf"}\n', '{"a":1,"crc32":7}\n'):
        path.write_text(changed)
        with pytest.raises(
            RunDirectoryError, match=r"rows\.jsonl:1 was modified after it was written.*delete its crc32"
        ):
            list(read_json_lines(path))
    path.write_bytes(b'{"a":2}\n' + written.encode().replace(b"\n", b"\r\n"))
    assert list(read_json_lines(path)) == [{"a": 2}, {"a": 1}]


def test_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert list(read_json_lines(tmp_path / "none.jsonl")) == []


def test_full_disk_while_appending_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    file = JsonLines(path)
    file.append({"a": 1})
    real_write = os.write

    def half_then_full(descriptor: int, data: bytes) -> int:
        if len(data) > 4:
            return real_write(descriptor, data[:4])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half_then_full)
        with pytest.raises(RunDirectoryError, match=r"disk is full.*it resumes"):
            file.append({"a": "0123456789abcdef"[:7]})
    file.append({"a": 2})
    file.close()
    assert list(read_json_lines(path)) == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (float("nan"), "trace.scores[1]=nan cannot be written as JSON"),
        (np.float32(1), "trace.scores[1]=np.float32(1.0) cannot be written as JSON"),
        ("\ud83d", "trace.scores[1]='\\ud83d' cannot be written as JSON"),
    ],
)
def test_what_a_memory_gives_and_no_file_can_hold_is_named(tmp_path: Path, value: object, named: str) -> None:
    """It was a traceback of the encoder, which does not say where it was."""
    file = JsonLines(tmp_path / "rows.jsonl")
    with pytest.raises(RunDirectoryError, match=re.escape(named)):
        file.append({"a": 1, "trace": {"scores": [0.5, value]}})
    file.append({"a": 2})
    file.close()
    assert list(read_json_lines(tmp_path / "rows.jsonl")) == [{"a": 2}]


def test_only_a_command_that_resumes_says_so(tmp_path: Path) -> None:
    """Tables, figures and reports are written again."""
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(RunDirectoryError, match=r"start the same command again$"):
        write_atomic(tmp_path / "file" / "report.html", b"page")
    with pytest.raises(RunDirectoryError, match=r"start the same command again, it resumes$"):
        JsonLines(tmp_path / "file" / "calls.jsonl")


def test_full_disk_while_writing_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"status": "running"})

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunDirectoryError, match="disk is full"):
        write_json(path, {"status": "complete"})
    assert path.read_text() == '{\n  "status": "running"\n}\n'
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_threads_that_write_one_file_do_not_take_each_others_half(tmp_path: Path) -> None:
    """They wrote under one name, which the first moved away from under the second."""
    path, contents = tmp_path / "page.html", [bytes([letter]) * 300_000 for letter in b"abcd"]

    def write(content: bytes) -> bytes:
        for _ in range(20):
            write_atomic(path, content)
        return path.read_bytes()

    with ThreadPoolExecutor(len(contents)) as threads:
        assert set(threads.map(write, contents)) <= set(contents)
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]


def test_snapshot_round_trip_keeps_arrays_and_order(tmp_path: Path) -> None:
    tree: dict[str, Any] = {
        "notes": [{"id": "b", "v": np.arange(6, dtype=np.float32).reshape(2, 3)}, {"id": "a", "v": None}],
        "count": np.int64(3),
        "empty": np.zeros((0, 4), dtype=np.float32),
        "text": "ünïcode\n",
    }
    save_snapshot(tmp_path / "s.npz", tree)
    back = load_snapshot(tmp_path / "s.npz")
    assert back is not None
    assert [note["id"] for note in back["notes"]] == ["b", "a"]
    np.testing.assert_array_equal(back["notes"][0]["v"], tree["notes"][0]["v"])
    assert back["notes"][0]["v"].dtype == np.float32
    assert back["empty"].shape == (0, 4)
    assert back["count"] == 3
    assert back["text"] == tree["text"]


def test_missing_and_damaged_snapshots(tmp_path: Path) -> None:
    assert load_snapshot(tmp_path / "none.npz") is None
    write_atomic(tmp_path / "bad.npz", b"PK\x03\x04 cut")
    with pytest.raises(RunDirectoryError, match=r"bad\.npz is damaged"):
        load_snapshot(tmp_path / "bad.npz")
