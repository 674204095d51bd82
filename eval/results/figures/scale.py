"""Costs of a growing memory: the tables of docs/scale.md and their figure, from results/scale/systems.csv.

``tests/benchmarks/bench_scale.py --csv`` measures; ``python -m eval.results.figures.scale`` writes the tables between
their markers and draws the figure. A test checks that the page is what the file gives.
"""

import argparse
import csv
import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.commands.commands import explains_errors, start
from eval.commands.places import RESULTS
from eval.commands.rendering.markdown import blocks as joined
from eval.commands.rendering.markdown import render_markdown, replace_tables
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Cell, Span, Table, columns
from eval.results.drawing.labels import label_points
from eval.results.drawing.style import GREY, MARKERS, PALETTE, STYLE, escape_texts, load_pyplot, write_figure
from eval.runs.files import write_atomic
from memsys.assets.paths import ROOT
from memsys.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SYSTEMS = RESULTS / "scale" / "systems.csv"
PAGE = ROOT / "docs" / "scale.md"
FIGURE = RESULTS / "figures" / "scale"
#: Milliseconds of its own that a system may take for a turn written, and for a retrieval.
WRITE_GOAL_MS, READ_GOAL_MS = 5.0, 10.0
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """One system at one size, times in milliseconds of the processor without backbone and embedder.

    Attributes:
        system: preset.
        index: settings of its dense index; empty for the exact one.
        texts: data set whose turns are repeated; empty for drawn words.
        turns: turns stored.
        turns_a_write: mean turns of the last writes.
        turn_ms: of these writes, for a turn.
        read_ms: of a retrieval.
        end_ms: of the end of the stream, for a turn of all.
        bytes_a_turn: what the process grew by.
        stopped_at: turns written when the limit was reached, of which the figures then are; 0 where it was not. There
            is then no ``end_ms``, and 0 represents ``read_ms`` and ``bytes_a_turn`` where they were not measured.
        limit_s: seconds of the processor after which the size is stopped, backbone and embedder included.
        date: of the measurement.
        machine: in words.
    """

    system: str
    index: str
    texts: str
    turns: int
    turns_a_write: float
    turn_ms: float
    read_ms: float
    end_ms: float
    bytes_a_turn: float
    stopped_at: int
    limit_s: float
    date: str
    machine: str

    @property
    def what(self) -> tuple[str, str, str, int]:
        """Key of what was measured; a later measurement of the same takes the place of an earlier one."""
        return self.system, self.index, self.texts, self.turns


def read_points(path: Path) -> list[ScalePoint]:
    """Read a file of measurements; none where there is no file.

    Raises:
        ConfigError: it is not such a file.
    """
    if not path.is_file():
        return []
    whole, texts = ("turns", "stopped_at"), ("system", "index", "texts", "date", "machine")
    kinds: dict[str, Callable[[str], Any]] = {field.name: float for field in fields(ScalePoint)}
    kinds |= dict.fromkeys(whole, int) | dict.fromkeys(texts, str)
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    try:
        return [ScalePoint(**{name: kind(row[name]) for name, kind in kinds.items()}) for row in rows]
    except (KeyError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} is not a file of bench_scale.py --csv: {error}") from error


def keep(path: Path, point: ScalePoint) -> None:
    """Put a measurement into a file, in the order of systems and sizes."""
    known = {other.what: other for other in read_points(path)} | {point.what: point}
    rows = [
        [str(round(value, 4)) if isinstance(value, float) else value for value in asdict(one).values()]
        for one in sorted(known.values(), key=lambda one: one.what)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, render_csv(Table("", columns(field.name for field in fields(ScalePoint)), rows)).encode())


def blocks(points: Sequence[ScalePoint]) -> dict[str, str]:
    """Return what is between the markers of the page, by name.

    Raises:
        ConfigError: the measurements of one table are of different days or machines.
    """
    plain = [point for point in points if not point.index and not point.texts and point.turns < MILLION]
    return {"systems": _systems(plain), "million": _million(points)}


