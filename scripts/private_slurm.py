"""A Slurm of one's own on this machine, for tests: ``private_slurm.py up FOLDER`` and ``private_slurm.py down FOLDER``.

One controller, one node with pretend GPUs, and the password service they need, all below FOLDER, on the loopback
address and on free ports, so that several stand side by side and none meets a real Slurm. ``up`` writes FOLDER/env.sh
(source it, or take SLURM_CONF from it); ``down`` ends every process by its number, jobs first. Debian's packages
slurm-wlm and munge are all it needs; no root, no accounting, no control groups.

What it can show: queues, arrays, dependencies, GPUs as ``CUDA_VISIBLE_DEVICES``, time limits, requeueing, preemption
(partition high pushes out partition low). What it cannot: isolation, several machines, a shared disk.
"""

import argparse
import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd")
#: Unix sockets have room for about 107 characters.
LONGEST_FOLDER = 70
START_SECONDS = 20
STOP_SECONDS = 10

SLURM_CONF = """\
ClusterName=private
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
SlurmctldPort={port}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
AuthType=auth/munge
CredType=cred/munge
# cred_expire is also how long a requeued job sits out
AuthInfo=socket={folder}/run/munge.sock,cred_expire={sit_out}
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
# more cores and memory than the machine may have
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU={memory_per_core}
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=5,batch_sched_delay=0,bf_interval=5,default_queue_depth=1000,sched_min_interval=0
MinJobAge=600
KillWait=5
CompleteWait=0
SlurmdTimeout=60
InactiveLimit=0
JobRequeue=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
# at preemption send the signal that the job asked for, not SIGTERM
SlurmctldParameters=preempt_send_user_signal
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/log/jobs.txt
AccountingStorageType=accounting_storage/none
GresTypes=gpu
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cores} RealMemory={memory} Gres=gpu:fake:{gpus} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=low Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=20
PartitionName=high Nodes=ALL MaxTime=60 State=UP PriorityTier=20 PreemptMode=OFF
"""  # noqa: E501
#: A plain file is refused as a device, a link to /dev/null is not, and needs no root.
GRES_CONF = """\
AutoDetect=off
NodeName=node1 Name=gpu Type=fake File={folder}/dev/gpu[0-{last_gpu}] Flags=nvidia_gpu_env
"""


def fail(message: str) -> None:
    """End with a message."""
    sys.exit(f"private_slurm: {message}")


def search_path() -> str:
    """Where Debian puts daemons, besides the usual."""
    return os.environ["PATH"] + os.pathsep + "/usr/sbin"


def free_ports() -> tuple[int, int]:
    """Two neighbouring free ports below those that the system gives out."""
    while True:
        first = random.randrange(20000, 30000)
        try:
            for port in (first, first + 1):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first, first + 1


