"""The report of a parity run: tables for the terminal, Markdown, JSON."""

import difflib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eval.commands.rendering.markdown import page, render_markdown
from eval.commands.rendering.table import Column, Table, columns, texts
from eval.parity.compare import Comparison, FoundDifference
from eval.parity.endpoint import RecordedCall
from eval.parity.explain import Explained
from eval.parity.kept import code_of
from eval.runs.files import write_atomic, write_json

REPORT, RESULT = "parity.md", "parity.json"
UNEXPLAINED = "unexplained"
#: Heads of the columns of what is not equal.
OTHERS = ("other wording", "other order", "ties", "other content")
_DIFF_LINES = 40


@dataclass(frozen=True, slots=True)
class ParityReport:
    """A parity run and what came of it.

    Attributes:
        memory: our preset.
        against: name of the released code.
        conversation: id of the conversation.
        settings: of the run, for the head of the report: prompts, embedder, spoiled replies, sources.
        comparison: counts and differences.
        explained: each difference and what explains it.
    """

    memory: str
    against: str
    conversation: str
    settings: Mapping[str, str]
    comparison: Comparison
    explained: Sequence[Explained]

    @property
    def unexplained(self) -> int:
        """Differences that no documented deviation explains."""
        return sum(one.deviation is None for one in self.explained)

    @property
    def title(self) -> str:
        """One line: what was compared."""
        return f"Parity of {self.memory} with {self.against} on {self.conversation}"

    @property
    def verdict(self) -> str:
        """One sentence: how it ended."""
        found = len(self.explained)
        if not found:
            return "Nothing differs."
        if not self.unexplained:
            return f"{found} differences, each explained by a documented deviation."
        return f"{found} differences, {self.unexplained} of them explained by no documented deviation."

    def groups(self) -> dict[tuple[str, str, str], list[FoundDifference]]:
        """Group differences by explanation, kind with extent, and role or part; unexplained ones first."""
        found: dict[tuple[str, str, str], list[FoundDifference]] = defaultdict(list)
        for one in self.explained:
            name = one.deviation.id if one.deviation else UNEXPLAINED
            each = one.difference
            found[name, f"{each.kind} ({each.extent})", each.role or _part(each.place)].append(each)
        return dict(sorted(found.items(), key=lambda entry: (entry[0][0] != UNEXPLAINED, entry[0])))


def _part(place: str) -> str:
    """Return the kind of place: ``notes.tags`` for ``notes.3.tags``; a question's id is not part."""
    names = place.split(".")
    return f"{names[0]}.{names[2]}" if len(names) > 2 else ""


def report_page(report: ParityReport) -> str:
    """Return the report as Markdown."""
    groups = (part for group, found in report.groups().items() for part in _group(report, group, found))
    return page(
        f"# {report.title}",
        "\n".join(f"- {name}: {value}" for name, value in report.settings.items()),
        report.verdict,
        *(render_markdown(table) for table in report_tables(report, OTHERS)),
        *groups,
    )


def _group(report: ParityReport, group: tuple[str, str, str], found: Sequence[FoundDifference]) -> Iterator[str]:
    name, kind, where = group
    yield f"### {name}: {kind} {where}".rstrip()
    yield _why(report, name)
    yield from _example(found[0])


def report_tables(report: ParityReport, others: Sequence[str]) -> Iterator[Table]:
    """Yield the tables of a report: calls, parts, and differences where there are any.

    Args:
        report: of one run.
        others: headings of what is not equal.
    """
    yield Table("Calls", columns(("role", "ours", "theirs", "prompts equal", *others)), call_rows(report))
    yield Table("Memory, contexts, answers", columns(("part", "compared", "equal", *others)), part_rows(report))
    if report.explained:
        shown = [*texts(("explained by", "kind", "where")), Column("count"), Column("first", "left")]
        yield Table("Differences", shown, difference_rows(report))


def call_rows(report: ParityReport) -> list[tuple[Any, ...]]:
    """Return the calls and prompts by role, with their sum."""
    rows = [(role, *asdict(count).values()) for role, count in sorted(report.comparison.roles.items())]
    sums = [sum(int(row[column]) for row in rows) for column in range(1, 8)]
    return [*rows, ("all", *sums)]


def part_rows(report: ParityReport) -> list[tuple[Any, ...]]:
    """Return the values of memory, contexts and answers by part."""
    return [(part, *asdict(count).values()) for part, count in report.comparison.parts.items()]


def difference_rows(report: ParityReport) -> list[tuple[Any, ...]]:
    """Return the groups of differences."""
    return [(*group, len(found), found[0].place) for group, found in report.groups().items()]


def _why(report: ParityReport, name: str) -> str:
    found = next((one.deviation for one in report.explained if one.deviation and one.deviation.id == name), None)
    return "" if found is None else f"{found.what} ({found.where}) {found.why}"


def _example(difference: FoundDifference) -> tuple[str, str]:
    """Return the place of one difference, and a diff of theirs against ours."""
    theirs, ours = _lines(difference.theirs), _lines(difference.ours)
    diff = list(difflib.unified_diff(theirs, ours, "theirs", "ours", lineterm="", n=1))
    cut = [f"... {len(diff) - _DIFF_LINES} more lines"] if len(diff) > _DIFF_LINES else []
    return f"{difference.place}:", "\n".join(["~~~diff", *diff[:_DIFF_LINES], *cut, "~~~"])


def _lines(value: Any) -> list[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    return text.splitlines()


def write_calls(calls: Sequence[RecordedCall], path: Path) -> None:
    """Write a side's calls in the order they were made, one row each; for reading next to the report."""
    rows = [{"role": call.request.role, **asdict(call.request), "reply": call.reply} for call in calls]
    write_atomic(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode("utf-8", "replace"))


def write_report(report: ParityReport, folder: Path) -> None:
    """Write ``parity.md`` and ``parity.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / REPORT, report_page(report).encode("utf-8", "replace"))
    write_json(
        folder / RESULT,
        {
            "memory": report.memory,
            "against": report.against,
            "conversation": report.conversation,
            "settings": dict(report.settings),
            "verdict": report.verdict,
            "unexplained": report.unexplained,
            "code": code_of(),
            "calls": {role: asdict(count) for role, count in report.comparison.roles.items()},
            "parts": {part: asdict(count) for part, count in report.comparison.parts.items()},
            "differences": [
                {**asdict(one.difference), "deviation": one.deviation.id if one.deviation else None}
                for one in report.explained
            ],
        },
    )
