"""The words and figures of a table, the same for every format. Rounding happens here and nowhere before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from eval.commands.rendering.table import Table, columns
from eval.metrics.registry import METRICS
from eval.results.tables.layout import TableLine
from eval.results.tables.measure import Measured
from eval.results.tables.model import PaperTable, TableCell
from eval.results.tables.pairs import Pair
from eval.scoring.inference import BY_QUESTION, ONE_CONVERSATION

DIGITS = 2
#: Behind a measured value: not to be compared with the printed one.
NOT_COMPARED = "†"
#: Behind a p-value: outside the declared family, not corrected.
EXPLORATORY = "°"

LEGEND = (
    "measured: mean with its 95 % interval over conversations (cluster t); the interval does not say whether the "
    "printed number reproduces",
    ONE_CONVERSATION,
    f"{NOT_COMPARED} not comparable with the printed number; the last column says why",
    "difference: measured minus printed",
    "n: questions scored, if it differs between cells; otherwise it is in the last column",
    "verdict: does the printed number reproduce on the same questions? Equivalence test (TOST, level 5 %) of the runs "
    "against the printed number, taken as fixed. Margin: 1 point or the rounding, whichever is larger (5 % for "
    "figures that are not percentages). Variance: between runs, over three or more seeds; zero for a deterministic "
    "setting. reproduced: within the margin; not reproduced: beyond it; cannot say: neither, with the number of seeds "
    "needed to decide (80 % power); not comparable: measured under different conditions; not run; cannot be filled: "
    "no run could produce it",
)
#: In place of it where the paper prints settings alone.
SETTINGS_LEGEND = (
    "as printed: a preset has the printed value, under the named key; differs: the preset has a different value",
)
PAIR_HEADINGS = ("system", "against", "metric", "n", "diff", "95 %", "p (Holm)", "verdict",
                 "win/tie/loss", "detect", "differ in")  # fmt: skip
PAIR_LEGEND = (
    "diff: system minus baseline on the questions scored for both, percentage points",
    "p: two-sided paired randomisation test over conversations, exact where all sign patterns can be enumerated (up "
    "to 36 conversations or questions that differ, or differences on a grid), otherwise from a million random ones "
    "(CSV: p error); Holm's correction over the declared family, the tests of the protocol's primary metric; "
    f"{EXPLORATORY} any other metric: exploratory, not corrected",
    "verdict: above or below if p (Holm) is below 0.05 and the interval excludes 0, otherwise not confirmed; blank: "
    "one conversation, which does not generalise to other conversations or to another build of the memory",
    f"{BY_QUESTION} one conversation only: tested over its questions, does not generalise to other conversations",
    "detect: smallest true difference found with 80 % power at level 5 %; not computed for fewer than six "
    "conversations, or, with one conversation, fewer than six questions: p cannot fall below 0.05 there",
    "differ in: what differs between the two runs besides the memory; the difference is then not due to the memory "
    "alone",
)

#: Cells that a remark names one by one; of more it names the columns.
_NAMED = 8


@dataclass(frozen=True, slots=True)
class TextLine:
    """One written line: ``kind`` is printed (also of a later version), measured, difference, n or verdict."""

    kind: str
    cells: tuple[str, ...]
    remark: str = ""


def text_lines(line: TableLine, datasets: dict[str, str]) -> list[TextLine]:
    """Return what is written of one line of a table.

    Args:
        line: of the page.
        datasets: labels of the data sets.
    """
    remark, found = coverage(line, datasets), []
    if line.printed:
        found.append(TextLine("printed", tuple(cell.printed.text if cell.printed else "" for cell in line.cells)))
        found += [TextLine(f"printed, {version}", texts) for version, texts in later_texts(line).items()]
    if line.measured:
        found.append(TextLine("measured", tuple(measured_text(cell) for cell in line.cells), remark))
        found += _details(line)
    if line.printed:
        verdicts = tuple(verdict_text(cell) for cell in line.cells)
        found.append(TextLine("verdict", verdicts, "" if line.measured else remark))
    return found


def later_texts(line: TableLine) -> dict[str, tuple[str, ...]]:
    """Return what later versions of the paper print in a line, by version."""
    versions = sorted({version for cell in line.cells for version in cell.later})
    return {version: tuple(cell.later.get(version, "") for cell in line.cells) for version in versions}


def _details(line: TableLine) -> list[TextLine]:
    found = []
    if any(cell.difference is not None for cell in line.cells):
        found.append(TextLine("difference", tuple(difference_text(cell) for cell in line.cells)))
    if len({cell.measured.questions for cell in line.cells if cell.measured}) > 1:
        found.append(TextLine("n", tuple(str(cell.measured.questions) if cell.measured else "" for cell in line.cells)))
    return found


def number(value: float) -> str:
    """Round a value for the table."""
    return f"{value:.{DIGITS}f}"


def fixed(value: float, decimals: int) -> str:
    """Write with this many decimals, and without the sign of a zero."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def measured_text(cell: TableCell) -> str:
    """Return ``12.34 [11.11, 13.57]`` with marks; empty where nothing was measured."""
    if cell.measured is None:
        return ""
    interval = cell.measured.shown_interval
    marks = NOT_COMPARED if cell.printed is not None and cell.measured.caveats else ""
    if interval is None:
        return number(cell.measured.value) + marks
    marks += BY_QUESTION if interval.by == "question" else ""
    return f"{number(cell.measured.value)} [{number(interval.low)}, {number(interval.high)}]{marks}"


