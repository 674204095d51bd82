"""Claims of superiority: ``results/printed/claims.yaml`` and the marks, checked against printed and measured cells."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from eval.results.papers.printed import PRINTED, PrintedNumber
from memsys.errors import ConfigError

CLAIMS = PRINTED / "claims.yaml"

Finding = Literal["holds", "does not hold", "ties", "cannot say"]
#: Value of a printed cell, or of what was measured in its place; ``None`` where nothing may be compared.
ValueOf = Callable[[PrintedNumber], float | None]


@dataclass(frozen=True, slots=True)
class Superiority:
    """One claim.

    Attributes:
        paper: that makes it.
        where: in the paper.
        says: in short.
        kind: how it is checked; see the head of the file.
        cells: attributes of the printed numbers that it is about; lists name alternatives.
        system: that it is about.
        than: what it is compared with.
        limit: bound of a number.
        category: of the largest gain.
        value: that represents the system's printed one.
    """

    paper: str
    where: str
    says: str
    kind: str
    cells: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    than: str = ""
    limit: float = 0.0
    category: int = 0
    value: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _CHECKS:
            raise ConfigError(f"claim {self.says!r}: kind={self.kind!r}; choose one of {', '.join(_CHECKS)}")


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim's verdict, with the cells that contradict it."""

    finding: Finding
    against: tuple[str, ...] = ()


Cells = Mapping[PrintedNumber, float]


def load_superiority(path: Path = CLAIMS) -> tuple[Superiority, ...]:
    """Read the claims.

    Raises:
        ConfigError: an entry has an unknown or a missing setting.
    """
    import yaml

    try:
        return tuple(Superiority(**entry) for entry in yaml.safe_load(path.read_text(encoding="utf-8")))
    except TypeError as error:
        raise ConfigError(f"{path}: {error}") from error


def printed_value(number: PrintedNumber) -> float | None:
    """Return a cell as the paper prints it."""
    return number.value


def check_claim(
    claim: Superiority, numbers: Sequence[PrintedNumber], value_of: ValueOf = printed_value
) -> CheckedClaim:
    """Check a claim against values of its cells.

    Args:
        claim: what is said.
        numbers: printed numbers of its paper.
        value_of: the printed or the measured value of a cell.

    Returns:
        ``cannot say`` where a cell that it is about has no value.

    Raises:
        ConfigError: the claim is about no printed number.
    """
    chosen = [number for number in numbers if _selected(number, claim.cells)]
    if not chosen:
        raise ConfigError(f"claim {claim.says!r} of {claim.paper} is about no printed number; correct its cells")
    found = {number: value_of(number) for number in chosen}
    known = {number: value for number, value in found.items() if value is not None}
    if len(known) < len(found):
        return CheckedClaim("cannot say")
    lost, tied = _CHECKS[claim.kind](claim, known)
    return CheckedClaim("does not hold" if lost else "ties" if tied else "holds", tuple(lost or tied))


def _selected(number: PrintedNumber, cells: Mapping[str, Any]) -> bool:
    return all(
        getattr(number, key) in wanted if isinstance(wanted, list) else getattr(number, key) == wanted
        for key, wanted in cells.items()
    )


def _columns(cells: Cells) -> Iterator[dict[PrintedNumber, float]]:
    """Yield the cells that are under one another in a block."""
    groups: dict[tuple[object, ...], dict[PrintedNumber, float]] = {}
    for number, value in cells.items():
        place = (number.table, number.backbone, number.dataset, number.metric, number.category)
        groups.setdefault(place, {})[number] = value
    yield from groups.values()


def _place(number: PrintedNumber) -> str:
    return ", ".join(filter(None, (f"Table {number.table}", number.backbone, number.dataset, number.column)))


Outcome = tuple[list[str], list[str]]


def _best(claim: Superiority, cells: Cells) -> Outcome:
    lost, tied = [], []
    for column in _columns(cells):
        own, others = _split(claim.system, column)
        for number, value in own.items():
            top, best = max(others.items(), key=lambda item: item[1], default=(number, float("-inf")))
            text = f"{_place(number)}: {value:.2f}, {top.row} {best:.2f}"
            lost += [text] if value < best else []
            tied += [text] if value == best else []
    return lost, tied


def _replaced(claim: Superiority, cells: Cells) -> Outcome:
    return _best(claim, {number: claim.value if number.system == claim.system else v for number, v in cells.items()})


def _lower(claim: Superiority, cells: Cells) -> Outcome:
    lost = []
    for column in _columns(cells):
        systems = {number.system: (number, value) for number, value in column.items()}
        if claim.system in systems and claim.than in systems:
            (number, ours), (other, theirs) = systems[claim.system], systems[claim.than]
            lost += [f"{_place(number)}: {ours:.2f}, {other.row} {theirs:.2f}"] if ours >= theirs else []
    return lost, []


def _at_most(claim: Superiority, cells: Cells) -> Outcome:
    return [f"{_place(number)}: {value:+.2f}" for number, value in cells.items() if abs(value) > claim.limit], []


def _others_below(claim: Superiority, cells: Cells) -> Outcome:
    _, others = _split(claim.system, cells)
    return [f"{_place(each)}: {each.row} {value:.2f}" for each, value in others.items() if value >= claim.limit], []


def _largest_gain(claim: Superiority, cells: Cells) -> Outcome:
    gains: dict[str, dict[int | None, float]] = {}
    for column in _columns(cells):
        own, others = _split(claim.system, column)
        for number, value in own.items():
            gains.setdefault(number.backbone, {})[number.category] = value - max(others.values())
    lost = []
    for backbone, found in gains.items():
        category, gain = max(found.items(), key=lambda item: item[1])
        if category != claim.category:
            lost.append(f"{backbone}: {found[claim.category]:+.2f}, category {category} {gain:+.2f}")
    return lost, []


def _split(system: str, cells: Cells) -> tuple[dict[PrintedNumber, float], dict[PrintedNumber, float]]:
    own = {number: value for number, value in cells.items() if number.system == system}
    return own, {number: value for number, value in cells.items() if number.system != system}


_CHECKS: Mapping[str, Callable[[Superiority, Cells], Outcome]] = {
    "best": _best,
    "replaced": _replaced,
    "lower": _lower,
    "at_most": _at_most,
    "others_below": _others_below,
    "largest_gain": _largest_gain,
}

#: Marks of a column whose best value is the lowest are the captions' business.
_LOWER_IS_BETTER = ("tokens", "blocks", "_ms", "seconds", "minutes", "cost", "calls")


def check_marks(numbers: Sequence[PrintedNumber]) -> list[tuple[PrintedNumber, str]]:
    """Find bold that is not the best, and underline that is not the second best, of its block and column."""
    found = []
    for column in _columns({number: number.value for number in numbers if number.table}):
        if not any(part in next(iter(column)).metric for part in _LOWER_IS_BETTER):
            levels = sorted(set(column.values()), reverse=True)
            for number, value in column.items():
                wanted = {"bold": 1, "underline": 2}.get(number.marks)
                better = sum(other > value for other in column.values())
                rank = levels.index(value) + 1
                if wanted and rank != wanted and better != wanted - 1:
                    found.append((number, f"{number.marks}, but rank {better + 1} of {len(column)}"))
    return found
