"""Whatever a server sends in place of an answer is one of five things, with its reason, and only a reply is stored."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memsys.credentials import redacted
from memsys.errors import BackboneError, BackboneUnusableError
from memsys.llm.cache import ReplyCache
from memsys.llm.cache_rows import read_row, written_row
from memsys.llm.contract import Reply
from memsys.llm.ledger import CallRecord
from memsys.llm.outcomes import reason_of
from memsys.llm.refusals import (
    SETTINGS,
    ContextLengthError,
    PromptWithheldError,
    RepeatedFailureError,
    RequestRefusedError,
    TransientServerError,
    advice,
    refusal,
    stated_error,
)
from memsys.vocabulary import Completion
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import StubServer, stub

GOOD = '{"keywords": ["a"], "context": "b"}'


@pytest.fixture
def server() -> Iterator[StubServer]:
    with stub() as running:
        yield running


def body(content: Any, finish: Any = "stop", choice: Mapping[str, Any] | None = None, **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    return {
        "choices": [{"index": 0, "finish_reason": finish, "message": said, **(choice or {})}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 7},
    }


def ask(server: StubServer, folder: Path, cache: ReplyCache | None = None, **changes: Any) -> tuple[Reply, CallRecord]:
    records: list[CallRecord] = []
    own = role(schema=None) if changes.pop("plain", False) else role(malformed_retries=changes.pop("retries", 0))

    async def run() -> Reply:
        enter()
        backbone = open_backbone(
            StubEngine([server.url]), folder, config=backbone_config(**changes), cache=cache, on_call=records.append
        )
        async with backbone:
            return await backbone.bind("c1").ask(own, {"text": "hello"}, key="t1")

    return asyncio.run(run()), records[-1]


@pytest.mark.parametrize(
    ("sent", "outcome", "reason"),
    [
        (body(GOOD), "answered", ""),
        (body(GOOD, None), "answered", ""),
        (body(GOOD, "length"), "answered", ""),
        (body("no object"), "malformed", "finish_reason stop"),
        (body(""), "empty", "finish_reason stop"),
        (body(None), "empty", "finish_reason stop"),
        (body(" \n\t"), "empty", "finish_reason stop"),
        (body("", "length"), "empty", "cut at its limit of tokens (finish_reason length) after 7"),
        (body(None, "length"), "empty", "cut at its limit of tokens (finish_reason length) after 7"),
        (body("<think>and then", "length"), "empty", "cut at its limit of tokens (finish_reason length) after 7"),
        (body(None, "content_filter"), "withheld", "finish_reason content_filter"),
        (body(GOOD, "content_filter"), "withheld", "finish_reason content_filter"),
        (body("half an ans", "content_filter"), "withheld", "finish_reason content_filter"),
        (body("", "SAFETY"), "withheld", "finish_reason SAFETY"),
        (body(None, "RECITATION"), "withheld", "finish_reason RECITATION"),
        (body("", "PROHIBITED_CONTENT"), "withheld", "finish_reason PROHIBITED_CONTENT"),
        (body("", "stop", {"native_finish_reason": "SAFETY"}), "withheld", "finish_reason SAFETY"),
        (body("", None, {"stop_reason": "refusal"}), "withheld", "finish_reason refusal"),
        (body(None, "stop", refusal="I cannot help."), "withheld", "finish_reason refusal: I cannot help."),
        (body(None, "content_filter", {"message": None}), "withheld", "finish_reason content_filter"),
    ],
)
def test_a_reply_is_one_of_five_things(
    server: StubServer, tmp_path: Path, sent: dict[str, Any], outcome: str, reason: str
) -> None:
    server.state.bodies = lambda request: (200, sent)
    reply, record = ask(server, tmp_path)
    assert (reply.outcome, record.outcome) == (outcome, outcome)
    assert reason_of(reply.outcome, reply.completion) == reason
    assert reply.malformed == (outcome != "answered") and (reply.text == "") == (outcome in ("empty", "withheld"))


@pytest.mark.parametrize(
    ("status", "sent", "said"),
    [
        (400, {"error": {"message": "filtered", "code": "content_filter", "innererror": {"code": "X"}}}, "filtered"),
        (400, {"error": {"message": "m", "code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "m"),
        (400, {"error": {"message": "hit the content management policy", "code": "400"}}, "hit the content"),
        (400, {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}}, "Content Exists Risk"),
        (403, {"error": {"message": "m", "code": 403, "metadata": {"reasons": [], "flagged_input": "x"}}}, "m"),
        (403, {"error": {"message": "requires moderation on X. Your input was flagged", "code": 403}}, "requires"),
        (200, {"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
        (200, {"choices": None, "error": {"message": "m", "code": "content_policy_violation"}}, "m"),
    ],
)
def test_a_prompt_that_a_filter_stops_is_a_withheld_reply(
    server: StubServer, tmp_path: Path, status: int, sent: dict[str, Any], said: str
) -> None:
    server.state.bodies = lambda request: (status, sent)
    reply, record = ask(server, tmp_path)
    assert (reply.outcome, record.outcome, record.transport_retries) == ("withheld", "withheld", 0)
    assert said in reason_of(reply.outcome, reply.completion) and server.state.count == 1


@pytest.mark.parametrize(
    ("status", "sent", "requests"),
    [
        (200, body(None, "content_filter"), 1),
        (200, body('{"half', "SAFETY"), 1),
        (200, body(None, refusal="I cannot help."), 1),
        (400, {"error": {"message": "filtered", "code": "content_filter"}}, 1),
        (200, body(""), 3),
        (200, body("no object"), 3),
    ],
)
def test_an_object_that_was_withheld_is_not_asked_for_again(
    server: StubServer, tmp_path: Path, status: int, sent: dict[str, Any], requests: int
) -> None:
    server.state.bodies = lambda request: (status, sent)
    reply, record = ask(server, tmp_path, retries=2)
    assert server.state.count == requests and record.attempt == requests - 1
    assert reply.value is None and (reply.outcome == "withheld") == (requests == 1)


FAILED = (
    body("half", "error"),
    body("half", "abort"),
    body(GOOD) | {"error": {"message": "upstream went away", "code": 502}},
    body(GOOD, "stop", {"error": {"message": "upstream went away", "code": 502}}),
    body(GOOD) | {"error": "upstream went away"},
    body(GOOD) | {"error": [{"message": "upstream went away"}]},
    {"error": {"message": "Rate limit exceeded: free-models-per-day", "code": 429}},
    {"choices": []},
    {"choices": None},
    body(None, None, {"message": None}),
)


@pytest.mark.parametrize("sent", FAILED)
def test_a_reply_that_ended_in_an_error_is_sent_for_again_and_not_stored(
    server: StubServer, tmp_path: Path, sent: dict[str, Any]
) -> None:
    cache = ReplyCache(tmp_path / "replies")
    server.state.bodies = lambda request: (200, sent)
    with pytest.raises(BackboneError) as raised:
        ask(server, tmp_path, cache)
    assert not isinstance(raised.value, BackboneUnusableError) and server.state.count == 3 and len(cache) == 0
    if "error" in sent:
        assert "upstream went away" in str(raised.value) or "free-models-per-day" in str(raised.value)
    server.state.bodies = None
    assert ask(server, tmp_path, cache)[0].outcome == "answered" and len(cache) == 1


@pytest.mark.parametrize("sent", [body(None, "content_filter"), body("half", "content_filter"), body("  ")])
def test_what_answers_nothing_is_asked_again_of_a_healthy_server(
    server: StubServer, tmp_path: Path, sent: dict[str, Any]
) -> None:
    cache = ReplyCache(tmp_path / "replies")
    server.state.bodies = lambda request: (200, sent)
    assert ask(server, tmp_path, cache)[0].outcome in ("withheld", "empty") and len(cache) == 0
    server.state.bodies = None
    reply, record = ask(server, tmp_path, cache)
    assert reply.outcome == "answered" and not record.cache_hit and len(cache) == 1


def test_a_broken_off_reply_that_an_older_version_stored_is_none() -> None:
    key = "0" * 64
    assert read_row(written_row(key, Completion("half", 1, 1, 0.1, "length")), key).text == "half"
    for finish_reason in ("error", "abort", "content_filter"):
        with pytest.raises(ValueError, match="no whole reply"):
            read_row(written_row(key, Completion("half", 1, 1, 0.1, finish_reason)), key)


@pytest.mark.parametrize(
    ("status", "error", "remedy"),
    [
        (200, {"message": "Insufficient credits", "code": 402}, "add credit"),
        (200, {"message": "Insufficient credits", "code": "402"}, "add credit"),
        (429, {"message": "You exceeded your quota", "code": "insufficient_quota", "type": "x"}, "add credit"),
        (429, {"message": "You exceeded your quota", "type": "insufficient_quota", "code": None}, "add credit"),
        (400, {"message": "Arrearage", "code": "Arrearage"}, "add credit"),
        (200, {"message": "no such model", "code": "model_not_found"}, "backbone.model"),
        (404, {"message": "The model `m` does not exist", "code": "model_not_found"}, "backbone.model"),
        (200, {"message": "bad key", "code": "invalid_api_key"}, "backbone.engine.api_key_env"),
        (401, {"message": "bad key", "code": None}, "backbone.engine.api_key_env"),
        (403, {"message": "not yours", "code": 403}, "or a firewall or proxy in between refuses requests to it"),
    ],
)
def test_what_cannot_pass_ends_at_once_and_says_what_to_do(
    server: StubServer, tmp_path: Path, status: int, error: dict[str, Any], remedy: str
) -> None:
    server.state.bodies = lambda request: (status, {"error": error})
    with pytest.raises(BackboneUnusableError) as raised:
        ask(server, tmp_path)
    assert error["message"] in str(raised.value) and remedy in str(raised.value) and server.state.count == 1
    assert status == 200 or f"status {status}: " in str(raised.value)


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "is not accepted: see the variable that STUB_KEY_OF_TEST names"), (403, "ask its provider")],
)
def test_a_key_that_was_sent_is_spoken_of(status: int, said: str) -> None:
    assert said in advice(status, {**SETTINGS, "key": "STUB_KEY_OF_TEST"})


def test_no_key_was_sent_is_said_of_status_401_alone() -> None:
    """A firewall answers with 403 whether there is a key or not."""
    assert advice(401, SETTINGS, keyless=True).startswith("no key was sent: backbone.engine.api_key_env=VARIABLE")
    said = advice(403, SETTINGS, keyless=True)
    assert said.startswith("the server requires a key: backbone.engine.api_key_env=VARIABLE") and "no key" not in said
    assert redacted(said) == said


@pytest.mark.parametrize(
    ("status", "payload", "kind"),
    [
        (400, {"error": {"message": "Unsupported parameter", "code": "unsupported_parameter"}}, RequestRefusedError),
        (200, {"error": {"message": "bad field", "type": "invalid_request_error"}}, RequestRefusedError),
        (400, {"error": {"message": "maximum context length is 512"}}, ContextLengthError),
        (200, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, TransientServerError),
        (200, {"error": {"message": "overloaded", "type": "overloaded_error"}}, TransientServerError),
        (429, [{"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}], TransientServerError),
        (200, {"error": {"message": "what is this"}}, TransientServerError),
        (500, {"error": {"message": "our safety system stopped", "code": 500}}, TransientServerError),
        (400, {"error": {"message": "stopped by our safety system"}}, PromptWithheldError),
        (451, {"error": {"message": "was flagged"}}, PromptWithheldError),
        (409, {"error": {"message": "no", "code": "x"}}, RequestRefusedError),
    ],
)
def test_an_error_is_read_by_its_code_before_its_status(status: int, payload: Any, kind: type[Exception]) -> None:
    stated = stated_error(payload)
    assert stated is not None and type(refusal(status, 0.0, stated)) is kind


@pytest.mark.parametrize("payload", [None, [], {}, "x", {"error": None}, {"error": ""}, {"error": []}, {"error": {}},
                                     {"choices": [{"error": None}]}, {"tokens": [1]}])  # fmt: skip
def test_no_error_is_made_up(payload: Any) -> None:
    assert stated_error(payload) is None


@pytest.mark.parametrize(("failure", "kind"), [("500", RepeatedFailureError), ("429", BackboneError)])
def test_a_server_that_is_busy_or_gone_is_not_one_that_fails_at_a_request(
    server: StubServer, tmp_path: Path, failure: str, kind: type[Exception]
) -> None:
    server.state.every = failure
    with pytest.raises(BackboneError) as raised:
        ask(server, tmp_path)
    assert type(raised.value) is kind
