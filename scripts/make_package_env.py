"""Make `.venv-packages/NAME`, the environment that a memory package runs in.

Usage: scripts/make_package_env.py NAME [--python PYTHON] [--force]

The versions, and the sha256 of each file, are those of baselines/packages/NAME/requirements.lock, whose first lines say
when they were locked and which Python they are for. A second run is a no-op unless they changed. What the packages need
is installed here and not into the harness's own environment: their pins are not its.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
PACKAGES = ROOT / "baselines" / "packages"
_PYTHON = re.compile(r"^# python: (\d+\.\d+)", re.MULTILINE)


def names() -> list[str]:
    """Packages that have a lock file."""
    return sorted(path.parent.name for path in PACKAGES.glob("*/requirements.lock"))


def find_python(requirements: Path) -> str:
    """The Python that the lock file is for: this one, or one on the path.

    Raises:
        SystemExit: there is none that runs.
    """
    found = _PYTHON.search(requirements.read_text(encoding="utf-8"))
    wanted = found[1] if found else ""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    if wanted in ("", here):
        return sys.executable
    other = shutil.which(f"python{wanted}")
    if other is None or subprocess.run([other, "-c", ""], capture_output=True).returncode != 0:  # a shim of pyenv
        raise SystemExit(f"error: {requirements} is for Python {wanted}; install it, or name one with --python")
    return other


def install(folder: Path, requirements: Path, python: str) -> None:
    """Make the environment from scratch.

    Raises:
        subprocess.CalledProcessError: a step failed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "--requirement", str(requirements)], check=True)


def main() -> int:
    """Make what is missing; exit status 1 if a step fails."""
    from memsys.workers.environments import STAMP, environment_folder, is_installed, requirements_sha256

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=names())
    parser.add_argument("--python", help="Python to base the environment on (default: what the lock file is for)")
    parser.add_argument("--force", action="store_true", help="make it again even if it is current")
    arguments = parser.parse_args()
    requirements, folder = PACKAGES / arguments.name / "requirements.lock", environment_folder(arguments.name)
    if is_installed(arguments.name, requirements) and not arguments.force:
        print(f"{folder}: current")
        return 0
    try:
        install(folder, requirements, arguments.python or find_python(requirements))
    except subprocess.CalledProcessError as error:
        print(f"error: {' '.join(error.cmd[:4])} ... failed with status {error.returncode}", file=sys.stderr)
        return 1
    (folder / STAMP).write_text(requirements_sha256(requirements), encoding="utf-8")
    print(f"{folder}: made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
