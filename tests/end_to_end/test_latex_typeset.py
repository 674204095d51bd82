"""LaTeX tables on a page of 16 cm: nothing is wider than the text, nothing runs over the foot of a page."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.table import Span, Table, columns
from eval.results.frame import read_runs
from eval.results.tables.paper_page import short_table
from eval.results.tables.paper_tables import build_tables
from eval.results.tables.spec import load_spec, spec_names
from tests.support.fake_run import FakeRun

RESULTS = Path(__file__).resolve().parents[2] / "results"
COMMITTED = sorted([*(RESULTS / "tables").glob("*.tex"), *(RESULTS / "audit").glob("*.tex")])
DOCUMENT = r"""\documentclass[10pt,a4paper]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[textwidth=455pt]{geometry}
\usepackage{array,booktabs,longtable}
\begin{document}
%s
\end{document}
"""
#: What LaTeX says where a box is wider than the page, in points, and where one is higher.
WIDE = re.compile(r"Overfull \\hbox \((\d+)\.\d+pt")
HIGH = re.compile(r"Overfull \\vbox \((\d+)\.\d+pt")

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="no LaTeX here: install one (Debian: apt-get install texlive-latex-recommended)",
)


def typeset(texts: Sequence[str], folder: Path) -> None:
    """Set tables in one document and check that each fits its pages."""
    (folder / "page.tex").write_text(DOCUMENT % "\n".join(texts), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    for _ in range(2):  # a longtable has its widths in the second run
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace", check=False)
    log = done.stdout.replace("\n", " ")
    assert done.returncode == 0, log[-2000:]
    assert [width for width in WIDE.findall(log) if int(width) > 1] == []
    assert not HIGH.search(log), HIGH.search(log)


@needs_latex
@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_a_committed_table_fits_a_page(file: Path, tmp_path: Path) -> None:
    typeset([file.read_text(encoding="utf-8")], tmp_path)


@needs_latex
@pytest.mark.parametrize("paper", spec_names())
def test_the_tables_of_a_paper_fit_a_page(paper: str, tmp_path: Path) -> None:
    """With its longest names, a constant answer, and a verdict behind every measured value."""
    spec = load_spec(paper)
    for memory in [*next(iter(spec.systems.values())).memory, "no_memory"]:
        run = FakeRun(memory=memory, backbone=next(iter(spec.backbones)), dataset="locomo", reader=spec.readers[0])
        run.write(tmp_path)
    FakeRun(memory="coin_flip", mode="floor", dataset="locomo", settings={"name": "coin_flip"}).write(tmp_path)
    runs, _ = read_runs([tmp_path])
    typeset([render_latex(short_table(table)) for table in build_tables(paper, runs)[0]], tmp_path)


@needs_latex
def test_a_table_of_every_mark_is_set_over_several_pages(tmp_path: Path) -> None:
    name = "clag_small [roles.analyse.max_tokens=96, context.max_tokens=512, memory.host.retrieval.top_k=10]"
    row = [
        Span(
            name, note="LoCoMo: n=199, data set settings limit_sessions=5, reader settings roles.default.max_chars=200"
        ),
        *("±", "‡", "τ 0.10", "Δ < 1 & 50 % of $_^~\\{}#", "[-1.0, 2.0]", Span("x", "code"), Span("1", "superscript")),
        *(f"{1000 * number:,}.55" for number in range(20)),
    ]
    headings = ("system", *(f"a heading of some words {number}" for number in range(len(row) - 1)))
    blocks = {0: "first", 70: "second, " + "a label of many words " * 3}
    typeset([render_latex(Table("Marks", columns(headings), [row] * 140, ["a note"], blocks, "marks"))], tmp_path)
