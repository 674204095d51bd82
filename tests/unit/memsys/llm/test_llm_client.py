"""From role to reply: seeds, malformed retries, ledger, cache, log-probabilities."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from memsys.errors import ConfigError
from memsys.llm.budget import Budget, SpendingMeter
from memsys.llm.cache import ReplyCache
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Reply, Role
from memsys.llm.correction import Correction
from memsys.llm.ledger import CallRecord
from memsys.llm.prompt import Prompt
from memsys.llm.sampling import SAMPLING_FIELDS
from memsys.llm.scope import Phase
from memsys.llm.wire import MalformedReplyError, make_request, read_completion
from memsys.seeding import stable_seed
from memsys.vocabulary import TokenLogprob
from tests.support.backbones import NOTE, StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import StubServer, schema_of, stub


@pytest.fixture
def server() -> Iterator[StubServer]:
    with stub() as running:
        yield running


@dataclass
class Asked:
    """What came of some questions."""

    replies: list[Reply]
    records: list[CallRecord] = field(default_factory=list)
    traffic: tuple[int, int, int, int] = (0, 0, 0, 0)


def ask(
    server: StubServer,
    folder: Path,
    roles: list[Role],
    *,
    config: BackboneConfig | None = None,
    cache: ReplyCache | None = None,
    engine: StubEngine | None = None,
    run_seed: int = 0,
    fresh: bool = False,
) -> Asked:
    """Ask each role in turn, with its position's name as key."""
    asked = Asked([])

    async def run() -> None:
        enter(fresh=fresh)
        backbone = open_backbone(
            engine or StubEngine([server.url]), folder, config=config, cache=cache, run_seed=run_seed,
            on_call=asked.records.append,
        )  # fmt: skip
        async with backbone:
            model = backbone.bind("c1")
            for each in roles:
                asked.replies.append(await model.ask(each, {"text": "hello"}, key="t1"))
            asked.traffic = backbone.traffic()

    asyncio.run(run())
    return asked


def saying(*texts: str) -> Any:
    """A reply function that goes through the texts and stays at the last."""
    left = list(texts)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


GOOD = '{"keywords": ["a"], "context": "b"}'


def test_a_reply_and_its_row(server: StubServer, tmp_path: Path) -> None:
    asked = ask(server, tmp_path, [role()])
    (reply,), (record,) = asked.replies, asked.records
    assert reply.value is not None and set(reply.value) == {"keywords", "context"}
    assert not reply.malformed and not reply.repaired and json.loads(reply.text) == reply.value
    assert replace(record, seconds=0.0) == CallRecord(
        conversation_id="c1", phase="prepare", role="analyse", key="t1", item="u1", attempt=0,
        prompt_tokens=2, completion_tokens=reply.completion.completion_tokens, seconds=0.0, queue_seconds=0.0,
        finish_reason="stop", cache_hit=False, malformed=False, repaired=False, transport_retries=0,
        request_hash=record.request_hash, endpoint="vllm-0", outcome="answered",
    )  # fmt: skip
    assert 0 < record.seconds < 5 and len(record.request_hash) == 64
    (request,) = server.state.requests
    assert request["seed"] == stable_seed(0, "c1", "analyse", "t1", 0) and request["model"] == "stub"
    assert asked.traffic == (1, 2 + record.completion_tokens, 0, 0)


def test_a_malformed_reply_is_asked_again_with_another_seed(server: StubServer, tmp_path: Path) -> None:
    server.state.replies = saying("no json", GOOD)
    asked = ask(server, tmp_path, [role()])
    assert asked.replies[0].value == json.loads(GOOD) and not asked.replies[0].malformed
    assert [(row.attempt, row.malformed, row.repaired) for row in asked.records] == [
        (0, True, False),
        (1, False, False),
    ]
    seeds = [request["seed"] for request in server.state.requests]
    assert seeds == [stable_seed(0, "c1", "analyse", "t1", attempt) for attempt in (0, 1)]


