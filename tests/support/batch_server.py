"""A server of OpenAI's protocol that takes batches: ``python -m tests.support.batch_server --state FOLDER``.

What it was sent is in ``FOLDER``: ``created`` has a line for each batch, ``asked`` one for each request made at once.
Batches are done once the file ``FOLDER/open`` is there, and cancelled once ``FOLDER/cancel`` is; ``FOLDER/lose`` names
requests that get no reply, each with the code of its error.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.support.stub_server import completion, reply_text


class BatchServer:
    """The pages.

    Args:
        state: folder.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, dict[str, Any]] = {}

    def app(self) -> web.Application:
        """The application."""
        app = web.Application(client_max_size=2**30)
        app.add_routes([
            web.post("/v1/files", self._upload),
            web.get("/v1/files/{name}/content", self._content),
            web.post("/v1/batches", self._create),
            web.get("/v1/batches", self._list),
            web.get("/v1/batches/{name}", self._batch),
            web.post("/v1/chat/completions", self._complete),
        ])  # fmt: skip
        return app

    def _note(self, name: str, value: Any) -> None:
        with (self._state / name).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(value) + "\n")

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        name = f"file-{len(self._files)}"
        self._files[name] = form["file"].file.read()  # type: ignore[union-attr]
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self._files[request.match_info["name"]])

    async def _create(self, request: web.Request) -> web.Response:
        asked = await request.json()
        made = {**asked, "id": f"batch-{len(self._batches)}", "object": "batch", "status": "in_progress"}
        self._batches[made["id"]] = made
        lines = self._files[asked["input_file_id"]].splitlines()
        self._note("created", {"id": made["id"], "keys": [json.loads(line)["custom_id"] for line in lines]})
        return web.json_response(made)

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": list(self._batches.values())})

    async def _batch(self, request: web.Request) -> web.Response:
        batch = self._batches[request.match_info["name"]]
        if batch["status"] == "in_progress" and (self._state / "cancel").exists():
            self._answer(batch, most=1)
            batch["status"] = "cancelled"
        if batch["status"] == "in_progress" and (self._state / "open").exists():
            self._answer(batch)
        return web.json_response(batch)

    def _answer(self, batch: dict[str, Any], most: int | None = None) -> None:
        lose = self._state / "lose"
        lost = dict(line.split() for line in lose.read_text().splitlines()) if lose.exists() else {}
        done, failed = list[dict[str, Any]](), list[dict[str, Any]]()
        for line in self._files[batch["input_file_id"]].splitlines()[:most]:
            row = json.loads(line)
            assert (row["method"], row["url"]) == ("POST", batch["endpoint"])
            if row["custom_id"] in lost:
                error = {"code": lost[row["custom_id"]], "message": "this one was not answered"}
                failed.append({"custom_id": row["custom_id"], "response": None, "error": error})
                continue
            body = _reply(row["body"])
            response = {"status_code": 200, "request_id": "r", "body": body}
            done.append({"id": "x", "custom_id": row["custom_id"], "response": response, "error": None})
        lose.unlink(missing_ok=True)
        batch["status"] = "expired" if failed else "completed"
        for kind, rows in (("output_file_id", reversed(done)), ("error_file_id", failed)):
            name = f"file-{len(self._files)}"
            self._files[name] = "".join(json.dumps(row) + "\n" for row in rows).encode()
            batch[kind] = name

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        self._note("asked", body)
        return web.json_response(_reply(body))


def _reply(body: Mapping[str, Any]) -> dict[str, Any]:
    return completion(body, reply_text(body), "stub", truncated=False)


def main() -> None:
    """Serve until killed, and say where."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--state", type=Path, required=True)
    server = BatchServer(parser.parse_args().state)

    def said(address: str) -> None:
        sys.stdout.write(f"{address}/v1\n")
        sys.stdout.flush()

    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        said(f"http://127.0.0.1:{listening.getsockname()[1]}")
        web.run_app(server.app(), sock=listening, print=lambda *_: None)


if __name__ == "__main__":
    main()
