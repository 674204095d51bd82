"""The audit as files: CSV of everything, the page in Markdown, a LaTeX leaderboard, two figures."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from eval.audit.config import AuditConfig
from eval.audit.labels import METRIC_NAMES
from eval.audit.leaderboard import Row
from eval.audit.measured import with_measured_judges
from eval.audit.page import board, page, short, text
from eval.audit.readings import JUDGE
from eval.audit.scores import ScoredRun
from eval.audit.stored import rows_of
from eval.commands.rendering.latex import render_latex
from eval.commands.rendering.separated import render_csv
from eval.commands.rendering.table import Cell, Table, columns, records
from eval.results.drawing.style import STYLE, load_pyplot, write_figure
from eval.runs.files import write_atomic
from eval.scoring.inference import ONE_CONVERSATION
from eval.scoring.verdicts.figures import stored_figures


def write_all(
    tables: Mapping[str, Sequence[Row]],
    runs: Sequence[ScoredRun],
    config: AuditConfig,
    out: Path,
    *,
    unmeasured_judges: bool = False,
) -> None:
    """Write every table as CSV, then the page, the LaTeX leaderboard and the figures of what the CSV files say.

    A page of the unrounded figures would differ in its last digits from the one that ``--page`` makes later.
    """
    written: dict[str, Sequence[Row]] = dict(tables)
    for name, rows in tables.items():
        if rows:
            table = render_csv(_records(rows))
            write_atomic(out / f"{name}.csv", table.encode())
            written[name] = rows_of(table, out / f"{name}.csv")
    shown = with_measured_judges(written, config, unmeasured=unmeasured_judges)
    write_page(shown, config, out, runs=len(runs), repositories=len({run.entry.repository for run in runs}))


def write_page(
    tables: Mapping[str, Sequence[Row]], config: AuditConfig, out: Path, *, runs: int, repositories: int
) -> None:
    """Write the page with the figures of the judges that were measured, the LaTeX leaderboard and the plots."""
    judges = [asdict(one) for one in stored_figures(out / "judge_presets.csv")]
    everything = {**tables, "judge_presets": judges}
    write_atomic(out / "audit.md", page(everything, config, runs, repositories).encode())
    write_atomic(out / "leaderboard.tex", render_latex(short_leaderboard(tables["leaderboard"], config)).encode())
    _figures(tables, config, out)


def _records(rows: Sequence[Row]) -> Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return records(names, ({name: text(value) for name, value in row.items()} for row in rows))


#: Columns of the LaTeX leaderboard: key of a row -> heading.
_LATEX = {
    "system": "System", "backbone": "Model", "n": "n", "lead": "F1", "interval": "95 %", "f1_low": "min",
    "f1_high": "max", "bleu1": "BLEU-1", "rougeL": "R-L", "meteor": "METEOR", JUDGE: "judge",
    "median_words": "words",
}  # fmt: skip


def short_leaderboard(rows: Sequence[Row], config: AuditConfig) -> Table:
    """Return the leaderboard of LoCoMo for LaTeX.

    F1 is the leading definition; min and max are those of the seven.
    """
    return Table(
        "Recorded answers to LoCoMo under one set of definitions",
        columns(_LATEX.values(), left=2),
        [_cells(row) for row in board(rows, config, "locomo")],
        notes=(
            "Percent, categories 1 to 4, question mean",
            ONE_CONVERSATION,
            "judge: mean of the verdicts that the file holds; different runs had different judges",
        ),
        label="audit-leaderboard",
    )


def _cells(row: Row) -> list[Cell]:
    low, _, high = str(row.get("f1_range", "")).partition(" to ")
    own = row | {"f1_low": low, "f1_high": high, "backbone": str(row["backbone"]).partition(" ")[0]}
    return [short(own.get(name)) for name in _LATEX]


def _figures(tables: Mapping[str, Sequence[Row]], config: AuditConfig, out: Path) -> None:
    """Judge against F1 with the length of answers, and agreement with people by metric."""
    plt = load_pyplot()
    points = [row for row in board(tables["leaderboard"], config, "locomo") if JUDGE in row]
    people = [row for row in tables.get("people", ()) if row["category"] == "1-4"]
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
        x, y, words = ([float(str(row[name])) for row in points] for name in ("lead", JUDGE, "median_words"))
        left.scatter(x, y, s=[12 + 4 * length for length in words], alpha=0.5)
        left.set_xlabel(f"{METRIC_NAMES[config.lead]}, percent")
        left.set_ylabel("mean of the recorded verdicts, percent")
        left.set_title("judge against F1; size: median words of an answer", fontsize=9)
        names = [METRIC_NAMES[str(row["metric"])] for row in people]
        auc, low, high = ([float(str(row[name])) for row in people] for name in ("auc", "auc_low", "auc_high"))
        spread = [[a - b for a, b in zip(auc, low, strict=True)], [b - a for a, b in zip(auc, high, strict=True)]]
        right.errorbar(auc, range(len(auc)), xerr=spread, fmt="o")
        right.set_yticks(range(len(names)), names)
        right.set_xlabel("area under the ROC curve against labels by people, 95 %")
        right.set_title("which metric agrees with people, categories 1 to 4", fontsize=9)
        write_figure(figure, out / "audit")
        plt.close(figure)
