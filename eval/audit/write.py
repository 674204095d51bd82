"""The audit as files: CSV of everything, Markdown and LaTeX of what a reader needs, two figures."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from eval.audit.config import AuditConfig
from eval.audit.field import Row
from eval.audit.readings import COUNTING_TEXT, JUDGE
from eval.audit.scores import ScoredRun
from eval.cli.escaping import csv_row, latex, markdown_cell, markdown_row
from eval.plots.figures import STYLE, write_figure
from eval.runs.files import write_atomic
from eval.scoring.inference import BY_QUESTION, ONE_CONVERSATION

_DIGITS = 4


def write_all(tables: Mapping[str, Sequence[Row]], runs: Sequence[ScoredRun], config: AuditConfig, out: Path) -> None:
    """Write every table as CSV, the page, the LaTeX leaderboard and the figures."""
    for name, rows in tables.items():
        if rows:
            write_atomic(out / f"{name}.csv", _csv(rows).encode())
    write_atomic(out / "audit.md", page(tables, runs, config).encode())
    write_atomic(out / "leaderboard.tex", _latex(tables["leaderboard"], config).encode())
    _figures(tables, config, out)


def _csv(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(csv_row([_text(row.get(name)) for name in names]))
    return text.getvalue()


def _text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".")
    return "" if value is None else "yes" if value is True else "no" if value is False else str(value)


def _short(value: object) -> str:
    """A number as people read it: one or two decimals."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.2g}" if 0 < abs(value) < 0.01 else f"{value:.2f}"
    return _text(value)


def _markdown(rows: Sequence[Row], columns: Mapping[str, str]) -> list[str]:
    lines = [list(columns.values()), ["---"] * len(columns)]
    lines += [[_short(row.get(name)) for name in columns] for row in rows]
    head = [markdown_row([markdown_cell(text) for text in lines[0]]), markdown_row(lines[1])]
    return [*head, *(markdown_row([markdown_cell(text) for text in line]) for line in lines[2:]), ""]


def board(rows: Sequence[Row], config: AuditConfig, data: str, labels: str = "printed") -> list[Row]:
    """One row per run: all metrics over categories 1 to 4, question mean; the leading metric with its interval."""
    chosen = [
        row
        for row in rows
        if row["data"] == data and row["labels"] == labels and row["counting"] == COUNTING_TEXT["question"]
    ]
    found: dict[object, Row] = {}
    for row in chosen:
        own = found.setdefault(row["run"], {name: row[name] for name in ("run", "system", "backbone", "median_words")})
        own[str(row["metric"])] = row["mean"]
        if row["metric"] == config.lead:
            mark = BY_QUESTION if row["interval_by"] == "question" else ""
            own |= {"n": row["questions"], "interval": f"[{_short(row['low'])}, {_short(row['high'])}]{mark}"}
    return sorted(found.values(), key=lambda row: -float(str(row.get(config.lead, 0))))


def page(tables: Mapping[str, Sequence[Row]], runs: Sequence[ScoredRun], config: AuditConfig) -> str:
    """Return the audit as Markdown."""
    parts = ["# Published answers, scored alike", "", *_introduction(runs)]
    headings = {"run": "run", "system": "system", "backbone": "model", "n": "n", "interval": f"{config.lead} 95 %"}
    headings |= {name: name for name in (*config.metrics, JUDGE)} | {"median_words": "words"}
    for data in sorted({str(row["data"]) for row in tables["leaderboard"]}):
        parts += [f"## {data}: leaderboard", "", "Percent; LoCoMo: categories 1 to 4, mean over questions, labels as"]
        parts += ["printed. The interval is a cluster t interval over conversations.", f"{ONE_CONVERSATION}.", ""]
        parts += _markdown(board(tables["leaderboard"], config, data), headings)
    for labels in ("masked", "corrected"):
        parts += [f"## locomo: labels {labels}", ""]
        parts += _markdown(board(tables["leaderboard"], config, "locomo", labels), headings)
    for name, (title, text) in _SECTIONS.items():
        rows = tables.get(name) or []
        if rows:
            parts += [f"## {title}", "", text, ""]
            parts += _markdown(_chosen(name, rows), {key: key.replace("_", " ") for key in _keys(rows)})
    return "\n".join(parts)


