"""Printed numbers that do not follow from other printed numbers, as a readable table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from eval.commands.rendering.markdown import page, render_markdown
from eval.commands.rendering.table import Column, Table
from eval.results.papers.arithmetic import Recomputed, repetitions
from eval.results.papers.claims import recompute_claims
from eval.results.papers.discover import checks_of
from eval.results.papers.printed import TEXT, PrintedNumber, load_printed, papers

HEADINGS = ("paper", "table", "data set", "backbone", "row", "column", "printed", "recomputed", "difference", "from")
_FIGURES = ("table", "printed", "recomputed", "difference")
_COLUMNS = [Column(heading, "right" if heading in _FIGURES else "left") for heading in HEADINGS]
_INTRODUCTION = """\
# Averages that do not follow

Every average, sum, share and ratio that the papers print, and what their text says of their tables, recomputed from
the printed parts. A number is listed when rounding of it and of its parts cannot explain the difference. Written by
`memsys tables`; nothing here was measured."""
_TITLES = {
    "averages": "Averages",
    "totals": "Sums, shares and ratios",
    "repetitions": "The same cell with two values",
    "claims": "Statements of the text",
}


def check(paper: str, numbers: Sequence[PrintedNumber]) -> dict[str, list[Recomputed]]:
    """Recompute everything that can be, by kind."""
    checks = checks_of(paper)
    return {
        "averages": [entry for rule in checks.averages for entry in rule(numbers)],
        "totals": [entry for rule in checks.totals for entry in rule(numbers)],
        "repetitions": repetitions(numbers),
        "claims": recompute_claims(checks.claims, numbers),
    }


def check_all() -> dict[str, list[Recomputed]]:
    """Recompute everything of every paper, by kind."""
    found: dict[str, list[Recomputed]] = {kind: [] for kind in _TITLES}
    for paper in papers():
        for kind, entries in check(paper, load_printed(paper)).items():
            found[kind] += entries
    return found


def fault_lines(entries: Iterable[Recomputed]) -> list[tuple[str, ...]]:
    """Return one line of text cells per number that does not follow, in the order given."""
    return [
        (
            entry.number.paper,
            "text" if entry.number.table == TEXT else str(entry.number.table),
            entry.number.dataset,
            entry.number.backbone,
            entry.number.row,
            entry.number.column,
            entry.number.text,
            f"{entry.value:.3f}",
            f"{entry.difference:+.3f}",
            entry.rule,
        )
        for entry in entries
        if not entry.follows
    ]


def faults_page(found: Mapping[str, Sequence[Recomputed]]) -> str:
    """Return the page: a table for each kind that has faults."""
    return page(_INTRODUCTION, *(part for kind, title in _TITLES.items() for part in _kind(title, kind, found[kind])))


def _kind(title: str, kind: str, entries: Sequence[Recomputed]) -> Iterator[str]:
    lines = fault_lines(entries)
    yield f"## {title}"
    yield f"{len(lines)} found." if kind == "repetitions" else f"{len(lines)} of {len(entries)} recomputed."
    yield render_markdown(Table("", _COLUMNS, lines), level=0) if lines else ""
