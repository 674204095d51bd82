"""A small memory in three forms, with faults that a file chooses: an object, ``... http`` and ``... mcp`` programs.

The file holds ``STEP FAULT``, as ``search dies``; each step looks into it. Steps are logged next to it.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

#: Environment variable with the path of the file.
CHOSEN = "OUTSIDE_MEMORY_FAULT"
SLOW_SECONDS = 12.0
#: Results of a search that hold no text.
WRONG = {
    "number": 7,
    "null": None,
    "true": True,
    "numbers": [1, 2],
    "nested": [[1, 2], [3]],
    "nulls": [None],
    "no text": [{"colour": "red"}],
}


class Words:
    """Finds the texts that share most words with a query."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str]] = []

    def add(self, text: str, id: str) -> Any:
        _note("add", id)
        self.kept.append((id, text))
        return _spoiled("add", [id])

    def search(self, query: str, k: int) -> Any:
        _note("search", query)
        asked = set(query.lower().split())
        best = sorted(self.kept, key=lambda one: -len(asked & set(one[1].lower().split())))[:k]
        return _spoiled("search", [{"id": key, "text": text} for key, text in best])


class Asking(Words):
    """Asks a model for each text and each query, at an address that it is given."""

    def __init__(self, base_url: str) -> None:
        super().__init__()
        self._url = f"{base_url}/chat/completions"

    def add(self, text: str, id: str) -> Any:
        self._ask(text)
        return super().add(text, id)

    def search(self, query: str, k: int) -> Any:
        self._ask(query)
        return super().search(query, k)

    def _ask(self, text: str) -> None:
        body = {"model": "any", "messages": [{"role": "user", "content": text}], "max_tokens": 8}
        request = Request(self._url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urlopen(request) as reply:
            assert json.loads(reply.read())["choices"]


def _made(base_url: str | None) -> Words:
    return Asking(base_url) if base_url else Words()


def _note(step: str, what: str) -> None:
    if place := os.environ.get(CHOSEN):
        with Path(f"{place}.log").open("a") as log:
            log.write(f"{step} {what}\n")


def _spoiled(step: str, good: Any) -> Any:
    place = os.environ.get(CHOSEN, "")
    chosen, _, fault = (Path(place).read_text() if place and Path(place).is_file() else "").strip().partition(" ")
    if chosen != step:
        return good
    if fault == "dies":
        os._exit(9)
    if fault == "restarts":  # before a client tries again
        Path(place).unlink()
        USERS.clear()
        RESETS.clear()
        raise ConnectionAbortedError
    if fault == "slow":
        time.sleep(SLOW_SECONDS)
    if fault == "raises":
        raise ValueError("no such table: memories")
    return WRONG.get(fault, good)


USERS: dict[str, Words] = {}
RESETS: dict[str, str] = {}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        memory = USERS.setdefault(body["user"], Words())
        try:
            if self.path == "/reset":
                USERS[body["user"]] = _made(body.get("models", {}).get("base_url"))
                RESETS[body["user"]] = body["reset_id"]
                self._reply(200, {})
            elif self.path == "/add":
                (item,) = body["items"]
                self._reply(200, {"ids": memory.add(item["text"], item["id"])})
            else:
                self._reply(200, {"results": memory.search(body["query"], body["k"])})
        except ValueError as error:
            self._reply(400, {"error": str(error)})

    def do_GET(self) -> None:
        self._reply(200, {"pending": 0, "reset_id": RESETS.get(self.path.rpartition("user=")[2])})

    def _reply(self, status: int, value: Any) -> None:
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None: ...


def serve_http() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if sys.argv[2:] else 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)  # noqa: T201
    server.serve_forever()


def serve_mcp() -> None:
    from mcp.server.mcpserver import MCPServer
    from mcp.types import CallToolResult

    memory, server = _made(os.environ.get("OPENAI_BASE_URL")), MCPServer("words")

    def add(text: str, key: str) -> str:
        return json.dumps({"ids": memory.add(text, key)})

    def search(query: str, k: int) -> str:
        return json.dumps(memory.search(query, k))

    def search_structured(query: str, k: int) -> Any:
        return CallToolResult(content=[], structured_content={"result": memory.search(query, k)})

    tools: list[Callable[..., Any]] = [add, search, search_structured]
    for tool in tools:
        server.tool()(tool)
    server.run("stdio")


if __name__ == "__main__":
    {"http": serve_http, "mcp": serve_mcp}[sys.argv[1]]()
