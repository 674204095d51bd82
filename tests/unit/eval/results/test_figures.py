"""Plots: what is drawn, and that it is the same every time."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from eval.results.drawing.comparison import plot_comparison
from eval.results.drawing.style import MARKERS, PALETTE, Point, Series, Wording

WORDING = Wording("F1", "tokens per question", "a remark\nof two lines")


def series(label: str, value: float, cost: float | None = 100.0) -> Series:
    point = Point(value, value - 1, value + 1)
    return Series(label, {"multi-hop": point, "temporal": point}, point, cost)


def words(path: Path) -> str:
    return " ".join("".join(node.itertext()).strip() for node in ElementTree.parse(path).iter() if node.text)


def test_plot_says_what_it_shows(tmp_path: Path) -> None:
    svg = plot_comparison([series("rag", 10), series("clag", 20, 900.0)], WORDING, tmp_path / "new" / "plot")
    text = words(svg)
    for word in ("rag", "clag", "multi-hop", "temporal", "F1 (%)", "tokens per question", "of two lines"):
        assert word in text


def test_same_numbers_same_bytes(tmp_path: Path) -> None:
    first, second = (plot_comparison([series("rag", 10)], WORDING, tmp_path / name) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()


def test_missing_costs_are_said(tmp_path: Path) -> None:
    svg = plot_comparison([series("rag", 10, None)], WORDING, tmp_path / "plot")
    assert "no cost recorded" in words(svg)


@pytest.mark.parametrize("count", [1, 7, 12])
def test_many_systems_and_empty_groups(count: int, tmp_path: Path) -> None:
    many = [series(f"system {number}", number) for number in range(count)]
    empty = Series("empty", {}, None, None)
    svg = plot_comparison([*many, empty], WORDING, tmp_path / "plot")
    assert f"system {count - 1}" in words(svg)


def test_many_systems_have_rows_in_their_order_with_panels_for_groups_and_cost(tmp_path: Path) -> None:
    many = [series(f"system {number}", number, 10.0**number) for number in range(1, 11)]
    text = words(plot_comparison(many, WORDING, tmp_path / "plot"))
    places = [text.index(f"system {number}") for number in (2, 3, 9, 10)]
    assert places == sorted(places)
    for word in ("F1 (%)", "multi-hop", "temporal", "tokens per question", "of two lines"):
        assert word in text


def test_colours_and_markers_tell_systems_apart() -> None:
    """A colour repeats only with another marker."""
    looks = {(PALETTE[number % len(PALETTE)], MARKERS[number % len(MARKERS)]) for number in range(30)}
    assert len(looks) == 30
