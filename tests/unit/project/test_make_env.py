"""``make env`` says at once that a Python does not fit, before anything is made or downloaded."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "there is no"),
        ('#!/bin/sh\nif [ "$1" = -V ]; then echo Python 3.13.1; exit 0; fi\nexit 1\n', "is Python 3.13.1"),
        ("#!/bin/sh\necho 'pyenv: python3.13: command not found' >&2\nexit 127\n", "python3.13 does not start; "),
    ],
)
def test_a_python_that_does_not_fit_is_one_message(tmp_path: Path, script: str, words: str) -> None:
    for name in ("Makefile", "requirements.lock", "requirements-torch.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python3.13"
    if script:
        python.write_text(script)
        python.chmod(0o755)
    outside = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(
        ["make", "env", f"PYTHON={python}"],
        cwd=tmp_path, env=outside, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout.startswith("error: ") and words in done.stdout and "3.11 or 3.12" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    assert not (tmp_path / ".venv").exists()
