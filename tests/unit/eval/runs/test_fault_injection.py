"""The tools of fault injection notice what they are for."""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval.runs.files import read_json_lines, write_atomic
from tests.support.bad_replies import BAD_REPLIES, spoil
from tests.support.fake_run import FakeRun
from tests.support.faults.__main__ import figures, merged, rows, write_found
from tests.support.faults.forked import Ended, forked
from tests.support.faults.runs import unlike
from tests.support.stub_server import bad_reply_for, completion

GOOD = Ended(0, False, "", "", 0.1)


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        (GOOD, ""),
        (Ended(2, False, "", "error: what, where, what to do\n", 0.1), ""),
        (Ended(0, True, "", "", 9.0), "hung"),
        (Ended(1, False, "", "Traceback (most recent call last):\nKeyError: 'a'\n", 0.1), "traceback: KeyError: 'a'"),
        (Ended(0, False, "", "Task failed\nTraceback (most recent call last):\nX\n", 0.1), "traceback: X"),
        (Ended(1, False, "", "killed\n", 0.1), "exit status 1: killed"),
        (Ended(-11, False, "", "", 0.1), "exit status -11"),
        (Ended(2, False, "", "\n", 0.1), "without a message"),
        (Ended(2, False, "", "error: a\n" * 9, 0.1), "9 messages instead of one"),
    ],
)
def test_what_no_command_may_do(ended: Ended, problem: str) -> None:
    assert (problem in ended.problem()) and (bool(problem) == bool(ended.problem()))


def test_a_forked_process_tells_how_it_ended(tmp_path: Path) -> None:
    def say() -> int:
        sys.stdout.write("out")
        sys.stderr.write("err")
        return 3

    ended = forked(say, tmp_path)
    assert (ended.code, ended.hung, ended.out, ended.err) == (3, False, "out", "err")
    assert forked(lambda: 1 // 0, tmp_path).problem().startswith("traceback: ZeroDivisionError")
    assert forked(lambda: sys.exit(2), tmp_path).code == 2
    slow = forked(lambda: time.sleep(60), tmp_path, limit_s=0.2)
    assert slow.hung and slow.code == -9


@pytest.mark.usefixtures("unsigned")
@pytest.mark.parametrize("name", ["answers.jsonl", "retrievals.jsonl", "calls.jsonl"])
def test_a_row_more_or_less_is_unlike(name: str, tmp_path: Path) -> None:
    whole = FakeRun().write(tmp_path / "whole")
    other = tmp_path / "other"
    shutil.copytree(whole, other)
    assert unlike(other, whole) == ""
    lines = (whole / name).read_bytes().splitlines(keepends=True)
    write_atomic(other / name, b"".join(lines[:-1]))
    assert unlike(other, whole)
    write_atomic(other / name, b"".join([*lines, lines[0]]))
    assert unlike(other, whole) or name == "retrievals.jsonl"


@pytest.mark.usefixtures("unsigned")
def test_a_changed_prediction_is_unlike(tmp_path: Path) -> None:
    whole = FakeRun().write(tmp_path / "whole")
    other = tmp_path / "other"
    shutil.copytree(whole, other)
    first = next(iter(read_json_lines(whole / "answers.jsonl")))["prediction"]
    text = (whole / "answers.jsonl").read_text()
    (other / "answers.jsonl").write_text(text.replace(f'"prediction": "{first}', f'"prediction": "x{first}', 1).replace(
        f'"prediction":"{first}', f'"prediction":"x{first}', 1))  # fmt: skip
    assert "answers of question" in unlike(other, whole)


@pytest.mark.parametrize("kind", BAD_REPLIES)
@pytest.mark.parametrize("endpoint", [{"messages": [{"content": "a b"}]}, {"prompt": "a b"}])
def test_every_bad_reply_is_bad_and_always_the_same(kind: str, endpoint: dict[str, object]) -> None:
    text = '{"a": "b c", "d": [1, true]}'
    bad = BAD_REPLIES[kind]
    good = completion(endpoint, text, "stub", truncated=False)
    made = [spoil(bad, completion(endpoint, text, "stub", truncated=False), text) for _ in range(2)]
    assert made[0] == made[1]
    assert made[0] != spoil(BAD_REPLIES["slow"], good, text) or bad.ending or bad.headers or bad.status != 200


def test_a_bad_reply_is_for_its_role_and_its_share_of_requests() -> None:
    def hits(path: str, user: str) -> int:
        return sum(bad_reply_for(path, {"user": user, "prompt": str(n)}) is not None for n in range(100))

    assert hits("/fault/analyse/html/1/v1/completions", "analyse") == 100
    assert hits("/fault/analyse/html/1/v1/completions", "evolve") == 0
    assert 30 < hits("/fault/analyse/html/2/v1/completions", "analyse") < 70
    assert hits("/v1/completions", "analyse") == 0


def test_what_a_process_found_stays_when_it_dies_and_a_share_may_be_empty(tmp_path: Path) -> None:
    empty, dying = tmp_path / "0.json", tmp_path / "1.json"
    found = {"section": "files", "case": "a", "problem": ""}

    def one_then_death() -> Iterator[dict[str, Any]]:
        yield found
        raise KeyboardInterrupt

    write_found(empty, [], end=float("inf"))
    assert merged([empty], [0]) == ([], True)
    with pytest.raises(KeyboardInterrupt):
        write_found(dying, one_then_death(), end=float("inf"))
    died = {"section": "processes", "case": "process 1", "problem": "ended with status -9"}
    assert merged([empty, dying], [0, -9]) == ([found, died], False)
    write_found(dying, [found, found], end=0.0)
    assert merged([dying], [0]) == ([found], False)
    assert figures([found, found | {"same": True}])["files"]["tried"] == 1


def test_figures_count_what_was_tried() -> None:
    results = [
        {"section": "kills", "problem": "", "kills": 2},
        {"section": "kills", "problem": "x", "kills": 1},
        {"section": "files", "problem": "", "bytes": 7},
    ]
    table = figures(results)
    assert table["kills"] == {"tried": 2, "survived": 1, "kills": 3, "bytes": 0}
    assert table["files"]["bytes"] == 7
    assert [line.split() for line in rows(table)[1:]] == [["files", "1", "1", "0", "7"], ["kills", "2", "1", "3", "0"]]
