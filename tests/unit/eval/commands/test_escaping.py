"""Text of others for terminal, Markdown, HTML, SVG, LaTeX and CSV; parsers of these formats say what is read."""

import csv
import io
import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.commands import escaping
from eval.commands.safe_console import SafeConsole

HOSTILE = (
    "\x1b[31mred", "\x1b]0;title\x07", "\x9b31m", "a\rb", "\u202egnp.exe", "\ud800", "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>", "&lt;b&gt;", "a|b", "a\\|b", "a\n| x | y |", "[x](javascript:alert(1))",
    "![x](http://h/x)", "`code`", "``", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", '"=1', "'=1",
    "\uff1d1+1", "%0a", r"\input{/etc/passwd}", "$x^2$ & # _ ~ % {}", "$\\foo$", "[/bold]", "[link=http://h]x[/link]",
    ":smile:", "\x00", "]]>", "--", "a\u2028b",
)  # fmt: skip
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(), st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join))


@given(TEXTS)
def test_a_terminal_gets_no_command(text: str) -> None:
    assert not UNSEEN.search(escaping.terminal(text))
    assert "\n" not in escaping.one_line(text) and not UNSEEN.search(escaping.one_line(text))
    if not UNSEEN.search(text) and text.isascii():
        assert escaping.terminal(text) == text


@given(TEXTS)
def test_the_console_writes_texts_as_they_are(text: str) -> None:
    from rich.table import Table

    written = io.StringIO()
    console = SafeConsole(file=written, force_terminal=True, width=500, color_system="truecolor")
    table = Table(title=text)
    table.add_column(text)
    table.add_row(text)
    console.print(text, style="bold")
    console.print(table)
    seen = re.sub(r"\x1b\[[\d;]*m", "", written.getvalue())  # colours are the console's own
    assert (
        "\x1b" not in seen
        and not UNSEEN.search(seen.replace("\x1b", ""))
        and "http" not in re.findall(r"\x1b\]8;[^\x1b]*", written.getvalue())
    )
    if re.fullmatch(r"[!-~]+", text):
        assert seen.count(text) >= 3


@given(TEXTS)
def test_data_inside_html_stay_data_for_a_parser(text: str) -> None:
    tags: list[str] = []
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

        def handle_data(self, data: str) -> None:
            found.append(data)

    reader = Reader()
    reader.feed(f"<script>{escaping.script_json([text])}</script>")
    reader.close()
    assert tags == ["script"] and json.loads("".join(found)) == [text]


@given(TEXTS)
def test_svg_is_xml(text: str) -> None:
    from xml.sax.saxutils import escape

    assert ElementTree.fromstring(f"<text>{escape(escaping.svg(text))}</text>").text in (escaping.svg(text), None)


#: Cells of a row as GitHub splits it: at every bar without an odd number of backslashes before it.
BAR = re.compile(r"(?<!\\)(?:\\\\)*\|")


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_markdown_row_keeps_its_cells_and_holds_no_markup(texts: list[str]) -> None:
    row = escaping.markdown_row([escaping.markdown_cell(text) for text in texts])
    assert "\n" not in row and len(BAR.findall(row)) == len(texts) + 1
    assert not re.search(r"<[A-Za-z/!?]", row) and not re.search(r"(?<!\\)\][(\[:]", row)
    assert not re.search(r"(?<!\\)`", row.replace("\\\\", ""))


@given(TEXTS)
def test_code_in_markdown_ends_where_it_should(text: str) -> None:
    code = escaping.markdown_code(text)
    fence = re.match("`+", code)
    assert fence and code.endswith(fence[0]) and fence[0] not in code[len(fence[0]) : -len(fence[0])]


@given(TEXTS)
def test_latex_holds_no_command_of_the_text(text: str) -> None:
    written = escaping.latex(text)
    for known in ("{[}", *sorted(set(escaping._LATEX.values()), key=len, reverse=True)):
        written = written.replace(known, "")
    assert not escaping.latex(text).startswith("[")  # behind a line's end it would be read as a length
    assert not re.search(r"[\\&%$#_{}~^\n]", written)


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_a_csv_cell_is_no_formula(texts: list[str]) -> None:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerow(escaping.csv_row(texts))
    (read,) = list(csv.reader(io.StringIO(file.getvalue(), newline="")))
    assert len(read) == len(texts)
    for cell in read:
        number = re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?", cell)
        assert number or not re.match(r"\s*[\"]*\s*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]", cell), cell
        assert not UNSEEN.search(cell)


@pytest.mark.parametrize("number", ["-1", "-0.5", "+3.25", "1e-05", "-1.2E+3", "-12.5%", -4, -0.25, None])
def test_a_negative_number_stays_one_in_csv(number: object) -> None:
    assert escaping.csv_cell(number) == number


@pytest.mark.parametrize("text", ["-1+cmd", "=1", "+RepSel", "@x", "-", "\tx", "\rx", "-1 2", "- 1", " =x", "'=x"])
def test_a_text_that_begins_like_a_formula_is_guarded(text: str) -> None:
    assert str(escaping.csv_cell(text)).startswith("'")