def configure(folder: Path, options: argparse.Namespace) -> None:
    """Write the configuration, the key and the pretend GPUs."""
    for name in ("etc", "log", "run", "state", "spool", "dev"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(options.gpus):
        (folder / "dev" / f"gpu{number}").symlink_to("/dev/null")
    key = folder / "etc" / "munge.key"
    key.touch(0o600)
    key.write_bytes(random.SystemRandom().randbytes(128))
    port, node_port = free_ports()
    text = SLURM_CONF.format(
        folder=folder,
        host=socket.gethostname().partition(".")[0],
        user=getpass.getuser(),
        port=port,
        node_port=node_port,
        cores=options.cores,
        memory=options.memory,
        memory_per_core=options.memory // options.cores,
        gpus=options.gpus,
        sit_out=options.sit_out,
    )
    (folder / "etc" / "slurm.conf").write_text(text, encoding="utf-8")
    gres = GRES_CONF.format(folder=folder, last_gpu=options.gpus - 1)
    (folder / "etc" / "gres.conf").write_text(gres, encoding="utf-8")


def start(folder: Path) -> None:
    """Start the daemons; each leaves its process number under run/."""
    conf = str(folder / "etc" / "slurm.conf")
    munge = {
        "key-file": "etc/munge.key",
        "socket": "run/munge.sock",
        "pid-file": "run/munged.pid",
        "log-file": "log/munged.log",
        "seed-file": "state/munge.seed",
    }
    lines = [
        # --force: the folder may lie below one that others cannot enter
        ["munged", "--force", "--num-threads=2", *(f"--{name}={folder / path}" for name, path in munge.items())],
        ["slurmctld", "-c", "-f", conf],
        ["slurmd", "-f", conf, "-N", "node1"],
    ]
    for line in lines:
        done = subprocess.run(line, env=environment(folder), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise RuntimeError(f"{line[0]} did not start: {done.stderr.strip()}")


def environment(folder: Path) -> dict[str, str]:
    """Ours, without what a Slurm job around us would say."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
    return {**kept, "SLURM_CONF": str(folder / "etc" / "slurm.conf"), "PATH": search_path()}


def ask(folder: Path, *line: str) -> str:
    """Output of a Slurm command; empty if it fails."""
    try:
        done = subprocess.run(
            line, env=environment(folder), capture_output=True, text=True, timeout=10, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def wait_until_idle(folder: Path) -> None:
    """Wait for the node to take jobs."""
    deadline = time.monotonic() + START_SECONDS
    while ask(folder, "sinfo", "--noheader", "--partition=main", "--states=idle", "--format=%N") != "node1":
        if time.monotonic() > deadline:
            raise RuntimeError(f"the node did not come up in {START_SECONDS} s; see {folder}/log")
        time.sleep(0.1)


def up(folder: Path, options: argparse.Namespace) -> None:
    """Start a cluster; one that does not come up is taken down again, its logs stay."""
    if missing := [name for name in DAEMONS if not shutil.which(name, path=search_path())]:
        fail(f"{', '.join(missing)} not installed: apt-get install --no-install-recommends slurm-wlm munge")
    if len(str(folder)) > LONGEST_FOLDER:
        fail(f"{folder} is longer than {LONGEST_FOLDER} characters, too long for sockets; choose a shorter folder")
    if (folder / "env.sh").exists():
        fail(f"{folder} holds a cluster already: private_slurm.py down {folder}")
    try:
        configure(folder, options)
        start(folder)
        wait_until_idle(folder)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
        down(folder, keep=True)
        fail(str(error))
    path = 'case :$PATH: in *:/usr/sbin:*) ;; *) export PATH="$PATH:/usr/sbin" ;; esac'
    (folder / "env.sh").write_text(f"export SLURM_CONF={folder}/etc/slurm.conf\n{path}\n", encoding="utf-8")
    print(f"one node, {options.cores} pretend cores, {options.gpus} pretend GPUs: source {folder}/env.sh")


def text_of(process: int) -> str:
    """Command line and environment of a process; empty if it is gone or not ours to see."""
    try:
        parts = [Path(f"/proc/{process}/{name}").read_bytes() for name in ("cmdline", "environ")]
    except OSError:
        return ""
    return b"\0".join(parts).decode(errors="replace")


def is_ours(process: int, name: str, folder: Path) -> bool:
    """Whether a process lives, has a name and belongs to this folder: numbers are given out again."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    bears, state = status.partition("(")[2].rpartition(")")[0], status.rpartition(")")[2].split()[0]
    return bears == name and state != "Z" and f"{folder}/" in text_of(process)


def end(process: int, name: str, folder: Path) -> None:
    """Ask a process to end, then make it."""
    if not is_ours(process, name, folder):
        return
    os.kill(process, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while is_ours(process, name, folder):
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            return
        time.sleep(0.05)


def end_jobs(folder: Path) -> None:
    """Cancel all jobs, with force: submitit's ignore a polite request."""
    jobs = ask(folder, "squeue", "--noheader", "--format=%A").split()
    if jobs:
        ask(folder, "scancel", "--full", "--signal=KILL", *jobs)
        ask(folder, "scancel", *jobs)
    deadline = time.monotonic() + STOP_SECONDS
    while ask(folder, "squeue", "--noheader") and time.monotonic() < deadline:
        time.sleep(0.1)


def end_steps(folder: Path) -> None:
    """End what a crashed daemon left: its step processes, with all that descends from them."""
    found = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    parents = {}
    for process in found:
        try:
            parents[process] = int(
                Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    family = {process for process in parents if is_ours(process, "slurmstepd", folder)}
    while more := {process for process, parent in parents.items() if parent in family} - family:
        family |= more
    for process in family:
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue


def down(folder: Path, *, keep: bool) -> None:
    """Stop a cluster."""
    if (folder / "run" / "slurmctld.pid").exists():
        end_jobs(folder)
    for name in ("slurmd", "slurmctld", "munged"):
        file = folder / "run" / f"{name}.pid"
        if file.is_file():
            end(int(file.read_text(encoding="ascii")), name, folder)
        if name == "slurmctld":
            end_steps(folder)
    (folder / "env.sh").unlink(missing_ok=True)
    if not keep:
        for name in ("etc", "log", "run", "state", "spool", "dev"):
            shutil.rmtree(folder / name, ignore_errors=True)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser("up", help="start a cluster")
    starting.add_argument("--cores", type=int, default=8, help="that the node claims")
    starting.add_argument("--memory", type=int, default=16000, help="MB that the node claims")
    starting.add_argument("--gpus", type=int, default=2, help="pretend GPUs")
    starting.add_argument("--sit-out", type=int, default=5, help="seconds until a requeued job may start again")
    stopping = commands.add_parser("down", help="stop a cluster")
    stopping.add_argument("--keep", action="store_true", help="leave logs and state")
    for command in (starting, stopping):
        command.add_argument("folder", type=Path)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.command == "up":
        folder.mkdir(parents=True, exist_ok=True)
        up(folder, options)
    else:
        down(folder, keep=options.keep)


if __name__ == "__main__":
    main()
