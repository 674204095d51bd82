"""A sweep says which cell it is at, and when all may be done."""

import pytest
from omegaconf import OmegaConf

from eval.sweep.numbering import CellClock, expect_cells, sweep_jobs


def jobs(task: list[str], **params: str) -> int:
    config = OmegaConf.create({"hydra": {"sweeper": {"params": params or None}, "overrides": {"task": task}}})
    return len(sweep_jobs(config))


def test_cells_are_counted_from_the_command_line() -> None:
    assert jobs(["memory=rag,amem", "seed=0,1,2", "dataset=locomo_sample"]) == 6
    assert jobs(["seed=range(0,4)", "memory=rag"]) == 4
    assert jobs([]) == 1


def test_cells_of_an_experiment_count_too_and_the_command_line_wins() -> None:
    assert jobs(["+experiment=quickstart"], memory="rag,amem,clag") == 3
    assert jobs(["memory=rag,amem"], memory="rag,amem,clag") == 2


def test_the_rest_is_estimated_from_the_cells_that_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMSYS_SWEEP_CELLS", "1")
    expect_cells(4)
    now = [0.0]
    clock = CellClock(lambda: now[0])
    assert clock.begin(1) == "cell 1 of 4"
    now[0] = 30.0
    clock.end()
    assert clock.begin(2) == "cell 2 of 4, all done in about 1 min 30 s"
    assert clock.begin(4) == "cell 4 of 4"  # another process had those between