def test_a_malformed_reply_may_be_shown_to_the_model_and_corrected(server: StubServer, tmp_path: Path) -> None:
    server.state.replies = saying("no json", "none again", "nor here", GOOD)
    corrected = role(malformed_retries=3, temperature=0.3, correction=Correction("Only JSON.", 0.1, 0.45))
    asked = ask(server, tmp_path, [corrected])
    assert asked.replies[0].value == json.loads(GOOD) and [row.attempt for row in asked.records] == [0, 1, 2, 3]
    first, *again = server.state.requests
    prompt = {"role": "user", "content": "Describe: hello"}
    exchange = [{"role": "assistant", "content": "no json"}, {"role": "user", "content": "Only JSON."}]
    assert first["messages"] == [prompt] and [request["messages"] for request in again] == [[prompt, *exchange]] * 3
    assert [request["temperature"] for request in again] == [0.4, 0.45, 0.45]
    assert len({request["seed"] for request in server.state.requests}) == 4
    completion = make_request(backbone_config(prompt_mode="completion"), "vllm", corrected.after("bad"), "Ask", 0)
    assert completion.body["prompt"] == "Ask\n\nbad\n\nOnly JSON."


def test_a_malformed_reply_that_is_too_long_to_be_shown_stays(server: StubServer, tmp_path: Path) -> None:
    def say(request: Mapping[str, Any]) -> str:
        server.fail("context")
        return "no json"

    server.state.replies = say
    asked = ask(server, tmp_path, [role(malformed_retries=2, correction=Correction("Only JSON.", 0.0, 1.0))])
    assert asked.replies[0].malformed and asked.replies[0].text == "no json" and len(asked.records) == 1
    assert len(server.state.requests) == 2


@pytest.mark.parametrize(("retries", "temperature", "calls"), [(0, 0.7, 1), (1, 0.7, 2), (3, 0.7, 4), (3, 0.0, 1)])
def test_malformed_to_the_end(server: StubServer, tmp_path: Path, retries: int, temperature: float, calls: int) -> None:
    server.state.replies = saying("still <b>no</b> json")
    asked = ask(server, tmp_path, [role(malformed_retries=retries, temperature=temperature)])
    reply = asked.replies[0]
    assert reply.value is None and reply.malformed and reply.text == "still <b>no</b> json"
    assert len(asked.records) == calls and all(row.malformed for row in asked.records)


def test_truncated_but_closed_counts_as_repaired(server: StubServer, tmp_path: Path) -> None:
    server.state.replies = lambda request: '{"context": "b", "keywords": ["one", "two", "three and more"]}'
    server.fail("truncate")
    asked = ask(server, tmp_path, [role()])
    assert asked.replies[0].value is not None and asked.replies[0].repaired
    assert asked.records[0].finish_reason == "length" and asked.records[0].repaired
    server.fail("truncate")
    asked = ask(server, tmp_path, [role(malformed_retries=0)], config=backbone_config(json_repair=False))
    assert asked.replies[0].malformed and asked.records[0].malformed


def test_an_empty_reply_is_malformed_for_a_schema_and_a_reply_without(server: StubServer, tmp_path: Path) -> None:
    server.state.replies = saying("")
    asked = ask(server, tmp_path, [role(malformed_retries=0), role(schema=None)])
    assert asked.replies[0].malformed and asked.replies[0].text == ""
    assert not asked.replies[1].malformed and asked.replies[1].value is None
    assert [row.transport_retries for row in asked.records] == [0, 0]


def test_thinking_never_reaches_the_caller(server: StubServer, tmp_path: Path) -> None:
    server.state.replies = saying(f"<think>\nlet me see {{</think>\n{GOOD}")
    asked = ask(server, tmp_path, [role(), role(schema=None)])
    assert asked.replies[0].value == json.loads(GOOD) and not asked.replies[0].repaired
    assert asked.replies[1].text == GOOD and "<think>" in asked.replies[1].completion.text


