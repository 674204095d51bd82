"""The tables behind the first view, all in one form: papers, definitions, costs, memories, methods, audit.

A page of tables is ``{kind, title, note, tables, legend}``; a table ``{title, headings, left, rows, notes}``. A row
is a list of texts, or a text over the whole width; a text may be ``[text, run id]``, which leads to the run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from eval.audit.config import AuditConfig
from eval.audit.config import load_config as load_audit_config
from eval.audit.labels import SECTIONS, TERMS
from eval.audit.leaderboard import Row
from eval.audit.measured import left_out_text, with_measured_judges
from eval.audit.page import BOARD, DATA_NAMES, board, caption, chosen, findings, named_rows, short, used_columns
from eval.audit.sensitivity import text as readings
from eval.audit.sensitivity.config import load_config as load_readings
from eval.audit.sensitivity.standings import Lens, lenses_of
from eval.audit.stored import stored_tables
from eval.commands.places import RESULTS
from eval.commands.rendering.table import DASH, Table, text_of
from eval.commands.terminal import stage
from eval.results.own.memory_quality import NAME as QUALITY
from eval.results.own.methods import NAME as METHODS
from eval.results.own.pages import own_pages
from eval.results.own.roles import NAME as ROLES
from eval.results.own.systems import NAME as SYSTEMS
from eval.results.stored_run import StoredRun
from eval.results.tables.layout import TableLine, lay_out
from eval.results.tables.model import PaperTable
from eval.results.tables.page import Section, captioned
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import spec_names
from eval.results.tables.text import (
    LEGEND,
    PAIR_HEADINGS,
    PAIR_LEGEND,
    dataset_labels,
    pair_cells,
    remarks,
    text_lines,
    title,
)
from eval.scoring.protocols import load_protocol, protocol_names
from eval.scoring.verdicts.figures import stored_figures
from memsys.vocabulary import Json

AUDIT = RESULTS / "audit"
#: Pages of our own tables that are shown, in this order -> their kind in the menu.
_OWN = {
    SYSTEMS: "Costs and evidence", ROLES: "Calls by role", QUALITY: "What memories hold", METHODS: "What methods did",
}  # fmt: skip
_NOTHING = ("", DASH)
#: Columns of the audit that hold words.
_WORDS = {
    "system", "backbone", "run", "metric", "nearest", "source", "higher", "lower", "flips_under", "category", "judge",
    "answers_of", "renamed_categories", "experiment",
}  # fmt: skip


def paper_tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Return the papers' tables, printed and measured, of which a row was measured."""
    found = []
    for paper in spec_names():
        with stage(f"building the tables of {paper}"):
            found += [_paper_page(table) for table in build_tables(paper, runs, printed_alone=True)[0]]
    return [page for page in found if page["tables"][0]["rows"]]


def _paper_page(table: PaperTable) -> Json:
    layout, datasets = lay_out(table), dataset_labels(table)
    rows: list[Json] = []
    for label, lines in layout.blocks:
        measured = [line for line in lines if line.measured]
        rows += [label] if measured and label else []
        rows += [row for line in measured for row in _paper_rows(line, datasets)]
    shown = _table(title(table), ["system", "", *layout.headings], rows, left=2, notes=table.spec.remarks)
    pairs = [[pair.where, *pair_cells(pair)] for pair in table.pairs]
    tests = [_table("Paired tests", ["", *PAIR_HEADINGS], pairs, left=4, notes=PAIR_LEGEND)] if pairs else []
    legend = [text.replace("the last column", "the line below") for text in LEGEND] + remarks(table)
    return _page("Printed and measured", title(table), [shown, *tests], legend)


def _paper_rows(line: TableLine, datasets: dict[str, str]) -> Iterator[Json]:
    for place, text in enumerate(text_lines(line, datasets)):
        runs = [cell.measured.runs if cell.measured and text.kind == "measured" else () for cell in line.cells]
        cells = [[cell, own[0]] if own else cell for cell, own in zip(text.cells, runs, strict=True)]
        yield ["" if place else line.label, text.kind, *cells]
        if text.remark:
            yield text.remark


