"""Servers that several jobs use together, found through a folder they all see.

A server writes ``server-<name>.json`` (where it listens, what it serves) and touches it while it lives; a job that
needs one writes ``lease-<name>`` and touches that. So a job finds the servers that live, waits while there is none, and
a server sees whether anybody needs it. Ages are differences between times of files in that folder: the clocks of the
machines do not enter.
"""

import contextlib
import json
import logging
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from memsys.credentials import redacted
from memsys.errors import BackboneError, MemsysError
from memsys.llm.engines.contract import Endpoint, Engine
from memsys.llm.engines.vllm.server import is_healthy
from memsys.repeating import RepeatedCall
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

#: Seconds between two signs of life, and until one that gives none counts as gone.
BEAT_SECONDS = 5.0
GONE_SECONDS = 45.0
_POLL_SECONDS = 2.0
_REPORT_SECONDS = 60.0
_PATIENCE_SECONDS = 10.0
_LOOPBACK = "//127.0.0.1:"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """What a server tells of itself.

    Attributes:
        urls: base URLs up to and including ``/v1``.
        model: name it knows the model by.
        fingerprint: of its engine; the same for every replica of a group.
        host: machine, for people.
        process: its process id there.
        job: id of its batch job; empty without one.
    """

    urls: Sequence[str]
    model: str
    fingerprint: Mapping[str, Json]
    host: str
    process: int
    job: str

    def reachable(self) -> bool:
        """Whether this machine can reach it: another's loopback address is none, or leads to a stranger here."""
        return self.host == socket.gethostname() or not self.loopback

    @property
    def loopback(self) -> bool:
        """Whether it serves its own machine alone."""
        return any(_LOOPBACK in url for url in self.urls)


def own_name() -> str:
    """Name of this process among all machines."""
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())
    return f"{host}-{os.getpid()}-{threading.get_native_id()}"


def disk_time(folder: Path) -> float:
    """The time, in seconds, by the clock of the disk that a folder lies on."""
    probe = folder / f".clock-{own_name()}"
    probe.touch()
    seconds = probe.stat().st_mtime
    probe.unlink()
    return seconds