def _systems(points: Sequence[ScalePoint]) -> str:
    sizes = sorted({point.turns for point in points})
    known = {(point.system, point.turns): point for point in points}
    names = sorted({point.system for point in points}, key=lambda name: _steepness(name, known))
    head = ["system", "a write is"]
    head += [f"a turn written, {size:,} turns (ms)" for size in sizes]
    head += [f"a retrieval, {size:,} (ms)" for size in sizes]
    common = _common_size(points)
    head += [f"the end, {common:,}, a turn (ms)", f"bytes a turn, {common:,}"]
    rows: list[list[Cell]] = []
    for name in names:
        found = [known.get((name, size)) for size in sizes]
        last = known.get((name, common))
        cells: list[Cell] = [Span(name, "code"), _unit([point for point in found if point][-1])]
        cells += [*map(_written, found), *map(_read, found)]
        cells += [None if last is None or last.stopped_at else f"{last.end_ms:.2f}", _bytes(last)]
        rows.append(cells)
    shown = render_markdown(Table("", columns(head, left=2), rows), level=0)
    return joined(_said(points), shown, " ".join([_stopped(points), *_not_run(names, sizes, known)]))


def _common_size(points: Sequence[ScalePoint]) -> int:
    """Return the size that most systems finished, of several the largest; 0 without any."""
    finished = Counter(point.turns for point in points if not point.stopped_at)
    return max(
        finished, key=lambda size: (finished[size], size), default=max((point.turns for point in points), default=0)
    )


def _steepness(name: str, known: Mapping[tuple[str, int], ScalePoint]) -> tuple[float, str]:
    """Return the sort key of systems: a turn's cost at the largest size they reached."""
    return max((size, point.turn_ms) for (system, size), point in known.items() if system == name)[1], name


def _million(points: Sequence[ScalePoint]) -> str:
    """Say who meets the goals with a million turns, or how they are measured while the file has none of that size."""
    found = sorted(
        (point for point in points if point.turns >= MILLION and not point.stopped_at), key=lambda point: point.what
    )
    if not found:
        return (
            "No measurement of a million turns was finished with this version; one is made by\n"
            "`bench_scale.py --presets rag --sizes 1000000 --index ivf --lists 1024 --probes 16 --seconds 1200 --csv`."
        )
    met = [point for point in found if point.turn_ms <= WRITE_GOAL_MS and point.read_ms <= READ_GOAL_MS]
    said = [f"Of what was measured with a million turns, both goals are met by {_names(met) or 'none'}."]
    missed = [point for point in found if point not in met]
    return "\n".join([*said, f"One of them at least is missed by {_names(missed)}."] if missed else said)


def _names(points: Sequence[ScalePoint]) -> str:
    """Name systems in a sentence, with their index and texts where they are not the usual ones."""
    index = [f" with `{point.index}`" if point.index else "" for point in points]
    texts = [f" on {point.texts}" if point.texts else "" for point in points]
    return "; ".join(f"`{point.system}`{one}{other}" for point, one, other in zip(points, index, texts, strict=True))


def _said(points: Sequence[ScalePoint]) -> str:
    """Return date and machine of a table's measurements, which must be one each."""
    if not points:
        return "Not measured with this version."
    day, machine = (_the_one([getattr(point, what) for point in points], what) for what in ("date", "machine"))
    return f"Measured on {day}, {machine}, processor time."


def _the_one(values: Sequence[str], what: str) -> str:
    """Return the value that all measurements of a table have."""
    found = sorted(set(values))
    if len(found) > 1:
        raise ConfigError(
            f"{SYSTEMS.name} has more than one {what} in one table ({', '.join(found)}); measure its systems again"
        )
    return found[0]


def _unit(point: ScalePoint) -> str:
    turns = round(point.turns_a_write)
    return "a turn" if turns <= 1 else f"{turns} turns"


def _against_goal(point: ScalePoint, ms: float, goal: float) -> Cell:
    where = f" at {point.stopped_at:,}" if point.stopped_at else ""
    return Span(f"{ms:.2f}", "bold" if ms > goal else ""), where


def _written(point: ScalePoint | None) -> Cell:
    return None if point is None else _against_goal(point, point.turn_ms, WRITE_GOAL_MS)


def _read(point: ScalePoint | None) -> Cell:
    return None if point is None or not point.read_ms else _against_goal(point, point.read_ms, READ_GOAL_MS)


