"""The committed page on coverage is what its script writes, and says what the choice of interval rests on."""

from pathlib import Path

from eval.results.analysis.coverage import OUT, SIZES, simulate
from eval.results.analysis.coverage import main as write_coverage
from eval.results.analysis.design import OUT as DESIGN
from eval.results.analysis.design import main as write_design


def test_cluster_t_covers_better_than_the_percentile_bootstrap() -> None:
    found = simulate(0.02, simulations=300, resamples=300)
    assert found.percentile < 0.94
    assert found.cluster_t > found.percentile
    assert found.one_of_ten < 0.75
    assert sum(SIZES) == 1986


def test_the_simulation_is_seeded(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert write_coverage(["--simulations", "20", "--resamples", "50", "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert OUT.read_text().startswith("# Coverage of the intervals")


def test_the_design_page_is_what_its_script_writes(tmp_path: Path) -> None:
    assert write_design(["--out", str(tmp_path / "design.md")]) == 0
    assert (tmp_path / "design.md").read_text() == DESIGN.read_text()
