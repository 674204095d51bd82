"""Plain tables as LaTeX: what is too wide or too high for a page is several tables, and nothing is lost."""

import re

from hypothesis import given
from hypothesis import strategies as st

from eval.results.tables.latex_size import ragged, text_width
from eval.results.tables.plain import PlainTable
from eval.results.tables.plain_latex import in_one_file, plain_latex


def bodies(text: str) -> list[list[list[str]]]:
    """Cells of each tabular, headings first."""
    found = re.findall(r"\\begin\{tabular\}\{[^\n]*\n(.*?)\\end\{tabular\}", text, re.DOTALL)
    lines = [[line for line in body.splitlines() if "&" in line] for body in found]
    return [[re.sub(r" (\\\\|\\tabularnewline)$", "", line).split(" & ") for line in body] for body in lines]


def test_a_setting_s_name_may_be_broken_in_a_narrow_column() -> None:
    """``roles.update.max_tokens=384`` is one word for LaTeX, and stood out of its column."""
    name = ragged("MemFly [max_tokens=384]")
    assert name == r"\raggedright MemFly [max\_\allowbreak tokens=\allowbreak 384]"
    assert text_width(name) == text_width(r"MemFly [max\_tokens=384]")
    assert ragged("3 of 7. No") == r"\raggedright 3 of 7. No"


def test_a_small_table_is_one() -> None:
    text = plain_latex(PlainTable("Sizes", ("system", "n"), [("rag", "10")], ("n: questions",)), "sizes")
    assert bodies(text) == [[["system", "n"], ["rag", "10"]]]
    assert r"\caption{Sizes.}" in text and r"\label{tab:sizes}" in text and "n: questions." in text


def test_a_wide_table_repeats_its_names() -> None:
    """Seven columns of twenty digits, 85 points and 6 of blank each: four fit beside the name, three are left."""
    headings = ("system", *(f"c{number}" for number in range(7)))
    rows = [(name, *(f"{number}" * 20 for number in range(7))) for name in ("rag", "clag")]
    text = plain_latex(PlainTable("Wide", headings, rows, ("a note",)), "wide")
    parts = bodies(text)
    assert [len(part[0]) for part in parts] == [5, 4]
    assert [[row[0] for row in part] for part in parts] == [["system", "rag", "clag"]] * 2
    assert [cell for part in parts for cell in part[1][1:]] == [f"{number}" * 20 for number in range(7)]
    assert text.count("a note.") == 1 and r"\label{tab:wide-2}" in text and "part 2 of 2" in text


@given(st.integers(1, 200), st.integers(1, 12))
def test_every_cell_stands_once(count: int, columns: int) -> None:
    headings = ("system", *(f"h{column}" for column in range(columns)))
    rows = [(f"r{row}", *(f"{row}.{column}" for column in range(columns))) for row in range(count)]
    parts = bodies(plain_latex(PlainTable("All", headings, rows), "all"))
    cells = [cell for part in parts for row in part[1:] for cell in row[1:]]
    assert sorted(cells) == sorted(f"{row}.{column}" for row in range(count) for column in range(columns))
    assert max(len(part) for part in parts) <= 1 + 530 / 9.5


def test_many_tables_in_one_file_are_put_out_now_and_then() -> None:
    one = plain_latex(PlainTable("Sizes", ("system", "n"), [("rag", "10")]), "sizes")
    assert in_one_file([one] * 30).count(r"\clearpage") == 0
    assert in_one_file([one] * 104).count(r"\clearpage") == 2
