"""What is changed inside the process of a run: models replaced, requests that name their role, the kill."""

import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from eval.running.plan import Plan
from tests.support.small import STAND_INS

#: Beside a run directory: names of the roles with a schema.
BOUND = "bound.json"


@dataclass(frozen=True)
class Kill:
    """``kill -9`` at a counted event.

    Attributes:
        file: end of the path of the file whose writes are counted.
        count: the write at which it happens, from 1.
        when: ``after`` the write, in the ``middle`` of it (half the bytes are written), or ``before`` it.
    """

    file: str
    count: int
    when: str = "after"


def start(plan: Plan, kill: Kill | None = None) -> int:
    """Run a plan as ``python -m eval.run`` does, in this process; returns the exit status."""
    from eval.commands.commands import EXIT_ERROR
    from eval.commands.terminal import complain
    from eval.run import run_one
    from memsys.errors import MemsysError

    replace_models()
    bound = name_roles()
    if kill is not None:
        arm(kill)
    try:
        code = run_one(plan)[1]
    except MemsysError as error:
        complain(str(error))
        code = EXIT_ERROR
    if plan.run_dir is not None and code == 0:
        (plan.run_dir.parent / BOUND).write_text(json.dumps(sorted(bound)))
    return code


def preload() -> None:
    """Import what every run needs, once, before processes are forked; run nothing, so that no thread starts."""
    import pkgutil

    import baselines
    import memsys
    from eval.runs import provenance

    for package in (memsys, baselines):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "llamacpp" not in found.name and not found.name.endswith(".guard"):
                import_module(found.name)
    for name in ("faiss", "httpx", "pycurl", "jsonschema", "json_repair", "rich.console", "sklearn.cluster"):
        import_module(name)
    provenance.commit()
    known = provenance.packages()
    import_module("eval.running.recording").packages = lambda: known  # type: ignore[attr-defined]


def replace_models() -> None:
    """Put the declared stand-ins in place of models that are not here."""
    for name, replacement in STAND_INS.items():
        module, _, attribute = name.rpartition(".")
        setattr(import_module(module), attribute, replacement)


def name_roles() -> set[str]:
    """Let each request carry the name of its role as ``user``, by which the server picks bad replies.

    Returns:
        Names of the roles with a schema, filled as they ask.
    """
    from memsys.llm import client
    from memsys.llm.contract import Role
    from memsys.llm.wire import WireRequest

    original: Callable[..., Any] = client.make_request
    bound: set[str] = set()

    def with_role(*given: Any, **named: Any) -> Any:
        request = original(*given, **named)
        (role,) = [value for value in (*given, *named.values()) if isinstance(value, Role)]
        if role.schema is not None:
            bound.add(role.name)
        return WireRequest.of(request.path, {**request.body, "user": role.name}, request.unsent_seed)

    client.make_request = with_role  # type: ignore[assignment]
    return bound


def arm(kill: Kill) -> None:
    """Count the writes to a file, and replacements of it, and kill this process at the one that is named."""
    write, move, count = os.write, os.replace, 0
    os.fsync = lambda descriptor: None  # type: ignore[assignment]  # a killed process loses nothing it has written

    def due(path: str) -> bool:
        nonlocal count
        count += path.endswith(kill.file)
        return count == kill.count and path.endswith(kill.file)

    def counted_write(descriptor: int, data: bytes) -> int:
        if not due(os.fspath(Path(f"/proc/self/fd/{descriptor}").readlink())):
            return write(descriptor, data)
        if kill.when != "before":
            write(descriptor, data if kill.when == "after" else data[: len(data) // 2])
        return _die()

    def counted_move(source: Any, target: Any, **options: Any) -> None:
        if not due(os.fspath(Path(target))):
            return move(source, target, **options)
        if kill.when == "after":
            move(source, target, **options)
        _die()
        return None

    os.write, os.replace = counted_write, counted_move  # type: ignore[assignment]


def _die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0
