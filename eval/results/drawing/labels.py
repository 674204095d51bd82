"""Labels next to what they name, where they hide neither a mark nor another label."""

from collections.abc import Sequence
from math import log10
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox

_Side = Literal["left", "center", "right"]


def _around(far: int) -> list[tuple[int, int, _Side]]:
    return [
        (far, 3, "left"), (-far, 3, "right"), (far, far, "left"), (-far, far, "right"), (far, -far, "left"),
        (-far, -far, "right"), (0, far, "center"), (0, -far - 4, "center"), (_NEAR, far, "left"), (_NEAR, -far, "left"),
        (-_NEAR, far, "right"), (-_NEAR, -far, "right"),
    ]  # fmt: skip


#: Horizontal distance of labels above and below each other, of points that share their place on the horizontal axis.
_NEAR = 12
#: Places of a label around its point, in points: horizontal and vertical distance, and how the text is aligned.
_PLACES = [place for far in (7, 16, 26, 38, 52, 68, 86, 106) for place in _around(far)]
_SIZE = 7.5
#: Pixels kept free around a mark.
_MARK = 5.0

#: What a label names: text, horizontal and vertical place in the data, colour.
Label = tuple[str, float, float, str]


def label_points(axes: "Axes", labels: Sequence[Label]) -> None:
    """Write a label next to each point; call it when limits and layout are final."""
    from matplotlib.transforms import Bbox

    from eval.commands import escaping

    pixels = [axes.transData.transform((x, y)) for _, x, y, _ in labels]
    taken = [Bbox.from_bounds(x - _MARK, y - _MARK, 2 * _MARK, 2 * _MARK) for x, y in pixels]
    for text, x, y, colour in sorted(labels, key=lambda label: (-label[2], label[1], label[0])):
        taken.append(_place(axes, (escaping.svg(text), x, y, colour), taken))


def _place(axes: "Axes", label: Label, taken: Sequence["Bbox"]) -> "Bbox":
    text, x, y, colour = label
    renderer = axes.figure.canvas.get_renderer()  # type: ignore[attr-defined]
    inside = axes.get_window_extent()
    best: tuple[float, Bbox, tuple[int, int, _Side]] | None = None
    written = axes.annotate(text, (x, y), (0, 0), textcoords="offset points", fontsize=_SIZE, color=colour)
    for horizontal, vertical, side in _PLACES:
        written.set_horizontalalignment(side)
        written.set_position((horizontal, vertical))
        box = written.get_window_extent(renderer).padded(1)
        hidden = sum(box.overlaps(other) for other in taken)
        cost = hidden + 3 * (box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1)
        if best is None or cost < best[0]:
            best = cost, box, (horizontal, vertical, side)
        if cost == 0:
            break
    assert best is not None
    written.remove()
    _, taken_by, (horizontal, vertical, side) = best
    far = abs(horizontal) > 10 or abs(vertical) > 12
    leader = _leader(colour, _EDGES[side]) if far else None
    axes.annotate(
        text, (x, y), (horizontal, vertical), textcoords="offset points", fontsize=_SIZE, color=colour, ha=side,
        arrowprops=leader, bbox=_GROUND,
    )  # fmt: skip
    return taken_by


#: Keeps a label readable where a line passes behind it; its text stays text in an SVG, as a drawn edge would not.
_GROUND = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4}


#: Middle of the edge of a label that faces its point, in shares of its width and height.
_EDGES: dict[_Side, tuple[float, float]] = {"left": (0.0, 0.5), "right": (1.0, 0.5), "center": (0.5, 0.5)}


def _leader(colour: str, edge: tuple[float, float]) -> dict[str, Any]:
    """Return a thin line from a label to its point, which does not run through the text."""
    return {"arrowstyle": "-", "color": colour, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3, "relpos": edge}


def label_ends(axes: "Axes", labels: Sequence[Label]) -> None:
    """Write labels right of the axes at the height of what they name, moved apart where they would touch."""
    logarithmic = axes.get_yscale() == "log"
    height = axes.get_window_extent().height
    low, high = map(log10, axes.get_ylim()) if logarithmic else axes.get_ylim()
    step = (high - low) * 13.0 * axes.figure.dpi / 100 / height
    order = sorted(labels, key=lambda label: (label[2], label[0]))
    heights = spread([log10(y) if logarithmic else y for _, _, y, _ in order], step)
    heights = [10**place for place in heights] if logarithmic else heights
    for (text, x, y, colour), place in zip(order, heights, strict=True):
        axes.annotate(
            text, (x, y), (1.02, place), xycoords="data", textcoords=axes.get_yaxis_transform(), fontsize=_SIZE,
            color=colour, va="center", annotation_clip=False, arrowprops=_leader(colour, _EDGES["left"]), bbox=_GROUND,
        )  # fmt: skip


def spread(values: Sequence[float], step: float) -> list[float]:
    """Move rising values apart so that neighbours are at least a step from each other, as little as possible.

    Args:
        values: rising.
        step: least distance.
    """
    blocks: list[list[float]] = []  # total of wished starts, count
    for index, value in enumerate(values):
        blocks.append([value - index * step, 1])
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            total, count = blocks.pop()
            blocks[-1][0] += total
            blocks[-1][1] += count
    starts = [total / count for total, count in blocks for _ in range(int(count))]
    return [start + index * step for index, start in enumerate(starts)]
