"""An OpenAI-compatible server that answers after a fixed delay, any number of requests at once.

What it says is a function of the request alone (prompt and seed), and follows the request's schema. It counts what it
got, and can fail in the ways servers fail. Run as a process of its own for benchmarks::

    python -m tests.support.stub_server --delay 0.05 --port 0

which prints its base URL (with ``/v1``) as the first line.

A client can ask for bad replies by the address it uses: below ``/fault/ROLE/KIND/EVERY/v1`` every EVERYth request (by
its content, so always the same ones) whose ``user`` is ROLE meets that kind of :mod:`tests.support.bad_replies`.
"""

import argparse
import asyncio
import contextlib
import hashlib
import json
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from tests.support import schema_model
from tests.support.bad_replies import BAD_REPLIES, BadReply, spoil

#: Seconds between the pieces of a slow reply.
SLOW_SECONDS = 0.05

#: What a request may meet instead of a reply, see :meth:`StubServer.fail`.
FAILURES = (
    "500",
    "429",
    "401",
    "400",
    "tools",
    "context",
    "garbage",
    "empty_choices",
    "hang",
    "drop",
    "truncate",
)

_WORDS = ("hiking", "music", "travel", "family", "garden", "work", "school", "painting", "dinner", "football", "camera")
_CONTEXT_ERROR = {
    "error": {"code": 400, "message": "request (9031 tokens) exceeds the available context size (8192 tokens)"}
}


@dataclass
class StubState:
    """What the server is told to do, and what it has seen."""

    delay: float = 0.0
    model: str = "stub"
    context_length: int | None = None
    failures: deque[str] = field(default_factory=deque)
    same: bool = False  # every request gets the first one's reply, unread: as little work as a server can have
    same_reply: bytes = b""
    every: str = ""  # the failure of every request without one of its own
    replies: Callable[[Mapping[str, Any]], str | Mapping[str, Any] | None] | None = None  # a text, or a chat message
    bodies: Callable[[Mapping[str, Any]], tuple[Any, ...] | None] | None = None  # status, body, headers; None: as usual
    tokenizer: Callable[[Mapping[str, Any]], Any] | None = None  # the reply of /tokenize
    requests: list[dict[str, Any]] = field(default_factory=list)
    keep_requests: bool = True
    pages: Mapping[str, Any] | None = None  # what GET finds; None: a list of models, or that all is well
    missing_page: Any = None  # what GET finds elsewhere, with status 200; None: status 404
    most_allowed: int | None = None  # requests at once; a further one has status 429
    held: list[Callable[[], None]] | None = None  # answers that wait for StubServer.answer_held; None: none waits
    log: Path | None = None  # a row for each request that came, and for each reply that was sent to somebody
    count: int = 0
    in_flight: int = 0
    most_in_flight: int = 0
    transports: "WeakSet[asyncio.BaseTransport]" = field(default_factory=WeakSet, repr=False)


def digest(*parts: object) -> int:
    """A number that the parts decide."""
    return int.from_bytes(hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()[:8], "big")


def example(schema: Mapping[str, Any], seed: int) -> Any:
    """A value that the schema allows, chosen by ``seed``."""
    if "enum" in schema:
        return schema["enum"][seed % len(schema["enum"])]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: example(part, digest(seed, name)) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
        size = max(least, min(most, 2 + seed % 2))
        return [example(schema.get("items", {}), digest(seed, index)) for index in range(size)]
    if kind == "boolean":
        return seed % 2 == 0
    if kind in ("integer", "number"):
        return schema.get("minimum", 0) + seed % (schema.get("maximum", 5) - schema.get("minimum", 0) + 1)
    return f"{_WORDS[seed % len(_WORDS)]} {_WORDS[seed // 16 % len(_WORDS)]}"


def prompt_of(body: Mapping[str, Any]) -> str:
    """The text of a chat or completion request."""
    if "messages" in body:
        return "\n".join(str(message["content"]) for message in body["messages"])
    return str(body.get("prompt", ""))