def test_calls_outside_a_scope_are_an_error(server: StubServer, tmp_path: Path) -> None:
    import contextvars

    async def run() -> None:
        async with open_backbone(StubEngine([server.url]), tmp_path) as backbone:
            await backbone.bind("c1").ask(role(), {"text": "x"}, key="x")

    with pytest.raises(RuntimeError, match="outside a call scope"):
        contextvars.Context().run(asyncio.run, run())


def test_a_backbone_must_be_open(server: StubServer, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not open"):
        open_backbone(StubEngine([server.url]), tmp_path).bind("c1")


@pytest.mark.parametrize(
    ("dialect", "mode", "path", "where"),
    [
        ("vllm", "chat", "/v1/chat/completions", "response_format"),
        ("vllm", "completion", "/v1/completions", "response_format"),
        ("llamacpp", "chat", "/v1/chat/completions", "response_format"),
        ("llamacpp", "completion", "/v1/completions", "json_schema"),
    ],
)
def test_both_modes_and_their_constraint(
    server: StubServer, tmp_path: Path, dialect: str, mode: str, path: str, where: str
) -> None:
    config = backbone_config(prompt_mode=mode, thinking="off", thinking_switch={"chat_template_kwargs": {"t": False}})
    asked = ask(
        server, tmp_path, [role(system="Be brief.", top_logprobs=2)], config=config,
        engine=StubEngine([server.url], name=dialect),
    )  # fmt: skip
    (request,) = server.state.requests
    assert request["path"] == path and where in request and schema_of(request) == NOTE
    if mode == "chat":
        assert [message["role"] for message in request["messages"]] == ["system", "user"]
        assert request["messages"][1]["content"] == "Describe: hello"
        assert request["chat_template_kwargs"] == {"t": False}
    else:
        assert request["prompt"] == "Describe: hello" and "chat_template_kwargs" not in request
    first = asked.replies[0].completion.logprobs[0]
    assert first.logprob == -0.5 and first.top == {"alt0": -1.0, "alt1": -2.0}
    assert "".join(f"{token.token} " for token in asked.replies[0].completion.logprobs).strip() == asked.replies[0].text


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "off", "json_spaced"])
@pytest.mark.parametrize("mode", ["chat", "completion"])
@pytest.mark.parametrize("switch", ["chat_template_kwargs", "response_format"])
def test_the_text_of_a_request_is_its_body_as_json(structured: str, mode: str, switch: str) -> None:
    """The constraint's part of it is written once for a schema; the digest is of the whole."""
    config = backbone_config(
        structured=structured, prompt_mode=mode, thinking="off", thinking_switch={switch: {"type": "text"}}
    )
    for dialect in ("vllm", "llamacpp"):
        for asked in (role(), role(), role(name="other"), role(schema=None), role(schema={**NOTE, "required": []})):
            request = make_request(config, dialect, asked, 'ü "hello"', 5)
            assert request.text == json.dumps(request.body)


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])
def test_a_raw_role_passes_no_chat_template_whatever_the_backbones_mode(dialect: str) -> None:
    config = backbone_config(prompt_mode="chat", thinking="off", thinking_switch={"chat_template_kwargs": {"t": False}})
    request = make_request(config, dialect, role(raw=True, schema=None, top_logprobs=1), "p", 7)
    assert request.path == "/completions"
    assert request.body["prompt"] == "p" and request.body["logprobs"] == 1
    assert not {"messages", "chat_template_kwargs", "response_format"} & set(request.body)


