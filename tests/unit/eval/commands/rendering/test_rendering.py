"""The table model in every format, and tables between the markers of a document."""

import ast
import csv
import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.markdown import inline, render_markdown, replace_tables
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Column, Span, Table, columns, records
from eval.commands.rendering.terminal import show
from eval.commands.safe_console import SafeConsole
from memsys.errors import ConfigError

ROOT = Path(__file__).resolve().parents[5]
MARKED = Table(
    "Sizes | all",
    [Column("system", "left", key=True), Column("F1"), Column("tokens", digits=0), Column("run", "left")],
    [
        [Span("rag", note="one seed"), Span("12.5", "bold"), 1234.4, Span("a|b", "code")],
        [
            Span("bm25", note="one seed"),
            (Span("9.1", "underline"), Span("R", "superscript")),
            None,
            Span("x", link="y"),
        ],
    ],
    notes=["F1: percent"],
    blocks={0: "small", 1: "large"},
    label="sizes",
)


def test_each_format_has_one_function() -> None:
    """A second ``render_markdown`` means a second place to change when a table changes."""
    defined: dict[str, list[str]] = {}
    for path in sorted((ROOT / "eval").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("render"):
                defined.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    found = {name: files for name, files in defined.items() if name != "render_page"}  # the HTML report
    modules = {"csv": "separated", "latex": "latex", "markdown": "markdown", "terminal": "terminal"}
    assert found == {f"render_{name}": [f"eval/commands/rendering/{module}.py"] for name, module in modules.items()}


def test_nothing_else_writes_the_syntax_of_a_table() -> None:
    syntax = re.compile(r"markdown_row\(|\|\s*-{3}|csv\.(Dict)?[wW]riter|rich\.table|begin\{(tabular|longtable)")
    files = [path for path in (ROOT / "eval").rglob("*.py") if syntax.search(path.read_text(encoding="utf-8"))]
    others = [path.relative_to(ROOT).as_posix() for path in files if path.parent.name != "rendering"]
    assert others == ["eval/commands/escaping.py"], "it escapes the cells of a row"


def test_markdown_shows_marks_links_blocks_and_notes() -> None:
    assert render_markdown(MARKED).splitlines() == [
        "## Sizes | all",
        "",
        "|  | system | F1 | tokens | run |",
        "| --- | --- | ---: | ---: | --- |",
        "| small | rag (1) | **12.5** | 1,234 | `a\\|b` |",
        "| large | bm25 (1) | <u>9.1</u><sup>R</sup> | – | [x](y) |",
        "",
        "- F1: percent",
        "- (1) one seed",
    ]
    assert render_markdown(MARKED, level=0).startswith("|  | system |")


def test_csv_has_four_decimals_and_nothing_for_what_is_missing() -> None:
    assert render_csv(MARKED).splitlines() == [
        ",system,F1,tokens,run",
        "small,rag,12.5,1234.4000,a|b",
        "large,bm25,9.1R,,x",
    ]


def test_records_are_rows_by_name() -> None:
    text = render_csv(records(("run", "n", "share"), [{"run": "=a", "share": 0.5}, {"n": 3}]))
    assert list(csv.DictReader(io.StringIO(text))) == [
        {"run": "'=a", "n": "", "share": "0.5000"},
        {"run": "", "n": "3", "share": ""},
    ]
    with pytest.raises(KeyError, match="no column is named other"):
        records(("run",), [{"other": 1}])


def test_latex_is_a_longtable_with_its_head_on_every_page() -> None:
    text = render_latex(MARKED)
    assert text.count(r"\begin{longtable}{lrrl}") == 1 and r"\caption{Sizes | all.}\label{tab:sizes}" in text
    assert text.count("system & F1 & tokens & run") == 2 and r"\endhead" in text
    assert r"\multicolumn{4}{l}{\textit{large}}" in text and "(1) one seed." in text
    assert r"bm25 (1) & \underline{9.1}\textsuperscript{R} & – & x \\" in text


def test_latex_sets_signs_and_breaks_names_of_settings() -> None:
    long = "memory.roles.update.max_tokens=384 and more of it"
    text = render_latex(Table("Signs", columns(("name", "d"), left=1), [[long, "-1.5"], ["conv-26", "{[}-2.0, 0.5]"]]))
    assert "$-$1.5" in text and "conv-26" in text and "$-$2.0" in text
    assert r"max\_\allowbreak tokens=\allowbreak 384" in text and r"p{13em}" in text


def longtables(text: str) -> list[list[list[str]]]:
    """Return the cells of each longtable below its heads."""
    bodies = re.findall(r"\\endfoot\n(.*?)\\end\{longtable\}", text, re.DOTALL)
    return [[line.removesuffix(r" \\").split(" & ") for line in body.splitlines()] for body in bodies]


@given(st.integers(1, 40), st.integers(1, 30))
def test_every_cell_is_in_one_part_of_a_latex_table_that_is_too_wide(count: int, width: int) -> None:
    headings = ("system", *(f"h{column}" for column in range(width)))
    rows = [(f"r{row}", *(f"{row}.{column}" for column in range(width))) for row in range(count)]
    parts = longtables(render_latex(Table("All", columns(headings), rows)))
    assert all([row[0] for row in part] == [f"r{row}" for row in range(count)] for part in parts)
    cells = [cell for part in parts for row in part for cell in row[1:]]
    assert sorted(cells) == sorted(f"{row}.{column}" for row in range(count) for column in range(width))


def test_columns_fold_with_their_keys_and_stay_together() -> None:
    shown = [*columns(("system", "F1")), Column("95 %", together=True), Column("calls")]
    table = Table("", shown, [["rag", "1.0", "[1.0, 2.0]", "3"]])
    parts = table.parts([6, 3, 10, 5], 24, 2)
    assert [[column.heading for column in part.columns] for part in parts] == [
        ["system", "F1", "95 %"],
        ["system", "calls"],
    ]
    assert len(table.parts([6, 3, 10, 5], 80, 2)) == 1


@pytest.mark.parametrize("width", [60, 120])
def test_a_terminal_shows_every_figure_whole(width: int) -> None:
    headings = ("system", *(f"metric {column}" for column in range(20)))
    rows = [(f"a system with a long name {row}", *(f"{row}{column}.125" for column in range(20))) for row in range(3)]
    out = io.StringIO()
    show(Table("Wide", columns(headings), rows, ["a note"]), SafeConsole(file=out, width=width))
    text = out.getvalue()
    assert all(len(line) <= width for line in text.splitlines()) and "Wide, continued" in text and "a note" in text
    assert all(re.search(rf"(?<!\d){row}{column}\.125", text) for row in range(3) for column in range(20))


def test_a_document_gets_its_tables_between_their_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- one: begin -->\nold\n<!-- one: end -->\nb\n", encoding="utf-8")
    assert replace_tables(page, {"one": "| new |"}) == "a\n<!-- one: begin -->\n| new |\n<!-- one: end -->\nb\n"
    for text in ("nothing", "<!-- two: end -->\n<!-- two: begin -->\n"):
        page.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=r"page\.md lacks the lines <!-- two: begin --> and <!-- two: end -->"):
            replace_tables(page, {"two": ""})


def test_code_keeps_its_bars_outside_of_tables() -> None:
    assert inline([Span("a|b", "code")]) == "`a|b`"
    table = render_markdown(Table("", columns(("x",)), [[Span("a|b", "code")]]))
    assert "| `a\\|b` |" in table