def own_tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Return tables of all systems, calls by role, memories, and what methods say of themselves."""
    pages = {page.name: page for page in own_pages(runs)}
    return [
        _page(kind, section.title, _own_tables(section), pages[name].legend)
        for name, kind in _OWN.items()
        for section in pages[name].sections
    ]


def _own_tables(section: Section) -> list[Json]:
    """Return the tables of a section that say something of a row."""
    shown = [_own(table) for table in captioned(section) if table.rows]
    return [table for table in shown if len(table["headings"]) > 1]


def _own(table: Table) -> Json:
    """Return a table of ours without the columns in which no row has anything."""
    rows = [[text_of(*one) for one in zip(row, table.columns, strict=True)] for row in table.rows]
    kept = [
        place for place in range(len(table.columns)) if not place or any(row[place] not in _NOTHING for row in rows)
    ]
    columns = [table.columns[place] for place in kept]
    left = next((place for place, column in enumerate(columns) if column.align != "left"), len(columns))
    shown = [[row[place] for place in kept] for row in rows]
    return _table(table.title, [column.heading for column in columns], shown, left, table.notes)


def definition_tables(runs: Sequence[StoredRun]) -> list[Json]:
    """Return each group's scores by every published definition, and why a group has none."""
    found, missing = lenses_of(runs, load_readings(), [load_protocol(name) for name in protocol_names()])
    pages = [_definitions(lens) for lens in sorted(found, key=lambda lens: (-lens.questions, -len(lens.systems)))]
    if missing:
        pages.append(_page("Other definitions", "groups without", [], missing))
    return pages


def _definitions(lens: Lens) -> Json:
    sections = readings.section_tables(lens, lens.systems)
    tables = [readings.tally_table(lens), *sections] if len(lens.systems) > 1 and lens.tallies else sections
    about = f"{', '.join(filter(None, (lens.dataset, lens.setting)))}: {lens.questions} questions"
    notes = filter(None, [readings.heading(lens), readings.summary(lens)])
    return _page("Other definitions", about, list(map(_own, tables)), readings.LEGEND, "; ".join(notes))


def audit_tables(*, unmeasured_judges: bool = False) -> list[Json]:
    """Return the audit of published answers, nothing where none was written.

    Args:
        unmeasured_judges: show verdicts of judges too that were not measured.

    Raises:
        DataError: a file of the audit is damaged.
    """
    judges = [asdict(one) for one in stored_figures(AUDIT / "judge_presets.csv")]
    tables = {**stored_tables(AUDIT), "judge_presets": judges}
    if not tables["leaderboard"]:
        return []
    config = load_audit_config()
    tables = dict(with_measured_judges(tables, config, unmeasured=unmeasured_judges))
    found = _page("Published answers", "findings", [], [plain(text) for text in (*findings(tables), *TERMS)])
    names = sorted({str(row["data"]) for row in tables["leaderboard"]})
    return [found, *(_board(tables, config, name) for name in names), *_sections(tables)]


def _board(tables: Mapping[str, Sequence[Row]], config: AuditConfig, data: str) -> Json:
    rows = board(tables["leaderboard"], config, data)
    notes = [plain(text) for text in (caption(data), left_out_text(tables, data, "memsys report")) if text]
    return _audit_page(DATA_NAMES.get(data, data), " ".join(notes), rows, used_columns(rows, BOARD), None)


def _sections(tables: Mapping[str, Sequence[Row]]) -> Iterator[Json]:
    for name, section in SECTIONS.items():
        rows = chosen(name, tables)
        if rows:
            columns = used_columns(rows, section.columns)
            yield _audit_page(section.title, plain(section.text), named_rows(rows), columns, section.decimals)


def _audit_page(name: str, note: str, rows: Sequence[Row], columns: Mapping[str, str], decimals: int | None) -> Json:
    texts = [[short(row.get(column), decimals) for column in columns] for row in rows]
    left = next((place for place, column in enumerate(columns) if column not in _WORDS), len(columns))
    return _page("Published answers", name, [_table(name, list(columns.values()), texts, max(left, 1))], [], note)


def plain(text: str) -> str:
    """Return a text without the marks of Markdown."""
    return text.replace("*", "").replace("`", "")


def _table(
    name: str, headings: Sequence[str], rows: Sequence[Json], left: int = 1, notes: Sequence[str] = ()
) -> dict[str, Json]:
    return {"title": name, "headings": list(headings), "left": left, "rows": list(rows), "notes": list(notes)}


def _page(kind: str, name: str, tables: Sequence[Json], legend: Sequence[str], note: str = "") -> dict[str, Json]:
    return {"kind": kind, "title": name, "note": note, "tables": list(tables), "legend": list(legend)}
