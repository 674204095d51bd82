"""Metric sensitivity as Markdown."""

from collections.abc import Iterator, Sequence

from eval.audit.sensitivity.standings import Lens
from eval.audit.sensitivity.text import LEGEND, heading, left_out, section_tables, summary, tally_table
from eval.commands.escaping import markdown, markdown_code
from eval.commands.rendering.markdown import blocks, bullets, page, render_markdown


def lens_page(lenses: Sequence[Lens]) -> str:
    """Return the readings of all data sets with legend, sources and runs."""
    sections = (blocks(f"## {markdown(heading(lens))}", *_lens(lens)) for lens in lenses)
    return page("# The same answers, read in every published way", bullets(LEGEND), *sections)


def _lens(lens: Lens) -> Iterator[str]:
    if summary(lens):
        yield f"**{markdown(summary(lens))}**"
    if len(lens.systems) > 1 and lens.tallies:
        yield render_markdown(tally_table(lens), level=0)
    yield markdown(left_out(lens))
    for table in section_tables(lens, lens.systems, sources=True):
        yield render_markdown(table, level=3)
    yield "### Runs"
    runs = zip(lens.systems, lens.runs, strict=True)
    yield "\n".join(f"- {markdown(name)}: {markdown_code(run)}" for name, run in runs)
