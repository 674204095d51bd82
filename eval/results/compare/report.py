"""Making a comparison of runs: read them, show it, write it, draw it."""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from eval.commands.terminal import console, say
from eval.config.prompt_choice import wants_authors
from eval.loaders.question_types import ADVERSARIAL
from eval.results.compare.answers import NamedRun, show_answers
from eval.results.compare.baseline import UnknownBaselineError
from eval.results.compare.columns import columns
from eval.results.compare.formats import comparison_files, data_names, figure_names
from eval.results.compare.model import Report, make_report
from eval.results.compare.pairs import by_data
from eval.results.compare.rows import lead_metric
from eval.results.compare.terminal import show
from eval.results.drawing.comparison import plot_comparison
from eval.results.drawing.style import Series, Wording
from eval.results.frame import Skipped, read_run, say_left_out
from eval.results.stored_run import NO_BACKBONE, StoredRun
from eval.results.tables.label_view import under_labels
from eval.runs.files import write_atomic
from eval.runs.folders import runs_first
from eval.runs.run_json import has_random_weights
from eval.scoring.labels import LabelView
from eval.scoring.protocols import Protocol, load_protocol, recorded_protocol
from memsys.errors import RunDirectoryError


@dataclass(frozen=True, slots=True)
class ComparisonChoices:
    """Options of a comparison.

    Attributes:
        protocol: name of the protocol; ``None`` takes the runs' own.
        against: label, preset or run id of what the others are tested against; ``None``: RAG, or the simplest there is.
        labels: view of disputed labels, see :mod:`eval.scoring.labels`.
        answers: questions to print with the answer of each system.
        unmeasured_judges: show judges too that were never measured.
        prompts: ``ours`` or ``authors``, the prompts that the compared runs were asked with; ``None``: either.
    """

    protocol: str | None = None
    against: str | None = None
    labels: LabelView = "printed"
    answers: int = 0
    unmeasured_judges: bool = False
    prompts: str | None = None


def compare(
    run_dirs: Sequence[Path],
    out_dir: Path,
    choices: ComparisonChoices | None = None,
    *,
    shown: bool = True,
) -> list[Path]:
    """Print a comparison of runs and write ``compare.md``, ``.csv``, ``.tex`` and, for several systems, ``.svg``.

    Runs on several data sets are as many comparisons, each with a baseline of its own, in one page and one CSV file.

    Args:
        run_dirs: run directories or exported summaries. Runs that are not complete or not scored are named and left
            out; those that differ in their seed alone are one system.
        out_dir: folder of the files.
        choices: how; ``None``: by default.
        shown: whether it is printed too.

    Returns:
        The files written.

    Raises:
        RunDirectoryError: no run can be shown, or a file is broken.
        ConfigError: unknown protocol, or ``against`` names no system.
    """
    choices = choices or ComparisonChoices()
    readable = _asked_with(_readable(run_dirs), choices.prompts)
    runs = [under_labels(run, choices.labels) for run in readable]
    reports = _reports(runs, choices)
    names = {run.path: row.label for report in reports for row in report.rows for run in row.repeats.runs}
    show_answers([NamedRun(names[run.path], run) for run in readable], choices.answers)
    for name, report in zip(data_names(reports), reports, strict=True) if shown else ():
        if len(reports) > 1:
            say(f"\nOn {name}", style="bold")
        show(report)
        if report.conclusion:
            console().print(report.conclusion, style="bold", highlight=False, markup=False)
    paths: list[Path] = []
    for name, text in comparison_files(*reports).items():
        paths.append(out_dir / name)
        write_atomic(paths[-1], text.encode())
    can_draw = find_spec("matplotlib") is not None
    drawn = [(name, report) for name, report in zip(figure_names(reports), reports, strict=True) if report.has_figure]
    if can_draw:
        paths += [plot(report, out_dir / name) for name, report in drawn]
    if not shown:
        return paths
    kinds = ",".join(dict.fromkeys(path.suffix[1:] for path in paths))
    hint = "" if can_draw or not drawn else "; a figure needs matplotlib: pip install 'memsys[figures]'"
    each = "" if len(reports) == 1 else "*"
    say(f"written: {out_dir}/compare{each}.{{{kinds}}}; compare.md says what each column means{hint}")
    return paths