def _bytes(point: ScalePoint | None) -> Cell:
    return None if point is None or not point.bytes_a_turn else f"{point.bytes_a_turn:,.0f}"


def _stopped(points: Sequence[ScalePoint]) -> str:
    """Say by name which systems were stopped, where, and after how long."""
    found = [
        f"`{point.system}` at {point.stopped_at:,} of {point.turns:,} after {point.limit_s:g} s"
        for point in sorted(points, key=lambda point: point.what)
        if point.stopped_at
    ]
    return (
        f"Stopped, stand-ins for backbone and embedder included: {'; '.join(found)}." if found else "None was stopped."
    )


def _not_run(names: Sequence[str], sizes: Sequence[int], known: Mapping[tuple[str, int], ScalePoint]) -> list[str]:
    """Say by name which systems were not run at a size that others were."""
    missing = {size: [f"`{name}`" for name in sorted(names) if (name, size) not in known] for size in sizes}
    return [f"Not run with {size:,} turns: {', '.join(lacking)}." for size, lacking in missing.items() if lacking]


def draw(points: Sequence[ScalePoint], out: Path) -> Path:
    """Draw both costs over the turns stored, a line a system; returns the file, ``<out>.svg``."""
    plt = load_pyplot()
    plain = [point for point in points if not point.index and not point.texts]
    asked = [point for point in plain if point.read_ms]
    styles = _styles(plain)
    with plt.rc_context(STYLE):
        figure, (written, read) = plt.subplots(1, 2, figsize=(12, 7), layout="constrained")
        ends = [
            (written, _lines(written, plain, ("turn_ms", "a turn written", WRITE_GOAL_MS), styles)),
            (read, _lines(read, asked, ("read_ms", "a retrieval", READ_GOAL_MS), styles)),
        ]
        remark = "Own cost: processor time without backbone and embedder. Hollow: stopped there. Dashed: the goal."
        figure.supxlabel(remark, fontsize=7.5, color=GREY, x=0.01, ha="left")
        escape_texts(figure)
        figure.draw_without_rendering()
        for axes, labels in ends:
            label_points(axes, labels)
        path = write_figure(figure, out)
        plt.close(figure)
    return path


def _styles(points: Sequence[ScalePoint]) -> dict[str, tuple[str, str]]:
    """Return the colour and marker of each system, the same in every panel."""
    names = sorted({point.system for point in points})
    return {name: (PALETTE[n % len(PALETTE)], MARKERS[n % len(MARKERS)]) for n, name in enumerate(names)}


def _lines(
    axes: "Axes", points: Sequence[ScalePoint], shown: tuple[str, str, float], styles: Mapping[str, tuple[str, str]]
) -> list[tuple[str, float, float, str]]:
    """Draw a line for each system of a field with its title and goal; return the names with their last points."""
    field, title, goal = shown
    ends = []
    for name in sorted({point.system for point in points}):
        own = sorted((point for point in points if point.system == name), key=lambda point: point.turns)
        x = [point.stopped_at or point.turns for point in own]
        y = [max(float(getattr(point, field)), 1e-3) for point in own]
        colour, marker = styles[name]
        axes.plot(x, y, color=colour, marker=marker, markersize=4, linewidth=1.0)
        if own[-1].stopped_at:
            axes.plot(x[-1:], y[-1:], color=colour, marker=marker, markersize=4, markerfacecolor="white")
        ends.append((name, float(x[-1]), y[-1], colour))
    axes.axhline(goal, linestyle="--", color=GREY, linewidth=1.0)
    axes.set(xscale="log", yscale="log", xlabel="turns stored", ylabel="ms, own cost")
    axes.xaxis.set_major_formatter(lambda turns, _: f"{turns:,.0f}")
    axes.yaxis.set_major_formatter(lambda ms, _: f"{ms:g}")
    axes.margins(x=0.35)
    axes.set_title(title, loc="left")
    return ends


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the tables into docs/scale.md and draw results/figures/scale."""
    argparse.ArgumentParser(prog="python -m eval.results.figures.scale", description=main.__doc__).parse_args(arguments)
    points = read_points(SYSTEMS)
    write_atomic(PAGE, replace_tables(PAGE, blocks(points)).encode())
    draw(points, FIGURE)
    return 0


if __name__ == "__main__":
    start(main)
