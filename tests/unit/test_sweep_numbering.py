"""A sweep says which cell it is at, and when all may be done."""

import pytest

from eval.sweep.numbering import CellClock, count_cells, expect_cells


def test_cells_are_counted_from_the_command_line() -> None:
    assert count_cells(["memory=rag,amem", "seed=0,1,2", "dataset=locomo_sample"]) == 6
    assert count_cells(["seed=range(0,4)", "memory=rag,"]) == 4
    assert count_cells([]) == 1


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