def test_what_is_sent_follows_the_settings() -> None:
    def body(dialect: str = "vllm", **changes: Any) -> Mapping[str, Any]:
        return make_request(backbone_config(**changes), dialect, role(), "p", 7).body

    plain = body()
    assert {"max_tokens", "temperature", "seed", "messages", "response_format"} == set(plain)
    assert plain["temperature"] == 0.7 and plain["max_tokens"] == 50 and plain["seed"] == 7
    assert body(temperature=0.0)["temperature"] == 0.0
    hosted = body(send_temperature=False, send_seed=False, max_tokens_field="max_completion_tokens")
    assert {"max_completion_tokens", "messages", "response_format"} == set(hosted)
    sampling = {**dict.fromkeys(SAMPLING_FIELDS), "top_k": 0, "repetition_penalty": 1.1}
    assert body(sampling=sampling)["top_k"] == 0 and body(sampling=sampling)["repetition_penalty"] == 1.1
    assert body("llamacpp", sampling=sampling)["repeat_penalty"] == 1.1 and "min_p" not in body(sampling=sampling)
    assert "response_format" not in body(structured="off")
    assert body(structured="json_object")["response_format"] == {"type": "json_object"}


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("prompt", {"prompt": Prompt("Describe well: $text", "p", "1")}, {}),
    ("system", {"system": "Be brief."}, {}),
    ("schema", {"schema": {**NOTE, "required": ["keywords"]}}, {}),
    ("order of members", {"schema": {**NOTE, "properties": dict(reversed(NOTE["properties"].items()))}}, {}),
    ("role temperature", {"temperature": 0.2}, {}),
    ("max_tokens", {"max_tokens": 51}, {}),
    ("role", {"name": "other"}, {}),
    ("top_logprobs", {"top_logprobs": 1}, {}),
    ("raw", {"raw": True}, {}),
    ("temperature", {}, {"temperature": 0.1}),
    ("prompt_mode", {}, {"prompt_mode": "completion"}),
    ("structured", {}, {"structured": "off"}),
    ("thinking", {}, {"thinking": "off", "thinking_switch": {"chat_template_kwargs": {"enable_thinking": False}}}),
    ("model", {}, {"model": "Other-1B"}),
    ("send_seed", {}, {"send_seed": False}),
    *((name, {}, {"sampling": {**dict.fromkeys(SAMPLING_FIELDS), name: 1}}) for name in SAMPLING_FIELDS),
]


