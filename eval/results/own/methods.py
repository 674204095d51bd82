"""Statistics of each method: its own counts next to the paper's, and malformed replies by role."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eval.commands.rendering.table import DASH, Table, columns, records
from eval.config.memory_parts import memory_parts
from eval.results.compare.rows import labels
from eval.results.own.method_values import dataset_key, fit, measured
from eval.results.papers.expectations import ExpectedValue, MethodCount, method_counts
from eval.results.stored_run import StoredRun
from eval.results.tables.page import Section, TablePage
from memsys.deviations import module_of

NAME = "method_counts"

LEGEND = (
    "measured: mean over the conversations of a run, or as the line says; with the run's own settings and backbone",
    "expected: as stated in the paper, its authors' code or a specification, for the paper's settings and backbones; "
    f"{DASH} if not stated",
    "note: where it is stated, and which runs are outside the stated range, or outside half to twice a single stated "
    "number; runs on the first sessions of a conversation are not compared",
    "retrieved: what the search returned; a system's line on what did not fit says how much of it the reader did not "
    "see. If most contexts have the same length, the reader saw the same text for every question",
    "malformed: replies that did not parse, of all calls of a role, including retries; judges are excluded",
    f"{DASH} for a run: the count is not in its summary",
)
#: Phase whose calls are no part of a method.
_JUDGE = "judge"
#: Significant digits of a figure.
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class CountLine:
    """One count of some runs.

    Attributes:
        statistic: its path in the summary.
        what: plain description.
        values: of each run; ``None`` where a run does not have it.
        texts: the values as a table shows them.
        expected: what is stated of it.
        fits: whether each value fits that; ``None`` where there is nothing to compare it with.
    """

    statistic: str
    what: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]
    expected: ExpectedValue | None = None
    fits: tuple[bool | None, ...] = ()

    def note(self, names: Sequence[str]) -> str:
        """Return where the expectation is stated, and the runs outside of it."""
        stated = self.expected
        if stated is None:
            return ""
        outside = [name for name, fits in zip(names, self.fits, strict=True) if fits is False]
        return f"{stated.source}; outside: {'; '.join(outside)}" if outside else stated.source


@dataclass(frozen=True, slots=True)
class MethodGroup:
    """Runs of one system on one data set, in the order of their names."""

    system: str
    dataset: str
    runs: tuple[StoredRun, ...]
    names: tuple[str, ...]
    lines: tuple[CountLine, ...]


def method_groups(runs: Sequence[StoredRun]) -> list[MethodGroup]:
    """Sort the runs that have statistics by system and data set; systems without named counts have none.

    Runs that time questions are left out: their memories are those of other runs.
    """
    found: dict[tuple[str, str], list[StoredRun]] = {}
    for run in runs:
        memory = run.record["config"].get("memory") or {}
        if run.summary.get("memory") and method_counts(memory) and not run.times_questions:
            found.setdefault((_system(memory), dataset_key(run)), []).append(run)
    return [_group(system, dataset, members) for (system, dataset), members in sorted(found.items())]


def _system(memory: Mapping[str, Any]) -> str:
    """Return the package of a run's system; of a gate, with its host's."""
    modules = (module_of(str(part.get("_target_"))) for _, part in memory_parts(memory))
    return " before ".join(module.rpartition(".")[2] for module in modules)


def _group(system: str, dataset: str, runs: Sequence[StoredRun]) -> MethodGroup:
    counts = dict.fromkeys(count for run in runs for count in method_counts(run.record["config"]["memory"]))
    lines = [_line(count, dataset, runs) for count in counts]
    return MethodGroup(system, dataset, tuple(runs), tuple(labels(runs)), (*lines, *_contexts(runs), *_malformed(runs)))


def _line(count: MethodCount, dataset: str, runs: Sequence[StoredRun]) -> CountLine:
    values = tuple(measured(count, run) for run in runs)
    texts = tuple(map(number, values))
    expected = count.expected_on(dataset)
    fits = tuple(fit(expected, value, run) for value, run in zip(values, runs, strict=True))
    return CountLine(count.statistic, count.what, values, texts, expected, fits)


def number(value: float | None) -> str:
    """Return a count with all its digits, anything else with three significant ones; a dash for none."""
    if value is None:
        return DASH
    rounded = float(f"{value:.{_DIGITS}g}")
    if value == round(value) or abs(rounded) >= 10**_DIGITS:  # 999.6 in three digits would read 1e+03
        return f"{value:,.0f}"
    return f"{rounded:.{_DIGITS}g}"


def _contexts(runs: Sequence[StoredRun]) -> Iterator[CountLine]:
    """Yield the reader's context sizes, and whether they depended on the question."""
    for statistic, what, figure in (
        ("context.hits", "memories retrieved for a question, mean", lambda run: _context_mean(run, "hits")),
        ("context.tokens", "tokens of a question's context, mean", lambda run: _context_mean(run, "context_tokens")),
        ("context.same_length", "questions with a context of the most frequent length, percent", _same_length),
    ):
        values = tuple(figure(run) for run in runs)
        if any(value is not None for value in values):
            yield CountLine(statistic, what, values, tuple(map(number, values)))