def difference_text(cell: TableCell) -> str:
    """Return the signed difference; empty where the numbers may not be compared."""
    if cell.difference is None:
        return ""
    return f"{cell.difference:+.{DIGITS}f}"


def verdict_text(cell: TableCell) -> str:
    """Return the verdict with its reading and the needed number of seeds; empty where nothing was printed.

    Of a setting: whether a preset has it, and where.
    """
    if cell.setting:
        return cell.setting
    found = cell.equivalence
    if found is not None and cell.measured is not None and cell.measured.reading:
        return f"{cell.verdict} ({cell.measured.reading})"
    if cell.verdict != "cannot say" or found is None:
        return cell.verdict or ""
    if found.needed is not None:
        return f"cannot say ({found.needed} seeds would decide)"
    return "cannot say (at least 3 seeds)" if found.p_value is None else "cannot say (more than 1000 seeds)"


def coverage(line: TableLine, datasets: dict[str, str]) -> str:
    """Return what the measured values of a line rest on, and why others are missing, data set by data set."""
    cells = list(zip(line.headings, line.cells, strict=True))
    wanted = [cell.dataset for _, cell in cells if cell.measurable and (line.printed or cell.measured is not None)]
    parts = []
    for dataset in dict.fromkeys(wanted):
        chosen = [(heading, cell) for heading, cell in cells if cell.dataset == dataset and cell.measurable]
        measured = [cell.measured for _, cell in chosen if cell.measured]
        # Any other row is called by its prompts.
        prompts = [cell.measured.prompts for _, cell in chosen if cell.measured and cell.printed]
        texts = _measured_coverage(measured, prompts) + _missing(chosen)
        parts.append(f"{datasets[dataset]}: {', '.join(texts)}")
    return "; ".join(_shared(parts))


def _measured_coverage(found: Sequence[Measured], prompts: Sequence[str]) -> list[str]:
    if not found:
        return []
    counts = sorted({measured.questions for measured in found})
    texts = [f"n={counts[0]}" if len(counts) == 1 else f"n={counts[0]}-{counts[-1]}"]
    texts += dict.fromkeys(text for text in prompts if text)
    texts += dict.fromkeys(caveat for measured in found for caveat in measured.caveats)
    texts += dict.fromkeys(measured.repeats_exactly for measured in found if measured.repeats_exactly)
    whose = {True: "answers published by third parties", False: "the authors' answers"}
    texts += dict.fromkeys(f"measured from {whose[one.by_others]}: {one.recorded}" for one in found if one.recorded)
    seeds = max(len(measured.seeds) for measured in found)
    repeated = "recorded repetitions" if any(one.recorded for one in found) else "seeds"
    return [*texts, f"mean of {seeds} {repeated}"] if seeds > 1 else texts


