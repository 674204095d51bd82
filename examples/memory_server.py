"""A memory behind HTTP in forty lines of the standard library: ``python examples/memory_server.py 8000``.

It keeps what was said and finds what shares most words with a query. Measure it with
``memsys run memory=http memory.url=http://localhost:8000 mode=retrieval_only``, or check it first with
``memsys check_memory http://localhost:8000``. docs/any_memory.md describes the four requests.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

ITEMS: dict[str, list[dict[str, str]]] = {}
RESETS: dict[str, str] = {}


def reset(user: str, body: dict) -> dict:
    """Forget what a user said; the id of the reset is kept with what is said after it."""
    ITEMS[user], RESETS[user] = [], body["reset_id"]
    return {}


def add(user: str, body: dict) -> dict:
    """Keep the items; the ids that are returned name them in later results."""
    ITEMS.setdefault(user, []).extend(body["items"])
    return {"ids": [item["id"] for item in body["items"]]}


def search(user: str, body: dict) -> dict:
    """Return the items that share most words with the query."""
    words = set(body["query"].lower().split())
    scored = [(len(words & set(item["text"].lower().split())), item) for item in ITEMS.get(user, [])]
    best = sorted(scored, key=lambda pair: -pair[0])[: body["k"]]
    return {"results": [{"id": item["id"], "text": item["text"], "score": score} for score, item in best]}


def stats(user: str, body: dict) -> dict:
    """Return how much is kept, since which reset, and how much is not indexed yet."""
    return {"items": len(ITEMS.get(user, [])), "pending": 0, "reset_id": RESETS.get(user)}


class Handler(BaseHTTPRequestHandler):
    """Four pages."""

    def do_POST(self) -> None:
        """Answer /reset, /add and /search."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._reply({"/reset": reset, "/add": add, "/search": search}[self.path](body["user"], body))

    def do_GET(self) -> None:
        """Answer /stats?user=..."""
        self._reply(stats(parse_qs(urlsplit(self.path).query)["user"][0], {}))

    def _reply(self, value: dict) -> None:
        text = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 8000), Handler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
