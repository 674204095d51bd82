"""The servers of a portion of a sweep on this machine, for the length of a ``with`` block.

Two sweeps on one machine do not start two servers on the same devices: the cells of both use that of the first, and
the second's starts when it ends.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from eval.commands.terminal import say
from eval.serve import log_folder
from eval.sweep.launching import LaunchGroup
from memsys.llm.engines.process import GuardedProcess
from memsys.llm.engines.registry import Registry

_ASK_SECONDS = 30
#: A job waits for a server of this machine no longer than one takes to start; its failure is known at once.
_WAIT_SECONDS = 7200


@contextmanager
def local_servers(portion: LaunchGroup) -> Iterator[list[str]]:
    """Serve a portion's cells, if they share a server; gives the overrides that make them use it."""
    if not portion.shared:
        yield []
        return
    cell = portion.cells[0]
    plan = cell.valid_plan()
    Registry(plan.serving.folder / cell.group).clear_failure()
    with ExitStack() as stack:
        for number, devices in enumerate(device_shares(portion)):
            variables = dict(os.environ) if devices is None else {**os.environ, "CUDA_VISIBLE_DEVICES": devices}
            log = log_folder(plan) / f"serve-{os.getpid()}-{number}.log"
            line = [sys.executable, "-m", "eval.serve", "--wait-for-turn", *cell.overrides]
            process = GuardedProcess(line, variables, log)
            stack.callback(process.stop)
            where = f" on GPU {devices}" if devices is not None else ""
            say(f"{cell.group}: server{where} (log: {log})")
        yield ["serving.shared=true", f"serving.wait_s={_WAIT_SECONDS}"]


def device_shares(portion: LaunchGroup) -> list[str | None]:
    """Return ``CUDA_VISIBLE_DEVICES`` of each server: as many servers as wanted and possible, at least one."""
    devices = visible_devices()
    if not portion.gpus or not devices:
        return [None]
    fitting = max(len(devices) // portion.gpus, 1)
    count = min(portion.replicas, fitting)
    return [",".join(devices[number * portion.gpus : (number + 1) * portion.gpus]) for number in range(count)]


def visible_devices() -> list[str]:
    """Return the GPUs that this process may use."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return [name for name in chosen.split(",") if name]
    if shutil.which("nvidia-smi") is None:
        return []
    line = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    return done.stdout.split() if done.returncode == 0 else []
