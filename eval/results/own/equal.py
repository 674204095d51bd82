"""Evidence at equal budgets, and by what an answer is put together from: docs/measures.md defines each figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eval.commands.rendering.table import DASH, Cell, Column, Table, columns, records
from eval.metrics.budgets import BUDGET_AREA, BUDGET_RECALL, BUDGETS, CHANCE, LIFT, TOKEN_PRECISION
from eval.metrics.evidence import SHOWN_RECALL, TURN_RECALL
from eval.metrics.kept import KEPT_DATES, KEPT_WORDS
from eval.metrics.registry import METRICS
from eval.results.compare.model import interval_text
from eval.results.compare.rows import ComparisonEstimate, estimate, f1_metric
from eval.results.own.matched_tokens import Matched, fitting, matched, matched_table, matched_values, wide_runs
from eval.results.own.memory_quality import QualityGroup, SystemQuality
from eval.results.own.stages import run_protocol
from eval.results.stored_run import StoredRun
from eval.results.tables.page import Section, TablePage
from eval.scoring.combination import SLICES, TURNS, slices_of
from memsys.assets.hints import of_source

NAME = "equal_budgets"
#: Name of all questions among the slices.
ALL = "all"

LEGEND = (
    "R@10: share of the gold turns that are a source of one of the first ten memories; it grows with the number of "
    "turns per memory. R@10 turns: among the first ten source turns of the memories; chance: expected value for ten "
    "turns of the conversation drawn at random; lift: R@10 turns over chance, averaged over questions, which is not "
    "the quotient of the two means",
    "R@256 tokens to R@2,048 tokens: share of the gold turns in the memories within the first 256 to 2,048 tokens; R "
    "tokens: area below that curve from 0 to 2,048; 95 %: its cluster t interval over conversations (intervals of all "
    "figures are in the CSV file). The context's tokens are divided among its memories by characters; tokens are "
    "estimated by script, the same for every backbone",
    "in context: share of the gold turns that are a source of a memory in the context; gold tokens: share of the "
    "context's tokens from gold turns; runs of versions up to 0.3.0 do not count linked notes (A-Mem, CLAG), recent "
    "pages and facts (MemoryOS), so these figures are lower bounds there",
    "kept words, kept dates: share of the content words common to gold answer and gold turns, and of the answer's "
    "days, months and years, that the entries made from the gold turns still contain",
    "in as many tokens: a system's context compared with the top turns of a search without a model, cut to the same "
    f"number of tokens, at most {BUDGETS[-1]:,}; less: in context minus that of the search, with its interval; tokens "
    "of contexts are estimated by script, or as a quarter of the characters if a version up to 0.3.0 scored the run",
    "what must be combined: R@10 turns, and F1 if there are answers, of the questions with one gold turn; with "
    "several gold turns in one session (in HotpotQA and BioASQ a whole pool of documents); with gold turns in several "
    "sessions; without an answer; with gold evidence that names no turn (not named). A date computed, also counted in "
    "one of these: the answer has a day, month or year that is in no gold turn; durations are not counted, a number "
    "from 1900 to 2099 is taken as a year",
    f"{DASH}: not in the run's files; a run scored by an earlier version needs `memsys score RUN`. "
    f"{of_source('docs/measures.md')} has the definitions and their limits",
)
#: Metrics of the table, in its order; the interval follows the area.
SHOWN = ("recall@10", TURN_RECALL, CHANCE, LIFT, *BUDGET_RECALL.values(), BUDGET_AREA, SHOWN_RECALL, TOKEN_PRECISION,
         KEPT_WORDS, KEPT_DATES)  # fmt: skip


def equal_groups(groups: Sequence[QualityGroup]) -> list[QualityGroup]:
    """Return the groups of which some run was scored with budgets, or can be compared with one that was."""
    wide = _wide(groups)
    return [group for group in groups if any(_scored(one.run) for one in group.systems) or _against(group, wide)]


def _wide(groups: Sequence[QualityGroup]) -> list[StoredRun]:
    return wide_runs([one.run for group in groups for one in group.systems])


def _against(group: QualityGroup, wide: Sequence[StoredRun]) -> list[StoredRun]:
    """Return what a group's contexts can be compared with; nothing for a group without contexts of a reader."""
    runs = [one.run for one in group.systems]
    shown = any(run.columns.has(SHOWN_RECALL) and not run.retrieval_only for run in runs)
    return fitting(runs, wide) if shown else []


def _scored(run: StoredRun) -> bool:
    return any(map(run.columns.has, (BUDGET_AREA, KEPT_WORDS)))


@dataclass(frozen=True, slots=True)
class _Figures:
    """A system's questions by slice, and its figures.

    Attributes:
        system: the system.
        parts: its run, then its questions by slice; slices without a question are left out.
        values: of each part, by metric, those that are known.
        matched: next to searches in as many tokens; ``None`` where there is none to compare with.
    """

    system: SystemQuality
    parts: Mapping[str, StoredRun]
    values: Mapping[str, Mapping[str, ComparisonEstimate]]
    matched: Matched | None


