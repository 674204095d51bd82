"""Pages over all tables: how many printed cells have which verdict, and what the papers' claims come to."""

from collections import Counter
from collections.abc import Mapping, Sequence

from eval.commands.rendering.markdown import blocks, page, render_markdown
from eval.commands.rendering.table import Cell, Span, Table, columns, texts
from eval.results.papers.printed import PrintedNumber, load_printed
from eval.results.papers.superiority import check_claim, check_marks, load_superiority
from eval.results.tables.measure import Measured
from eval.results.tables.model import VERDICTS, PaperTable, Verdict
from eval.results.tables.page import WRITTEN
from eval.results.tables.paper_page import file_stem

INDEX, CLAIMS = "index.md", "claims.md"
#: Verdicts that a measured cell can have.
_VERDICTS_OF_MEASURED = VERDICTS[:4]
_SOURCE_HEADINGS = ("paper", "measured from", *_VERDICTS_OF_MEASURED)
_HEADINGS = ("printed", "measured", *VERDICTS)
_CLAIM_HEADS = ("where", "claim", "by the printed tables", "against it", "by what was measured")
_DEVIATING_HEADS = ("table", "row", "column", "printed", "measured")


def index_page(papers: Mapping[str, Sequence[PaperTable]]) -> str:
    """Return the index: counts of printed cells by verdict, for each paper and each table."""
    rows: list[list[Cell]] = []
    totals: list[list[Cell]] = []
    for tables in papers.values():
        label = tables[0].paper.label
        counts = [_counts(table) for table in tables]
        totals.append([Span(label, link=f"{tables[0].paper.paper}.md"), "all", *_figures(sum(counts, Counter()))])
        for table, count in zip(tables, counts, strict=True):
            file = f"{file_stem(table)}.md"
            rows.append([label, Span(f"{table.number} {table.spec.title}", link=file), *_figures(count)])
    heads = columns(("paper", "table", *_HEADINGS), left=2)
    return page(
        "# The papers' tables",
        "Printed cells by verdict. Measured: the cell has a run. The verdict says whether the printed number "
        "reproduces on the same questions (equivalence within a margin); the rule is below every table. The papers' "
        f"claims about their tables: [{CLAIMS}]({CLAIMS}). How reliable the intervals are, and which differences a "
        "design can detect: [coverage](../audit/coverage.md), [design](../audit/design.md).",
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
    return Table("Sources of the measured cells", columns(_SOURCE_HEADINGS, left=2), rows)


def _source(measured: Measured) -> str:
    if measured.recorded:
        return f"answers published by {'third parties' if measured.by_others else 'the authors'}"
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
    rows = [(paper, row) for paper, tables in papers.items() for row in _claim_rows(paper, tables)]
    heads = ("paper", *_CLAIM_HEADS)
    marks = [
        (paper, f"Table {number.table}", number.backbone, number.row, number.column, number.text, reason)
        for paper in papers
        for number, reason in check_marks(load_printed(paper))
    ]
    mark_heads = ("paper", "table", "backbone", "row", "column", "printed", "mark")
    return page(
        "# Claims of the papers",
        "Claims that the papers make about their tables, in text and by bold or underline "
        "(`results/printed/claims.yaml`), checked against the printed cells and against comparable measured ones; "
        "cannot say: a cell of the claim has no comparable measurement.",
        render_markdown(Table("", texts(heads), [(paper, *row) for paper, row in rows]), level=0),
        render_markdown(
            Table(
                "Bold numbers that are not the best, underlined ones that are not the second best",
                texts(mark_heads),
                marks,
            )
        ),
        WRITTEN,
    )


def paper_overview(tables: Sequence[PaperTable]) -> str:
    """Return the page of one paper: its cells by verdict, its claims, and the cells that do not reproduce."""
    label, paper, elsewhere = tables[0].paper.label, tables[0].paper.paper, tables[0].paper.elsewhere
    counts = [(table, _counts(table)) for table in tables]
    total = sum((count for _, count in counts), Counter())
    rows: list[list[Cell]] = [
        [Span(f"{table.number} {table.spec.title}", link=f"{file_stem(table)}.md"), *_figures(count)]
        for table, count in counts
    ]
    deviating = [
        (str(table.number), ", ".join(filter(None, (block.label, row.label))), column.heading, cell.printed.text,
         f"{cell.measured.value:.2f}")
        for table in tables
        for block, row, column, cell in table.cells
        if cell.printed is not None and cell.measured is not None and cell.verdict == "not reproduced"
    ]  # fmt: skip
    return page(
        f"# {label} reproduced: what holds",
        f"{total['printed']} printed numbers: {', '.join(_counted(total, one) for one in VERDICTS if total[one])}.",
        render_markdown(Table("", columns(("table", *_HEADINGS)), rows), level=0),
        render_markdown(Table("Claims", texts(_CLAIM_HEADS), _claim_rows(paper, tables))),
        render_markdown(Table("Numbers that do not reproduce", texts(_DEVIATING_HEADS), deviating))
        if deviating
        else "",
        blocks("## Not in any table", "\n".join(f"- {line}" for line in elsewhere)) if elsewhere else "",
        f"Run the rest: `memsys reproduce {paper}`. {WRITTEN}",
    )


def _counted(counts: Mapping[str, int], verdict: Verdict) -> str:
    return f"{counts[verdict]} {verdict}{'s' if verdict == 'setting' and counts[verdict] > 1 else ''}"


def _claim_rows(paper: str, tables: Sequence[PaperTable]) -> list[tuple[str, ...]]:
    numbers, measured = load_printed(paper), _measured_values(tables)
    rows: list[tuple[str, ...]] = []
    for claim in load_superiority():
        if claim.paper == paper:
            printed, ours = check_claim(claim, numbers), check_claim(claim, numbers, measured.get)
            against = "; ".join(printed.against)
            rows.append((claim.where, claim.says, printed.finding, against, ours.finding))
    return rows


def _measured_values(tables: Sequence[PaperTable]) -> dict[PrintedNumber, float]:
    return {
        cell.printed: cell.measured.value
        for table in tables
        for _, _, _, cell in table.cells
        if cell.printed is not None and cell.measured is not None and cell.comparable
    }
