"""Requests of jobs that wait for servers which the batch system runs: the servers of a sweep are submitted again."""

import logging
import os
import subprocess
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

#: File that says what it takes to start a group's servers (:class:`eval.sweep.servers.ServerRequest`).
REQUEST = "request.json"
#: Seconds that the batch system has to answer.
SUBMIT_SECONDS = 120


def ask_for_servers(folder: Path) -> None:
    """Resubmit a group's servers from a waiting job if they are gone.

    Nothing happens where no launcher has said how, nor outside of Slurm's jobs: what a sweep on the cluster has said is
    not for a later one on a single machine. Nothing is raised: another job may ask again.
    """
    if os.environ.get("SUBMITIT_EXECUTOR") != "slurm" or not (folder / REQUEST).is_file():
        return
    command = [sys.executable, "-m", "eval.sweep.servers", str(folder)]
    try:
        subprocess.run(command, env=outside_job(), capture_output=True, text=True, timeout=SUBMIT_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        logger.warning("the servers of %s could not be submitted again: %s", folder.name, error.stderr.strip()[-300:])
    except subprocess.TimeoutExpired:
        logger.warning("Slurm does not answer; the servers of %s are not submitted again yet", folder.name)


def outside_job() -> dict[str, str]:
    """Return the environment without the batch system's variables, which would also apply to a new job."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_", "SUBMITIT_"))
    }
    if "SLURM_CONF" in os.environ:
        kept["SLURM_CONF"] = os.environ["SLURM_CONF"]
    return kept