def _reports(runs: Sequence[StoredRun], choices: ComparisonChoices) -> list[Report]:
    """Compute a comparison for each data set; a baseline that is named counts where there is one of that name."""
    found: list[Report] = []
    unknown: list[UnknownBaselineError] = []
    groups = [_floors_on_the_questions_of(group) for group in by_data(runs)]
    for group in groups:
        rule = (
            load_protocol(choices.protocol)
            if choices.protocol
            else _own_protocol([run for run in group if not run.floor] or runs)
        )
        report = partial(make_report, group, rule, unmeasured_judges=choices.unmeasured_judges)
        try:
            found.append(report(choices.against))
        except UnknownBaselineError as error:
            unknown.append(error)
            found.append(report())
    if unknown and len(unknown) == len(groups):
        raise UnknownBaselineError(unknown[0].against, [name for error in unknown for name in error.known])
    return found


def _readable(run_dirs: Sequence[Path]) -> list[StoredRun]:
    """Return the runs that can be shown, each once, also where its summary or another path was named."""
    found: dict[tuple[str, object], StoredRun] = {}
    reasons, twice = [], []
    for path in runs_first(dict.fromkeys(run_dirs)):
        run = read_run(path)
        if isinstance(run, Skipped):
            reasons.append(f"{path}: {run.reason}")
        elif (first := found.setdefault((run.run_id, run.record.get("started")), run)) is not run:
            twice.append(f"{path}: the same run as {first.path}")
    runs = sorted(found.values(), key=lambda run: run_dirs.index(run.path))
    if not runs:
        raise RunDirectoryError("nothing to compare: " + ("; ".join(reasons) or "no run directory was named"))
    say_left_out(reasons)
    say_left_out(twice, "each is the same run as another")
    for run in runs:
        if has_random_weights(run.record):
            say(f"random weights, scores left out: {run.run_id}", style="yellow")
    return runs


def _asked_with(runs: Sequence[StoredRun], prompts: str | None) -> Sequence[StoredRun]:
    """Return the runs that were asked with the prompts of one source, and those that asked nothing here."""
    if prompts is None:
        return runs
    kept = [
        run
        for run in runs
        if run.backbone == NO_BACKBONE or run.recorded or wants_authors(run.record["config"]) == (prompts == "authors")
    ]
    if not kept:
        raise RunDirectoryError(f"nothing to compare: no run here was asked with --prompts {prompts}")
    return kept


def _own_protocol(runs: Sequence[StoredRun]) -> Protocol:
    protocols = {}
    for run in (run for run in runs if not run.floor):  # a constant has the protocol of the runs shown with it
        protocol = recorded_protocol(run.record["config"].get("protocol") or {})
        protocols[protocol.name] = protocol
    if len(protocols) > 1:
        raise RunDirectoryError(
            f"the runs have different protocols ({', '.join(sorted(protocols))}); choose with --protocol"
        )
    if not protocols:
        raise RunDirectoryError("constant answers name no protocol; choose with --protocol, or name a run too")
    return protocols.popitem()[1]


def _floors_on_the_questions_of(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Cut constants, which answer the whole data set, to the questions that the other runs were asked."""
    asked = {row.question_id for run in runs if not run.floor for row in run.rows}
    return [_cut(run, asked) if run.floor else run for run in runs]


def _cut(floor: StoredRun, asked: Set[str]) -> StoredRun:
    kept = tuple(row for row in floor.rows if row.question_id in asked)
    return replace(floor, rows=kept) if kept else floor


def plot(report: Report, out: Path) -> Path:
    """Draw the comparison."""
    column, _ = lead_metric([row.run for row in report.rows], report.protocol)
    cost = "tokens" if any("tokens" in row.estimates for row in report.rows) else "context"
    false_answers = any(row.run.has_false_answers for row in report.rows)
    fooled = column == "F1" and report.protocol.adversarial == "paper_trap" and false_answers
    kinds = {question.category: question.kind for row in report.rows for question in row.run.rows}
    series = [
        Series(
            label=row.label,
            groups={
                _category(kinds[name], report.protocol, fooled): value.point for name, value in row.by_category.items()
            },
            overall=row.estimates[column].point if column in row.estimates else None,
            cost=row.estimates[cost].value if cost in row.estimates else None,
        )
        for row in report.rows
        if row.by_category
    ]
    meaning = next(entry.meaning for entry in columns() if entry.name == cost)
    return plot_comparison(series, Wording(column, meaning, f"{report.legend[0]}\n{_bars(report)}"), out)


def _category(kind: str, protocol: Protocol, fooled: bool) -> str:
    label = protocol.label(kind).replace("-", "-\n")
    return f"{label}\n(fooled)" if fooled and kind == ADVERSARIAL else label


def _bars(report: Report) -> str:
    kinds = {point.interval.by for row in report.rows for point in row.by_category.values() if point.interval}
    over = {"conversation": "over conversations", "question": "over questions, where there is one conversation"}
    return f"bars: 95 % t interval {' or '.join(over[kind] for kind in sorted(kinds))}" if kinds else ""
