"""The folder through which jobs and the servers that they share find each other.

A server writes ``server-<name>.json`` (where it listens, what it serves) and touches it while it runs; a job that
needs one writes ``lease-<name>`` and touches that. So a job finds the servers that run, waits while there is none, and
a server sees whether any job needs it. A process that starts, serves or restarts a server touches ``attempt-<name>``
all the while: jobs wait for it though another one has left its ``failure``.
"""

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from memsys.credentials import redacted
from memsys.errors import MemsysError
from memsys.files import replace_file
from memsys.heartbeat import Heartbeat, disk_time, is_young, own_name
from memsys.vocabulary import Json

#: What follows the scheme in an address that only its own machine reaches.
LOOPBACK = "//127.0.0.1:"


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """Announcement of a server.

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
        """Return whether this machine can reach it: another machine's loopback address would lead to a server here."""
        return self.host == socket.gethostname() or not self.loopback

    @property
    def loopback(self) -> bool:
        """Whether it serves its own machine alone."""
        return any(LOOPBACK in url for url in self.urls)


class Registry:
    """The folder of one group of servers: those of one backbone with one set of engine settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def servers(self) -> list[ServerRecord]:
        """Return the servers that were announced or seen running within :data:`memsys.heartbeat.GONE_SECONDS`."""
        return [ServerRecord(**json.loads(text)) for text in self._fresh_texts("server-*.json")]

    def expected(self) -> bool:
        """Return whether a server that this machine can reach is announced, or a process starts or restarts one."""
        attempts = self._fresh_texts("attempt-*")
        return any(map(ServerRecord.reachable, self.servers())) or any(
            machine in ("", socket.gethostname()) for machine in attempts
        )

    def leases(self) -> int:
        """Return how many jobs need a server now."""
        return len(list(self._fresh("lease-*")))

    @contextlib.contextmanager
    def published(self, name: str, record: ServerRecord) -> Iterator[Heartbeat]:
        """Announce a server for the length of a ``with`` block, in which its :class:`Heartbeat` is to be touched."""
        beat = Heartbeat.with_text(self.prepared() / f"server-{name}.json", json.dumps(asdict(record)))
        try:
            yield beat
        finally:
            beat.remove()

    @contextlib.contextmanager
    def attempted(self, name: str, machine: str) -> Iterator[None]:
        """Announce for the length of a ``with`` block that this process starts, serves or restarts a server.

        Args:
            name: of the process.
            machine: the only one that can reach the server; empty if all can.
        """
        beat = Heartbeat.with_text(self.prepared() / f"attempt-{name}", machine).start()
        try:
            yield
        finally:
            beat.remove()

    def lease(self, name: str) -> Heartbeat:
        """Announce that this process needs a server."""
        return Heartbeat.with_text(self.prepared() / f"lease-{name}", "")

    def failure(self, after: float = 0.0) -> str:
        """Return why the latest attempt to start a server failed; empty if none did since :meth:`clear_failure`.

        Args:
            after: seconds, from :meth:`now`; a failure noted before does not count.
        """
        path = self.folder / "failure"
        try:
            return path.read_text(encoding="utf-8") if path.stat().st_mtime > after else ""
        except FileNotFoundError:
            return ""

    def note_failure(self, reason: str) -> None:
        """Record that a server did not start, so that no job waits for it."""
        replace_file(self.prepared() / "failure", redacted(reason).encode())

    def clear_failure(self) -> None:
        """Remove the note of a failed start: another process tries again."""
        (self.folder / "failure").unlink(missing_ok=True)

    def key(self) -> str:
        """Return the password of the group's servers: made once, readable by its owner alone.

        Raises:
            MemsysError: the folder cannot be written.
        """
        path = self.prepared() / "key"
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

    def now(self) -> float:
        """Return the time, in seconds, by the clock of the disk that the folder lies on."""
        return disk_time(self.prepared())

    def prepared(self) -> Path:
        """Make the folder.

        Raises:
            MemsysError: it cannot be made.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MemsysError(
                f"cannot make {self.folder} ({error.strerror}); set serving.folder to a folder on the shared disk"
            ) from error
        return self.folder

    def _fresh(self, pattern: str) -> Iterator[Path]:
        """Yield the files touched lately, by the clock of the disk they lie on."""
        now = self.now()
        for path in sorted(self.folder.glob(pattern)):
            with contextlib.suppress(FileNotFoundError):
                if is_young(path, now):
                    yield path

    def _fresh_texts(self, pattern: str) -> list[str]:
        """Return the contents of the files touched lately."""
        texts = []
        for path in self._fresh(pattern):
            with contextlib.suppress(FileNotFoundError):  # its process has just left
                texts.append(path.read_text(encoding="utf-8"))
        return texts
