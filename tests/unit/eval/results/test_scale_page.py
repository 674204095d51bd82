"""The tables of docs/scale.md are what results/scale/systems.csv gives; the file keeps the last of each measurement."""

import runpy
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eval.commands.rendering.markdown import replace_tables
from eval.results.figures.scale import (
    MILLION,
    PAGE,
    READ_GOAL_MS,
    SYSTEMS,
    WRITE_GOAL_MS,
    ScalePoint,
    blocks,
    draw,
    keep,
    read_points,
)
from memsys.errors import ConfigError

BENCHMARK = Path(__file__).resolve().parents[3] / "benchmarks" / "bench_scale.py"
ONE = ScalePoint("rag", "", "", 1000, 1.0, 0.5, 2.0, 0.25, 1500.4, 0, 60.0, "2026-01-02", "2 cores")
LARGE = replace(ONE, turns=10_000, turn_ms=5.5, read_ms=11.0)
STOPPED = replace(
    ONE, system="slow", turns=10_000, turns_a_write=16.2, turn_ms=9.0, read_ms=0.0, end_ms=0.0, bytes_a_turn=0.0,
    stopped_at=7_900,
)  # fmt: skip


def test_the_page_is_what_the_file_gives() -> None:
    text, points = PAGE.read_text(encoding="utf-8"), read_points(SYSTEMS)
    assert points and replace_tables(PAGE, blocks(points)) == text, "run python -m eval.results.figures.scale"
    assert all("/" not in f"{point.machine}{point.texts}" for point in points), "no path of a machine"


def test_what_the_page_says_first_is_what_the_file_gives() -> None:
    plain = [point for point in read_points(SYSTEMS) if not point.index and not point.texts]
    small = [point for point in plain if point.turns <= 10_000]
    assert small and all(point.turn_ms <= WRITE_GOAL_MS and point.read_ms <= READ_GOAL_MS for point in small)
    slow = {point.system for point in plain if point.turns < MILLION and point.turn_ms > WRITE_GOAL_MS}
    said = PAGE.read_text(encoding="utf-8").split("slower and slower: ")[1].split(" miss ")[0]
    assert {name.strip("`") for name in said.replace(" and ", ", ").split(", ")} == slow


def test_a_table_has_the_sizes_side_by_side_the_goal_in_bold_and_says_who_was_stopped() -> None:
    assert blocks([STOPPED, ONE, LARGE])["systems"].splitlines() == [
        "Measured on 2026-01-02, 2 cores, processor time.",
        "",
        "| system | a write is | a turn written, 1,000 turns (ms) | a turn written, 10,000 turns (ms) "
        "| a retrieval, 1,000 (ms) | a retrieval, 10,000 (ms) | the end, 10,000, a turn (ms) "
        "| bytes a turn, 10,000 |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| `rag` | a turn | 0.50 | **5.50** | 2.00 | **11.00** | 0.25 | 1,500 |",
        "| `slow` | 16 turns | – | **9.00** at 7,900 | – | – | – | – |",
        "",
        "Stopped, stand-ins for backbone and embedder included: `slow` at 7,900 of 10,000 after 60 s. "
        "Not run with 1,000 turns: `slow`.",
    ]


def test_the_end_and_the_bytes_are_of_one_size_for_all_systems() -> None:
    other = replace(LARGE, system="bm25", end_ms=0.75, bytes_a_turn=900.0)
    huge = replace(LARGE, turns=100_000, end_ms=9.0, bytes_a_turn=7.0)
    lines = blocks([ONE, LARGE, huge, other, replace(ONE, system="small")])["systems"].splitlines()
    assert lines[2].endswith("| the end, 10,000, a turn (ms) | bytes a turn, 10,000 |")
    ends = {line.split("`")[1]: line.split(" | ")[-2:] for line in lines if line.startswith("| `")}
    assert ends == {"rag": ["0.25", "1,500 |"], "bm25": ["0.75", "900 |"], "small": ["–", "– |"]}


@pytest.mark.parametrize("change", [{}, {"index": "index.kind=ivf"}])
def test_the_page_says_that_a_million_turns_were_not_measured_only_while_it_is_so(change: dict[str, str]) -> None:
    million = replace(ONE, turns=1_000_000, **change)  # type: ignore[arg-type]
    for points in ([ONE], [ONE, replace(million, stopped_at=5000)]):
        assert "No measurement of a million turns" in blocks(points)["million"]
    assert "No measurement" not in blocks([ONE, million])["million"]


