"""A vLLM server of our own, from start to clean end."""

import logging
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from memsys.errors import BackboneError
from memsys.llm.engines.contract import Endpoint
from memsys.llm.engines.process import GuardedProcess
from memsys.llm.engines.servers import is_healthy, server_root
from memsys.llm.engines.vllm import launch
from memsys.llm.engines.vllm.config import VllmSettings
from memsys.llm.engines.vllm.files import argument_checksums, folder_checksums
from memsys.llm.engines.vllm.server import server_version
from memsys.vocabulary import Json

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.25
_REPORT_SECONDS = 10.0
_PORT_ATTEMPTS = 3
#: A server in the middle of long prompts may take its time to say that it is well.
_PATIENCE_SECONDS = 60.0


class ManagedVllm:
    """A server of our own: one process group, ended with the run however the run ends."""

    name = "vllm"

    def __init__(self, config: VllmSettings) -> None:
        self._config = config
        self._model = config.model or ""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._process: GuardedProcess | None = None
        self._endpoints: tuple[Endpoint, ...] = ()
        self._version = ""
        self._files: Mapping[str, Json] = {}
        self.restarts = 0

    def start(self, log_dir: Path) -> Sequence[Endpoint]:
        """Start the server, or return the endpoint of the one that runs.

        Raises:
            BackboneError: no serving environment, the server did not come up, or :meth:`stop` was called meanwhile.
        """
        with self._lock:
            self._stopping.clear()
            if self._process is None or self._process.exit_status is not None:
                self._launch(log_dir)
            return self._endpoints

    def recover(self, log_dir: Path) -> Sequence[Endpoint]:
        """Start the server again if it died or stopped answering.

        Raises:
            BackboneError: it did so more often than ``max_restarts`` allows, or does not come back.
        """
        with self._lock:
            if self._process and self._process.exit_status is None and is_healthy(self._root(), _PATIENCE_SECONDS):
                return self._endpoints
            log = log_dir / "vllm.log"
            if self.restarts >= self._config.max_restarts:
                raise BackboneError(
                    f"the vLLM server died {self.restarts + 1} times; giving up\n{launch.explain(log, 0)}"
                )
            self.restarts += 1
            logger.warning(
                "the vLLM server does not answer; restart %d of %d", self.restarts, self._config.max_restarts
            )
            self._stop()
            self._launch(log_dir)
            return self._endpoints

    def stop(self) -> None:
        """End the server and all its processes; safe to call twice.

        From another thread it also ends a start that is under way, which else takes as long as a model is loaded.
        """
        self._stopping.set()
        with self._lock:
            self._stop()

    def fingerprint(self) -> Mapping[str, Json]:
        """Say what was served. The version is known once the server has started."""
        config = self._config
        return {
            "engine": self.name,
            "version": self._version,
            "mode": "managed",
            "model": launch.served_name(self._model),
            **self._read_files(),
            **config.declared(),
        }

    def _read_files(self) -> Mapping[str, Json]:
        """Return the files of the server: a local model's or a hub model's commit, and those that arguments name."""
        if not self._files:
            named = argument_checksums(self._config.extra_args)
            self._files = {**self._model_files(), **({"argument_files": named} if named else {})}
        return self._files

    def _model_files(self) -> Mapping[str, Json]:
        folder = launch.local_model(self._model)
        if folder is not None:
            return {"files": folder_checksums(folder)}
        revision = self._config.revision or "main"
        return {"weights": {"revision": launch.hub_commit(self._model, revision) or revision}}

    def _root(self) -> str:
        return server_root(self._endpoints[0].base_url) if self._endpoints else ""

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _launch(self, log_dir: Path) -> None:
        log = log_dir.resolve() / "vllm.log"
        port = self._config.port
        for _attempt in range(_PORT_ATTEMPTS):
            port = _free_port(port)
            start = log.stat().st_size if log.exists() else 0
            try:
                self._come_up(port, log, start)
                return
            except BackboneError:
                self._stop()
                if not launch.port_was_taken(log, start):
                    raise
            logger.warning("port %d was taken before vLLM could listen on it; trying another", port)
            port = 0
        raise BackboneError(f"vLLM found no free port in {_PORT_ATTEMPTS} attempts\n{launch.explain(log, 0)}")

    def _come_up(self, port: int, log: Path, start: int) -> None:
        """Start a server and wait until it is healthy. ``start``: where in the log file its lines begin."""
        line = launch.command(self._config, self._model, port)
        name = launch.served_name(self._model)
        logger.info("starting vLLM with %s on port %d (log: %s)", name, port, log.name)
        self._process = GuardedProcess(line, launch.environment(self._config, self._model), log)
        root = f"http://127.0.0.1:{port}"
        self._wait_until_healthy(self._process, root, log, start)
        self._version = server_version(root)
        self._endpoints = (Endpoint(base_url=f"{root}/v1", model=name),)

    def _wait_until_healthy(self, process: GuardedProcess, root: str, log: Path, start: int) -> None:
        began = reported = time.monotonic()
        while not is_healthy(root):
            now = time.monotonic()
            if process.exit_status is not None:
                raise BackboneError(f"vLLM ended with status {process.exit_status}\n{launch.explain(log, start)}")
            if now - began > self._config.start_timeout_s:
                waited = f"vLLM was not healthy after {now - began:.0f} s (backbone.engine.start_timeout_s)"
                raise BackboneError(f"{waited}\n{launch.explain(log, start)}")
            if now - reported >= _REPORT_SECONDS:
                logger.info("waiting for vLLM, %.0f s so far", now - began)
                reported = now
            if self._stopping.wait(_POLL_SECONDS):
                raise BackboneError("stopped while vLLM was starting")
        logger.info("vLLM is ready after %.0f s", time.monotonic() - began)


def _free_port(wanted: int) -> int:
    """Return ``wanted`` if it can be had, else any free port."""
    for port in (wanted, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                logger.warning("port %d is taken; another one is used", port)
                continue
            found: int = probe.getsockname()[1]
            return found
    raise BackboneError("no free port on 127.0.0.1")
