"""The lens as Markdown."""

from collections.abc import Iterable, Sequence

from eval.audit.sensitivity.standings import Lens
from eval.audit.sensitivity.text import LEGEND, TALLY_HEADINGS, heading, left_out, line_cells, summary, tally_rows
from eval.commands.escaping import markdown, markdown_cell, markdown_code, markdown_row


def render_markdown(lenses: Sequence[Lens]) -> str:
    """Return all data sets' lenses with legend, sources and runs."""
    parts = ["# The same answers, read in every published way", ""]
    parts += [f"- {markdown(line)}" for line in LEGEND]
    for lens in lenses:
        parts += ["", f"## {markdown(heading(lens))}", "", *_lens(lens)]
    return "\n".join(parts) + "\n"


def _lens(lens: Lens) -> Iterable[str]:
    if summary(lens):
        yield from (f"**{markdown(summary(lens))}**", "")
    if len(lens.systems) > 1 and lens.tallies:
        yield from (*_table(TALLY_HEADINGS, tally_rows(lens)), "")
    if left_out(lens):
        yield from (markdown(left_out(lens)), "")
    for title, lines in lens.sections.items():
        rows = [[*line_cells(line, lines[0]), line.reading.source] for line in lines]
        yield from (f"### {markdown(title)}", "", *_table(("reading", "n", *lens.systems, "order", "source"), rows), "")
    yield from (
        "### Runs",
        "",
        *(f"- {markdown(name)}: {markdown_code(run)}" for name, run in zip(lens.systems, lens.runs, strict=True)),
    )


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---", *("---:" for _ in headings[1:])], *rows]
    return [markdown_row([markdown_cell(text) for text in line]) for line in lines]
