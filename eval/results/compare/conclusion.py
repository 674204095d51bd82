"""Conclusion of a comparison in a few sentences from its own numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.loaders.custom import CUSTOM
from eval.loaders.custom_files import PAGE
from eval.metrics.sessions import BY_SESSION
from eval.results.compare.columns import ANSWERABLE
from eval.results.compare.rows import SystemRow
from eval.results.compare.seeds import fewer_seeds, named_seeds
from eval.results.stored_run import StoredRun
from eval.results.tables.pairs import Pair
from eval.results.tables.text import fixed, p_text
from eval.scoring.inference import ALPHA
from eval.scoring.randomisation import TIE

#: Standard errors of a drawn p-value within which it is close to the level of the test.
_CLOSE = 3


@dataclass(frozen=True, slots=True)
class _Lead:
    """Two systems of a pair, the one that is ahead first; ``sign`` turns the pair's difference into its lead."""

    leader: str
    other: str
    pair: Pair
    sign: float

    @property
    def points(self) -> float:
        return abs(self.pair.result.difference)

    @property
    def text(self) -> str:
        """Who leads whom by how much in the pair's column."""
        return self.in_column(self.pair.column)

    def in_column(self, column: str) -> str:
        """Return who leads whom by how much; two whose shown digits are equal are level unless the lead holds."""
        points = f"{self.points:.1f}"
        if not float(points) and _holds(self.pair):
            return f"{self.leader} leads {self.other} by less than 0.1 points {column}"
        if not float(points):
            return f"{self.leader} and {self.other} are level ({points} points {column} apart)"
        return f"{self.leader} leads {self.other} by {points} points {column}"

    def here(self, column: str) -> str:
        """Return the difference on these questions alone."""
        if self.points <= TIE:
            return f"{self.leader} and {self.other} are equal here in {column}"
        points = fixed(self.points, 1) if self.points >= 0.05 else "less than 0.1"
        return f"{self.leader} has {points} points more {column} here than {self.other}"

    @property
    def bracket(self) -> str:
        """The interval of the lead; empty if there is none."""
        interval = self.pair.result.interval
        if interval is None:
            return ""
        low, high = sorted((self.sign * interval.low, self.sign * interval.high))
        return f"[{fixed(low, 1)}, {fixed(high, 1)}]"


def conclusion(rows: Sequence[SystemRow], baseline: SystemRow, pairs: Sequence[Pair], lead: str) -> str:
    """Say which system leads, by how much, and whether that can be claimed.

    References (no memory, full context, the gold evidence, constants) lead nothing, unless there is nothing else. A
    system shown with references only is compared with the best of those that it is not behind. Where F1
    was also tested without the questions that have no answer, it is said what holds under one of the two alone.

    Args:
        rows: sorted, the best first.
        baseline: what the others were tested against.
        pairs: the tests, of any metric.
        lead: column that the rows are sorted by.

    Returns:
        One sentence, or a few; empty where nothing was scored.
    """
    scored = [row for row in rows if lead in row.estimates]
    if not scored:
        return ""
    tested = {pair.system: pair for pair in pairs if pair.column == lead or pair.column.startswith(f"{lead} (")}
    answerable = {pair.system: pair for pair in pairs if pair.column == ANSWERABLE != lead}
    systems = [row for row in scored if not row.run.reference] or scored
    first = systems[0]
    if not tested:
        value, reason = first.estimates[lead].value, _why_untested(first, rows, baseline, lead)
        return f"On {_extent(first)} {first.label} has {lead} {value:.1f}; {reason}."
    if first.label == baseline.label:
        others = [tested[row.label] for row in systems if row.label in tested]
        pair = max(others, key=_difference) if others else _best_reference(list(tested.values()))
    elif first.label not in tested:
        return f"{first.label} leads, but shares no question with {baseline.label}, so no difference can be claimed."
    else:
        pair = tested[first.label]
    builds = _builds([row for row in rows if row.label in (pair.system, pair.baseline)], lead)
    sentences = [f"On {_extent(first, pair)} {_sentence(_lead_of(pair, first.label), lead, builds)}"]
    sentences += _of_fewer_seeds(pair.system, rows, baseline)
    if pair.system in answerable:
        sentences.append(_answerable_sentence(pair, answerable[pair.system]))
    rest = {name: one for name, one in answerable.items() if name != pair.system}
    return " ".join([*sentences, *_under_one_alone(tested, rest, lead)])