@pytest.mark.parametrize(("role_changes", "changes"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_what_can_change_a_reply_is_in_its_key(
    server: StubServer, tmp_path: Path, role_changes: dict[str, Any], changes: dict[str, Any]
) -> None:
    server.state.replies = saying(GOOD)
    cache = ReplyCache(tmp_path / "replies")
    ask(server, tmp_path, [role()], cache=cache)
    asked = ask(server, tmp_path, [role(**role_changes)], config=backbone_config(**changes), cache=cache)
    assert not asked.records[0].cache_hit and server.state.count == 2


def test_run_seed_and_model_file_are_in_the_key(server: StubServer, tmp_path: Path) -> None:
    cache, other = ReplyCache(tmp_path / "replies"), StubEngine([server.url])
    other.model = {**other.model, "sha256": "1" * 64}
    ask(server, tmp_path, [role()], cache=cache)
    ask(server, tmp_path, [role()], cache=cache, run_seed=1)
    ask(server, tmp_path, [role()], cache=cache, engine=other)
    assert server.state.count == 3


def test_what_cannot_change_a_reply_is_not_in_its_key(server: StubServer, tmp_path: Path) -> None:
    first = ask(server, tmp_path, [role()], cache=ReplyCache(tmp_path / "replies"))
    config = backbone_config(
        name="renamed", max_in_flight=3, timeout_s=9, transport_retries=0, backoff_s=1, json_repair=False,
        context_length=999, token_counter="characters",
    )  # fmt: skip
    with stub() as elsewhere:
        cache = ReplyCache(tmp_path / "replies")
        asked = ask(elsewhere, tmp_path, [role(malformed_retries=5)], config=config, cache=cache)
        assert elsewhere.state.count == 0
    assert asked.replies == first.replies
    (hit,), (made,) = asked.records, first.records
    assert hit == replace(made, cache_hit=True, endpoint="")  # seconds are those of the call that was made
    assert asked.traffic == (1, 0, 0, 1)


def test_a_malformed_reply_is_cached_and_its_retry_too(server: StubServer, tmp_path: Path) -> None:
    server.state.replies = saying("no json", GOOD)
    cache = ReplyCache(tmp_path / "replies")
    first, again = (ask(server, tmp_path, [role()], cache=cache) for _ in range(2))
    assert again.replies == first.replies and [row.cache_hit for row in again.records] == [True, True]
    assert [row.malformed for row in again.records] == [True, False]


def test_a_call_whose_seed_is_not_sent_is_a_call_of_its_own_all_the_same(server: StubServer, tmp_path: Path) -> None:
    """Else a retry would find the malformed reply, and a further seed of a run the replies of the first."""
    server.state.replies = saying("no json", GOOD)
    cache, config = ReplyCache(tmp_path / "replies"), backbone_config(send_seed=False)
    asked = ask(server, tmp_path, [role()], cache=cache, config=config)
    assert asked.replies[0].value == json.loads(GOOD) and [row.cache_hit for row in asked.records] == [False, False]
    assert all("seed" not in request for request in server.state.requests)
    again = ask(server, tmp_path, [role()], cache=cache, config=config)
    assert [row.cache_hit for row in again.records] == [True, True] and again.replies == asked.replies
    other = ask(server, tmp_path, [role()], cache=cache, config=config, run_seed=1)
    assert not other.records[0].cache_hit and server.state.count == 3


def test_fresh_replies_pass_by_the_cache(server: StubServer, tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path / "replies")
    for _ in range(2):
        asked = ask(server, tmp_path, [role()], cache=cache, fresh=True)
        assert not asked.records[0].cache_hit
    assert server.state.count == 2 and len(cache) == 0


def test_queue_time_is_not_service_time(tmp_path: Path) -> None:
    with stub(delay=0.05) as server:
        records: list[CallRecord] = []

        async def run() -> None:
            enter()
            config = backbone_config(max_in_flight=1)
            async with open_backbone(
                StubEngine([server.url]), tmp_path, config=config, on_call=records.append
            ) as opened:
                model = opened.bind("c1")
                await asyncio.gather(*(model.ask(role(), {"text": str(n)}, key=str(n)) for n in range(4)))

        asyncio.run(run())
        assert server.state.most_in_flight == 1
        assert all(record.seconds > 0.04 for record in records)
        waits = [record.queue_seconds for record in records]
        assert waits[0] == 0 and waits == sorted(waits) and waits[-1] > 0.13
        assert records[-1].seconds < waits[-1]


def test_writes_overtake_preparation(tmp_path: Path) -> None:
    with stub(delay=0.01) as server:

        async def run() -> None:
            config = backbone_config(max_in_flight=1)
            async with open_backbone(StubEngine([server.url]), tmp_path, config=config) as backbone:
                model = backbone.bind("c1")
                waiting: list[asyncio.Task[Reply]] = []
                phases: tuple[Phase, ...] = ("prepare", "prepare", "prepare", "answer", "write")
                for phase in phases:
                    enter(phase)
                    waiting.append(asyncio.create_task(model.ask(role(), {"text": phase}, key=str(len(waiting)))))
                    await asyncio.sleep(0)
                await asyncio.gather(*waiting)

        asyncio.run(run())
        assert [prompt.split()[-1] for prompt in server.prompts()] == [
            "prepare",
            "write",
            "answer",
            "prepare",
            "prepare",
        ]


@pytest.mark.parametrize(("counter", "tokens"), [("server", 3), ("characters", 4)])
def test_counting_tokens(server: StubServer, tmp_path: Path, counter: str, tokens: int) -> None:
    async def run() -> list[int]:
        config = backbone_config(token_counter=counter)
        async with open_backbone(StubEngine([server.url]), tmp_path, config=config) as backbone:
            model = backbone.bind("c1")
            return [
                await model.count_tokens("three short words"[:16]),
                await model.count_tokens("three short words"[:16]),
            ]

    assert asyncio.run(run()) == [tokens, tokens]


LLAMACPP = {"content": [{"token": "a", "logprob": -0.1, "top_logprobs": [{"token": "b", "logprob": None}]}]}
VLLM = {"tokens": ["a"], "token_logprobs": [-0.1], "top_logprobs": [{"b": None}]}


@pytest.mark.parametrize("logprobs", [LLAMACPP, VLLM])
@pytest.mark.parametrize("text", [{"message": {"content": "a"}}, {"text": "a"}])
def test_log_probabilities_in_every_shape(logprobs: dict[str, Any], text: dict[str, Any]) -> None:
    payload = {
        "choices": [{**text, "finish_reason": "stop", "logprobs": logprobs}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
    }
    completion = read_completion(payload, 0.5)
    assert completion.logprobs == (TokenLogprob("a", -0.1, {"b": -9999.0}),)
    assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("a", 5, 1)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": ""}, ""),
        ({"content": None, "reasoning_content": "thought until the end"}, ""),
        ({"content": None}, ""),
        ({"content": None, "refusal": "I will not."}, ""),
        ({"content": "half \ud83d"}, "half \ufffd"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Rex?"}]},
                    {"type": "text", "text": "Pixel"},
                ]
            },
            "Pixel",
        ),
        ({"content": ["Pix", {"type": "output_text", "text": "el"}]}, "Pixel"),
        ({"content": "Pixel", "reasoning_content": "Rex?"}, "Pixel"),
    ],
)
def test_replies_without_plain_text(message: dict[str, Any], text: str) -> None:
    payload = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
    assert read_completion(payload, 0.0).text == text