def _context_mean(run: StoredRun, name: str) -> float | None:
    found = (run.summary.get("context") or {}).get(name)
    return None if found is None else float(found["mean"])


def _same_length(run: StoredRun) -> float | None:
    """Return the percentage of the questions whose context has, to the character, the length that most have."""
    lengths = Counter(run.columns.with_any(["context_chars"]).column("context_chars").tolist())
    return 100 * max(lengths.values()) / lengths.total() if lengths else None


def _malformed(runs: Sequence[StoredRun]) -> Iterator[CountLine]:
    of_runs = [calls_of_roles(run) for run in runs]
    for phase, role in dict.fromkeys(key for calls in of_runs for key in calls):
        found = [calls.get((phase, role)) for calls in of_runs]
        values = tuple(None if one is None else 100 * one["malformed"] / one["calls"] for one in found)
        texts = tuple(
            DASH if one is None else f"{number(value)} ({one['malformed']:,} of {one['calls']:,})"
            for one, value in zip(found, values, strict=True)
        )
        yield CountLine(f"malformed.{phase}.{role}", f"malformed replies of {role} ({phase}), percent", values, texts)


def calls_of_roles(run: StoredRun) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the totals of each phase and role with calls, without a judge's; none without a ledger."""
    phases = (run.summary.get("calls") or {}).get("by_phase") or {}
    return {
        (phase, role): totals
        for phase, found in phases.items()
        if phase != _JUDGE
        for role, totals in found["by_role"].items()
        if totals["calls"]
    }


def methods_page(runs: Sequence[StoredRun]) -> TablePage:
    """Return the counts of every system on every data set, a column for each run."""
    groups = method_groups(runs)
    sections = [
        Section(
            f"{group.system} on {group.dataset}",
            f"{group.system}-{group.dataset}",
            [method_table(group)],
            list(zip(group.names, group.runs, strict=True)),
        )
        for group in groups
    ]
    return TablePage(NAME, "Measured and expected counts of each method", LEGEND, sections, _data(groups))


def method_table(group: MethodGroup) -> Table:
    """Return the counts of one group, a column for each run."""
    rows = [
        [line.what, *line.texts, line.expected.value if line.expected else None, line.note(group.names)]
        for line in group.lines
    ]
    return Table("Counts", columns(("count", *group.names, "expected", "note")), rows)


def _data(groups: Sequence[MethodGroup]) -> Table:
    """Return one row for each run and count; what is not known is empty."""
    names = ("system", "dataset", "backbone", "run", "statistic", "what", "measured", "expected", "source", "fits")
    return records(names, (row for group in groups for line in group.lines for row in _csv_rows(group, line)))


def _csv_rows(group: MethodGroup, line: CountLine) -> Iterator[dict[str, object]]:
    for run, value, fits in zip(group.runs, line.values, line.fits or (None,) * len(line.values), strict=True):
        yield {
            "system": group.system,
            "dataset": group.dataset,
            "backbone": run.backbone,
            "run": run.run_id,
            "statistic": line.statistic,
            "what": line.what,
            "measured": "" if value is None else f"{value:.6g}",
            **_stated(line.expected, fits),
        }


def _stated(expected: ExpectedValue | None, fits: bool | None) -> dict[str, str]:
    if expected is None:
        return {}
    return {"expected": expected.value, "source": expected.source, "fits": {None: "", True: "yes", False: "no"}[fits]}