class Registry:
    """The folder of one group of servers: those of one backbone with one set of engine settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def servers(self) -> list[ServerRecord]:
        """Servers that gave a sign of life lately."""
        records = []
        for path in self._fresh("server-*.json"):
            with contextlib.suppress(FileNotFoundError):  # it has just left
                records.append(ServerRecord(**json.loads(path.read_text(encoding="utf-8"))))
        return records

    def leases(self) -> int:
        """How many jobs need a server now."""
        return len(list(self._fresh("lease-*")))

    @contextlib.contextmanager
    def published(self, name: str, record: ServerRecord) -> Iterator["Heartbeat"]:
        """Announce a server for the length of a ``with`` block, while its :class:`Heartbeat` is beaten."""
        beat = Heartbeat.with_text(self._prepared() / f"server-{name}.json", json.dumps(asdict(record)))
        try:
            yield beat
        finally:
            beat.remove()

    def lease(self, name: str) -> "Heartbeat":
        """Announce that this process needs a server."""
        return Heartbeat.with_text(self._prepared() / f"lease-{name}", "")

    def failure(self) -> str:
        """Why the latest attempt to start a server failed; empty if none did since :meth:`forgive`."""
        path = self.folder / "failure"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def fail(self, reason: str) -> None:
        """Note that a server did not come up, so that nobody waits for it."""
        Heartbeat.with_text(self._prepared() / "failure", redacted(reason))

    def forgive(self) -> None:
        """Forget former failures: somebody tries again."""
        (self.folder / "failure").unlink(missing_ok=True)

    def key(self) -> str:
        """The password of the group's servers: made once, readable by its owner alone.

        Raises:
            MemsysError: the folder cannot be written.
        """
        path = self._prepared() / "key"
        if path.is_file():
            return path.read_text(encoding="ascii")
        with contextlib.suppress(FileExistsError):
            temporary = path.with_name(f".key-{own_name()}")
            temporary.touch(0o600)
            temporary.write_text(secrets.token_urlsafe(32), encoding="ascii")
            try:
                os.link(temporary, path)  # whole or not at all, and the first wins
            finally:
                temporary.unlink()
        return path.read_text(encoding="ascii")

    def _prepared(self) -> Path:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MemsysError(
                f"cannot make {self.folder} ({error.strerror}); set serving.folder to a folder on the shared disk"
            ) from error
        return self.folder

    def _fresh(self, pattern: str) -> Iterator[Path]:
        """Files touched lately, by the clock of the disk they lie on."""
        now = disk_time(self._prepared())
        for path in sorted(self.folder.glob(pattern)):
            with contextlib.suppress(FileNotFoundError):
                if now - path.stat().st_mtime < GONE_SECONDS:
                    yield path


class Heartbeat:
    """A file that is young while its owner lives."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._repeated: RepeatedCall | None = None

    @classmethod
    def with_text(cls, path: Path, text: str) -> "Heartbeat":
        """Write the file first, whole."""
        temporary = path.with_name(f".{path.name}.{own_name()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
        return cls(path)

    def touch(self) -> None:
        """Give a sign of life."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path)

    def start(self) -> "Heartbeat":
        """Give signs of life from a thread until :meth:`stop`."""
        self._repeated = RepeatedCall(self._beat, BEAT_SECONDS, f"beat {self.path.name}").start()
        return self

    def stop(self) -> None:
        """Give no more signs of life; safe to call twice, and before :meth:`start`."""
        if self._repeated is not None:
            self._repeated.stop()
            self._repeated = None

    def remove(self) -> None:
        """Stop, and take the file away; safe to call twice."""
        self.stop()
        self.path.unlink(missing_ok=True)

    def _beat(self) -> None:
        try:
            self.touch()
        except OSError as error:  # a shared disk has its bad moments; its end would look like ours
            logger.warning("no sign of life in %s (%s); trying again", self.path, error.strerror)


class SharedEngine:
    """The servers of a group, as a job sees them.

    Args:
        dialect: name of the engine that serves.
        registry: where they are announced.
        wait_s: seconds to wait for one.
        on_absence: called now and then while none lives, e.g. to have one started.
    """

    def __init__(
        self, dialect: str, registry: Registry, wait_s: float, on_absence: Callable[[], None] = lambda: None
    ) -> None:
        self.name = dialect
        self._registry, self._wait_s, self._on_absence = registry, wait_s, on_absence
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._lease: Heartbeat | None = None
        self._fingerprint: Mapping[str, Json] = {}

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Wait until a server answers.

        Raises:
            BackboneError: none came within the time, or one serves something else than before.
        """
        with self._lock:
            if self._lease is None:
                self._stopped.clear()
                self._lease = self._registry.lease(own_name()).start()
        return self._wait()

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Wait until a server answers again: whoever started it restarts it.

        Raises:
            BackboneError: as :meth:`start`.
        """
        return self._wait()

    def stop(self) -> None:
        """Say that no server is needed any longer; safe to call twice and from any thread."""
        self._stopped.set()
        with self._lock:
            if self._lease is not None:
                self._lease.remove()
                self._lease = None

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was served, as the server says it."""
        return self._fingerprint

    def _wait(self) -> Sequence[Endpoint]:
        begun = reported = time.monotonic()
        while not (found := self._alive()):
            now, failure = time.monotonic(), self._registry.failure()
            if failure:
                raise BackboneError(f"the server of {self._registry.folder.name} did not come up: {failure}")
            if now - begun > self._wait_s:
                raise BackboneError(
                    f"no server of {self._registry.folder.name} lives (waited {now - begun:.0f} s, serving.wait_s); "
                    f"see the logs under {self._registry.folder}, or start one: python -m eval.serve backbone=..."
                )
            if now - reported >= _REPORT_SECONDS:
                # A warning, since by hand nobody may be starting one: other settings of the engine are another group.
                waited = f"waiting for a server of {self._registry.folder}, {now - begun:.0f} s so far"
                logger.warning("%s (python -m eval.serve with the same backbone and overrides starts one)", waited)
                self._on_absence()
                reported = now
            if self._stopped.wait(_POLL_SECONDS):
                raise BackboneError("stopped while waiting for a server")
        return found

    def _alive(self) -> list[Endpoint]:
        endpoints = []
        for record in filter(ServerRecord.reachable, self._registry.servers()):
            answering = [url for url in record.urls if is_healthy(url.removesuffix("/v1"), _PATIENCE_SECONDS)]
            if answering:
                self._check(record)
                endpoints += [Endpoint(url, record.model, self._key_variable()) for url in answering]
        return endpoints

    def _check(self, record: ServerRecord) -> None:
        if self._fingerprint and record.fingerprint != self._fingerprint:
            raise BackboneError(
                f"the server on {record.host} serves {dict(record.fingerprint)}, the run began with "
                f"{dict(self._fingerprint)}; end that server and start one as before"
            )
        self._fingerprint = record.fingerprint

    def _key_variable(self) -> str:
        """Name of the environment variable that holds the group's password, set for this process alone."""
        name = "MEMSYS_KEY_" + re.sub(r"\W", "_", self._registry.folder.name).upper()
        os.environ[name] = self._registry.key()
        return name


def serve(engine: Engine, registry: Registry, log_dir: Path, *, host: str, idle_s: float) -> str:
    """Serve a group until nobody needs the server any longer.

    The server is started, announced and looked after; one that died is started again as often as its engine allows.

    Args:
        engine: starts and restarts the server.
        registry: where to announce it.
        log_dir: for the server's log.
        host: name other machines know this one by, in place of the loopback address.
        idle_s: seconds without any job that needs it, after which it stops.

    Returns:
        Why it ended.

    Raises:
        BackboneError: the server did not come up, or died too often.
    """
    try:
        endpoints = engine.start(log_dir)
        registry.forgive()
        needed = time.monotonic()
        while True:
            with registry.published(own_name(), _record(engine, endpoints, host)) as beat:
                logger.info("serving %s on %s", registry.folder.name, host)
                while (found := engine.recover(log_dir)) == endpoints:
                    beat.touch()
                    if registry.leases():
                        needed = time.monotonic()
                    if time.monotonic() - needed > idle_s:
                        return f"no job has needed it for {idle_s:.0f} s"
                    time.sleep(BEAT_SECONDS)
            endpoints = found
    except MemsysError as error:
        registry.fail(str(error))
        raise
    finally:
        engine.stop()


def _record(engine: Engine, endpoints: Sequence[Endpoint], host: str) -> ServerRecord:
    urls = [endpoint.base_url.replace(_LOOPBACK, f"//{host}:") for endpoint in endpoints]
    job = os.environ.get("SLURM_JOB_ID", "")
    return ServerRecord(urls, endpoints[0].model, engine.fingerprint(), socket.gethostname(), os.getpid(), job)
