"""Pages over all tables: how many printed cells have which verdict, and what the papers' claims come to."""

from collections import Counter
from collections.abc import Mapping, Sequence

from eval.rendering.markdown import page, render_markdown
from eval.rendering.table import Cell, Span, Table, columns, texts
from eval.results.papers.printed import PrintedNumber, load_printed
from eval.results.papers.superiority import ValueOf, check_claim, check_marks, load_superiority
from eval.results.tables.measure import Measured
from eval.results.tables.model import VERDICTS, PaperTable
from eval.results.tables.page import WRITTEN

INDEX, CLAIMS = "index.md", "claims.md"
#: Verdicts that a measured cell can have.
_VERDICTS_OF_MEASURED = VERDICTS[:4]
_SOURCE_HEADINGS = ("paper", "measured from", *_VERDICTS_OF_MEASURED)
_HEADINGS = ("printed", "measured", *VERDICTS)


def index_page(papers: Mapping[str, Sequence[PaperTable]]) -> str:
    """Return the index: counts of printed cells by verdict, for each paper and each table."""
    rows: list[list[Cell]] = []
    totals: list[list[Cell]] = []
    for tables in papers.values():
        label = tables[0].paper.label
        counts = [_counts(table) for table in tables]
        totals.append([label, "all", *_figures(sum(counts, Counter()))])
        for table, count in zip(tables, counts, strict=True):
            file = f"{table.paper.paper}_table{table.number:02d}.md"
            rows.append([label, Span(f"{table.number} {table.spec.title}", link=file), *_figures(count)])
    heads = columns(("paper", "table", *_HEADINGS), left=2)
    return page(
        "# The papers' tables",
        "Printed cells and what is known of each. Measured: a run is in the cell. The verdict asks whether the "
        "printed number reproduces on the same questions (equivalence within a margin); the rule is below "
        f"every table. What the papers claim of their tables: [{CLAIMS}]({CLAIMS}). How far the intervals can be "
        "trusted, and what a design detects: [coverage](../audit/coverage.md), [design](../audit/design.md).",
        render_markdown(Table("", heads, [*totals, *rows]), level=0),
        render_markdown(_sources(papers)),
        WRITTEN,
    )


def _sources(papers: Mapping[str, Sequence[PaperTable]]) -> Table:
    """Return the printed cells with a measured value: by paper, where the value comes from, and verdict."""
    found: Counter[tuple[str, str, str]] = Counter()
    for tables in papers.values():
        for table in tables:
            for _, _, _, cell in table.cells:
                if cell.printed is not None and cell.measured is not None:
                    found[table.paper.label, _source(cell.measured), str(cell.verdict)] += 1
    groups = sorted({(paper, source) for paper, source, _ in found})
    rows: list[tuple[Cell, ...]] = [
        (paper, source, *(found[paper, source, one] for one in _VERDICTS_OF_MEASURED)) for paper, source in groups
    ]
    return Table("What the measured cells rest on", columns(_SOURCE_HEADINGS, left=2), rows)


def _source(measured: Measured) -> str:
    if measured.recorded:
        return f"answers that {'others' if measured.by_others else 'the authors'} recorded"
    return measured.repeats_exactly or "runs with a model"


def _counts(table: PaperTable) -> Counter[str]:
    found: Counter[str] = Counter()
    for _, _, _, cell in table.cells:
        if cell.printed is not None:
            found["printed"] += 1
            found["measured"] += cell.measured is not None
            found[str(cell.verdict)] += 1
    return found


def _figures(counts: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(counts.get(heading, 0) for heading in _HEADINGS)


def claims_page(papers: Mapping[str, Sequence[PaperTable]]) -> str:
    """Return the page of claims, checked against the printed tables and against what was measured."""
    measured = {paper: _measured_values(tables) for paper, tables in papers.items()}
    rows = []
    for claim in load_superiority():
        numbers = load_printed(claim.paper)
        printed, ours = (check_claim(claim, numbers), check_claim(claim, numbers, _value_of(measured, claim.paper)))
        against = "; ".join(printed.against)
        rows.append((claim.paper, claim.where, claim.says, printed.finding, against, ours.finding))
    heads = ("paper", "where", "claim", "by the printed tables", "against it", "by what was measured")
    marks = [
        (paper, f"Table {number.table}", number.backbone, number.row, number.column, number.text, reason)
        for paper in papers
        for number, reason in check_marks(load_printed(paper))
    ]
    mark_heads = ("paper", "table", "backbone", "row", "column", "printed", "mark")
    return page(
        "# Claims of the papers",
        "What text and marks claim of the tables (`results/printed/claims.yaml`), checked against the printed cells "
        "and against comparable measured ones; cannot say: a cell of the claim has no comparable measurement.",
        render_markdown(Table("", texts(heads), rows), level=0),
        render_markdown(Table("Bold that is not best, underlines that are not second best", texts(mark_heads), marks)),
        WRITTEN,
    )


def _measured_values(tables: Sequence[PaperTable]) -> dict[PrintedNumber, float]:
    return {
        cell.printed: cell.measured.value
        for table in tables
        for _, _, _, cell in table.cells
        if cell.printed is not None and cell.measured is not None and cell.comparable
    }


def _value_of(measured: Mapping[str, Mapping[PrintedNumber, float]], paper: str) -> ValueOf:
    return measured.get(paper, {}).get
