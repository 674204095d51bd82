"""Snapshots belong to one conversation of one run: names that never meet, and files that say whose they are."""

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.runs.files import read_json_lines
from eval.runs.snapshot import load_snapshot, load_texts, save_snapshot
from eval.runs.snapshots import Snapshot, Snapshots, earlier_name, snapshot_name
from memsys.errors import RunDirectoryError
from tests.unit.eval.running.test_runner import Echo, run, sample

#: All but the last two became ``a_b.npz``, here or on a disk that ignores case.
ALIKE = ("a b", "a_b", "a/b", "a:b", "A_B", "ä b", "b")
ODD = ("", ".", "..", "nul\0", "x" * 5000, "x" * 4999 + "y", "con\ud800", "%", "%25", "a\nb")


@given(st.text(), st.text())
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    assert (snapshot_name(one) == snapshot_name(other)) == (one == other)


@given(st.text(max_size=3000))
def test_a_name_is_one_that_every_disk_takes(conversation_id: str) -> None:
    name = snapshot_name(conversation_id)
    assert name == name.lower() and len(name) <= 205 and not name.startswith(".")
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-_%.")


def test_names_of_plain_ids_stay_as_they_were() -> None:
    for name in ("conv-26", "sample_1", "26"):
        assert snapshot_name(name) == earlier_name(name) == f"{name}.npz"
    assert snapshot_name("Conv 1") == "%43onv%201.npz"
    assert snapshot_name("") == "%.npz"


def test_questions_are_answered_from_their_own_conversation(tmp_path: Path) -> None:
    samples = [sample(name) for name in (*ALIKE, *ODD[:-4], "con%", "a\nb")]
    for left in (4, 0):  # the second start takes the memories from their snapshots
        path = tmp_path / "run"
        if left == 0:
            (path / "answers.jsonl").unlink()
        outcome, _ = run(path, samples, Echo())
        assert outcome.failures == {}
        for row in read_json_lines(path / "answers.jsonl"):
            told = {part.split("<")[0].rsplit("-t", 1)[0] for part in row["prediction"].split("|")}
            assert told == {row["conversation_id"]}


def snapshot(position: int = 1) -> Snapshot:
    return Snapshot(position, False, {"log": ["x"]}, [0.1], [0.2], 0.0, 0.5)


def test_a_snapshot_of_another_conversation_or_run_is_refused(tmp_path: Path) -> None:
    store = Snapshots(tmp_path, "run 1", ["a", "b"])
    store.save("a", snapshot())
    assert store.load("a") == store.load("a") != None  # noqa: E711
    store.path("a").rename(store.path("b"))
    with pytest.raises(RunDirectoryError, match=r"b\.npz holds the memory of conversation 'a', not of 'b'; delete it"):
        store.load("b")
    store.path("b").rename(store.path("a"))
    with pytest.raises(RunDirectoryError, match="other settings, data or model"):
        Snapshots(tmp_path, "run 2", ["a", "b"]).load("a")


def old(folder: Path, name: str) -> None:
    """Write a snapshot as earlier versions did: under the earlier name, without its owner."""
    store = Snapshots(folder / "now", "", [name])
    store.save(name, snapshot(7))
    tree = load_snapshot(store.path(name))
    assert tree is not None
    save_snapshot(folder / earlier_name(name), {k: v for k, v in tree.items() if k not in ("conversation_id", "run")})


def test_a_snapshot_of_an_earlier_version_loads_where_one_conversation_can_have_written_it(tmp_path: Path) -> None:
    for name in ("conv-26", "Conv 1"):
        old(tmp_path, name)
        store = Snapshots(tmp_path, "run", [name, "other"])
        loaded = store.load(name)
        assert loaded is not None and loaded.position == 7 and not store.lacks(name)
        store.check_earlier()


@pytest.mark.parametrize("pair", [("a b", "a_b"), ("A", "a")])
def test_a_snapshot_that_two_conversations_shared_is_refused(tmp_path: Path, pair: tuple[str, str]) -> None:
    old(tmp_path, pair[1])
    if pair == ("A", "a"):
        (tmp_path / "A.npz").hardlink_to(tmp_path / "a.npz")  # what a disk that ignores case shows
    store = Snapshots(tmp_path, "run", pair)
    for act in (store.check_earlier, lambda: store.load(pair[1])):
        with pytest.raises(RunDirectoryError, match="earlier version under a name that the conversations") as caught:
            act()
        assert all(repr(name) in str(caught.value) for name in pair) and "delete the run directory" in str(caught.value)


def test_earlier_snapshots_that_differ_in_case_were_two_files_where_the_disk_said_so(tmp_path: Path) -> None:
    for name in ("A", "a"):
        old(tmp_path, name)
    store = Snapshots(tmp_path, "run", ["A", "a"])
    store.check_earlier()
    assert store.load("A") is not None and store.load("a") is not None


def test_a_labelled_snapshot_under_an_earlier_name_is_no_others(tmp_path: Path) -> None:
    store = Snapshots(tmp_path, "run", ["a b", "a_b"])
    store.save("a_b", snapshot())
    assert store.load("a b") is None
    store.check_earlier()


@pytest.mark.parametrize("damage", ["encrypted", "compressed", "nested"])
@pytest.mark.parametrize("load", [load_snapshot, load_texts])
def test_a_snapshot_that_zip_or_json_refuse_in_their_own_way_is_named(
    tmp_path: Path, damage: str, load: Callable[[Path], Any]
) -> None:
    """Bits of the zip's directory, and a tree too deep to be read, ended in tracebacks."""
    path = tmp_path / "m.npz"
    save_snapshot(path, {"position": 1})
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    if damage == "encrypted":
        content[entry + 8] |= 1
    elif damage == "compressed":
        content[entry + 10] = 99
    path.write_bytes(content)
    if damage == "nested":
        np.savez(path, tree=np.frombuffer(b"[" * 1_000_000, dtype=np.uint8))
    with pytest.raises(RunDirectoryError, match=r"m\.npz is damaged .*; delete it and start the same command again"):
        load(path)


def test_a_snapshot_with_a_field_of_another_type_is_named(tmp_path: Path) -> None:
    store = Snapshots(tmp_path, "run", ["a"])
    for field, value in (("position", "1"), ("consolidated", 0), ("memory", []), ("write_seconds", [None])):
        store.save("a", snapshot())
        tree = load_snapshot(store.path("a"))
        assert tree is not None
        save_snapshot(store.path("a"), {**tree, field: value})
        with pytest.raises(RunDirectoryError, match=rf"a\.npz is damaged \(field {field}") as caught:
            store.load("a")
        assert "delete it" in str(caught.value)