def _of_fewer_seeds(system: str, rows: Sequence[SystemRow], baseline: SystemRow) -> list[str]:
    """Return the note that a test uses fewer seeds than the means next to it."""
    tested = next(row for row in rows if row.label == system)
    seeds = fewer_seeds(tested.repeats, baseline.repeats)
    return [f"That is of {named_seeds(seeds)}, which both ran."] if seeds else []


def _why_untested(first: SystemRow, rows: Sequence[SystemRow], baseline: SystemRow, lead: str) -> str:
    """Return why no system was tested against the baseline."""
    others = [row for row in rows if row is not first and lead in row.estimates]
    if not others:
        return "there is no other system to compare it with" if len(rows) == 1 else f"no other system here has {lead}"
    if lead not in baseline.estimates:  # one that was named: by itself such a system is not a baseline
        return f"the baseline, {baseline.label}, has no {lead}, so nothing was tested"
    if baseline.label == first.label:
        return "the others share no question with it"
    return f"it shares no question with {baseline.label}, the baseline"


def no_evidence(rows: Sequence[SystemRow]) -> str:
    """Say which runs only retrieved for questions without evidence, and what to do; empty if there is none."""
    labels: dict[str, list[str]] = {}
    for row in rows:
        if _nothing_to_find(row.run):
            labels.setdefault(row.run.dataset, []).append(row.label)
    return " ".join(
        f"No question that was asked on {dataset} has evidence, so what {' and '.join(names)} retrieved cannot be "
        f"scored: {_where_evidence_is_named(dataset)}, or let a backbone answer (mode=answers)."
        for dataset, names in labels.items()
    )


def unanswered(rows: Sequence[SystemRow]) -> str:
    """Say of each system how many of its questions have no whole answer, and how they count; empty where all have."""
    found = {row.label: [run.unanswered for run in row.repeats.runs] for row in rows}
    texts = [f"{label}: {text}" for label, ones in found.items() for text in dict.fromkeys(filter(None, ones))]
    return f"{'; '.join(texts)}." if texts else ""


def _nothing_to_find(run: StoredRun) -> bool:
    counts = run.record["data"]
    unmarked = counts.get("questions_without_evidence") == counts.get("questions", 0) > 0
    by_session = any(map(run.columns.has, BY_SESSION))
    return run.retrieval_only and unmarked and not by_session


def _where_evidence_is_named(dataset: str) -> str:
    if dataset == CUSTOM.key:
        return f"name the turns that hold the answer (evidence in questions.jsonl, {PAGE})"
    return f"ask questions with evidence (memsys inspect_data dataset={dataset} counts them by category)"


def _best_reference(pairs: Sequence[Pair]) -> Pair:
    """Return the best reference that is not ahead of the baseline; the best of all where every one is ahead."""
    return max([pair for pair in pairs if _difference(pair) <= 0] or pairs, key=_difference)


def _difference(pair: Pair) -> float:
    return pair.result.difference


def _lead_of(pair: Pair, first: str = "") -> _Lead:
    """Return who leads whom on the questions of the pair, whatever the order over all questions.

    Of two that are level, ``first`` is named first.
    """
    difference = pair.result.difference
    if difference < 0 or (difference == 0 and first == pair.baseline):
        return _Lead(pair.baseline, pair.system, pair, -1.0)
    return _Lead(pair.system, pair.baseline, pair, 1.0)


def _extent(row: SystemRow, pair: Pair | None = None) -> str:
    """Return the questions and conversations: of the pair, which may share a part of them alone, else of the row."""
    questions, conversations = row.questions, len(row.run.conversations)
    if pair is not None:
        interval = pair.result.interval
        questions = pair.result.questions
        if interval is not None:
            conversations = interval.units if interval.by == "conversation" else 1
    return (
        f"{questions:,} question{'' if questions == 1 else 's'} of "
        f"{'one conversation' if conversations == 1 else f'{conversations} conversations'}"
    )


