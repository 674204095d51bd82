"""Printed costs beside what our ledgers count."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from eval.tables.costs import cost_rates, load_costs, render_costs
from eval.tables.stored import Skipped, StoredRun, read_run
from memsys.errors import ConfigError
from tests.support.fake_run import FakeRun


def run_of(root: Path, memory: str, settings: Mapping[str, object] | None = None) -> StoredRun:
    run = read_run(FakeRun(memory=memory, settings=settings or {}).write(root))
    assert not isinstance(run, Skipped)
    return run


def test_the_shipped_rows_are_the_readmes() -> None:
    """A-MEM: a note and an evolution for each of 5,882 turns but the first of ten conversations; 67,084 s in all."""
    found = {(row.system, row.backbone): row for row in load_costs().rows}
    amem = found["A-MEM", "gpt-4o-mini"]
    assert amem.calls == 2 * load_costs().works["locomo"].turns - 10
    assert amem.write_s is not None
    assert amem.read_s is not None
    assert amem.write_s + amem.read_s == 67084
    mem0 = found["Mem0", "gpt-4o-mini"]
    assert (mem0.calls, round(((mem0.write_s or 0) + (mem0.read_s or 0)) / 3600, 1)) == (19070, 33.4)


def test_a_run_of_the_same_method_stands_beside_the_printed_row(tmp_path: Path) -> None:
    """Of 20 questions over 40 turns, each has a write call of 60 tokens and an answer of 155."""
    run = run_of(tmp_path, "amem_small")
    rates = cost_rates(run)
    assert rates is not None
    assert (rates.calls, rates.write_tokens, rates.read_tokens) == (0.5, 30.0, 155.0)
    page = render_costs(load_costs(), [run, run_of(tmp_path, "amemory"), run_of(tmp_path, "sage")])
    lines = [line for line in page.splitlines() if line.startswith("| A-MEM | gpt-4o-mini")]
    assert len(lines) == 1
    cells = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert cells[2:6] == ["11,754", "2.00", "0.50", "2,941"]
    assert cells[-1] == "amem_small, smollm2_135m, 20 questions on 2 conversations"
    changed = run_of(tmp_path, "amem_small", settings={"retrieve_k": 4})
    assert "| amem_small [retrieve_k=4], smollm2_135m, 20 questions on 2" in render_costs(load_costs(), [run, changed])
    assert "| Mem0(api) |" in page
    assert "not a system of ours" in page


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("work: locomo,", "work: moon,", r"rows\[0\].work='moon' is none of locomo"),
        ("calls: 11754", "calls: many", r"field rows\[0\].calls: expected an integer"),
        ("    turns: 5882\n", "", "works.locomo.turns: is missing"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    from eval.tables.costs import FILE

    path = tmp_path / "costs.yaml"
    path.write_text(FILE.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError, match=said):
        load_costs(path)