def _introduction(runs: Sequence[ScoredRun]) -> list[str]:
    answers = sum(len(run.answers) for run in runs)
    return [
        f"{len(runs)} runs of {len({run.entry.repository for run in runs})} repositories, {answers} answers, scored by "
        "`make audit` from the files of `eval/recorded/catalogue.yaml`. No model is involved: judge figures are means",
        "of the verdicts that the files hold. CSV files beside this page have every reading.",
        "",
    ]


#: Table -> heading and what it says.
_SECTIONS = {
    "headlines": (
        "Headline numbers",
        "What was printed beside the same mean of the file. `holds`: equal to two decimals under some way to average.",
    ),
    "orderings": (
        "Published orderings",
        "Pairs of printed judge scores. `kept`: readings (metric x labels x categories) that give the printed order. "
        "Shown: pairs printed in one table; the CSV has all.",
    ),
    "detectors": (
        "What the files give away",
        "`altered questions`: text differs from the data set, aligned by order. `renamed categories`: name=what the "
        "rows under it are. `rerun p`: chance of so many of the errors among the questions that were run again.",
    ),
    "people": (
        "Metrics against people",
        "Labels by hand of one system's answers. `accuracy held out`: threshold from the other conversations.",
    ),
    "judges": (
        "Recorded judges against people",
        "On answers that equal a labelled one (case, punctuation and articles aside); these are short and easy.",
    ),
    "wrong": ("Judges on answers that are wrong on purpose", "Share accepted, percent, and the F1 they get."),
    "length": (
        "Length of answers",
        "Correlation of the logarithm of an answer's words with its score: within runs, between systems on one "
        "question, between the runs' means.",
    ),
    "repeats": ("Repeated runs", "Spread of the mean from run to run on the same questions."),
}


def _keys(rows: Sequence[Row]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [name for name in names if any(row.get(name) not in (None, "", 0) for row in rows)]


def _chosen(name: str, rows: Sequence[Row]) -> Sequence[Row]:
    return [row for row in rows if row["same_source"]] if name == "orderings" else rows


def _latex(rows: Sequence[Row], config: AuditConfig) -> str:
    names = ["system", "backbone", "n", *config.metrics, JUDGE]
    body = [
        " & ".join(latex(_short(row.get(name))) for name in names) + r" \\" for row in board(rows, config, "locomo")
    ]
    head = " & ".join(latex(name) for name in names) + r" \\"
    columns = "ll" + "r" * (len(names) - 2)
    lines = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _figures(tables: Mapping[str, Sequence[Row]], config: AuditConfig, out: Path) -> None:
    """Judge against F1 with the length of answers, and agreement with people by metric."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    points = [row for row in board(tables["leaderboard"], config, "locomo") if JUDGE in row]
    people = [row for row in tables.get("people", ()) if row["category"] == "1-4"]
    with mpl.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
        x, y, words = ([float(str(row[name])) for row in points] for name in (config.lead, JUDGE, "median_words"))
        left.scatter(x, y, s=[12 + 4 * length for length in words], alpha=0.5)
        left.set_xlabel(f"{config.lead}, percent")
        left.set_ylabel("mean of the recorded verdicts, percent")
        left.set_title("judge against F1; size: median words of an answer", fontsize=9)
        names = [str(row["metric"]) for row in people]
        auc, low, high = ([float(str(row[name])) for row in people] for name in ("auc", "auc_low", "auc_high"))
        spread = [[a - b for a, b in zip(auc, low, strict=True)], [b - a for a, b in zip(auc, high, strict=True)]]
        right.errorbar(auc, range(len(auc)), xerr=spread, fmt="o")
        right.set_yticks(range(len(names)), names)
        right.set_xlabel("area under the ROC curve against labels by people, 95 %")
        right.set_title("which metric agrees with people, categories 1 to 4", fontsize=9)
        write_figure(figure, out / "audit")
        plt.close(figure)
