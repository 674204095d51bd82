"""Every LaTeX table of `results/` (`make tables`) on a page of 16 cm: nothing runs over an edge, nothing is shrunk."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[2] / "results"
TABLES = sorted([*(RESULTS / "tables").glob("*.tex"), *(RESULTS / "audit").glob("*.tex")])
DOCUMENT = r"""\documentclass[10pt,a4paper,twocolumn]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage[textwidth=455pt]{geometry}
\usepackage{booktabs}
\usepackage{amssymb}
\extrafloats{200}
\begin{document}
%s
\end{document}
"""
#: What LaTeX says where a box is wider than the page, in points, and where a table is higher.
WIDE = re.compile(r"Overfull \\hbox \((\d+)\.\d+pt")
HIGH = re.compile(r"Float too large|Overfull \\vbox \((\d+)\.\d+pt")

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None,
    reason="no LaTeX here: install one (Debian: apt-get install texlive-latex-recommended)",
)


@needs_latex
@pytest.mark.parametrize(
    "file",
    TABLES,
    ids=lambda file: file.stem,
)
def test_a_committed_table_is_legible_on_a_page(file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert "resizebox" not in text and "scalebox" not in text
    (tmp_path / "page.tex").write_text(DOCUMENT % text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", errors="replace", check=False)
    log = done.stdout.replace("\n", " ")
    assert done.returncode == 0, log[-2000:]
    assert [width for width in WIDE.findall(log) if int(width) > 1] == []
    assert not HIGH.search(log), HIGH.search(log)
