"""Start a backbone's server and announce it to the jobs that need it: ``memsys serve backbone=NAME``.

Jobs run with ``serving.shared=true`` find it in ``serving.folder`` (sweeps set that by themselves). It is restarted
when it dies, and ends when no job has needed it for ``serving.idle_s`` seconds. ``--host NAME`` makes it listen on
every address, with a password that is kept in that folder, and announces it under that name. ``--wait-for-turn``
starts no second server on the same devices: it waits until the other one has ended, whose server jobs use meanwhile.
"""

import argparse
import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eval.commands.commands import described, explains_errors, program, start, terminated_as_interrupted
from eval.commands.terminal import console
from eval.running.backbones import server_group
from eval.running.composed import plan_of
from eval.running.plan import Plan
from memsys.errors import ConfigError, MemsysError
from memsys.llm.engines.contract import Engine
from memsys.llm.engines.device_turn import device_turn
from memsys.llm.engines.registry import Registry
from memsys.llm.engines.serving import serve
from memsys.llm.engines.vllm import VllmEngineConfig

LOOPBACK = "127.0.0.1"


def serve_plan(plan: Plan, host: str) -> str:
    """Serve a plan's backbone until no job needs it; returns why it ended.

    Raises:
        ConfigError: the backbone cannot be served, or not to other machines.
        BackboneError: the server did not come up, or died too often.
    """
    registry = Registry(group_folder(plan))
    job = os.environ.get("SLURM_JOB_ID") or str(os.getpid())
    log_dir = log_folder(plan) / job
    try:
        engine = make_engine(plan, host, registry)
    except MemsysError as error:
        registry.note_failure(str(error))  # or jobs would wait for what cannot come
        raise
    return serve(engine, registry, log_dir, host=host, idle_s=plan.serving.idle_s)


def make_engine(plan: Plan, host: str, registry: Registry) -> Engine:
    """Return the engine of a plan's backbone, listening for this machine or for all.

    Raises:
        ConfigError: it cannot serve other machines.
    """
    assert plan.backbone is not None
    config = plan.backbone.engine
    if host == LOOPBACK:
        return config.build()
    if not isinstance(config, VllmEngineConfig):
        raise ConfigError(f"backbone={plan.backbone.name}: only vLLM serves other machines; leave --host out")
    os.environ["VLLM_API_KEY"] = registry.key()  # the way vLLM takes a key without showing it in the process list
    return replace(config, host="0.0.0.0").build()


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Serve as the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(prog=program("serve"), description=described(__doc__).partition("\n\n")[0])
    parser.add_argument("--host", default=LOOPBACK, help="name by which other machines know this one")
    parser.add_argument(
        "--wait-for-turn", action="store_true", help="while another such server has this machine's devices, start none"
    )
    parser.add_argument(
        "overrides", nargs="+", metavar="KEY=VALUE", help="as for `memsys run`: backbone=NAME serving.folder=FOLDER ..."
    )
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # the server is asked every few seconds whether it lives
    try:
        with terminated_as_interrupted():
            plan = plan_of(options.overrides)
            with device_turn(Registry(group_folder(plan)), wait=options.wait_for_turn):
                reason = serve_plan(plan, options.host)
    except KeyboardInterrupt:
        reason = "interrupted"
    console().print(f"server ended: {reason}", highlight=False)
    return 0


def group_folder(plan: Plan) -> Path:
    """Return the folder where the servers of a plan's backbone are announced.

    Raises:
        ConfigError: the plan has no backbone.
    """
    if plan.backbone is None:
        raise ConfigError("mode=retrieval_only needs no server")
    return plan.serving.folder / server_group(plan.backbone)


def log_folder(plan: Plan) -> Path:
    """Return the folder of the logs of a plan's servers."""
    return group_folder(plan) / "logs"


if __name__ == "__main__":
    start(main)
