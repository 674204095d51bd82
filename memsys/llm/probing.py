"""A handful of small requests that find out what an external server takes and gives, see :mod:`memsys.llm.findings`.

A refused request costs nothing, and those that are answered are a few hundred tokens in all.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memsys.errors import BackboneError
from memsys.llm.accepted import AcceptedFields, refused_field
from memsys.llm.config import BackboneConfig
from memsys.llm.contract import Role
from memsys.llm.findings import ASKED_TEMPERATURE, Findings, Form
from memsys.llm.outcomes import is_cut
from memsys.llm.prompt import Prompt
from memsys.llm.refusals import RequestRefusedError, TransientServerError, refusal_words
from memsys.llm.thoughts import read_text
from memsys.llm.token_usage import read_count
from memsys.llm.transport import Sent, Transport
from memsys.llm.wire import THOUGHTS, make_request, read_completion
from memsys.scripts import estimated_tokens
from memsys.vocabulary import Completion, Json
from memsys.yaml_files import read_yaml

#: Shows a title while a block runs.
Stage = Callable[[str], AbstractContextManager[Any]]

_HERE = Path(__file__).parent
#: Tokens of a reply: enough for a short answer, of a thought only the beginning.
_SHORT, _ONE, _THINKING = 64, 16, 2048
#: The key is named by the schema alone: who keeps to the schema writes it, who reads only the prompt does not.
_SCHEMA: Mapping[str, Json] = {
    "type": "object", "properties": {"sky_hue": {"type": "string", "enum": ["red", "green", "blue"]}},
    "required": ["sky_hue"], "additionalProperties": False,
}  # fmt: skip
_TOOL: Mapping[str, Json] = {
    "type": "function", "function": {
        "name": "note_hue", "description": "Notes the colour of the sky.", "parameters": dict(_SCHEMA)
    },
}  # fmt: skip
#: Pages of servers that state a window, below the base URL (``//``: below the root), and where they state it.
_WINDOW_PAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # vLLM and SGLang, Together and OpenRouter, Groq, Mistral
    ("/models", ("max_model_len", "context_length", "context_window", "max_context_length")),
    ("//api/v0/models", ("loaded_context_length", "max_context_length")),  # LM Studio
    ("//props", ("n_ctx",)),  # llama.cpp
    ("//info", ("max_total_tokens", "max_input_tokens")),  # TGI
    ("//api/ps", ("context_length",)),  # Ollama, of the models that are loaded
)
#: Repetitions of the prompt that make it longer than the least prompts that providers keep (1,024 tokens).
_LONG = 90
#: Where this many requests at once took longer, they wait for each other, and twice as many would take twice as long.
_LONG_BURST_SECONDS = 15.0
_SHOWN = 160


class Prober:
    """Finds out about one server and model.

    Args:
        config: of the backbone that will use it.
        transport: open, to that server.
        impatient: another one that sends nothing again; ``None`` for a short look, as a run needs it.
        stage: entered with what is asked for, while it is.
    """

    def __init__(
        self,
        config: BackboneConfig,
        transport: Transport,
        impatient: Transport | None = None,
        stage: Stage = nullcontext,
    ) -> None:
        changes: dict[str, Any] = {
            "explicit": frozenset(), "structured": "json_schema", "thinking": "none", "thinking_switch": {},
            "send_temperature": True, "temperature": None, "send_seed": True, "prompt_mode": "chat",
            "thinking_tokens": 0,
        }  # fmt: skip
        self._config = config
        self._accepted = AcceptedFields(replace(config, **changes), quiet=True)
        self._transport, self._impatient = transport, impatient
        self._stage = stage
        self._found = Findings(whole=impatient is not None, asked=datetime.now(UTC).isoformat(timespec="seconds"))

    async def run(self) -> Findings:
        """Ask.

        Raises:
            BackboneError: the server cannot be reached, or refuses what no setting changes (a key, the model).
        """
        found, stage = self._found, self._stage
        with stage("looking for thoughts"):
            first = await self._thoughts()
        with stage("asking for replies in JSON"):
            await self._form()
        with stage("asking for the window"):
            await self._window()
        with stage("sending a raw prompt"):
            await self._raw()
        if self._impatient is not None:
            with stage("offering a tool"):
                await self._tools()
            with stage("asking the same again"):
                await self._repeat(first)
            with stage("sending a long prompt twice"):
                await self._prompt_cache()
            with stage("sending requests at once"):
                await self._burst(self._impatient)
        found.refused |= {one.field: one.said for one in self._accepted.adaptations if one.field != "response_format"}
        found.limits = dict(self._transport.limits())
        return found

    async def _thoughts(self) -> str:
        """Look for thoughts, and for what switches them off; returns the text of the first reply."""
        role = _role("probe_thought", _SHORT)
        payload, completion = await self._ask(role)
        self._found.usage = not completion.estimated
        self._found.thoughts = _place_of_thoughts(payload, completion)
        if not self._found.thinks:
            return completion.text
        own = [dict(self._config.thinking_switch)] if self._config.thinking == "off" else []
        for switch in [*own, *read_yaml(_HERE / "thinking_switches.yaml", "it is part of the package: restore it")]:
            try:
                payload, completion = await self._ask(role, switch, adapt=False)
            except (RequestRefusedError, BackboneError):
                continue
            if _place_of_thoughts(payload, completion) == "none":
                self._found.thoughts_off = switch
                break
        return completion.text

    async def _form(self) -> None:
        """Find the strictest form of replies that the server keeps."""
        limit = _THINKING if self._found.thinks and not self._found.thoughts_off else _SHORT
        role = _role("probe_form", limit, _SCHEMA)
        found, accepted = self._found, self._accepted
        for form in ("json_schema", "json_object"):
            if form in found.forms:  # refused already, or tried in place of the other
                continue
            accepted.config = replace(accepted.config, structured=form)
            try:
                _, completion = await self._ask(role, found.thoughts_off or {})
            except RequestRefusedError as error:
                found.forms[form], found.refused[form] = "refused", refusal_words(error)[:_SHOWN]
                continue
            if limit == _THINKING and not completion.estimated and not is_cut(completion.finish_reason):
                said = estimated_tokens(read_text(completion.text).text)
                found.thought_tokens = max(completion.completion_tokens - said, 0)
            for one in accepted.adaptations:
                if one.field == "response_format":
                    found.forms[str(one.given)], found.refused[str(one.given)] = "refused", one.said
            reached = accepted.config.structured
            if reached != "off":
                found.forms[reached] = _kept(completion, reached)
            if found.forms.get(reached) == "followed":
                found.structured = reached
                break
        accepted.config = replace(accepted.config, structured="off")

    async def _window(self) -> None:
        for page, names in _WINDOW_PAGES:
            payload = await self._transport.look(page)
            sizes = _numbers_named(_of_model(payload, self._transport.model), names)
            if size := next((sizes[name] for name in names if name in sizes), None):
                self._found.window, self._found.window_said = size, f"{page.replace('//', '/')} ({_name(sizes, names)})"
                return

    async def _raw(self) -> None:
        """See whether raw prompts are completed, where this backbone may send any."""
        if not self._config.completions:
            return
        role = _role("probe", 1)
        request = make_request(self._accepted.config, "openai", replace(role, raw=True), role.prompt.text, 0)
        try:
            self._found.requests += 1
            sent = await self._transport.send(request.path, self._accepted.body(request.body), read_completion)
            self._found.completions = True
            self._count(sent.reply)
        except RequestRefusedError as error:
            says_field = refused_field(refusal_words(error), request.body)
            self._found.completions = None if says_field else False  # the page may be there, and want something else
        except BackboneError:
            self._found.completions = False

    async def _tools(self) -> None:
        role = _role("probe_form", _SHORT)
        more: dict[str, Json] = {**(self._found.thoughts_off or {}), "tools": [_TOOL], "tool_choice": "auto"}
        try:
            _, completion = await self._ask(role, more, adapt=False)
        except BackboneError as error:
            self._found.tools, self._found.refused["tools"] = "refused", refusal_words(error)[:_SHOWN]
            return
        self._found.tools = "called" if completion.tool_calls else "taken, none called"

    async def _repeat(self, first: str) -> None:
        """Ask again what was asked first."""
        _, one = await self._ask(_role("probe_thought", _SHORT), self._found.thoughts_off or {})
        _, two = await self._ask(_role("probe_thought", _SHORT), self._found.thoughts_off or {})
        if one.text:
            texts = {one.text, two.text} | ({first} if not self._found.thinks else set())
            self._found.repeatable = len(texts) == 1

    async def _prompt_cache(self) -> None:
        role = _role("probe_form", _ONE)
        long = replace(role, prompt=Prompt.of("\n".join([role.prompt.text] * _LONG), "probe_form.txt"))
        try:
            replies = [(await self._ask(long, self._found.thoughts_off or {}))[1] for _ in range(2)]
        except BackboneError:  # longer than its window
            return
        self._found.prompt_cache = any(reply.cached_tokens for reply in replies)

    async def _burst(self, transport: Transport) -> None:
        """Send more and more at once: until the server refuses some, or is slow, or as many as the backbone would.

        It is their number that was refused where the server states no limit of another kind, neither in headers nor by
        a pause, and takes as many as before when they are sent again.
        """
        role, most = _role("probe_thought", _ONE), self._config.max_in_flight
        self._found.in_flight = 1
        for many in sorted({*(2**power for power in range(1, 10) if 2**power < most), most}):
            begun = time.monotonic()
            failed = await self._at_once(transport, role, many)
            if failed:
                too_many = all(map(_pushes_back, failed)) and not transport.limits()
                if too_many and not await self._at_once(transport, role, self._found.in_flight):
                    self._found.pushed_back = refusal_words(failed[0])[:_SHOWN]
                return
            self._found.in_flight = many
            if time.monotonic() - begun > _LONG_BURST_SECONDS:
                return

    async def _at_once(self, transport: Transport, role: Role, many: int) -> list[BackboneError]:
        """Send this many requests at once; returns the failures."""
        each = [self._send(transport, role, self._found.thoughts_off or {}, seed) for seed in range(many)]
        failed = list[BackboneError]()
        for one in await asyncio.gather(*each, return_exceptions=True):
            if isinstance(one, BackboneError):
                failed.append(one)
            elif isinstance(one, BaseException):
                raise one
        return failed

    async def _ask(
        self, role: Role, more: Mapping[str, Json] | None = None, *, adapt: bool = True
    ) -> tuple[Any, Completion]:
        """Get a reply; without the fields that the server refuses."""
        while True:
            config = self._accepted.config
            request = make_request(config, "openai", role, role.prompt.text, 0)
            body = {**self._accepted.body(request.body), **(more or {})}
            try:
                return await self._exchange(self._transport, request.path, body)
            except RequestRefusedError as error:
                if not adapt or not self._accepted.adapt(config, body, refusal_words(error)):
                    raise

    async def _send(self, transport: Transport, role: Role, more: Mapping[str, Json], seed: int) -> Completion:
        request = make_request(self._accepted.config, "openai", role, role.prompt.text, seed)
        body = {**self._accepted.body(request.body), **more}
        return (await self._exchange(transport, request.path, body))[1]

    async def _exchange(self, transport: Transport, path: str, body: Mapping[str, Json]) -> tuple[Any, Completion]:
        self._found.requests += 1
        sent: Sent[tuple[Any, Completion]] = await transport.send(
            path, body, lambda payload, seconds: (payload, read_completion(payload, seconds))
        )
        self._count(sent.reply[1])
        return sent.reply

    def _count(self, completion: Completion) -> None:
        self._found.prompt_tokens += completion.prompt_tokens
        self._found.completion_tokens += completion.completion_tokens


async def probe(config: BackboneConfig, log_dir: Path, *, whole: bool, stage: Stage = nullcontext) -> Findings:
    """Find out about a backbone's first server.

    Args:
        config: of the backbone; nothing in it is changed.
        log_dir: for the engine's log.
        whole: also what no setting of a run depends on: tools, equal replies, prompt caching, requests at once.
        stage: entered with what is asked for, while it is: a server may take minutes for a part.

    Raises:
        BackboneError: the server cannot be reached, or refuses what no setting changes.
    """
    engine = config.engine.build()
    patient = Transport(config, engine, log_dir, resumes=False)
    hasty = replace(config, transport_retries=0, max_wait_s=0)
    impatient = Transport(hasty, engine, log_dir, resumes=False) if whole else None
    opened = [each for each in (patient, impatient) if each is not None]
    try:
        for each in opened:
            await each.open()
        return await Prober(config, patient, impatient, stage).run()
    finally:
        for each in opened:
            await each.close()


def _role(name: str, max_tokens: int, schema: Mapping[str, Json] | None = None) -> Role:
    prompt = Prompt.load(_HERE / "prompts" / f"{name}.txt")
    return Role("probe", prompt, temperature=ASKED_TEMPERATURE, max_tokens=max_tokens, schema=schema)


def _pushes_back(failure: BackboneError) -> bool:
    """Return whether a server that asks for no pause had too many requests."""
    cause = failure.__cause__
    return isinstance(cause, TransientServerError) and cause.busy and not cause.pause


def _place_of_thoughts(payload: Any, completion: Completion) -> str:
    """Return where a reply has thoughts; ``none`` where it has none."""
    message = payload["choices"][0].get("message") or {}
    for name in THOUGHTS:
        if message.get(name):
            return name
    parts = message.get("content")
    if isinstance(parts, list) and any(isinstance(one, dict) and one.get("type") not in _SAID for one in parts):
        return "parts of the content"
    if rule := read_text(completion.text).rule:
        return f"in the text ({rule})"
    usage = payload.get("usage") or {}
    details = usage.get("completion_tokens_details") or {}
    counted = read_count(details.get("reasoning_tokens")) or read_count(usage.get("reasoning_tokens"))
    eaten = is_cut(completion.finish_reason) and not completion.text.strip()
    return "hidden" if counted or eaten else "none"


_SAID = (None, "text", "output_text", "refusal")


def _kept(completion: Completion, form: str) -> Form:
    """Return whether a reply has the form that was asked for."""
    try:
        value = json.loads(read_text(completion.text).text)
    except ValueError:
        return "ignored"
    keys = _SCHEMA["properties"] if form == "json_schema" else value
    return "followed" if isinstance(value, dict) and set(value) == set(keys) else "ignored"


def _of_model(payload: Any, model: str) -> Any:
    """Return the entry of a model in a list of models; all that a page says where it has no such entry."""
    for entries in (payload, *(payload.get(name) for name in ("data", "models"))) if isinstance(payload, dict) else ():
        if isinstance(entries, list):
            own = [one for one in entries if isinstance(one, dict) and model in (one.get("id"), one.get("name"))]
            return own[0] if own else (entries[0] if len(entries) == 1 else None)
    return payload


def _numbers_named(value: Any, names: tuple[str, ...]) -> dict[str, int]:
    """Return the first whole numbers of these names, wherever they are in a page."""
    found: dict[str, int] = {}
    for name, one in _named(value):
        if name in names and (count := read_count(one)):
            found.setdefault(name, count)
    return found


def _named(value: Any) -> Iterator[tuple[str, Any]]:
    parts = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    if isinstance(value, dict):
        yield from value.items()
    for each in parts:
        yield from _named(each)


def _name(sizes: Mapping[str, int], names: tuple[str, ...]) -> str:
    return next(name for name in names if name in sizes)
