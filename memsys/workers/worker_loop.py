"""The worker's side of the protocol: ``PYTHON worker_loop.py WORKER_FILE``.

Runs under the package's own interpreter, and needs nothing but the standard library of Python 3.10 or later. Requests
come as lines of JSON on standard input, each is answered by one line of JSON on standard output, in order. What the
package itself prints goes to standard error. The worker file defines a class ``Worker``::

    class Worker:
        lineage = "changes"      # or "none"; then lineage_reason says why

        def __init__(self, opening): ...   # opening["settings"], ["llm"], ["embedder"], ["seed"], ["folder"], ...
        def describe(self): ...            # {"package": ..., "version": ...}
        def add(self, unit): ...           # returns changes: [{"memory_id", "change": "add" | "update" | "delete"}]
        def retrieve(self, query, k): ...  # returns hits, best first: [{"memory_id", "text", "score", "date"}]
        def export(self): ...              # returns memories: [{"memory_id", "text"}]

and, where it needs them, ``finish(self)`` (returns changes; the stream of turns has ended) and ``replay(self, unit)``
(as ``add``, for a unit that a killed worker had written; calls ``add`` where it is missing). There is no goodbye: the
process and all that it started are killed, and its folder is deleted.
Released code that parity runs compare with also has ``answer(self, question)`` (returns context and prediction) and
``store(self)`` (returns the whole memory in the form that is compared).
"""

import importlib
import importlib.util
import io
import json
import os
import queue
import random
import signal
import sys
import threading
import traceback
import uuid
from typing import Any

PROTOCOL = 1


def main() -> None:
    """Answer requests until the parent ends this process or is gone."""
    importlib.import_module("released_code")  # workers of authors' files import it; others do not know of it
    sys.path.pop(0)  # the folder of this file, whose modules are no part of the package
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever the package prints
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # the parent ends this process without warning
    requests: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=_read, args=(requests,), daemon=True).start()
    worker: Any = None
    while True:
        request = requests.get()
        try:
            if request["op"] == "open":
                worker = _open(request, sys.argv[1])
            reply = json.dumps({"id": request["id"], "result": _answer(worker, request)})
        except Exception as error:  # noqa: BLE001 - the parent decides what an error of the package means
            traceback.print_exc()
            reply = json.dumps({"id": request["id"], "error": f"{type(error).__name__}: {error}"})
        replies.write(reply + "\n")
        replies.flush()


def _read(requests: queue.Queue[Any]) -> None:
    """Queue requests; at their end, which is the parent's, end this process and all that it started."""
    for line in sys.stdin:
        requests.put(json.loads(line))
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _open(opening: dict[str, Any], path: str) -> Any:
    """Make the worker; random numbers and ids of memories are the same each time, so that a replay gives the same."""
    if opening["protocol"] != PROTOCOL:
        raise ValueError(f"memsys speaks protocol {opening['protocol']}, this file {PROTOCOL}")
    random.seed(opening["seed"])
    ids = random.Random(opening["seed"])
    uuid.uuid4 = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)
    spec = importlib.util.spec_from_file_location("worker", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["worker"] = module
    spec.loader.exec_module(module)
    return module.Worker(opening)


def _answer(worker: Any, request: dict[str, Any]) -> dict[str, Any]:
    op = request["op"]
    if op == "open":
        lineage = {"lineage": worker.lineage, "lineage_reason": getattr(worker, "lineage_reason", "")}
        return {**lineage, **worker.describe()}
    if op in ("add", "replay"):
        return {"changes": getattr(worker, op, worker.add)(request["unit"])}
    if op == "finish":
        return {"changes": worker.finish() if hasattr(worker, "finish") else []}
    if op == "retrieve":
        return {"hits": worker.retrieve(request["query"], request["k"])}
    if op == "export":
        return {"memories": worker.export()}
    if op == "answer":
        return {"answer": worker.answer(request["question"])}
    if op == "store":
        return {"store": worker.store()}
    raise ValueError(f"unknown op {op!r}")


if __name__ == "__main__":
    main()
