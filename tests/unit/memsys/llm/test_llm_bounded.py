"""Replies that would hold up the event loop, or hold numbers that nothing can hold, are malformed."""

import asyncio
import errno
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsys.assets.paths import ROOT
from memsys.errors import MemsysError
from memsys.llm import repairing
from memsys.llm.bounded import INLINE_CHARS, Bounds, parse_apart, parse_at_once, salvaged
from memsys.llm.repairing import RepairProcess
from memsys.llm.structured import Parsed, parse_object
from memsys.llm.values import finite
from memsys.llm.wire import MalformedReplyError, read_completion
from memsys.retrying import asked_pause
from tests.support.backbones import NOTE, StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import StubServer, prompt_of, stub

BOUNDS = Bounds(chars=50_000, seconds=5.0)
CUT = '{"keywords": ["boat"], "context": "' + "sea " * 1000


async def beside(text: str, bounds: Bounds = BOUNDS) -> tuple[Parsed, int]:
    """Parse, and count how often the event loop came round meanwhile."""
    rounds = 0

    async def count() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    counting = asyncio.create_task(count())
    await asyncio.sleep(0)
    parsed = parse_at_once(bounds, text, NOTE, repair=True) or await parse_apart(bounds, text, NOTE)
    counting.cancel()
    return parsed, rounds


@pytest.mark.parametrize("text", ['"' * 1_000_000, "{" + '"' * 1_000_000, "[" * 1_000_000, '{"a":' * 200_000])
def test_a_reply_over_the_limit_is_malformed_and_not_looked_at(text: str) -> None:
    parsed, _ = asyncio.run(beside(text))
    assert parsed.value is None and not parsed.repaired
    assert "over the limit of 50000" in parsed.problem


def test_a_long_reply_is_repaired_beside_the_event_loop() -> None:
    parsed, rounds = asyncio.run(beside(CUT))
    assert parsed == parse_object(CUT, NOTE, repair=True) and parsed.repaired
    assert rounds > 20, "the event loop stood still"


def test_a_reply_that_takes_too_long_is_malformed_and_the_next_is_read() -> None:
    parsed, rounds = asyncio.run(beside("{" * 40_000, Bounds(50_000, 0.2)))
    assert parsed.value is None and "over 0.2 s" in parsed.problem
    assert rounds > 20
    assert asyncio.run(beside(CUT))[0].repaired


#: A process that ends the first time, or each time, before or after it takes a reply.
ENDS = """
import os, sys
from pathlib import Path
from memsys.llm import repairing

marks, times, taken = Path({marks!r}), {times}, {taken}
number = len(list(marks.iterdir()))
(marks / str(number)).touch()

def end(*given):
    os.kill(os.getpid(), 9)

if number < times:
    if taken:
        repairing._parse_timed = end
    else:
        end()
repairing.serve(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("times", "taken"), [(1, False), (1, True), (2, True), (2, False)], ids=["start", "once", "reply", "no start"]
)
def test_a_reply_is_malformed_only_where_it_ends_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, times: int, taken: bool
) -> None:
    """A process killed from outside made the reply malformed, and the run went on as if the model had written it so."""
    monkeypatch.setattr(repairing, "_PROGRAM", ENDS.format(marks=os.fspath(tmp_path), times=times, taken=taken))
    process = RepairProcess()
    try:
        if times == 2 and not taken:
            with pytest.raises(MemsysError, match="has ended, twice, before it took a reply; check that memory, proc"):
                process.parse(CUT, NOTE, cut=True, seconds=5.0)
        else:
            parsed = process.parse(CUT, NOTE, cut=True, seconds=5.0)
            assert (parsed == parse_object(CUT, NOTE, repair=True)) == (times == 1)
            assert times == 1 or parsed.problem == "reading it ended the process that read it"
        assert len(list(tmp_path.iterdir())) == 2
    finally:
        process.close()
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings[0] == "the process that repairs malformed replies has ended; another one reads the reply"
    assert warnings[1:] == [
        f"the process that repairs malformed replies has ended, for the second time: the reply, of {len(CUT)} "
        "characters, is malformed"
    ] * (times == 2 and taken)


def test_a_process_that_cannot_be_started_makes_no_reply_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*given: Any, **named: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    process = RepairProcess()
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", full)
        with pytest.raises(MemsysError, match=r"cannot be started \(Too many open files\); check that memory"):
            process.parse(CUT, NOTE, cut=True, seconds=5.0)
    assert process.parse(CUT, NOTE, cut=True, seconds=5.0).repaired
    process.close()


SCRIPT = """
import asyncio
from memsys.llm.bounded import Bounds, parse_apart
print("begins", __name__)
cut = '{"a": "' + "x" * 2000
print(asyncio.run(parse_apart(Bounds(9000, 5.0), cut, {"type": "object"})).repaired)
"""


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    """``multiprocessing`` would import the script in the process that repairs, and so run it again."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert (ran.stdout, ran.stderr) == ("begins __main__\nTrue\n", "")


