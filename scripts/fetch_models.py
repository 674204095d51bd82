"""Fetch the model and corpus files: the command ``memsys models``, without an installed memsys."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eval.commands.commands import start
from eval.models import main

if __name__ == "__main__":
    start(main)