def equal_page(groups: Sequence[QualityGroup]) -> TablePage:
    """Return the tables of every group: evidence at equal budgets, in as many tokens, by what must be combined."""
    wide = _wide(groups)
    sections, rows = [], []
    for group in groups:
        others = _against(group, wide)
        found = [_figures(one, others) for one in group.systems]
        labels = [(one.label, one.run) for one in group.systems]
        sections.append(Section(group.title, group.key, _tables(found, others), labels))
        rows += [row for one in found for row in _csv_rows(one)]
    about = ("run", "system", "dataset", "backbone", "slice", "n")
    names = list(dict.fromkeys((*about, *SHOWN, *(name for row in rows for name in row))))
    return TablePage(NAME, "Evidence at equal budgets", LEGEND, sections, records(names, rows))


def _figures(system: SystemQuality, against: Sequence[StoredRun]) -> _Figures:
    parts = {ALL: system.run} | _parts(system.run)
    values = {name: _values(part) for name, part in parts.items()}
    return _Figures(system, parts, values, matched(system, against) if against else None)


def _tables(systems: Sequence[_Figures], against: Sequence[StoredRun]) -> list[Table]:
    scored = any(_scored(one.system.run) for one in systems)
    tables = [_budget_table(systems)] if scored else []
    tables += [matched_table([one.matched for one in systems if one.matched], against)] if against else []
    return [*tables, _slice_table(systems)] if scored else tables


def _budget_table(systems: Sequence[_Figures]) -> Table:
    """Return the evidence of every system, those with the largest area first."""
    lines = [(one.system.label, one.values[ALL]) for one in systems]
    lines.sort(key=lambda line: -line[1][BUDGET_AREA].value if BUDGET_AREA in line[1] else 1.0)
    shown: list[Column] = [Column("system", "left")]
    for name in SHOWN:
        shown += [Column(METRICS[name].heading), *([Column("95 %")] if name == BUDGET_AREA else [])]
    return Table("Evidence", shown, [[label, *_cells(values)] for label, values in lines], label="evidence")


def _values(run: StoredRun) -> dict[str, ComparisonEstimate]:
    """Return the means that are known, with their intervals."""
    protocol = run_protocol(run)
    found = {name: estimate(run, name, protocol) for name in (*SHOWN, f1_metric(protocol))}
    return {name: one for name, one in found.items() if one is not None}


def _cells(values: Mapping[str, ComparisonEstimate]) -> list[Cell]:
    cells: list[Cell] = []
    for name in SHOWN:
        found = values.get(name)
        cells.append(found.value if found else None)
        if name == BUDGET_AREA:
            cells.append(interval_text(found) or None)
    return cells


def _slice_table(systems: Sequence[_Figures]) -> Table:
    """Return R@10 turns and F1 of every system by what must be combined, with the number of questions."""
    shown = [name for name in SLICES if any(name in one.parts for one in systems)]
    rows = [[one.system.label, *(cell for name in shown for cell in _slice_cells(one, name))] for one in systems]
    headings = [heading for name in shown for heading in (f"{name}: n", "R@10 turns", "F1")]
    return Table("What must be combined", columns(("system", *headings)), rows, label="combined")


def _slice_cells(one: _Figures, name: str) -> tuple[Cell, Cell, Cell]:
    """Return the number of a slice's questions, R@10 turns and F1."""
    part = one.parts.get(name)
    if part is None:
        return 0, None, None
    recall, answers = (one.values[name].get(metric) for metric in (TURN_RECALL, f1_metric(run_protocol(part))))
    return len(part.rows), recall.value if recall else None, answers.value if answers else None


def _parts(run: StoredRun) -> dict[str, StoredRun]:
    """Return a run's questions by slice; slices without one are left out."""
    slices = [slices_of(row) for row in run.rows] if run.columns.has(TURNS) else []
    found = {name: [place for place, own in enumerate(slices) if name in own] for name in SLICES}
    return {name: replace(run, rows=run.columns.at(np.array(places))) for name, places in found.items() if places}


def _csv_rows(one: _Figures) -> list[dict[str, object]]:
    """Return the figures with their intervals, over all questions, then by slice; what is not known is empty."""
    run = one.system.run
    about = {"run": run.run_id, "system": one.system.label, "dataset": run.dataset, "backbone": run.backbone}
    whole = matched_values(one.matched) if one.matched else {}
    return [
        about | (whole if name == ALL else {}) | {"slice": name, "n": len(part.rows)} | _numbers(one.values[name])
        for name, part in one.parts.items()
    ]


def _numbers(values: Mapping[str, ComparisonEstimate]) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, one in values.items():
        ends = one.shown_interval
        found |= {name: one.value} | ({} if ends is None else {f"{name}_low": ends.low, f"{name}_high": ends.high})
    return found
