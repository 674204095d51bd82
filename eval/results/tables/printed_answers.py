"""Answers that a paper prints to one question, next to those of runs: ``results/printed/<paper>_answers.yaml``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eval.commands.rendering.markdown import page, render_markdown, section
from eval.commands.rendering.table import DASH, Cell, Table, texts
from eval.config.presets import make_preset
from eval.metrics.locomo import abstains, is_trapped
from eval.results.papers.printed import PRINTED
from eval.results.stored_run import StoredRun
from eval.results.tables.candidates import group_runs
from eval.results.tables.page import WRITTEN
from eval.results.tables.spec import PaperSpec
from eval.runs.records import RetrievalRecord, ScoreRow
from eval.scoring.run_files import RunFiles

#: What an answer to a question of category 5 is.
FALSE, DECLINES, OTHER = "the false answer", "declines", "another answer"
_HEADINGS = ("system", "backbone", "answer", "which is", "by the paper", "by LoCoMo's label", "evidence in first ten",
             "shown", "clusters", "run")  # fmt: skip
_NOTES = (
    "answer: as printed, or the run's own words where its folder is here",
    "which is: for a run stored as scores only, all that is known about its answer",
    "evidence in first ten, shown: the share of the turns with the evidence among the first ten results, and in the "
    "reader's context, in percent",
    "clusters: those that CLAG searched for this question, how many of all notes they contain, and where the first "
    "ten were",
)


@dataclass(frozen=True, slots=True)
class PrintedAnswers:
    """Answers to one question of LoCoMo's category 5; ``results/printed/clag_answers.yaml`` explains the fields."""

    paper: str
    table: int
    title: str
    dataset: str
    question: str
    asked: str
    right: str
    backbone: str
    answers: Mapping[str, str]
    remarks: Sequence[str] = ()

    @property
    def file(self) -> str:
        """Name of its page."""
        return f"{self.paper}_table{self.table:02d}.md"


def printed_answers(paper: str, folder: Path = PRINTED) -> PrintedAnswers | None:
    """Read the answers that a paper prints; ``None`` where it prints none.

    Raises:
        ConfigError: the file cannot be read, or a field is missing or unknown.
    """
    path = folder / f"{paper}_answers.yaml"
    return make_preset(PrintedAnswers, path) if path.is_file() else None


def answers_page(printed: PrintedAnswers, spec: PaperSpec, runs: Sequence[StoredRun]) -> str:
    """Return the page of printed answers and of the answers of runs to the same question."""
    rows: list[list[Cell]] = []
    asked = [run for run in runs if not (run.retrieval_only or run.floor or run.recorded or run.times_questions)]
    candidates, _ = group_runs(asked, spec)
    for system, text in printed.answers.items():
        backbone = f"{spec.backbone_label(printed.backbone)} (printed)"
        rows.append([spec.systems[system].label, backbone, text, *_meaning(_kind(text, printed.right)), *[DASH] * 4])
    for key in sorted(candidates, key=lambda key: (_place(key.system, printed), key.system, key.backbone, key.variant)):
        label = spec.system_label(key.system) + (f" [{key.variant}]" if key.variant else "")
        for run in candidates[key].get(printed.dataset, ()):
            if (place := run.columns.places.get(printed.question)) is not None:
                rows.append([label, spec.backbone_label(key.backbone), *_measured(run, run.rows[place], printed)])
    return page(
        render_markdown(Table(f"{spec.label} Table {printed.table}: {printed.title}", texts(_HEADINGS), rows), level=1),
        f"{spec.datasets[printed.dataset].label}, {printed.question}: {printed.asked}",
        f"Printed: {spec.version}." if spec.version else "",
        section("Columns", _NOTES),
        section("Remarks", printed.remarks),
        WRITTEN,
    )


def _place(system: str, printed: PrintedAnswers) -> int:
    names = [*printed.answers]
    return names.index(system) if system in names else len(names)


def _kind(answer: str, false_answer: str) -> str:
    if abstains(answer):
        return DECLINES
    return FALSE if is_trapped(answer, false_answer) else OTHER


def _meaning(kind: str) -> tuple[str, str, str]:
    """Return what an answer is, whether it is right by the paper, and by LoCoMo's label."""
    right = {True: "right", False: "wrong"}
    return kind, right[kind == FALSE], right[kind == DECLINES]


def _measured(run: StoredRun, row: ScoreRow, printed: PrintedAnswers) -> Iterator[Cell]:
    scores, files = row.metrics, RunFiles(run.path)
    answer = files.answers.get(printed.question)
    kind = DECLINES if scores.get("abstained") else FALSE if scores.get("trapped") else OTHER
    yield (answer and answer.prediction) or DASH
    yield from _meaning(kind)
    yield from (_percent(scores.get(name)) for name in ("recall@10", "shown_recall"))
    yield _clusters(files.retrievals.get(printed.question))
    yield run.run_id


def _percent(share: float | None) -> str:
    return DASH if share is None else f"{100 * share:.0f}"


def _clusters(retrieval: RetrievalRecord | None) -> str:
    trace = retrieval.trace if retrieval else {}
    if "searched_notes" not in trace:
        return DASH
    searched = ", ".join(map(str, trace["searched"] or [])) or "all"
    found = ", ".join(dict.fromkeys(str(home) for home in trace["hit_clusters"] or []))
    return f"{searched}: {trace['searched_notes']} of {trace['stored_notes']} notes; results in {found or 'none'}"
