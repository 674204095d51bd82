"""Provenance of a run: commit, packages, hardware. No host name, no user, no path, no key."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from memsys.assets.paths import ROOT, is_installed
from memsys.cores import usable_cores
from memsys.extras import installed_version
from memsys.vocabulary import Json

#: Packages whose version can move a number.
PACKAGES = (
    "bert-score", "faiss-cpu", "faiss-gpu", "hydra-core", "json-repair", "memsys", "nltk", "numpy", "onnxruntime",
    "rouge-score", "scikit-learn", "scipy", "sentence-transformers", "tokenizers", "torch", "transformers", "xllamacpp",
)  # fmt: skip


def _git(*arguments: str) -> str | None:
    if is_installed():  # site-packages may lie in a repository that is not ours
        return None
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def commit() -> Mapping[str, Json]:
    """Return ``{"commit": sha or None, "dirty": whether the code differs from it}``; a file that is new counts too."""
    sha = _git("rev-parse", "HEAD")
    status = _git("status", "--porcelain", "--untracked-files=normal", "--", "memsys", "baselines", "eval", "conf")
    return {"commit": sha, "dirty": None if status is None else bool(status)}


def packages() -> Mapping[str, str]:
    """Return the installed versions of the packages that can change a score."""
    found = {name: installed_version(name) for name in PACKAGES}
    return {name: each for name, each in found.items() if each is not None}


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        for line in info.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _gpus() -> list[str]:
    if not shutil.which("nvidia-smi"):
        return []
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def hardware() -> Mapping[str, Json]:
    """Return processor, cores that this process may use, memory, GPUs, system and Python."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": _cpu_model(),
        "cores": usable_cores(),
        "memory_gib": round(pages / 2**30, 1),
        "gpus": _gpus(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }
