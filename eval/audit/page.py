"""The audit as a page of Markdown, for a reader who knows none of it: what was found, the terms, then the tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite

from eval.audit.config import AuditConfig
from eval.audit.labels import F1_NAMES, METRIC_NAMES, SECTIONS, TERMS
from eval.audit.leaderboard import Row
from eval.audit.measured import left_out_text
from eval.audit.readings import COUNTING_TEXT, JUDGE
from eval.commands.rendering.markdown import page as markdown_page
from eval.commands.rendering.markdown import render_markdown
from eval.commands.rendering.table import Table, texts
from eval.results.tables.text import fixed
from eval.scoring.inference import BY_QUESTION, ONE_CONVERSATION
from eval.scoring.verdicts.figures import BY_PEOPLE

_DIGITS = 4
#: Kappa below which a judge's verdicts are no use: less than moderate agreement (Landis and Koch, 1977).
_POOR = 0.4
#: Preset of a data set -> its name.
DATA_NAMES = {"locomo": "LoCoMo", "longmemeval_s": "LongMemEval"}
#: Label view -> its words in the leaderboards' headings.
_VIEWS = {
    "printed": "gold answers as printed",
    "masked": "without the questions with a disputed gold answer",
    "corrected": "against the corrected gold answers",
}
#: Columns of a leaderboard: key of a row -> heading.
BOARD = {
    "system": "system", "backbone": "answering model", "n": "n", "lead": "F1 (Mem0, A-Mem)", "interval": "95 %",
    "f1_range": "F1, seven definitions", "bleu1": "BLEU-1", "rougeL": "ROUGE-L", "meteor": "METEOR", JUDGE: "judge",
    "median_words": "words", "run": "run",
}  # fmt: skip


def text(value: object) -> str:
    """Return a value as in CSV files: at most four decimals, two digits below that, empty for none."""
    if isinstance(value, float):
        if value != value:
            return ""
        return f"{value:.2g}" if 0 < abs(value) < 10**-_DIGITS else f"{value:.{_DIGITS}f}".rstrip("0").rstrip(".")
    return "" if value is None else "yes" if value is True else "no" if value is False else str(value)


def short(value: object, decimals: int | None = None) -> str:
    """Return a value for people: one decimal from 10 on, two below, integers whole; or this many decimals."""
    if not isinstance(value, float):
        return text(value)
    if not isfinite(value):
        return "" if value != value else str(value)
    if decimals is not None:
        return fixed(value, decimals)
    if value == int(value) and abs(value) < 1000:
        return str(int(value))
    return f"{value:.2g}" if abs(value) < 0.01 else f"{value:.{1 if abs(value) >= 10 else 2}f}"


def board(rows: Iterable[Row], config: AuditConfig, data: str, labels: str = "printed") -> list[Row]:
    """Return one row per run: all metrics over categories 1 to 4, question mean; the leading metric with its interval.

    Args:
        rows: of the leaderboard, all readings.
        config: which metric leads.
        data: name of the data set.
        labels: view of the labels.
    """
    found: dict[object, Row] = {}
    for row in rows:
        if (row["data"], row["labels"], row["counting"]) != (data, labels, COUNTING_TEXT["question"]):
            continue
        own = found.setdefault(row["run"], {name: row[name] for name in ("run", "system", "backbone", "median_words")})
        own[str(row["metric"])] = row["mean"]
        if row["metric"] == config.lead:
            mark = BY_QUESTION if row["interval_by"] == "question" else ""
            interval = "" if row["low"] is None else f"[{_one(row['low'])}, {_one(row['high'])}]{mark}"
            own |= {"n": row["questions"], "lead": row["mean"], "interval": interval}
    for own in found.values():
        values = [float(str(own[name])) for name in F1_NAMES if name in own]
        own["f1_range"] = f"{min(values):.1f} to {max(values):.1f}" if values else ""
    return sorted(found.values(), key=lambda row: -float(str(row.get("lead", 0))))


def _one(value: object) -> str:
    return f"{float(str(value)):.1f}"


#: Of :func:`eval.audit.write.write_page`, which writes it next to the page.
FIGURE = "![A judge's score against F1 and length, and which metric agrees with people](audit.svg)"


def page(tables: Mapping[str, Sequence[Row]], config: AuditConfig, runs: int, repositories: int) -> str:
    """Return the audit as Markdown.

    Args:
        tables: rows by table.
        config: which metric leads.
        runs: how many there are.
        repositories: how many they come from.
    """
    answers = sum(int(str(row["aligned"])) for row in tables["detectors"])
    introduction = (
        f"Authors of memory systems and third parties have published the answers of {runs} runs to the questions of "
        f"LoCoMo and LongMemEval ({repositories} repositories, {answers} answers). This page scores all of them with "
        "the same definitions and compares them with the printed numbers and with human labels. No model was called: "
        "a judge's score is the mean of the verdicts in the file. Every reading is in the CSV files next to this "
        "page; `make audit` regenerates them."
    )
    return markdown_page(
        "# Published answers, scored with the same definitions",
        introduction,
        *("## What was found", _listed(findings(tables))),
        *("## Terms", _listed(TERMS)),
        FIGURE,
        *_boards(tables, config),
        *_sections(tables),
    )


def _listed(lines: Iterable[str]) -> str:
    """Return sentences that are Markdown already as a list."""
    return "\n".join(f"- {line}" for line in lines)


def _boards(tables: Mapping[str, Sequence[Row]], config: AuditConfig) -> Iterator[str]:
    for data in sorted({str(row["data"]) for row in tables["leaderboard"]}):
        for labels, words in _VIEWS.items():
            rows = board(tables["leaderboard"], config, data, labels)
            if rows:
                yield from (f"## Leaderboard, {DATA_NAMES.get(data, data)}: {words}", caption(data))
                yield render_markdown(table_of_rows(rows, BOARD), level=0)
                yield left_out_text(tables, data, "memsys audit --page") if labels == "printed" else ""


def _sections(tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    for name, section in SECTIONS.items():
        picked = chosen(name, tables)
        if picked:
            yield from (f"## {section.title}", section.text)
            yield render_markdown(table_of_rows(named_rows(picked), section.columns, section.decimals), level=0)


def caption(data: str) -> str:
    """Return the caption of a leaderboard."""
    which = "categories 1 to 4, " if data == "locomo" else ""
    return f"Percent, {which}question mean; n: questions; words: median per answer. {ONE_CONVERSATION}."


def table_of_rows(rows: Sequence[Row], names: Mapping[str, str], decimals: int | None = None) -> Table:
    """Return rows as a table of the columns that say something; see :func:`short` for the decimals."""
    used = used_columns(rows, names)
    cells = [[short(row.get(name), decimals) for name in used] for row in rows]
    return Table("", texts(used.values()), cells)


def used_columns(rows: Sequence[Row], columns: Mapping[str, str]) -> dict[str, str]:
    """Return the columns with a value other than empty and 0."""
    return {key: name for key, name in columns.items() if any(_says(row.get(key)) for row in rows)}


def _says(value: object) -> bool:
    return value is not None and value != "" and (isinstance(value, float) or value != 0)


def named_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the page's names of metrics."""
    return [
        row
        | {"metric": METRIC_NAMES.get(str(row.get("metric")), row.get("metric"))}
        | ({"flips_under": turned(str(row["flips_under"]))} if "flips_under" in row else {})
        | ({"judge": str(row["judge"]).removesuffix(": recorded")} if "judge" in row else {})
        | ({"rerun_p": _chance(row)} if row.get("rerun_p") is not None else {})
        | ({"renamed_categories": _meanings(str(names))} if (names := row.get("renamed_categories")) else {})
        for row in rows
    ]


def _meanings(names: str) -> str:
    """Return ``single-hop=multi-hop`` in words."""
    return ", ".join(f"{said} means {meant}" for said, _, meant in (one.partition("=") for one in names.split()))


def turned(names: str) -> str:
    """Return the metrics that reverse an order, with the F1 variants as one name if all of them do."""
    found = names.split()
    every = set(F1_NAMES) <= set(found)
    rest = [METRIC_NAMES.get(name, name) for name in found if not (every and name in F1_NAMES)]
    return ", ".join([*(["every F1"] if every else []), *rest])


def chosen(name: str, tables: Mapping[str, Sequence[Row]]) -> Sequence[Row]:
    """Return the rows that a section shows: orderings printed by one source; files without counts of zero."""
    section = SECTIONS[name]
    rows = [row for row in tables.get(section.of or name) or () if not section.only or row.get(section.only)]
    if name == "detectors":
        return [{key: None if value == 0 else value for key, value in row.items()} for row in rows]
    return [row for row in rows if row["same_source"]] if name == "orderings" else rows


def findings(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    """Return one or two sentences for each question that the tables answer; none for empty tables."""
    makers = (_headlines, _orderings, _people, _wrong, _judge_presets, _reruns, _length)
    return [line for make in makers for line in make(tables)]


def _headlines(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = tables.get("headlines") or ()
    if not rows:
        return []
    wrong = sorted((row for row in rows if not row["holds"]), key=lambda row: -abs(_number(row, "difference")))
    named = "; ".join(
        f"`{row['run']}` prints {_number(row, 'printed'):.2f}, its file gives "
        f"{_number(row, 'printed') + _number(row, 'difference'):.2f}"
        for row in wrong[:3]
    )
    return [
        f"**Printed and published numbers**: {len(rows) - len(wrong)} of {len(rows)} printed headline numbers equal "
        f"the mean of the file that their authors published, {len(wrong)} do not{f' ({named})' if named else ''}."
    ]


def _orderings(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = chosen("orderings", tables)
    if not rows:
        return []
    firm = sum(row["kept"] == row["readings"] for row in rows)
    most = sum(2 * _number(row, "kept") < _number(row, "readings") for row in rows)
    return [
        f"**Printed orders**: of {len(rows)} pairs of runs that one source ranks by a judge, {firm} keep their order "
        f"under every reading, and {most} are reversed under most."
    ]


def _people(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = [row for row in tables.get("people") or () if row["category"] == "1-4"]
    if not rows:
        return []
    best = max(rows, key=lambda row: _number(row, "accuracy_held_out"))
    worst = min(rows, key=lambda row: _number(row, "accuracy_held_out"))
    return [
        f"**Metrics and human labels**: {METRIC_NAMES[str(best['metric'])]} agrees best with human labels "
        f"({_one(best['accuracy_held_out'])} % of {best['answers']} answers, kappa {short(best['kappa_held_out'])}; "
        f"assigning one label to all: {_one(best['always_one_label'])} %), {METRIC_NAMES[str(worst['metric'])]} least "
        f"({_one(worst['accuracy_held_out'])} %). No lexical metric agrees on more than that."
    ]


def _wrong(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = [row for row in tables.get("wrong") or () if row["category"] == "1-4"]
    return [
        f"**Judges and wrong answers**: a judge of the kind that most papers use called {_one(row['accepted'])} % of "
        f"{row['answers']} deliberately wrong answers correct, so a judge's score is not the share of correct answers."
        for row in rows
    ]


def _judge_presets(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    rows = [
        row
        for row in tables.get("judge_presets") or ()
        if row["kappa"] is not None and row.get("answers_of", BY_PEOPLE) == BY_PEOPLE
    ]
    found = []
    for model in sorted({str(row["backbone"]) for row in rows}):
        own = [row for row in rows if row["backbone"] == model]
        kappas = [_number(row, "kappa") for row in own]
        span = f"{min(kappas):.2f}" if len(own) == 1 else f"{min(kappas):.2f} to {max(kappas):.2f}"
        poor = " This model is not usable as a judge: do not use its verdicts." if max(kappas) < _POOR else ""
        count = min(int(_number(row, "answers")) for row in own)
        found.append(
            f"**Judges of this project on {model}**: kappa with human labels {span} (rubrics: {len(own)}; answers of "
            f"each: {count}).{poor}"
        )
    return found


def _reruns(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    return [
        f"**Selective re-running**: in `{row['run']}`, {row['run_again']} questions were run again, and "
        f"{row['errors_among_run_again']} of the {row['errors']} remaining errors are among them (by chance: p "
        f"{_chance(row, '= ')})."
        for row in tables.get("detectors") or ()
        if row.get("run_again")
    ]


def _chance(row: Row, equals: str = "") -> str:
    value = _number(row, "rerun_p")
    return "< 0.0001" if value < 0.0001 else f"{equals}{value:.4f}"


def _length(tables: Mapping[str, Sequence[Row]]) -> list[str]:
    by_metric = {str(row["metric"]): row for row in tables.get("length") or ()}
    if "f1_set" not in by_metric or JUDGE not in by_metric:
        return []
    f1, judge = (_number(by_metric[name], "within_question") for name in ("f1_set", JUDGE))
    return [
        f"**Length**: among answers to one question, length correlates with F1 at {f1:+.2f} and with the judge at "
        f"{judge:+.2f} (below 0, short answers score higher). If the signs differ, the two reward different styles."
    ]


def _number(row: Row, name: str) -> float:
    return float(str(row[name]))
