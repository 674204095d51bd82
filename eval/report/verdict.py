"""The sentence on top of the page, computed from the comparison: what to take, and whether chance explains it."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval.scoring.several import Several, SystemDifference, tiers

#: Systems named in the sentence; the others are counted.
_NAMED = 4


@dataclass(frozen=True, slots=True)
class Side:
    """One run of the comparison.

    Attributes:
        label: its name.
        mean: percent.
        ranked: whether it is a system and no reference.
        tokens: per question, those of writing the memory spread over the questions; ``None`` where unknown.
    """

    label: str
    mean: float
    ranked: bool
    tokens: float | None


def verdict(sides: Sequence[Side], several: Several, setting: str, fault: str = "", *, primary: str = "") -> str:
    """Say which system to take and whether the difference is real.

    Args:
        sides: the runs, ranked ones first, in the order of ``several``.
        several: their comparison.
        setting: metric, data and questions, for the end of the sentence.
        fault: why the metric means nothing; empty where it does.
        primary: the comparison that was named in advance, where this is another; each has a correction for its own
            tests alone, and with many of them some difference stands out by chance.
    """
    ranked = [side for side in sides if side.ranked]
    if fault:
        return f"These scores cannot tell which memory is better: {fault} ({setting})."
    if not ranked:
        return f"Only reference runs are here, no memory system to choose ({setting})."
    first = max(range(len(ranked)), key=lambda index: ranked[index].mean)
    levels = tiers([side.mean for side in ranked], several.differences)
    peers = sorted(
        (i for i in range(len(ranked)) if levels[i] == 1 and i != first), key=lambda index: -ranked[index].mean
    )
    parts = [_choice(ranked, first, peers, several, explores=bool(primary)), _against_nothing(sides, first, several)]
    caveat = "; one conversation only: it says nothing about others" if several.by == "question" else ""
    caveat += f"; exploratory, what decides is {primary}" if primary else ""
    return f"{' '.join(part for part in parts if part)} ({setting}{caveat})."


def _choice(ranked: Sequence[Side], first: int, peers: Sequence[int], several: Several, *, explores: bool) -> str:
    best = ranked[first]
    if len(ranked) == 1:
        return f"{best.label} is the only memory system here: {best.mean:.1f};"
    if not peers:
        second = max((i for i in range(len(ranked)) if i != first), key=lambda index: ranked[index].mean)
        gap = _gap(several, first, second)
        lead = f"{best.mean:.1f}, {gap} over {ranked[second].label}"
        if explores:
            return f"{best.label} is highest with {lead}, which chance alone does not explain;"
        return f"Use {best.label}: {lead}, and the difference is real;"
    names = [ranked[i].label for i in peers]
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    text = (
        f"No clear winner: {best.label} is highest with {best.mean:.1f}, but chance may explain its lead over {shown} "
        f"({_gap(several, first, peers[0])} over {names[0]});"
    )
    near = [i for i in peers if _includes_zero(_between(several, first, i))]
    which = "of these" if near == peers else "of those whose interval to it includes 0,"
    return f"{text} {_cheapest([best, *(ranked[i] for i in near)], which)}".rstrip()


def _includes_zero(found: SystemDifference) -> bool:
    return found.low is None or found.high is None or found.low <= 0 <= found.high


def _cheapest(tied: Sequence[Side], which: str) -> str:
    known = [side for side in tied if side.tokens is not None]
    if len(known) < len(tied) or len(tied) < 2:
        return ""
    least = min(known, key=lambda side: side.tokens or 0.0)
    return (
        f"{which} {least.label} takes the fewest tokens per question ({least.tokens:,.0f} with its share of the "
        "writing);"
    )


def _against_nothing(sides: Sequence[Side], first: int, several: Several) -> str:
    """Whether the best system beats the best of the runs that read no memory."""
    floors = [i for i, side in enumerate(sides) if not side.ranked and _reads_nothing(side.label)]
    if not floors:
        return "there is no run without memory to compare it with"
    floor = max(floors, key=lambda index: sides[index].mean)
    gap = _gap(several, first, floor)
    name = sides[first].label
    if _between(several, first, floor).separated:
        word = "better" if sides[first].mean > sides[floor].mean else "worse"
        return f"{name} is measurably {word} than {sides[floor].label} ({gap})"
    return f"{name} is not measurably better than {sides[floor].label}, which reads nothing ({gap})"


def _reads_nothing(label: str) -> bool:
    return label.startswith(("no_memory", "always_", "coin_flip"))


def _between(several: Several, one: int, other: int) -> SystemDifference:
    wanted = (min(one, other), max(one, other))
    return next(found for found in several.differences if (found.first, found.second) == wanted)


def _gap(several: Several, one: int, other: int) -> str:
    """``+3.1 [0.4, 5.9]``: one minus other."""
    found = _between(several, one, other)
    sign = 1 if found.first == one else -1
    if found.low is None or found.high is None:
        return f"{sign * found.value:+.1f}"
    low, high = sorted((sign * found.low, sign * found.high))
    return f"{sign * found.value:+.1f} [{low:.1f}, {high:.1f}]"
