"""The deterministic backbone's server: completions and embeddings on 127.0.0.1, recorded by side.

Each side has an address of its own: ``/ours/v1`` and ``/theirs/v1``.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from eval.parity.replies import DeterministicBackbone, Request, read_request
from memsys.embedding.contract import Embedder, Vectors

Side = Literal["ours", "theirs"]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a side, in the order it was made."""

    request: Request
    reply: str


def word_tokens(text: str) -> int:
    """Count words."""
    return len(text.split())


@dataclass
class ParityEndpoint:
    """Replies, embeds, and keeps what it was asked.

    Attributes:
        backbone: gives the replies.
        embedder: embeds for both sides; a text that was embedded before gets the same vector to the last bit.
        calls: what each side asked.
        port: that it listens on, while it does.
        tokens: counts the tokens of a text.
    """

    backbone: DeterministicBackbone
    embedder: Embedder
    calls: dict[Side, list[RecordedCall]] = field(default_factory=lambda: {"ours": [], "theirs": []})
    port: int = 0
    tokens: Callable[[str], int] = word_tokens

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def url(self, side: Side) -> str:
        """Return the base URL for a side."""
        return f"http://127.0.0.1:{self.port}/{side}/v1"

    @contextmanager
    def listening(self) -> Iterator["ParityEndpoint"]:
        """Listen on a free port while the block runs."""
        handler = type("ParityHandler", (_Handler,), {"endpoint": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def complete(self, side: Side, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer a request for a completion, of messages or of a plain text, and keep it."""
        request = read_request(body, self.backbone.phrases)
        text = self.backbone.reply(request)
        with self._lock:
            self.calls[side].append(RecordedCall(request, text))
        usage = {"prompt_tokens": len(request.prompt.split()), "completion_tokens": len(text.split())}
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if "prompt" in body:
            choice |= {"finish_reason": "length", "text": text, "logprobs": self._logprobs(request, text)}
        else:
            choice["message"] = {"role": "assistant", "content": text}
        return {
            "id": "parity",
            "object": "text_completion" if "prompt" in body else "chat.completion",
            "created": 0,
            "model": "deterministic",
            "choices": [choice],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        }

    def _logprobs(self, request: Request, text: str) -> dict[str, Any]:
        """Return the log-probabilities of a completion's tokens, as servers write them."""
        found = self.backbone.logprobs(request, text)
        return {
            "tokens": [token for token, _ in found],
            "token_logprobs": [logprob for _, logprob in found],
            "top_logprobs": [{token: logprob} for token, logprob in found],
            "text_offset": [0 for _ in found],
        }

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts with our embedder."""
        with self._lock:
            return asyncio.run(self.embedder.embed(texts))


class _Handler(BaseHTTPRequestHandler):
    """One connection; ``POST /SIDE/v1/`` with ``chat/completions``, ``completions`` or ``embeddings``.

    ``POST /SIDE/tokenize`` counts tokens (words, but for MemGPT), for both sides of releases that cut by tokens.
    """

    endpoint: ParityEndpoint
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: a second one would wait 40 ms for the first one's receipt

    def do_POST(self) -> None:
        """Answer."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        side, _, path = self.path.strip("/").partition("/")
        answer: dict[str, Any]
        if path == "v1/embeddings":
            vectors = self.endpoint.embed(body["input"])
            answer = {"data": [{"embedding": row.tolist()} for row in vectors]}
        elif path == "tokenize":
            answer = {"count": self.endpoint.tokens(body["prompt"])}
        else:
            answer = self.endpoint.complete("ours" if side == "ours" else "theirs", body)
        raw = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""