def test_long_and_short_replies_are_read_alike() -> None:
    long = json.dumps({"keywords": ["boat"] * 2000, "context": "sea"})
    assert len(long) > INLINE_CHARS
    for text in (
        long,
        f"Sure: {long}.",
        '{"keywords": ["boat"], "context": "s',
        "nothing",
        long[:-400].replace("{", ""),
    ):
        assert asyncio.run(beside(text))[0] == parse_object(text, NOTE, repair=True)


def test_what_a_memory_reads_of_a_malformed_reply_is_bounded() -> None:
    assert salvaged('{"a": [1, 2', {"type": "object"}) == {"a": [1, 2]}
    for text in ("{" + '"' * 1_000_000, "{" * 10_000, "[{" * 5_000):
        assert salvaged(text, {"type": "object"}) is None


def test_healthy_calls_go_on_beside_a_hostile_reply(tmp_path: Path) -> None:
    """All calls run at once; the one that gets a megabyte of quotation marks is malformed, the others are not."""

    def hostile(body: Any) -> str | None:
        return "{" + '"' * 1_000_000 if "turn 3" in prompt_of(body) else None

    async def go(server: StubServer) -> list[bool]:
        config = backbone_config(timeout_s=3.0, transport_retries=0, max_reply_chars=2_000_000, max_parse_s=0.3)
        async with open_backbone(StubEngine([server.url]), tmp_path, config=config) as backbone:
            enter()
            model = backbone.bind("c")
            asked = role(malformed_retries=0)
            replies = await asyncio.gather(*(model.ask(asked, {"text": f"turn {n}"}, key=str(n)) for n in range(8)))
        return [reply.malformed for reply in replies]

    with stub() as server:
        server.state.replies = hostile
        assert asyncio.run(go(server)) == [number == 3 for number in range(8)]


def test_a_call_whose_conversation_ends_while_its_reply_is_read_is_booked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, go_on, records = threading.Event(), threading.Event(), []

    def slowly(*_: Any, **__: Any) -> Parsed:
        reading.set()
        assert go_on.wait(10)
        return Parsed(None, problem="too broken")

    async def go(server: StubServer) -> None:
        engine = StubEngine([server.url])
        async with open_backbone(engine, tmp_path, on_call=records.append) as backbone:
            enter()
            asked = asyncio.create_task(backbone.bind("c").ask(role(malformed_retries=0), {"text": "turn"}, key="1"))
            await asyncio.to_thread(reading.wait, 10)
            asked.cancel()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await asked

    monkeypatch.setattr("memsys.llm.bounded.REPAIR_PROCESS.parse", slowly)
    with stub() as server:
        server.state.replies = lambda _: CUT
        asyncio.run(go(server))
    assert [(row.key, row.malformed) for row in records] == [("1", True)]


NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
HOSTILE = ("9" * 400, "-" + "9" * 400, "9" * 5000, "1e999", "-1e999", "NaN", "Infinity", "-Infinity", "1e" + "9" * 50)


@pytest.mark.parametrize("number", HOSTILE)
@pytest.mark.parametrize("around", ['{"n": %s}', 'Sure: {"n": %s} so', '{"n": %s', '{"n": 1, "more": [{"x": %s}]}'])
def test_a_number_that_no_float_holds_is_malformed(number: str, around: str) -> None:
    parsed = parse_object(around % number, NUMBER, repair=True)
    assert parsed.value is None or all(finite(value) == value for value in _numbers(parsed.value))


