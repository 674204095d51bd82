"""The servers that several jobs use together, as one of these jobs sees them."""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memsys.errors import BackboneError, MemsysError
from memsys.heartbeat import Heartbeat, own_name
from memsys.llm.engines.contract import Endpoint, OtherServerError
from memsys.llm.engines.registry import Registry, ServerRecord
from memsys.llm.engines.servers import is_healthy, server_root
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

_POLL_SECONDS = 2.0
_REPORT_SECONDS = 60.0


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
        self._seen = 0.0  # when a server last answered, by the disk's clock
        self._trouble = ""  # what the disk said at the latest look, if it failed

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
        """Wait until a server answers again: its own process restarts it.

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
        while not (found := self._look()):
            now = time.monotonic()
            if now - begun > self._wait_s:
                trouble = f" [{self._trouble}]" if self._trouble else ""
                raise BackboneError(
                    f"no server of {self._registry.folder.name} lives (waited {now - begun:.0f} s, serving.wait_s)"
                    f"{trouble}; see the logs under {self._registry.folder}, or start one: "
                    "memsys serve backbone=..."
                )
            if now - reported >= _REPORT_SECONDS:
                # A warning, because a manual start may be missing: other settings of the engine are another group.
                waited = f"waiting for a server of {self._registry.folder}, {now - begun:.0f} s so far"
                logger.warning("%s (memsys serve with the same backbone and overrides starts one)", waited)
                self._on_absence()
                reported = now
            if self._stopped.wait(_POLL_SECONDS):
                raise BackboneError("stopped while waiting for a server")
        return found

    def _look(self) -> list[Endpoint]:
        """Return the servers that answer; none if the disk fails, which may recover by the next check.

        Raises:
            BackboneError: none is left and one could not start, or one serves something else than before.
        """
        try:
            found = self._alive()
            if found:
                self._seen = self._registry.now()
            # A note of before may be another replica's, while the one that served this job is queued to come back.
            elif (failure := self._registry.failure(after=self._seen)) and not self._registry.expected():
                raise BackboneError(f"the server of {self._registry.folder.name} did not come up: {failure}")
        except BackboneError:
            raise
        except (OSError, MemsysError) as error:
            if not self._trouble:
                logger.warning("cannot read %s (%s); trying again", self._registry.folder, error)
            self._trouble = str(error)
            return []
        self._trouble = ""
        return found

    def _alive(self) -> list[Endpoint]:
        endpoints = []
        for record in filter(ServerRecord.reachable, self._registry.servers()):
            answering = [url for url in record.urls if is_healthy(server_root(url))]
            if answering:
                self._check(record)
                endpoints += [Endpoint(url, record.model, self._key_variable()) for url in answering]
        return endpoints

    def _check(self, record: ServerRecord) -> None:
        if self._fingerprint and record.fingerprint != self._fingerprint:
            raise OtherServerError(
                f"the server on {record.host} serves {dict(record.fingerprint)}, the run began with "
                f"{dict(self._fingerprint)}; end that server and start one as before"
            )
        self._fingerprint = record.fingerprint

    def _key_variable(self) -> str:
        """Return the name of the environment variable that holds the group's password, set for this process alone."""
        name = "MEMSYS_KEY_" + re.sub(r"\W", "_", self._registry.folder.name).upper()
        os.environ[name] = self._registry.key()
        return name