def _missing(cells: Iterable[tuple[str, TableCell]]) -> list[str]:
    cells = list(cells)
    reasons: dict[str, list[str]] = {}
    for heading, cell in cells:
        if cell.measured is None:
            reasons.setdefault(cell.missing, []).append(heading)
    if len(reasons) == 1 and len(next(iter(reasons.values()))) == len(cells):
        return list(reasons)
    return [f"{' and '.join(headings)} {reason}" for reason, headings in reasons.items()]


def _shared(parts: Sequence[str]) -> list[str]:
    """Say once what holds for all data sets."""
    texts = {part.partition(": ")[2] for part in parts}
    return [*texts] if len(texts) == 1 and len(parts) > 1 else list(parts)


def definitions(table: PaperTable) -> list[str]:
    """Return the definition of each column, by metric and source; nothing for unmeasured tables."""
    shown: dict[str, list[str]] = {}
    for column in table.columns if table.spec.measured else ():
        shown.setdefault(column.metric, []).append(column.heading)
    return [
        f"{', '.join(dict.fromkeys(headings))}: {metric}{f' ({METRICS[metric].source})' if metric in METRICS else ''}"
        for metric, headings in shown.items()
    ]


def remarks(table: PaperTable) -> list[str]:
    """Return the known faults of the printed numbers; cells that share one are listed together."""
    shared: dict[str, list[tuple[str, str]]] = {}
    for block, row, column, cell in table.cells:
        if cell.printed is not None and cell.printed.note:
            place = ", ".join(filter(None, (block.label, row.label, column.label)))
            shared.setdefault(cell.printed.note, []).append((f"{place} ({cell.printed.text})", column.label))
    return [f"{_places(cells)}: {note}" for note, cells in shared.items()]


def _places(cells: Sequence[tuple[str, str]]) -> str:
    if len(cells) <= _NAMED:
        return "; ".join(place for place, _ in cells)
    return f"{len(cells)} cells of {', '.join(dict.fromkeys(column for _, column in cells))}"


def pair_table(pairs: Sequence[Pair], notes: Sequence[str] = PAIR_LEGEND) -> Table:
    """Return paired tests, one a row."""
    shown = [replace(column, together=column.heading == "95 %") for column in columns(PAIR_HEADINGS, left=3)]
    return Table("Paired tests", shown, list(map(pair_cells, pairs)), notes)


def pair_cells(pair: Pair) -> tuple[str, ...]:
    """Return one line of the paired tests."""
    result = pair.result
    interval = "" if result.interval is None else f"[{result.interval.low:+.1f}, {result.interval.high:+.1f}]"
    if result.interval is not None and result.interval.by == "question":
        interval += BY_QUESTION
    return (
        pair.system,
        pair.baseline,
        pair.column,
        str(result.questions),
        f"{result.difference:+.1f}",
        interval,
        _p_of(pair),
        pair.verdict,
        f"{result.wins}/{result.ties}/{result.losses}",
        "" if result.detectable is None else f"{result.detectable:.1f}",
        ", ".join(pair.differing),
    )


def _p_of(pair: Pair) -> str:
    value = pair.result.p_value if pair.exploratory else pair.adjusted
    if value is None:
        return ""
    one = pair.result.interval is not None and pair.result.interval.by == "question"
    return p_text(value) + (EXPLORATORY if pair.exploratory else "") + (BY_QUESTION if one else "")


def p_text(p_value: float) -> str:
    """Return three decimals, rounded once, half to even in decimal digits; never a zero."""
    return "<0.001" if p_value < 0.001 else str(Decimal(repr(float(p_value))).quantize(Decimal("0.001")))


def run_ids(table: PaperTable) -> list[str]:
    """Return the runs behind the measured values, sorted."""
    return sorted({run for _, _, _, cell in table.cells if cell.measured for run in cell.measured.runs})


def dataset_labels(table: PaperTable) -> dict[str, str]:
    """Return the labels of the data sets by name."""
    return {name: dataset.label for name, dataset in table.paper.datasets.items()}


def title(table: PaperTable) -> str:
    """Return the heading of a table."""
    return f"{table.paper.label} Table {table.number}: {table.spec.title}"
