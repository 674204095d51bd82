"""A field that a server refuses is chosen again once, and recorded; what the user set is one error before all else."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from memsys.errors import BackboneError, BackboneUnusableError
from memsys.llm.accepted import Adaptation, refused_field
from tests.support.backbones import StubEngine, backbone_config, enter, open_backbone, role
from tests.support.stub_server import stub

Refuses = Callable[[Mapping[str, Any]], bool]
CASES: list[tuple[str, Refuses, str, dict[str, Any]]] = [
    (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body, "backbone.max_tokens_field", {"max_completion_tokens": 50},
    ),
    (
        "'temperature' does not support 0.7 with this model. Only the default (1) value is supported.",
        lambda body: "temperature" in body, "backbone.send_temperature", {"temperature": None},
    ),
    ("seed is not supported", lambda body: "seed" in body, "backbone.send_seed", {"seed": None}),
    (
        "This response_format type is unavailable now",
        lambda body: (body.get("response_format") or {}).get("type") == "json_schema", "backbone.structured",
        {"response_format": {"type": "json_object"}},
    ),
    (
        "response_format is not supported", lambda body: "response_format" in body, "backbone.structured",
        {"response_format": None},
    ),
    ("Unknown parameter: top_p", lambda body: "top_p" in body, "backbone.sampling.top_p", {"top_p": None}),
    (
        "Unrecognized request argument supplied: chat_template_kwargs", lambda body: "chat_template_kwargs" in body,
        "backbone.thinking", {"chat_template_kwargs": None},
    ),
    ("logprobs are not available", lambda body: "logprobs" in body, "", {"logprobs": None, "top_logprobs": None}),
]  # fmt: skip


def refusing(said: str, refuses: Refuses) -> Callable[[Mapping[str, Any]], tuple[int, Any] | None]:
    return lambda body: (400, {"error": {"message": said}}) if refuses(body) else None


def ask(url: str, folder: Path, times: int = 1, **changes: Any) -> list[Adaptation]:
    found: list[Adaptation] = []

    async def run() -> None:
        enter()
        settings = {"sampling": {**backbone_config().sampling, "top_p": 0.9}, "thinking": "off",
                    "thinking_switch": {"chat_template_kwargs": {"enable_thinking": False}}}  # fmt: skip
        config = backbone_config(**{**settings, "transport_retries": 0, **changes})
        async with open_backbone(StubEngine([url], name="openai"), folder, config=config) as backbone:
            backbone.accepted.on_adapted = found.append
            model = backbone.bind("c1")
            each = role(top_logprobs=2, malformed_retries=0)
            asked = [model.ask(each, {"text": str(one)}, key=str(one)) for one in range(times)]
            await asyncio.gather(*asked)

    asyncio.run(run())
    return found


@pytest.mark.parametrize(("said", "refuses", "setting", "sent"), CASES)
def test_a_refused_field_is_chosen_anew_once(
    tmp_path: Path, said: str, refuses: Refuses, setting: str, sent: dict[str, Any]
) -> None:
    with stub() as server:
        server.state.bodies = refusing(said, refuses)
        found = ask(server.url, tmp_path, times=4)
        last = server.state.requests[-1]
    assert {name: last.get(name) for name in sent} == sent
    assert found[-1].setting == setting and found[-1].said == said and len(found) <= 2
    assert sum(not refuses(request) for request in server.state.requests) == 4


def test_several_refused_fields_are_found_one_after_the_other(tmp_path: Path) -> None:
    with stub() as server:
        rules = [refusing(said, refuses) for said, refuses, *_ in CASES]
        server.state.bodies = lambda body: next((found for rule in rules if (found := rule(body))), None)
        assert len(ask(server.url, tmp_path)) == 8
        assert set(server.state.requests[-1]) == {"path", "headers", "model", "messages", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("said", "refuses", "explicit"),
    [(CASES[0][0], CASES[0][1], "max_tokens_field"), (CASES[1][0], CASES[1][1], "temperature"),
     (CASES[3][0], CASES[3][1], "structured"), (CASES[5][0], CASES[5][1], "sampling")],
)  # fmt: skip
def test_what_the_user_set_is_one_error_before_anything_is_paid(
    tmp_path: Path, said: str, refuses: Refuses, explicit: str
) -> None:
    with stub() as server:
        server.state.bodies = refusing(said, refuses)
        changes = {"temperature": 0.5} if explicit == "temperature" else {}
        with pytest.raises(BackboneUnusableError, match=r"refuses .* backbone\..*=.* asks for; leave"):
            ask(server.url, tmp_path, explicit=frozenset({explicit}), **changes)
        assert len(server.state.requests) == 1 and refuses(server.state.requests[0])


def test_settings_that_add_no_field_are_not_tried(tmp_path: Path) -> None:
    with stub() as server:
        ask(server.url, tmp_path, structured="off", explicit=frozenset({"structured", "transport_retries"}))
        assert server.state.count == 1
        ask(server.url, tmp_path, times=3, explicit=frozenset({"structured"}))
        assert server.state.count == 1 + 1 + 3


@pytest.mark.parametrize(
    "said",
    ["max_tokens is too large: 5000. This model supports at most 4096 completion tokens", "bad request",
     "Unsupported country", "messages: text is empty"],
)  # fmt: skip
def test_other_refusals_stay_what_they_are(tmp_path: Path, said: str) -> None:
    with stub() as server:
        server.state.bodies = refusing(said, lambda _: True)
        with pytest.raises(BackboneError, match=said[:20]):
            ask(server.url, tmp_path)
        assert server.state.count == 1


def test_the_field_that_is_named_first_is_the_refused_one() -> None:
    body = {"max_tokens": 5, "temperature": 1, "seed": 1}
    assert refused_field("{'loc': ['body', 'seed'], 'msg': 'Extra inputs are not permitted'}", body) == "seed"
    assert refused_field("seeds are not supported", body) is None


def test_a_validation_that_llama_cpp_python_calls_an_error_of_its_own_is_a_refusal(tmp_path: Path) -> None:
    said = (
        "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), "
        "'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}\n"
    )

    def bodies(body: Mapping[str, Any]) -> tuple[int, Any] | None:
        asked = (body.get("response_format") or {}).get("type")
        return (500, {"error": {"message": said, "type": "internal_server_error"}}) if asked == "json_schema" else None

    with stub() as server:
        server.state.bodies = bodies
        (found,) = ask(server.url, tmp_path)
    assert (found.setting, found.chosen) == ("backbone.structured", "json_object")
