"""The tables of docs/scale.md are what results/scale/systems.csv gives; the file keeps the last of each measurement."""

from dataclasses import replace
from pathlib import Path

import pytest

from eval.plots.scale import PAGE, SYSTEMS, ScalePoint, blocks, draw, keep, read_points, with_tables
from memsys.errors import ConfigError

ONE = ScalePoint("rag", "", "", 1000, 1.0, 0.5, 2.0, 0.25, 1500.4, 0, 60.0, "2026-01-02", "2 cores")
LARGE = replace(ONE, turns=10_000, turn_ms=5.5, read_ms=11.0)
STOPPED = replace(
    ONE, system="slow", turns=10_000, turns_a_write=16.2, turn_ms=9.0, read_ms=0.0, end_ms=0.0, bytes_a_turn=0.0,
    stopped_at=7_900,
)  # fmt: skip
MARKERS = (
    "a\n<!-- systems: begin -->\nold\n<!-- systems: end -->\nb\n<!-- indexes: begin -->\n<!-- indexes: end -->\nc\n"
)


def test_the_page_is_what_the_file_gives() -> None:
    text, points = PAGE.read_text(encoding="utf-8"), read_points(SYSTEMS)
    assert points and with_tables(text, points) == text, "run python -m eval.plots.scale"
    assert all("/" not in f"{point.machine}{point.texts}" for point in points), "no path of a machine"


def test_a_table_has_the_sizes_side_by_side_the_goal_in_bold_and_says_who_was_stopped() -> None:
    assert blocks([STOPPED, ONE, LARGE])["systems"].splitlines() == [
        "Measured on 2026-01-02, 2 cores, processor time.",
        "",
        "| system | a write is | a turn written, 1,000 turns (ms) | a turn written, 10,000 turns (ms) "
        "| a retrieval, 1,000 (ms) | a retrieval, 10,000 (ms) | the end, a turn (ms) | bytes a turn |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| `rag` | a turn | 0.50 | **5.50** | 2.00 | **11.00** | 0.25 | 1,500 |",
        "| `slow` | 16 turns | – | **9.00** at 7,900 | – | – | – | – |",
        "",
        "Stopped, stand-ins for backbone and embedder included: `slow` at 7,900 of 10,000 after 60 s. "
        "Not run with 1,000 turns: `slow`.",
    ]


def test_other_indexes_and_turns_of_data_sets_have_a_table_of_their_own() -> None:
    points = [ONE, replace(LARGE, index="index.kind=ivf"), replace(ONE, texts="locomo", date="2026-02-02")]
    with pytest.raises(ConfigError, match="mixes days or machines in one table"):
        blocks(points)
    found = blocks([points[0], points[1]])
    assert "None was stopped." in found["systems"] and "10,000" not in found["systems"]
    assert "| `rag`, `index.kind=ivf` | 10,000 | **5.50** | **11.00** | 1,500 |" in found["indexes"]


@pytest.mark.parametrize("change", [{"date": "2026-01-03"}, {"machine": "8 cores"}])
def test_one_table_is_of_one_day_and_one_machine(change: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="measure its systems anew"):
        blocks([ONE, replace(LARGE, **change)])  # type: ignore[arg-type]


def test_a_page_without_markers_is_refused() -> None:
    assert "| `rag` |" in with_tables(MARKERS, [ONE]) and "old" not in with_tables(MARKERS, [ONE])
    with pytest.raises(ConfigError, match="put the lines <!-- systems: begin -->"):
        with_tables("nothing", [ONE])


def test_a_later_measurement_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "scale" / "systems.csv"
    for point in (LARGE, STOPPED, ONE, replace(LARGE, read_ms=3.0)):
        keep(path, point)
    assert read_points(path) == [ONE, replace(LARGE, read_ms=3.0), STOPPED]
    path.write_text("system,turns\nrag,many\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="no file of bench_scale"):
        read_points(path)
    assert read_points(tmp_path / "none.csv") == []


def test_the_figure_is_drawn_alike_each_time(tmp_path: Path) -> None:
    first, again = (draw([ONE, LARGE, STOPPED], tmp_path / name) for name in ("a", "b"))
    assert [path.suffix for path in first] == [".svg", ".png"]
    assert first[1].read_bytes() == again[1].read_bytes()