def _sentence(lead: _Lead, column: str, builds: str) -> str:
    """Return the sentence on who leads whom in the sorting column, and whether that can be claimed."""
    begin, pair = lead.in_column(column), lead.pair
    text = f"{begin}; the paired 95 % interval {lead.bracket}"
    if pair.verdict == "no test":
        return f"{begin}; there are too few conversations for an interval, so no difference can be claimed."
    if not pair.verdict:  # one conversation
        return f"{lead.here(column)}; no verdict follows from one conversation, and {builds}."
    if _includes_zero(pair):
        return f"{text} includes 0, so no difference can be claimed."
    if pair.verdict == "exploratory":  # the protocol's primary metric is another: no test was declared beforehand
        p_value = "" if pair.result.p_value is None else f" (p {_p(pair.result.p_value)}, not corrected)"
        return f"{text} leaves out 0; its test is exploratory{p_value}, so no difference can be claimed."
    if pair.verdict == "not confirmed":
        return (
            f"{text} leaves out 0, but the test does not confirm it ({_corrected(pair)}): no difference can be claimed."
        )
    differ = f"; the two differ in {' and '.join(pair.differing)} too, so it is not the memory's alone"
    return f"{text} leaves out 0 ({_corrected(pair)}), so the lead holds{differ if pair.differing else ''}."


def _includes_zero(pair: Pair) -> bool:
    interval = pair.result.interval
    return interval is not None and interval.low <= 0 <= interval.high


def _builds(rows: Sequence[SystemRow], lead: str) -> str:
    """Return what is known of the spread from one build of a memory to the next."""
    known = [(row, row.estimates[lead].spread) for row in rows if lead in row.estimates]
    texts = [
        f"{row.label} {spread:.1f} ({len(row.repeats.runs)} builds)" for row, spread in known if spread is not None
    ]
    if not texts:
        return "each was built once: the spread over builds is unknown"
    return f"the standard deviation over builds is {' and '.join(texts)}"


def _holds(pair: Pair) -> bool:
    """Return whether a difference can be claimed."""
    return pair.verdict in ("above", "below")


def _answerable_sentence(pair: Pair, answerable: Pair) -> str:
    """Return the sentence on the two systems without unanswerable questions, and its effect on the lead."""
    lead = _lead_of(answerable)
    begin = "On the questions that have an answer"
    if not answerable.verdict:
        return f"{begin} {lead.here(answerable.column)}."
    begin = f"{begin} {lead.text}"
    p_value = "" if answerable.adjusted is None else f", {_corrected(answerable)}"
    begin += f" ({lead.bracket}{p_value})" if lead.bracket else ""
    if _holds(pair) and _holds(answerable):
        turned = lead.leader != _lead_of(pair).leader
        return f"{begin}: {'there the opposite lead holds' if turned else 'the lead holds there too'}."
    if _holds(answerable):
        return f"{begin}: a lead holds for {ANSWERABLE} alone."
    there = "the lead holds for F1 alone" if _holds(pair) else "no difference can be claimed there either"
    return f"{begin}: {there}."


def _under_one_alone(tested: Mapping[str, Pair], answerable: Mapping[str, Pair], lead: str) -> list[str]:
    """Return the other systems whose difference to the baseline holds for F1 alone, or for F1 answerable alone."""
    found = {
        column: [
            f"{name} ({ones[name].verdict})"
            for name in answerable
            if name in tested and _holds(ones[name]) and ones[name].verdict != others[name].verdict
        ]
        for column, ones, others in ((lead, tested, answerable), (ANSWERABLE, answerable, tested))
    }
    texts = [f"for {column} alone: {', '.join(names)}" for column, names in found.items() if names]
    baseline = next((pair.baseline for pair in answerable.values()), "")
    return [f"Of the other differences to {baseline} these hold {'; '.join(texts)}."] if texts else []


def _corrected(pair: Pair) -> str:
    """Return ``p = 0.012 after Holm's correction``, with the standard error of drawing where it could decide."""
    adjusted, error = pair.adjusted or 0.0, pair.adjusted_error
    near = abs(adjusted - ALPHA) <= _CLOSE * error
    drawn = f" ± {error:.4f} by drawing, which could decide otherwise," if error and near else ""
    return f"p {_p(adjusted)}{drawn} after Holm's correction"


def _p(p_value: float) -> str:
    text = p_text(p_value)
    return f"{text[0]} {text[1:]}" if text.startswith("<") else f"= {text}"