@pytest.mark.parametrize(
    "payload",
    [None, [], {}, {"choices": []}, {"choices": [{"message": {"content": None}}], "usage": {"prompt_tokens": 1}},
     {"error": "busy"}, {"choices": [{"text": 5}], "usage": {"prompt_tokens": 1}}],
)  # fmt: skip
def test_no_completion_is_made_up(payload: Any) -> None:
    with pytest.raises(MalformedReplyError):
        read_completion(payload, 0.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"prompt_mode": "raw"}, "backbone.prompt_mode is 'raw'; it must be one of chat, completion"),
        ({"thinking": False}, "thinking"),
        ({"thinking": "off"}, "thinking_switch"),
        ({"thinking_switch": {"x": 1}}, "thinking_switch"),
        ({"structured": "yes"}, "structured"),
        ({"sampling": {"top_p": 1}}, "min_p"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"token_counter": "tiktoken"}, "token_counter"),
        ({"max_tokens_field": "n_predict"}, "max_tokens_field"),
    ],
)
def test_settings_that_cannot_work(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        backbone_config(**changes)


def test_replies_that_are_asked_for_again_count_for_the_budget(server: StubServer, tmp_path: Path) -> None:
    rejected = iter([{"choices": [], "usage": {"prompt_tokens": 700, "completion_tokens": 30}}, {"choices": []}, [1]])
    server.state.bodies = lambda body: None if (reply := next(rejected, None)) is None else (200, reply, {})

    async def run() -> tuple[int, int]:
        enter()
        config = backbone_config(transport_retries=3, backoff_s=0.0)
        backbone = open_backbone(StubEngine([server.url]), tmp_path, config=config)
        backbone.meter = SpendingMeter(Budget())
        async with backbone:
            reply = await backbone.bind("c1").ask(role(), {"text": "a"}, key="t1")
            return (
                backbone.meter.budget.spent_tokens,
                reply.completion.prompt_tokens + reply.completion.completion_tokens,
            )

    spent, last = asyncio.run(run())
    assert spent == 730 + last