def schema_of(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema that binds the reply, wherever the request carries it."""
    form = body.get("response_format") or {}
    for found in (
        form.get("json_schema", {}).get("schema"),
        body.get("json_schema"),
        (body.get("structured_outputs") or {}).get("json"),
    ):
        if found is not None:
            return dict(found)
    return None


def reply_text(body: Mapping[str, Any]) -> str:
    """What the model says: an example of the schema, or two words; where the role is known, something of the prompt."""
    seed = digest(prompt_of(body), body.get("seed"))
    schema = schema_of(body)
    if "user" in body:
        return schema_model.reply_text(str(body["user"]), schema, prompt_of(body), seed)
    return json.dumps(example(schema, seed)) if schema is not None else str(example({"type": "string"}, seed))


def completion(body: Mapping[str, Any], text: str, model: str, *, truncated: bool) -> dict[str, Any]:
    """The JSON of a reply in the shape of the request's endpoint."""
    chat = "messages" in body
    words = text.split(" ")
    choice: dict[str, Any] = {"index": 0, "finish_reason": "length" if truncated else "stop", "logprobs": None}
    if chat:
        choice["message"] = {"role": "assistant", "content": text}
        if body.get("logprobs"):
            alternatives = [{"token": f"alt{n}", "logprob": -1.0 - n} for n in range(body.get("top_logprobs", 0))]
            choice["logprobs"] = {
                "content": [{"token": word, "logprob": -0.5, "top_logprobs": alternatives} for word in words]
            }
    else:
        choice["text"] = text
        if body.get("logprobs") is not None:
            choice["logprobs"] = {
                "tokens": words,
                "token_logprobs": [-0.5] * len(words),
                "top_logprobs": [{f"alt{n}": -1.0 - n for n in range(body["logprobs"])}] * len(words),
            }
    return {
        "id": "stub",
        "object": "chat.completion" if chat else "text_completion",
        "model": model,
        "choices": [choice],
        "usage": {"prompt_tokens": len(prompt_of(body).split()), "completion_tokens": len(words)},
    }


def bad_reply_for(path: str, body: Mapping[str, Any]) -> BadReply | None:
    """The bad reply that a request's address asks for, if this request is one of those that get it."""
    parts = path.split("/")
    if len(parts) < 5 or parts[1] != "fault":
        return None
    role, kind, every = parts[2], parts[3], int(parts[4])
    chosen = body.get("user") == role and digest("chosen", prompt_of(body)) % every == 0
    return BAD_REPLIES[kind] if chosen else None


class _Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection; requests on it are answered one after the other."""

    def __init__(self, state: StubState) -> None:
        self._state = state
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._state.transports.add(transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1")
            length = 0
            for line in head.split("\r\n")[1:]:
                name, _, value = line.partition(":")
                if name.lower() == "content-length":
                    length = int(value)
            if len(self._buffer) < end + 4 + length:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + length], self._buffer[end + 4 + length :]
            self._handle(head, body)

    def _handle(self, head: str, body: bytes) -> None:
        method, path, _ = head.split("\r\n", 1)[0].split(" ", 2)
        if method == "GET" and self._state.pages is not None:
            found = self._state.pages.get(path, self._state.missing_page)
            self._send(*((404, {"error": "no such page"}) if found is None else (200, found)))
            return
        if method == "GET":
            models = {"object": "list", "data": [{"id": self._state.model, "object": "model"}]}
            self._send(200, models if path.endswith("/models") else {"status": "ok", "version": "stub"})
            return
        if self._state.same_reply:
            asyncio.get_running_loop().call_later(self._state.delay, self._send_raw, 200, self._state.same_reply)
            return
        request = json.loads(body or b"{}")
        if path.endswith("/tokenize"):
            words = str(request.get("prompt", request.get("content", ""))).split()
            counted = {"tokens": list(range(len(words))), "count": len(words)}
            self._send(200, counted if self._state.tokenizer is None else self._state.tokenizer(request))
            return
        self._complete(head, path, request)

    def _complete(self, head: str, path: str, request: dict[str, Any]) -> None:
        state = self._state
        state.count += 1
        state.in_flight += 1
        state.most_in_flight = max(state.most_in_flight, state.in_flight)
        self._log("came", path, request)
        if state.keep_requests:
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head.split("\r\n"))
            }
            state.requests.append({"path": path, "headers": headers, **request})
            request = {"path": path, **request} if state.pages is not None else request
        failure = state.failures.popleft() if state.failures else state.every
        if state.most_allowed is not None and state.in_flight > state.most_allowed:
            failure = "429"
        if failure == "hang":
            state.in_flight -= 1
            return
        loop = asyncio.get_running_loop()
        bad = bad_reply_for(path, request)
        if bad is not None:
            state.in_flight -= 1
            self._answer_badly(bad, request)
        elif state.held is not None:
            state.held.append(partial(self._answer, request, failure, path))
        elif state.delay > 0:
            loop.call_later(state.delay, self._answer, request, failure, path)
        else:
            self._answer(request, failure, path)

    def _log(self, event: str, path: str, request: Mapping[str, Any]) -> None:
        if self._state.log is not None:
            with self._state.log.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({"event": event, "path": path, "body": request}) + "\n")

    def _answer(self, request: Mapping[str, Any], failure: str, path: str) -> None:
        state = self._state
        state.in_flight -= 1
        self._reply(request, failure)
        if self._transport is not None and not self._transport.is_closing():
            self._log("sent", path, request)

    def _reply(self, request: Mapping[str, Any], failure: str) -> None:
        state = self._state
        if failure == "drop":
            if self._transport is not None:
                self._transport.abort()
            return
        if failure == "garbage":
            self._send_raw(200, b"<html>bad gateway</html>")
        elif failure in ("500", "429", "401", "400"):
            self._send(int(failure), {"error": {"message": f"stub failure {failure}"}})
        elif failure == "tools":  # llama.cpp's words and status for tools that are none
            self._send(500, {"error": {"code": 500, "message": 'Failed to parse tools: Missing tool type: "a"'}})
        elif failure == "context" or self._too_long(request):
            self._send(400, _CONTEXT_ERROR)
        elif failure == "empty_choices":
            self._send(200, {"choices": []})
        elif state.bodies is not None and (whole := state.bodies(request)) is not None:
            self._send(*whole)
        else:
            text = state.replies(request) if state.replies else None
            if isinstance(text, Mapping):
                whole = completion(request, "", state.model, truncated=False)
                whole["choices"][0]["message"] = text
                self._send(200, whole)
                return
            text = reply_text(request) if text is None else text
            truncated = failure == "truncate"
            text = text[: max(1, len(text) * 2 // 3)] if truncated else text
            whole = completion(request, text, state.model, truncated=truncated)
            state.same_reply = json.dumps(whole).encode() if state.same else b""
            self._send(200, whole)

    def _answer_badly(self, bad: BadReply, request: Mapping[str, Any]) -> None:
        text = reply_text(request)
        body = spoil(bad, completion(request, text, self._state.model, truncated=False), text)
        assert self._transport is not None
        if bad.ending == "hang":
            return
        if bad.ending == "reset":
            self._transport.abort()
            return
        if bad.ending == "cut":
            self._send_raw(bad.status, body, bad.headers, size=len(body) * 2)
            self._transport.close()
            return
        if bad.ending == "slow":
            self._send_raw(bad.status, body[:20], bad.headers, size=len(body))
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._transport.write, body[20:])
            return
        self._send_raw(bad.status, body, bad.headers)

    def _too_long(self, request: Mapping[str, Any]) -> bool:
        limit = self._state.context_length
        return limit is not None and len(prompt_of(request).split()) + int(request.get("max_tokens", 0)) > limit

    def _send(self, status: int, value: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send_raw(status, value if isinstance(value, bytes) else json.dumps(value).encode(), headers)

    def _send_raw(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, size: int | None = None
    ) -> None:
        if self._transport is not None and not self._transport.is_closing():
            lines = {"Content-Type": "application/json", **(headers or {}), "Content-Length": size or len(body)}
            head = f"HTTP/1.1 {status} X\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
            self._transport.write(head.encode("utf-8", "surrogateescape") + b"\r\n" + body)


class StubServer:
    """The server in a thread of this process, for tests.

    Attributes:
        state: requests seen, failures to come, delay; read and set from the test.
    """

    def __init__(self, *, delay: float = 0.0, context_length: int | None = None) -> None:
        self.state = StubState(delay=delay, context_length=context_length)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Base URL with ``/v1``."""
        return f"http://127.0.0.1:{self.port}/v1"

    def fail(self, *failures: str) -> None:
        """Let the next requests fail, in this order."""
        assert set(failures) <= {*FAILURES, ""}, failures
        self.state.failures.extend(failures)

    def answer_held(self) -> None:
        """Answer the requests that wait now; those that come meanwhile wait for the next call."""

        def answer() -> None:
            waiting, self.state.held = self.state.held or [], []
            for each in waiting:
                each()

        self._loop.call_soon_threadsafe(answer)

    def prompts(self) -> Sequence[str]:
        """Prompts in the order they came."""
        return [prompt_of(request) for request in self.state.requests]

    def start(self) -> None:
        """Listen; again on the same port after :meth:`stop_listening`."""
        if not self._thread.is_alive():
            self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(listen(self.state, self.port), self._loop).result(10)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop_listening(self) -> None:
        """Refuse new connections, as a dead server does."""

        async def close() -> None:
            assert self._server is not None
            self._server.close()

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)

    def __enter__(self) -> "StubServer":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop_listening()

        async def close() -> None:
            """Close what a client has kept open."""
            for transport in list(self.state.transports):
                transport.close()
            await asyncio.sleep(0)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        with contextlib.suppress(RuntimeError):
            self._loop.close()


async def listen(state: StubState, port: int) -> asyncio.Server:
    """Listen on 127.0.0.1."""
    return await asyncio.get_running_loop().create_server(
        lambda: _Connection(state), "127.0.0.1", port, backlog=4096, reuse_address=True
    )


@contextlib.contextmanager
def stub(**settings: Any) -> Iterator[StubServer]:
    """A stub server for the length of a ``with`` block."""
    with StubServer(**settings) as server:
        yield server


async def serve(state: StubState, port: int) -> None:
    """Serve until killed, and say where."""
    server = await listen(state, port)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await server.serve_forever()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--delay", type=float, default=0.05, help="seconds until a request is answered")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--fail", default="", choices=("", *FAILURES), help="how every request fails")
    parser.add_argument("--same", action="store_true", help="answer every request as the first, without reading it")
    parser.add_argument("--log", type=Path, help="file of the requests that came and the replies that were sent")
    arguments = parser.parse_args()
    state = StubState(delay=arguments.delay, every=arguments.fail, keep_requests=False, log=arguments.log)
    state.same = arguments.same
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(state, arguments.port))


if __name__ == "__main__":
    main()
