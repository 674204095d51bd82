"""Tables of one subject that are not a paper's: one page of Markdown, one file of LaTeX, one CSV file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eval.commands.escaping import markdown, markdown_code
from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.markdown import bullets, page, render_markdown
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Table
from eval.results.stored_run import StoredRun

WRITTEN = "Written by `memsys tables`."


@dataclass(frozen=True, slots=True)
class Section:
    """Tables about the same runs.

    Attributes:
        title: which runs these are.
        key: the same in a LaTeX label.
        tables: each with its own title.
        runs: name in the tables -> run.
    """

    title: str
    key: str
    tables: Sequence[Table]
    runs: Sequence[tuple[str, StoredRun]]


@dataclass(frozen=True, slots=True)
class TablePage:
    """All tables of one subject.

    Attributes:
        name: of the files.
        title: heading of the page.
        legend: sentences that hold for all tables.
        sections: groups of runs.
        data: everything known, for other programs.
    """

    name: str
    title: str
    legend: Sequence[str]
    sections: Sequence[Section]
    data: Table

    @property
    def files(self) -> dict[str, str]:
        """Name of each file -> its text."""
        tables = [table for part in self.sections for table in captioned(part)]
        labelled = [replace(table, label="-".join(filter(None, (self.name, table.label)))) for table in tables]
        first = [replace(table, notes=[*table.notes, *self.legend]) for table in labelled[:1]]
        return {
            f"{self.name}.md": self._markdown(),
            f"{self.name}.csv": render_csv(self.data),
            f"{self.name}.tex": "\n".join(map(render_latex, [*first, *labelled[1:]])),
        }

    def _markdown(self) -> str:
        sections = (part for section in self.sections for part in _section(section))
        return page(f"# {self.title}", bullets(self.legend), *sections, WRITTEN)


def captioned(section: Section) -> list[Table]:
    """Return the tables of a section with titles and labels that say which runs they are about."""
    return [
        replace(
            table,
            title=f"{table.title}, {section.title}",
            label="-".join(filter(None, (section.key, table.label))),
        )
        for table in section.tables
    ]


def _section(section: Section) -> Iterator[str]:
    yield f"## {markdown(section.title)}"
    for table in section.tables:
        yield render_markdown(table, level=3 if len(section.tables) > 1 else 0)
    yield "\n".join(f"{markdown(name)}: {markdown_code(run.run_id)}  " for name, run in section.runs)
