"""The reply cache: what is stored, what survives kills, other processes and full disks."""

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from memsys.errors import BackboneError, MemsysError
from memsys.llm.cache import ReplyCache
from memsys.llm.cache_claims import CallClaims
from memsys.llm.refusals import ContextLengthError
from memsys.vocabulary import Completion, TokenLogprob

ROOT = Path(__file__).resolve().parents[4]


def key(number: int) -> str:
    return f"{number:064x}"


def reply(text: str) -> Completion:
    logprobs = (TokenLogprob("a", -0.25, {"b": -1.5}), TokenLogprob("c", -9999.0))
    return Completion(text, 7, 3, 0.125, "stop", logprobs)


def segment(folder: Path) -> Path:
    (only,) = folder.glob("*.jsonl")
    return only


def test_a_reply_comes_back_whole_here_and_after_reopening(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies")
    assert not (tmp_path / "replies").exists()  # made with the first reply
    cache.put(key(1), reply("one \n \U0001f600 \ufffd"))
    cache.put(key(2), reply("two"))
    for opened in (cache, ReplyCache(tmp_path / "replies")):
        assert opened.get(key(1)) == reply("one \n \U0001f600 \ufffd") and opened.get(key(2)) == reply("two")
        assert opened.get(key(3)) is None and len(opened) == 2 and opened.corrupt == 0


def test_a_closed_cache_goes_on_in_another_file(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    cache.close()
    cache.put(key(1), reply("one"))
    cache.close()
    cache.put(key(2), reply("two"))
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
    assert cache.get(key(1)) == reply("one") and ReplyCache(tmp_path).get(key(2)) == reply("two")


def test_of_two_replies_the_earlier_stays(tmp_path: Path) -> None:
    first, second = ReplyCache(tmp_path), ReplyCache(tmp_path)
    first.put(key(1), reply("earlier"))
    second.put(key(1), reply("later"))
    assert ReplyCache(tmp_path).get(key(1)) == reply("earlier")


@pytest.mark.parametrize("cut", [1, 2, 10, 70, 120])
def test_a_cut_last_line_is_dropped(tmp_path: Path, cut: int) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(key(1), reply("one"))
    cache.put(key(2), reply("two"))
    data = segment(tmp_path).read_bytes()
    segment(tmp_path).write_bytes(data[:-cut])
    opened = ReplyCache(tmp_path)
    assert opened.get(key(1)) == reply("one") and opened.get(key(2)) is None and opened.corrupt == 0


def test_corrupt_lines_are_counted_and_asked_again(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    for number in range(4):
        cache.put(key(number), reply(str(number)))
    lines = segment(tmp_path).read_bytes().splitlines(keepends=True)
    lines[0] = b"\x00\x01 nothing of ours\n"
    lines[1] = lines[1].replace(b'"reply"', b'"rep\xffy"')  # the head is whole, the row is not
    lines[2] = lines[2].replace(key(2).encode(), b"z" * 64)
    segment(tmp_path).write_bytes(b"".join(lines))
    opened = ReplyCache(tmp_path)
    assert [opened.get(key(number)) for number in range(4)] == [None, None, None, reply("3")]
    assert opened.corrupt == 3


@pytest.mark.parametrize(
    ("found", "altered"),
    [
        (b'"text": "1"', b'"text": "2"'),
        (b'"prompt_tokens": ', b'"prompt_tokens": 7'),
        (b'"finish_reason": "', b'"finish_reason": "x'),
        (b'"sum": "', b'"sum": "0'),
        (b'"sum": "', b'"som": "'),
        (b', "sum"', b' , "sum"'),
    ],
)
def test_an_altered_row_is_left_out_and_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, found: bytes, altered: bytes
) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(key(1), reply("1"))
    data = segment(tmp_path).read_bytes()
    assert found in data
    segment(tmp_path).write_bytes(data.replace(found, altered, 1))
    opened = ReplyCache(tmp_path)
    assert opened.get(key(1)) is None and opened.corrupt == 1
    assert segment(tmp_path).name in caplog.text and "byte 0" in caplog.text and "made again" in caplog.text

    async def call() -> Completion:
        return reply("1")

    assert asyncio.run(opened.fetch(key(1), call)) == (reply("1"), False)
    assert ReplyCache(tmp_path).get(key(1)) == reply("1"), "the new row stands in for the damaged one"


def test_rows_of_earlier_versions_have_no_checksum_and_are_read(tmp_path: Path) -> None:
    stored = asdict(reply("one"))
    (tmp_path / "0.jsonl").write_text(json.dumps({"key": key(1), "reply": stored}) + "\n")
    assert ReplyCache(tmp_path).get(key(1)) == reply("one")


@pytest.mark.parametrize(
    "field", ["text", "prompt_tokens", "completion_tokens", "seconds", "finish_reason", "logprobs"]
)
def test_a_row_of_another_shape_is_left_out(tmp_path: Path, field: str) -> None:
    stored = asdict(reply("one"))
    odd = [None, True, [1], {"a": 1}, "text", 10**400] if field != "text" else [None, 3, [], {}]
    odd += [] if field != "finish_reason" else [1.5]
    values = [value for value in odd if not (isinstance(value, str) and field == "finish_reason")]
    rows = [{"key": key(number), "reply": {**stored, field: value}} for number, value in enumerate(values)]
    rows += [{"key": key(50), "reply": [stored]}, {"key": key(51)}, {"key": key(52), "reply": {**stored, "more": 1}}]
    (tmp_path / "0.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cache = ReplyCache(tmp_path)
    assert [cache.get(row["key"]) for row in rows] == [None] * len(rows)  # type: ignore[arg-type]
    assert cache.corrupt == len(rows)


def test_a_row_nested_too_deeply_is_left_out(tmp_path: Path) -> None:
    line = json.dumps({"key": key(1), "reply": "DEEP"}).replace('"DEEP"', "[" * 100_000 + "]" * 100_000)
    (tmp_path / "0.jsonl").write_text(line + "\n")
    assert ReplyCache(tmp_path).get(key(1)) is None


def test_equal_requests_in_flight_make_one_call(tmp_path: Path) -> None:
    cache, calls = ReplyCache(tmp_path), []

    async def call() -> Completion:
        calls.append(1)
        await asyncio.sleep(0.01)
        return reply("one")

    async def run() -> list[tuple[Completion, bool]]:
        return list(await asyncio.gather(*(cache.fetch(key(1), call) for _ in range(5))))

    got = asyncio.run(run())
    assert len(calls) == 1 and {text.text for text, _ in got} == {"one"}
    assert [hit for _, hit in got] == [False, True, True, True, True]
    assert asyncio.run(cache.fetch(key(1), call)) == (reply("one"), True) and len(calls) == 1


def test_who_waits_for_a_cancelled_call_makes_it(tmp_path: Path) -> None:
    cache, calls = ReplyCache(tmp_path), []

    async def call() -> Completion:
        calls.append(1)
        await asyncio.sleep(0.01)
        return reply("one")

    async def run() -> tuple[Completion, bool]:
        first = asyncio.create_task(cache.fetch(key(1), call))
        second = asyncio.create_task(cache.fetch(key(1), call))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(run()) == (reply("one"), False) and len(calls) == 2


@pytest.mark.parametrize("kind", [BackboneError, ContextLengthError])
def test_who_waits_for_a_failed_call_fails_with_it(tmp_path: Path, kind: type[BackboneError]) -> None:
    cache = ReplyCache(tmp_path)

    async def call() -> Completion:
        await asyncio.sleep(0)
        raise kind("no server")

    async def run() -> list[Any]:
        return await asyncio.gather(*(cache.fetch(key(1), call) for _ in range(3)), return_exceptions=True)

    errors = asyncio.run(run())
    assert [str(error) for error in errors] == ["no server"] * 3
    assert all(type(error) is kind for error in errors) and cache.get(key(1)) is None


def test_a_full_disk_is_one_clear_error_and_damages_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ReplyCache(tmp_path)
    cache.put(key(1), reply("one"))
    really, left = os.write, [10]

    def write(file: int, data: bytes) -> int:
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = really(file, data[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(MemsysError, match="disk is full: free space"):
        cache.put(key(2), reply("two"))
    monkeypatch.setattr(os, "write", really)
    cache.put(key(3), reply("three"))
    for opened in (cache, ReplyCache(tmp_path)):
        assert opened.get(key(1)) == reply("one") and opened.get(key(3)) == reply("three")
        assert opened.get(key(2)) is None


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MemsysError, match="cannot be written"):
        ReplyCache(tmp_path / "file").put(key(1), reply("one"))


WRITER = """
import sys
from pathlib import Path
from memsys.llm.cache import ReplyCache
from memsys.llm.cache_claims import CallClaims
from memsys.llm.refusals import ContextLengthError
from memsys.vocabulary import Completion
cache, start, count = ReplyCache(Path(sys.argv[1])), int(sys.argv[2]), int(sys.argv[3])
print("open", flush=True)
for number in range(start, start + count):
    cache.put(f"{number:064x}", Completion(f"text {number} " + "x" * 300, 1, 1, 0.0, "stop"))
"""


def writer(folder: Path, start: int, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", WRITER, str(folder), str(start), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_many_processes_share_a_folder(tmp_path: Path) -> None:
    each, overlap = 200, 50
    processes = [writer(tmp_path, number * (each - overlap), each) for number in range(4)]
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    opened = ReplyCache(tmp_path)
    assert len(opened) == 4 * each - 3 * overlap and opened.corrupt == 0
    for number in range(len(opened)):
        found = opened.get(key(number))
        assert found is not None and found.text.startswith(f"text {number} ")


def test_a_killed_process_leaves_whole_replies(tmp_path: Path) -> None:
    process = writer(tmp_path, 0, 1_000_000)
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not any(path.stat().st_size > 50_000 for path in tmp_path.glob("*.jsonl")):
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    opened = ReplyCache(tmp_path)
    assert len(opened) > 50 and opened.corrupt == 0
    last = opened.get(key(len(opened) - 1))
    assert last is not None and last.text.endswith("x" * 300)


def test_a_row_holds_key_reply_and_checksum_alone(tmp_path: Path) -> None:
    ReplyCache(tmp_path).put(key(1), reply("one"))
    row = json.loads(segment(tmp_path).read_text())
    assert set(row) == {"key", "reply", "sum"}
    assert set(row["reply"]) == {
        "text", "prompt_tokens", "completion_tokens", "seconds", "finish_reason", "logprobs", "cached_tokens"
    }  # fmt: skip


_SHARING = """
import asyncio, sys
from pathlib import Path
from memsys.llm.cache import ReplyCache
from memsys.llm.cache_claims import CallClaims
from memsys.llm.refusals import ContextLengthError
from memsys.vocabulary import Completion

name, folder, keys = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
cache, made = ReplyCache(folder, shared=True), []

async def one(number):
    async def call():
        made.append(number)
        await asyncio.sleep(0.02)
        return Completion(f"{name} {number}", 1, 1, 0.0, "stop", ())
    reply, hit = await cache.fetch(f"{number:064x}", call)
    return f"{number}:{reply.text}"

async def main():
    # Neighbours first by hash of the name, so that the processes meet in different orders.
    order = sorted(range(keys), key=lambda number: hash((name, number)))
    replies = []
    for begin in range(0, keys, 8):
        replies += await asyncio.gather(*(one(number) for number in order[begin:begin + 8]))
    print(len(made), *sorted(replies), sep="\\n")

asyncio.run(main())
"""


def sharing(folder: Path, name: str, keys: int) -> subprocess.Popen[str]:
    """Start a job that wants all replies; it prints how many calls it made, then the replies."""
    line = [sys.executable, "-c", _SHARING, name, str(folder), str(keys)]
    return subprocess.Popen(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_jobs_side_by_side_pay_each_call_once_and_get_one_reply(tmp_path: Path) -> None:
    keys = 120
    jobs = [sharing(tmp_path, f"job{number}", keys) for number in range(4)]
    printed = [job.communicate(timeout=120)[0].splitlines() for job in jobs]
    assert [job.returncode for job in jobs] == [0] * 4
    assert sum(int(lines[0]) for lines in printed) == keys
    assert len({tuple(lines[1:]) for lines in printed}) == 1 and len(printed[0]) == keys + 1
    opened = ReplyCache(tmp_path)
    assert len(opened) == keys and opened.corrupt == 0


def test_a_killed_job_leaves_no_claim_behind(tmp_path: Path) -> None:
    hanging = _SHARING.replace("asyncio.sleep(0.02)", "asyncio.sleep(600)")
    line = [sys.executable, "-c", hanging, "killed", str(tmp_path), "8"]
    job = subprocess.Popen(line, cwd=ROOT, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (tmp_path / "claims").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    other = sharing(tmp_path, "other", 8)
    with pytest.raises(subprocess.TimeoutExpired):
        other.communicate(timeout=2)
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    assert other.communicate(timeout=60)[0].splitlines()[0] == "8"


def test_a_job_that_ends_between_its_reply_and_the_flush_is_not_paid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ReplyCache(tmp_path, shared=True), ReplyCache(tmp_path, shared=True)

    async def answers() -> Completion:
        return reply("paid")

    async def never() -> Completion:
        raise AssertionError("paid twice")

    def breaks(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    async def run() -> None:
        with monkeypatch.context() as patch:
            patch.setattr("memsys.llm.cache_files.os.fdatasync", breaks)
            with pytest.raises(MemsysError, match="cannot be written"):
                await first.fetch(key(1), answers)
        # The second has looked a moment ago, and would not look again for seconds.
        assert await second.fetch(key(1), never) == (reply("paid"), True)

    asyncio.run(run())


def test_a_file_of_claims_that_we_may_not_open_is_no_claim_of_anothers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def refused(path: Path, *arguments: int) -> int:
        if Path(path).name == "claims":
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(path, *arguments)

    monkeypatch.setattr("memsys.llm.cache_claims.os.open", refused)

    async def never() -> Completion:
        raise AssertionError("paid without a claim")

    async def run() -> None:
        await asyncio.wait_for(ReplyCache(tmp_path, shared=True).fetch(key(1), never), 10)

    with pytest.raises(MemsysError, match=r"cannot be written \(Permission denied\)"):
        asyncio.run(run())


def test_a_network_disk_that_is_full_at_the_flush_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    async def answers() -> Completion:
        return reply("paid")

    monkeypatch.setattr("memsys.llm.cache_files.os.fdatasync", full)
    with pytest.raises(MemsysError, match="the disk is full"):
        asyncio.run(ReplyCache(tmp_path, shared=True).fetch(key(1), answers))


def test_a_call_that_ends_after_the_cache_was_closed_says_nothing_of_its_claim(tmp_path: Path) -> None:
    """Closing the file frees its claims; freeing one again failed with a traceback where a run was interrupted."""
    claims = CallClaims(tmp_path)
    with claims.hold(key(1)) as claim:
        assert claim is not None
        claims.close()
    with CallClaims(tmp_path).hold(key(1)) as again:
        assert again is not None


def test_two_caches_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    """Locks of a process let both in, and closing one cache dropped the claims of the other."""
    first, second = CallClaims(tmp_path), CallClaims(tmp_path)
    with first.hold(key(1)) as claim:
        assert claim is not None
        with second.hold(key(1)) as other:
            assert other is None
        second.close()
        with CallClaims(tmp_path).hold(key(1)) as third:
            assert third is None


def test_a_call_that_waits_long_for_another_process_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memsys.llm.cache._LONG_WAIT", 0.0)
    hanging = _SHARING.replace("asyncio.sleep(0.02)", "asyncio.sleep(600)")
    job = subprocess.Popen([sys.executable, "-c", hanging, "stopped", str(tmp_path), "1"], cwd=ROOT)
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "claims").exists() and time.monotonic() < deadline:
            time.sleep(0.01)

        async def never() -> Completion:
            raise AssertionError("paid twice")

        with pytest.raises(TimeoutError):
            waiting = ReplyCache(tmp_path, shared=True).fetch(f"{0:064x}", never)
            asyncio.run(asyncio.wait_for(waiting, 1.5))
    finally:
        job.kill()
        job.wait()
    assert [record.getMessage() for record in caplog.records if "another process" in record.getMessage()] == [
        f"reply cache {tmp_path}: a call has waited 0 s for a reply that another process is making; if that "
        "process is suspended, end or resume it"
    ]


def test_a_failed_call_frees_the_claim(tmp_path: Path) -> None:
    first, second = ReplyCache(tmp_path, shared=True), ReplyCache(tmp_path, shared=True)

    async def fails() -> Completion:
        raise BackboneError("gone")

    async def works() -> Completion:
        return reply("here")

    async def run() -> tuple[Completion, bool]:
        with pytest.raises(BackboneError):
            await first.fetch(key(1), fails)
        return await second.fetch(key(1), works)

    assert asyncio.run(run()) == (reply("here"), False)
    assert asyncio.run(first.fetch(key(1), fails)) == (reply("here"), True)
    first.close()
    second.close()