def test_the_page_says_who_meets_the_goals_with_a_million_turns() -> None:
    million = replace(ONE, turns=1_000_000)
    fast = [million, replace(million, system="bm25", texts="locomo"), replace(million, index="index.kind=ivf")]
    slow = [replace(million, system="read", read_ms=10.01), replace(million, system="written", turn_ms=5.01)]
    stopped = replace(STOPPED, turns=1_000_000)
    assert blocks([ONE, *fast, *slow, stopped])["million"].splitlines() == [
        "Of what was measured with a million turns, both goals are met by `bm25` on locomo; `rag`; "
        "`rag` with `index.kind=ivf`.",
        "One of them at least is missed by `read`; `written`.",
    ]
    assert (
        blocks([ONE, million])["million"] == "Of what was measured with a million turns, both goals are met by `rag`."
    )
    assert blocks([ONE, slow[0]])["million"].splitlines() == [
        "Of what was measured with a million turns, both goals are met by none.",
        "One of them at least is missed by `read`.",
    ]


@pytest.mark.parametrize("name", ["systems", "million"])
def test_no_block_of_the_page_is_empty(name: str) -> None:
    assert blocks(read_points(SYSTEMS))[name].strip()


def test_what_a_stopped_system_was_asked_is_shown_with_the_turns_it_had() -> None:
    asked = replace(STOPPED, read_ms=11.5, bytes_a_turn=800.0)
    assert "**11.50** at 7,900" in blocks([ONE, asked])["systems"]


@pytest.mark.parametrize("change", [{"turns": 1_000_000}, {"index": "index.kind=ivf"}, {"texts": "locomo"}])
def test_a_million_turns_other_indexes_and_turns_of_data_sets_are_not_in_the_table(change: dict[str, Any]) -> None:
    assert blocks([ONE, replace(LARGE, **change)])["systems"] == blocks([ONE])["systems"]


@pytest.mark.parametrize("change", [{"date": "2026-01-03"}, {"machine": "8 cores"}])
def test_one_table_is_of_one_day_and_one_machine(change: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"in one table \(.*\); measure its systems again"):
        blocks([ONE, replace(LARGE, **change)])  # type: ignore[arg-type]


def test_a_later_measurement_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "scale" / "systems.csv"
    for point in (LARGE, STOPPED, ONE, replace(LARGE, read_ms=3.0)):
        keep(path, point)
    assert read_points(path) == [ONE, replace(LARGE, read_ms=3.0), STOPPED]
    path.write_text("system,turns\nrag,many\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a file of bench_scale"):
        read_points(path)
    assert read_points(tmp_path / "none.csv") == []


def test_a_system_looks_the_same_in_both_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[dict[str, tuple[str, object]]] = []

    def seen(axes: Any, labels: Sequence[tuple[str, float, float, str]]) -> None:
        markers = {line.get_color(): line.get_marker() for line in axes.lines if line.get_marker() != "None"}
        drawn.append({name: (colour, markers[colour]) for name, _, _, colour in labels})

    monkeypatch.setattr("eval.results.figures.scale.label_points", seen)
    draw([replace(STOPPED, system="a"), ONE, replace(ONE, system="x")], tmp_path / "figure")
    written, read = drawn
    assert set(written) == {"a", "rag", "x"} and set(read) == {"rag", "x"}
    assert {name: written[name] for name in read} == read


def run_benchmark(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    monkeypatch.setattr(sys, "argv", ["bench_scale.py", *arguments])
    return runpy.run_path(str(BENCHMARK), run_name="bench_scale")


def test_the_benchmark_writes_the_day_that_it_is_given_with_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "systems.csv"
    found = run_benchmark(monkeypatch)
    arguments = Namespace(lists=64, probes=8, index="flat", dataset="", seconds=60.0, csv=str(path))
    found["curve"]("full_context", [20, 40], arguments, "2026-01-02")
    assert [(point.turns, point.date) for point in read_points(path)] == [(20, "2026-01-02"), (40, "2026-01-02")]


def test_the_help_of_the_benchmark_names_no_path_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run_benchmark(monkeypatch, "--help")
    with pytest.raises(SystemExit):
        found["main"]()
    told = capsys.readouterr().out
    assert "results/scale/systems.csv)" in told and str(BENCHMARK.parents[2]) not in told


def test_the_figure_is_drawn_alike_each_time(tmp_path: Path) -> None:
    first, again = (draw([ONE, LARGE, STOPPED], tmp_path / name) for name in ("a", "b"))
    assert first.suffix == ".svg" and first.read_bytes() == again.read_bytes()
