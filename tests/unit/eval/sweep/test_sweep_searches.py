"""A run's value for sweepers that search, and several sweeps by one command line."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from eval.config.command_line import one_sweep_each
from eval.config.overrides import check_command_line

ROOT = Path(__file__).resolve().parents[4]

#: Prints what Hydra's sweeper is given for each cell.
VALUES = """
import sys
import eval.run as run
whole = run.run_composed
def told(config):
    value = whole(config)
    print("value", repr(value), flush=True)
    return value
run.run_composed = told
run.compose_and_run(sys.argv[1:])
"""


def test_a_cell_returns_its_primary_metric(tmp_path: Path) -> None:
    """It returned the run's folder, with which no sweeper can search."""
    settings = [
        "mode=retrieval_only",
        "embedder=hashing",
        "dataset=locomo_sample",
        "memory=rag",
        f"runs_dir={tmp_path}",
    ]
    done = subprocess.run(
        [sys.executable, "-c", VALUES, "-m", *settings, "memory.k=1,8"], cwd=ROOT, capture_output=True, text=True,
        timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    one, eight = (float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("value "))
    assert 0 <= one < eight <= 1 and not math.isnan(one)


@pytest.mark.parametrize(
    ("arguments", "each"),
    [
        (["memory=rag,amem", "-m"], [["memory=rag,amem", "-m"]]),
        (["+sweep=clag_table9"], [["+sweep=clag_table9"]]),
        (
            ["+sweep=clag_table9,clag_table10", "seed=1"],
            [["seed=1", "+sweep=clag_table9"], ["seed=1", "+sweep=clag_table10"]],
        ),
        (["-m", "+sweep=[clag_table9,clag_table10]"], [["-m", "+sweep=clag_table9"], ["-m", "+sweep=clag_table10"]]),
        (["+sweep=clag_table9", "+sweep=clag_table10"], [["+sweep=clag_table9"], ["+sweep=clag_table10"]]),
    ],
)
def test_each_of_several_sweeps_is_a_command_line(arguments: list[str], each: list[list[str]]) -> None:
    assert one_sweep_each(arguments) == each
    for line in each:
        check_command_line(line)
