"""Make what `make test-outside` needs: two environments and the npm packages of MCP servers.

Usage: scripts/make_outside_env.py FOLDER [--python312 PYTHON]

FOLDER sees the packages of the environment that runs this, below those of tests/outside/requirements.txt. FOLDER-312
is an environment of its own for tests/outside/requirements-312.txt, FOLDER-npm for tests/outside/package.json. A second
run is a no-op unless these files changed.
"""

import argparse
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parents[1] / "tests" / "outside"
_PIP = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--requirement"]


def make_python(folder: Path, python: str, requirements: Path, packages: str | None = None) -> None:
    """Make an environment; with ``packages`` it sees what is in that folder too, pip included."""
    pip = ["--without-pip"] if packages else []
    subprocess.run([python, "-m", "venv", *pip, str(folder)], check=True)
    if packages:
        (site,) = folder.glob("lib/python*/site-packages")
        (site / "environment.pth").write_text(f"{packages}\n", encoding="utf-8")
    subprocess.run([str(folder / "bin" / "python"), *_PIP, str(requirements)], check=True)


def make_npm(folder: Path, packages: Path) -> None:
    """Install the packages of a ``package.json``."""
    folder.mkdir(parents=True)
    shutil.copy(packages, folder)
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder)], check=True)


def main() -> int:
    """Make what is missing or was made from other files; exit status 1 if a step fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python312", default="python3.12", help="a Python 3.12")
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    here = sysconfig.get_path("purelib")
    steps = {
        "": (HERE / "requirements.txt", lambda to, by: make_python(to, sys.executable, by, here)),
        "-312": (HERE / "requirements-312.txt", lambda to, by: make_python(to, arguments.python312, by)),
        "-npm": (HERE / "package.json", make_npm),
    }
    for ending, (wanted, make) in steps.items():
        target, stamp = Path(f"{folder}{ending}"), Path(f"{folder}{ending}") / ".made-from"
        if stamp.is_file() and stamp.read_bytes() == wanted.read_bytes():
            continue
        shutil.rmtree(target, ignore_errors=True)
        try:
            make(target, wanted)
        except (subprocess.CalledProcessError, OSError) as error:
            print(f"error: {target.name} cannot be made: {error}", file=sys.stderr)
            return 1
        stamp.write_bytes(wanted.read_bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main())
