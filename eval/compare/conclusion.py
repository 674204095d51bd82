"""One sentence on what a comparison shows and what it does not, from its own numbers."""

from collections.abc import Sequence

from eval.compare.rows import SystemRow
from eval.tables.pairs import Pair
from eval.tables.text import p_text

#: Adjusted p-values below count as a difference.
LEVEL = 0.05


def conclusion(rows: Sequence[SystemRow], baseline: SystemRow, pairs: Sequence[Pair], lead: str) -> str:
    """Say which system leads, by how much, and whether that can be claimed.

    References (no memory, full context, the gold evidence, constants) lead nothing, unless there is nothing else. A
    system that has none but references beside it is held against the best of those that it is not behind.

    Args:
        rows: sorted, the best first.
        baseline: what the others were tested against.
        pairs: the tests, of any metric.
        lead: column that the rows are sorted by.

    Returns:
        One sentence; empty where nothing was scored.
    """
    scored = [row for row in rows if lead in row.estimates]
    if not scored:
        return ""
    tested = {pair.system: pair for pair in pairs if pair.column == lead or pair.column.startswith(f"{lead} (")}
    systems = [row for row in scored if not row.run.reference] or scored
    first = systems[0]
    if not tested:
        value = first.estimates[lead].value
        return f"On {_extent(first)} {first.label} has {lead} {value:.1f}; there is no other system to compare it with."
    if first.label == baseline.label:
        others = [tested[row.label] for row in systems if row.label in tested]
        best = max(others, key=_difference) if others else _best_reference(list(tested.values()))
        return _sentence(_extent(first, best), first.label, best.system, best, -1.0, lead)
    if first.label not in tested:
        return f"{first.label} leads, but shares no question with {baseline.label}, so no difference can be claimed."
    pair = tested[first.label]
    return _sentence(_extent(first, pair), first.label, baseline.label, pair, 1.0, lead)


def _best_reference(pairs: Sequence[Pair]) -> Pair:
    """The best reference that is not ahead of the baseline; the best of all where every one is ahead."""
    return max([pair for pair in pairs if _difference(pair) <= 0] or pairs, key=_difference)


def _difference(pair: Pair) -> float:
    return pair.result.difference


def _extent(row: SystemRow, pair: Pair | None = None) -> str:
    """Questions and conversations: of the pair, which may share a part of them alone, else of the row."""
    questions, conversations = row.questions, len(row.run.conversations)
    if pair is not None:
        interval = pair.result.interval
        questions = pair.result.questions
        if interval is not None:
            conversations = interval.units if interval.by == "conversation" else 1
    return (
        f"{questions} question{'' if questions == 1 else 's'} of "
        f"{'one conversation' if conversations == 1 else f'{conversations} conversations'}"
    )


def _sentence(extent: str, leader: str, other: str, pair: Pair, sign: float, lead: str) -> str:
    """Who leads whom; ``sign`` turns the pair's difference into the leader's lead.

    The order of the rows is that of all questions of each system; on the questions of the pair it may be the other.
    """
    points = sign * pair.result.difference
    if points < 0:
        return _sentence(extent, other, leader, pair, -sign, lead)
    begin = f"On {extent} {leader} leads {other} by {points:.1f} points {lead}"
    interval = pair.result.interval
    if interval is None:
        return f"{begin}; there are too few conversations for an interval, so no difference can be claimed."
    low, high = sorted((sign * interval.low, sign * interval.high))
    text = f"the paired 95 % interval [{low:.1f}, {high:.1f}]"
    if low <= 0 <= high:
        return f"{begin}; {text} includes 0, so no difference can be claimed."
    if pair.adjusted is None or pair.adjusted >= LEVEL:
        p_value = "" if pair.adjusted is None else f" (p = {p_text(pair.adjusted)} after Holm's correction)"
        return f"{begin}; {text} leaves out 0, but the test does not confirm it{p_value}: no difference can be claimed."
    beyond = ", on these questions; nothing follows for other conversations" if interval.by == "question" else ""
    differ = f"; the two differ in {' and '.join(pair.differing)} too, so it is not the memory's alone"
    return (
        f"{begin}; {text} leaves out 0 (p {_p(pair.adjusted)} after Holm's correction), so the lead holds{beyond}"
        f"{differ if pair.differing else ''}."
    )


def _p(p_value: float) -> str:
    text = p_text(p_value)
    return f"{text[0]} {text[1:]}" if text.startswith("<") else f"= {text}"
