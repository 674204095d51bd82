"""Fetch the published data sets: the command ``memsys data``, without an installed memsys."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from eval.commands.commands import start
from eval.data import main

if __name__ == "__main__":
    start(main)