def test_numbers_that_a_float_holds_are_read() -> None:
    for number in (0, -1, 10**300, 1.5e-300, 2**63):
        assert parse_object(json.dumps({"n": number}), NUMBER, repair=False).value == {"n": number}


@given(st.integers() | st.floats())
def test_finite_gives_a_number_or_says_why_not(value: float) -> None:
    try:
        assert finite(value) == float(value)
    except ValueError as error:
        assert value != value or abs(value) > 1e300, error


def test_deep_nesting_is_malformed() -> None:
    for depth in (100, 900, 20_000):
        assert parse_object('{"n": 1, "m": ' + "[" * depth + "]" * depth + "}", NUMBER, repair=False).value is None


def _numbers(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _numbers(inner)]
    if isinstance(value, list):
        return [number for inner in value for number in _numbers(inner)]
    return [value] if isinstance(value, int | float) else []


def payload(**changes: Any) -> dict[str, Any]:
    return {
        "choices": [{"message": {"content": "x"}, "logprobs": changes.get("logprobs")}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, **changes.get("usage", {})},
    }


@pytest.mark.parametrize("count", [10**400, float("inf"), float("nan"), -1, 1e300, "x", None, []])
def test_a_token_count_that_is_none_is_counted_here(count: Any) -> None:
    for name in ("prompt_tokens", "completion_tokens"):
        read = read_completion(payload(usage={name: count}), 0.1)
        assert read.estimated and getattr(read, name) == 0


@pytest.mark.parametrize(
    ("given", "read"),
    [("stop", "stop"), (None, ""), ("\ud800", "\ufffd"), ("x" * 1_000_000, "x" * 40), ({"a": 1}, "{'a': 1}")],
)
def test_the_reason_for_a_reply_s_end_is_a_short_text_that_files_hold(given: Any, read: str) -> None:
    """Half a surrogate pair was booked, could not be written, and ended the run each time that it was resumed."""
    whole = payload()
    whole["choices"][0]["finish_reason"] = given
    assert read_completion(whole, 0.1).finish_reason == read


def test_log_probabilities_are_finite() -> None:
    token = {"token": "a", "logprob": -0.5, "top_logprobs": [{"token": "b", "logprob": float("-inf")}]}
    read = read_completion(payload(logprobs={"content": [token]}), 0.1)
    assert read.logprobs[0].top == {"b": -9999.0}
    for bad in (10**400, float("nan"), float("inf"), "x"):
        with pytest.raises(MalformedReplyError):
            read_completion(payload(logprobs={"content": [{**token, "logprob": bad}]}), 0.1)


RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def test_a_pause_that_no_float_holds_is_none() -> None:
    for header in ("²", "9" * 400, "-1", "soon", ""):
        assert asked_pause({"Retry-After": header}) == 0.0
    assert asked_pause({}) == 0.0 and asked_pause({"Retry-After": " 7 "}) == 7.0


@pytest.mark.parametrize(
    ("message", "details", "pause"),
    [
        ("Quota. Please retry in 14.2s.", [{"@type": "x"}, {"@type": RETRY_INFO, "retryDelay": "14s"}], 14.0),
        ("Rate limit reached on tokens per min. Please try again in 6m0.5s. Visit x", None, 360.5),
        ("Please try again in 20ms.", None, 0.02),
        ("Please try again in 5 minutes", None, 0.0),
        ("Please try again in 1.2seconds", [{"@type": RETRY_INFO, "retryDelay": {"seconds": 3}}], 0.0),
    ],
)
def test_a_pause_is_also_read_in_the_body(message: str, details: Any, pause: float) -> None:
    body = {"error": {"message": message, "details": details}}
    assert asked_pause({}, body) == asked_pause({}, [body]) == pause
    assert asked_pause({"Retry-After": "3"}, body) == 3.0
    for other in (None, [], "x", {"error": message}, {"error": None}):
        assert asked_pause({}, other) == 0.0
