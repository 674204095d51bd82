"""A server of embeddings in this process: two dimensions, ten tokens for each text."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

TOKENS = 10


class _Server(ThreadingHTTPServer):
    texts = 0


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        self.server.texts += len(texts)
        rows = [{"index": place, "embedding": [float(len(text)), 1.0]} for place, text in enumerate(texts)]
        data = json.dumps({"data": rows, "usage": {"prompt_tokens": TOKENS * len(texts)}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


class EmbeddingServer:
    """Serves within a ``with`` block.

    Attributes:
        url: without ``/v1``.
        texts: that were embedded.
    """

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def texts(self) -> int:
        return self._server.texts

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
