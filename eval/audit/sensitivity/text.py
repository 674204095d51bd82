"""The words and figures of the lens, the same on the terminal and in Markdown."""

from collections.abc import Iterator, Sequence
from math import comb

from eval.audit.sensitivity.ranking import Standing, StandingsRow
from eval.audit.sensitivity.standings import Lens, Tally, reversals
from eval.commands.rendering.table import Cell, Column, Table, columns
from eval.scoring.inference import BY_QUESTION

UNSURE = "~"

LEGEND = (
    "figures: percent / rank (= tied); all systems on the same n questions",
    "not ranked: references (no memory, full context, gold evidence, constant answers). Runs on another subset of the "
    "data, or with another backbone, reader or answer prompt, are in a separate section",
    "leads: has the highest value, significantly or not",
    f"{UNSURE} not significantly below the first: the paired 95 % interval of the difference includes 0; it is a "
    f"cluster t interval over conversations, or, with {BY_QUESTION}, a range over the questions of one conversation, "
    "so that neither the mark nor its absence generalises to other conversations",
    "order: pairs of systems in the opposite order to the section's first line, or tied in one of the two",
    "5 as trap: the data set's false answer counts as correct; a reader that always declines scores about 0 there and "
    "100 under abstention, one that is always fooled the reverse, a coin flip 50; LongMemEval and BEAM have no false "
    "answers: their gold for such a question says that it cannot be answered",
)


def standing_text(standing: Standing) -> str:
    """Return ``16.6 /1`` with ``=`` for a shared rank and the mark of chance."""
    if standing.value is None:
        return ""
    if standing.rank is None:
        return f"{standing.value:.1f}"
    return f"{standing.value:.1f} /{standing.rank}{'=' if standing.tied else ''}{UNSURE if standing.unsure else ''}"


def order_text(line: StandingsRow, reference: StandingsRow) -> str:
    """Return the difference of an order from the reference's."""
    if line is reference:
        return "reference"
    if line.reading.no_ranking:
        return f"no ranking: {line.reading.no_ranking}"
    opposite, parted = reversals(line, reference)
    pairs = comb(sum(standing.rank is not None for standing in line.standings), 2)
    parts = [f"{opposite} of {pairs} reversed"] if opposite else []
    parts += [f"{parted} only tied in one"] if parted else []
    return ", ".join(parts) or "same"


def section_tables(lens: Lens, names: Sequence[str], *, sources: bool = False) -> Iterator[Table]:
    """Yield a table for each section: a row for each reading, with how its order differs from the first one's.

    Args:
        lens: of one data set.
        names: of its systems, as the columns show them.
        sources: whether a last column says where a reading is defined.
    """
    last = ("order", "source") if sources else ("order",)
    shown = [*columns(("reading", "n", *names)), *(Column(heading, "left") for heading in last)]
    for title, lines in lens.sections.items():
        rows = [[*_cells(line, lines[0]), *([line.reading.source] if sources else [])] for line in lines]
        yield Table(title, shown, rows)


def _cells(line: StandingsRow, reference: StandingsRow) -> list[Cell]:
    standings = map(standing_text, line.standings)
    return [line.reading.label, line.questions, *standings, order_text(line, reference)]


def tally_table(lens: Lens) -> Table:
    """Return one row per system over the whole grid of readings."""
    title = f"All {lens.readings} readings: definitions of F1, questions without an answer, means"
    return Table(title, columns(TALLY_HEADINGS), tally_rows(lens))


def tally_rows(lens: Lens) -> list[list[str]]:
    """Return one row per system over the whole grid."""
    return [
        [name, *_places(tally, lens.readings), f"{tally.low:.1f} to {tally.high:.1f}"]
        for name, tally in zip(lens.systems, lens.tallies, strict=False)
    ]


def _places(tally: Tally, readings: int) -> tuple[str, str]:
    """Return under how many definitions a system leads, and its ranks."""
    if tally.best is None:
        return "", "reference"
    ranks = f"{tally.best}" if tally.best == tally.worst else f"{tally.best} to {tally.worst}"
    return f"{tally.first:.3g} of {readings}", ranks


TALLY_HEADINGS = ("system", "leads", "ranks", "values")


def heading(lens: Lens) -> str:
    """Return the data set, backbone, prompts and coverage."""
    about = ", ".join(filter(None, (lens.dataset, lens.setting)))
    text = f"{about}: {lens.questions} questions that all {len(lens.systems)} systems answered"
    if len(lens.systems) == 1:
        text = f"{about}: {lens.questions} questions"
    text += f", of one conversation {BY_QUESTION}" if lens.by_question else ""
    partial = [
        f"{name} {count}" for name, count in zip(lens.systems, lens.covered, strict=True) if count > lens.questions
    ]
    text += f" (answered in all: {', '.join(partial)})" if partial else ""
    return "; ".join(filter(None, [text, lens.unlike, *lens.labels]))


def summary(lens: Lens) -> str:
    """Return a one-sentence summary of how much the definition decides."""
    leaders = [name for name, tally in zip(lens.systems, lens.tallies, strict=False) if tally.first > 0]
    if not lens.tallies or sum(lens.ranked) < 2:
        return ""
    if len(leaders) == 1:
        return f"{leaders[0]} leads under each of the {lens.readings} readings."
    return f"Over {lens.readings} readings of one metric's name {len(leaders)} systems lead: {'; '.join(leaders)}."


def left_out(lens: Lens) -> str:
    """Return which judges are not shown, and why; empty where none is."""
    if not lens.left_out:
        return ""
    return f"Not ranked, because settings or model of the judge differ between the runs: {', '.join(lens.left_out)}."


def short_names(names: Sequence[str], longest: int = 24) -> list[str]:
    """Return the names that fit a column; numbered where one does not."""
    if max(map(len, names)) <= longest:
        return list(names)
    return [f"{number} {name}"[:longest].rstrip(" ,") for number, name in enumerate(names, start=1)]
