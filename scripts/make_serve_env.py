"""Make `.venv-serve`, the environment vLLM runs in, and the folder of SmolLM2-135M-Instruct that it can serve.

Usage: scripts/make_serve_env.py [--build auto|cpu|gpu] [--python PYTHON] [--force]

vLLM pins torch, and its pin is not the harness's; hence an environment of its own. A second run is a no-op unless the
requirements, the build or the Python changed.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-serve"
REQUIREMENTS = {"cpu": ROOT / "requirements-serve-cpu.lock", "gpu": ROOT / "requirements-serve-gpu.txt"}
_STAMP = FOLDER / ".stamp"

_CPU_TORCH_HINT = """
The CPU build of torch is not on PyPI. Let pip see PyTorch's CPU index (PIP_EXTRA_INDEX_URL) or a folder that holds the
wheel (PIP_FIND_LINKS), then run this again."""


def has_gpu() -> bool:
    """Whether an NVIDIA GPU and its driver answer."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return False
    listed = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False)
    return listed.returncode == 0 and "GPU" in listed.stdout


def stamp_of(build: str, python: str) -> str:
    """What the environment depends on, in one line."""
    version = subprocess.run([python, "-VV"], capture_output=True, text=True, check=True).stdout.strip()
    content = hashlib.sha256(REQUIREMENTS[build].read_bytes()).hexdigest()
    return f"{build} {content} {version}"


def install(build: str, python: str) -> None:
    """Make the environment from scratch; half-made ones have no stamp and are made again."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    run([python, "-m", "venv", str(FOLDER)])
    pip = [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    exact = ["--no-deps"] if build == "cpu" else []
    run([*pip, *exact, "--requirement", str(REQUIREMENTS[build])])
    device = {"cpu": "cpu", "gpu": "cuda"}[build]
    check = f"from vllm.platforms import current_platform as here; raise SystemExit(here.device_type != {device!r})"
    run([str(FOLDER / "bin" / "python"), "-c", check])


def run(command: list[str]) -> None:
    """Run a command, its output to ours.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    subprocess.run(command, check=True, cwd=FOLDER.parent)


def main() -> int:
    """Make what is missing; exit status 1 and a hint if a step fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", choices=("auto", "cpu", "gpu"), default="auto")
    parser.add_argument("--python", default=sys.executable, help="Python 3.11 or 3.12 to base the environment on")
    parser.add_argument("--force", action="store_true", help="make it again even if it is current")
    arguments = parser.parse_args()
    build = arguments.build if arguments.build != "auto" else ("gpu" if has_gpu() else "cpu")
    stamp = stamp_of(build, arguments.python)
    try:
        if arguments.force or not _STAMP.is_file() or _STAMP.read_text(encoding="utf-8") != stamp:
            began = time.monotonic()
            print(f"installing vLLM's {build} build into {FOLDER.name} (some minutes)", flush=True)
            install(build, arguments.python)
            _STAMP.write_text(stamp, encoding="utf-8")
            print(f"installed in {time.monotonic() - began:.0f} s")
        run([str(FOLDER / "bin" / "python"), str(ROOT / "scripts" / "gguf_to_hf.py")])
    except subprocess.CalledProcessError as error:
        hint = _CPU_TORCH_HINT if build == "cpu" and not _STAMP.is_file() else ""
        print(f"error: {' '.join(error.cmd[:4])} ... failed with status {error.returncode}{hint}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
