"""Serving a model to other jobs: start, announce, watch and stop a server."""

import logging
import os
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from memsys.errors import MemsysError
from memsys.heartbeat import BEAT_SECONDS, own_name
from memsys.llm.engines.contract import Endpoint, Engine
from memsys.llm.engines.registry import LOOPBACK, Registry, ServerRecord

logger = logging.getLogger(__name__)


def serve(engine: Engine, registry: Registry, log_dir: Path, *, host: str, idle_s: float) -> str:
    """Serve a group until no job needs the server any longer.

    The server is started, announced and watched; one that died is started again as often as its engine allows.

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
    machine = socket.gethostname() if f"//{host}:" == LOOPBACK else ""
    with registry.attempted(own_name(), machine):
        try:
            return _serve_while_needed(engine, registry, log_dir, host, idle_s)
        except MemsysError as error:
            registry.note_failure(str(error))
            raise
        finally:
            engine.stop()


def _serve_while_needed(engine: Engine, registry: Registry, log_dir: Path, host: str, idle_s: float) -> str:
    endpoints = engine.start(log_dir)
    registry.clear_failure()
    needed = time.monotonic()
    while True:
        with registry.published(own_name(), _record(engine, endpoints, host)) as beat:
            logger.info("serving %s on %s", registry.folder.name, host)
            while (found := engine.recover(log_dir)) == endpoints:
                beat.touch()
                if _is_needed(registry):
                    needed = time.monotonic()
                if time.monotonic() - needed > idle_s:
                    return f"no job has needed it for {idle_s:.0f} s"
                time.sleep(BEAT_SECONDS)
        endpoints = found


def _is_needed(registry: Registry) -> bool:
    """Return whether a job needs the server; also where the disk cannot say, so that jobs do not lose it for that."""
    try:
        return registry.leases() > 0
    except (OSError, MemsysError) as error:
        logger.warning("cannot read %s (%s); trying again", registry.folder, error)
        return True


def _record(engine: Engine, endpoints: Sequence[Endpoint], host: str) -> ServerRecord:
    urls = [endpoint.base_url.replace(LOOPBACK, f"//{host}:") for endpoint in endpoints]
    job = os.environ.get("SLURM_JOB_ID", "")
    return ServerRecord(urls, endpoints[0].model, engine.fingerprint(), socket.gethostname(), os.getpid(), job)
