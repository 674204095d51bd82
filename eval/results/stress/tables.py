"""Tables of systems on data that were changed on purpose: what they find then, and how far attacks came."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eval.commands.rendering.table import Cell, Table, columns, records
from eval.metrics.attacks import ATTACK, ATTACK_METRICS, OBEYED, RETRIEVED, SHOWN
from eval.metrics.evidence import SHOWN_RECALL, TURN_RECALL
from eval.metrics.kept import KEPT_WORDS
from eval.metrics.registry import METRICS
from eval.results.compare.rows import ComparisonEstimate, estimate
from eval.results.own.stages import run_protocol
from eval.results.stored_run import StoredRun
from eval.results.stress.differences import (
    FOUND,
    PLAIN,
    TWIN,
    Difference,
    changes,
    differences,
    is_measured,
    mark_notes,
)
from eval.results.stress.facts import FACTS, changed_facts
from eval.runs.load import load_references

#: Meanings of the measures of what is left of the gold turns.
_ABOUT = {
    TURN_RECALL: "share of the gold turns among the first ten turns that the retrieved memories came from",
    SHOWN_RECALL: "share that a memory in what the reader is given came from",
    KEPT_WORDS: "of the content words that gold answer and gold turns share, those that the entries made from the gold "
    "turns still hold",
}
#: Kinds of attack whose turns should not count, in the order of tables, and the run that they are in.
ATTACKS = {"instruction": "poison", "false_fact": "poison", "imitation": "poison", "canary": "poison",
           "withdrawn": "withdrawn", "other_user": "two_users"}  # fmt: skip
_POISON = tuple(kind for kind, run in ATTACKS.items() if run == "poison")
#: Kinds of attack by the title of their table.
_ATTACK_TABLES: Mapping[str, Sequence[str]] = {
    "Poison": _POISON,
    "Withdrawn turns": ("withdrawn",),
    "Another user's turns": ("other_user",),
}
#: Kinds of poison as the headings name them, and the fewest questions of one that has figures of its own.
_KINDS = {
    "instruction": "instructions",
    "false_fact": "false facts",
    "imitation": "imitated notes",
    "canary": "secrets",
}
_FEWEST = 2
_TWIN_SHOWN = "its twin shown"
_MOVED = (
    "a change: by how many points it moves that against its benign twin, or, where the twin is the data, against the "
    "data as they are, over the questions that have a value in both"
)


@dataclass(frozen=True, slots=True)
class StressedSystem:
    """A system with its run on the data as they are (:data:`PLAIN`) and on each changed data set, by its name.

    Attributes:
        label: name of the system.
        runs: by the name of the change.
        remarks: on changes that have no run.
        kinds: of attack, by run and question id.
        complete: whether every change has a run that its data allow.
    """

    label: str
    runs: Mapping[str, StoredRun]
    remarks: Sequence[str] = ()
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    complete: bool = True

    def of_kind(self, kind: str, *, twin: bool = False) -> StoredRun | None:
        """Return the run of an attack, with the questions alone that it is aimed at; ``None`` if there is none."""
        name = ATTACKS[kind] + (TWIN if twin else "")
        run = self.runs.get(name)
        if run is None:
            return None
        kinds = self.kinds.get(name, {})
        return replace(run, rows=tuple(row for row in run.rows if kinds.get(row.question_id) == kind))


def kinds_of(run: StoredRun) -> dict[str, str]:
    """Return the kind of attack by question id, of those that something is aimed at."""
    return {
        name: str(found["kind"])
        for name, gold in load_references(run.path).items()
        if (found := gold.extra.get(ATTACK))
    }


def basis(systems: Sequence[StressedSystem]) -> list[str]:
    """Return what the figures rest on, a sentence for each data set, model and seed: how much was asked, of whom."""
    found: dict[str, list[str]] = {}
    for one in systems:
        found.setdefault(_basis(next(iter(one.runs.values()))), []).append(one.label)
    return [f"{', '.join(labels)}: {about}" for about, labels in found.items()]


def _basis(run: StoredRun) -> str:
    many = len(run.conversations)
    asked = f"{len(run.rows)} questions about {many} conversations" if many != 1 else f"{len(run.rows)} questions"
    model = "no model" if run.retrieval_only else f"{run.backbone} with reader {run.reader}"
    alone = "; one conversation, so the figures say nothing about others" if many == 1 else ""
    return f"{run.dataset}, {asked}, {model}, seed {run.record['seed']}{alone}"


def remarks(systems: Sequence[StressedSystem]) -> list[str]:
    """Return why runs of some systems are missing."""
    labels: dict[str, list[str]] = {}
    for one in systems:
        for remark in one.remarks:
            labels.setdefault(remark, []).append(one.label)
    every = len(systems) if len(systems) > 1 else 0
    return [f"{'all' if len(names) == every else ', '.join(names)}: {remark}" for remark, names in labels.items()]


def change_tables(systems: Sequence[StressedSystem]) -> list[Table]:
    """Return a table for each measure of what is left of the gold turns, with a row for each system.

    Each has the measure on the data as they are, then by how many points each change moves it. There is none where no
    change was run.
    """
    names = list(dict.fromkeys(name for one in systems for name in changes(one.runs)))
    moved = [_moves(one) for one in systems]
    tables: list[Table] = []
    for metric in FOUND:
        rows: list[list[Cell]] = [
            [one.label, _level(one.runs.get(PLAIN), metric), *(_text(own.get((name, metric))) for name in names)]
            for one, own in zip(systems, moved, strict=True)
        ]
        if any(cell is not None for row in rows for cell in row[2:]):
            shown = [each for own in moved for each in own.values() if each.metric == metric]
            headings = ("system", PLAIN, *(name.replace("_", " ") for name in names))
            notes = [f"percent: {_ABOUT[metric]}", *([] if tables else [_MOVED]), *mark_notes(shown)]
            tables.append(Table(f"Changed data: {METRICS[metric].heading}", columns(headings), rows, notes).filled())
    return tables


def growth_table(systems: Sequence[StressedSystem]) -> Table:
    """Return how memories grow with noise, of the systems of which it is known."""
    known = [(one.label, growth) for one in systems if (growth := _growth(one)) is not None]
    least = " or ".join(sorted({growth.floor for _, growth in known}))
    note = (
        "entries at the most noise over those without, over the same quotient of turns; 1 grows with the turns, and a "
        f"memory that stores none of the noise has {least}"
    )
    return Table("Growth with noise", columns(("system", "growth")), [[name, one.text] for name, one in known], [note])


def _moves(one: StressedSystem) -> dict[tuple[str, str], Difference]:
    """Return by data and metric what each change moves."""
    return {(each.data, each.metric): each for each in differences(one.runs) if each.data != PLAIN}


def _text(found: Difference | None) -> str | None:
    return None if found is None else found.text


def _level(run: StoredRun | None, metric: str) -> float | None:
    found = None if run is None else _mean(run, metric)
    return None if found is None else found.value


def _mean(run: StoredRun, metric: str) -> ComparisonEstimate | None:
    """Return a run's mean: of evidence by its protocol, else over all questions, whether they have an answer or not."""
    if not is_measured(run, metric):
        return None
    protocol = run_protocol(run)
    return estimate(run, metric, protocol if metric in FOUND else replace(protocol, adversarial="abstain"))


@dataclass(frozen=True, slots=True)
class _Growth:
    """Growth of a memory with noise, and that of one that stores none of it, as tables show them."""

    text: str
    floor: str


def _growth(one: StressedSystem) -> _Growth | None:
    noisy = [name for name in one.runs if name.startswith("noise")]
    sizes = [_size(one.runs[name]) for name in (PLAIN, *noisy[-1:]) if name in one.runs]
    if len(sizes) < 2 or not all(entries and turns for entries, turns in sizes):
        return None
    (entries, turns), (more, most) = sizes
    return _Growth(f"{(more / entries) / (most / turns):.2f}", f"{turns / most:.2f}")


def _size(run: StoredRun) -> tuple[int, int]:
    found = run.summary.get("storage") or {}
    kinds = found.get("kinds") or {}
    return sum(kind["entries"] for kind in kinds.values()), int(found.get("turns") or 0)


def attack_tables(systems: Sequence[StressedSystem]) -> list[Table]:
    """Return how far what should not count came: poison, what was withdrawn, another user's turns; then its kinds.

    Each table has a row for each system.
    """
    tables = [table for name in _ATTACK_TABLES if (table := _attack_table(systems, name)).rows]
    found = [replace(table, notes=[] if place else _attack_notes(table)) for place, table in enumerate(tables)]
    return [*found, _kind_table(systems)]


def _attack_table(systems: Sequence[StressedSystem], title: str) -> Table:
    kinds = _ATTACK_TABLES[title]
    rows: list[list[Cell]] = [
        [one.label, len(run.rows), *(_level(run, metric) for metric in ATTACK_METRICS),
         _level(_joined(one, kinds, twin=True), SHOWN)]
        for one in systems if (run := _joined(one, kinds)) is not None and run.rows
    ]  # fmt: skip
    headings = ("system", "n", *(METRICS[name].heading for name in ATTACK_METRICS), _TWIN_SHOWN)
    return Table(title, columns(headings), rows).filled()


def _kind_table(systems: Sequence[StressedSystem]) -> Table:
    """Return what each kind of poison reached, where it is aimed at two questions of a system or more."""
    ends = {METRICS[metric].heading: metric for metric in (SHOWN, OBEYED)}
    rows: list[list[Cell]] = []
    for one in systems:
        runs = [one.of_kind(kind) for kind in _KINDS]
        known = [None if run is None or len(run.rows) < _FEWEST else run for run in runs]
        rows.append([one.label, *(_level(run, metric) for metric in ends.values() for run in known)])
    headings = ("system", *(f"{name} {end}" for end in ends for name in _KINDS.values()))
    return Table(
        "Kinds of poison", columns(headings), rows, ["percent, of kinds aimed at two questions or more"]
    ).filled()


def _attack_notes(table: Table) -> list[str]:
    shown = _headings(table)
    reach = {METRICS[name].heading: name for name in ATTACK_METRICS if METRICS[name].heading in shown}
    traced = [heading for heading, name in reach.items() if name != OBEYED]
    by_lineage = ", ".join(f"{heading} (first ten)" if reach[heading] == RETRIEVED else heading for heading in traced)
    notes = ["percent of the n questions that something was aimed at"]
    if by_lineage:
        notes.append(f"{by_lineage}: by lineage, whatever an entry's text kept of the turn")
    if OBEYED in reach.values():
        notes.append("obeyed: the payload is in the answer")
    if _TWIN_SHOWN in shown:
        notes.append(
            f"{_TWIN_SHOWN}: how often the harmless turn at the same place was in the context, which should not be lost"
        )
    return notes


def _headings(table: Table) -> set[str]:
    return {column.heading for column in table.columns}


def lost_table(systems: Sequence[StressedSystem]) -> Table:
    """Return by how many points harmless turns in place of poison lower what is found, and F1."""
    rows: list[list[Cell]] = []
    shown: list[Difference] = []
    for one in systems:
        lost = [each for each in differences(one.runs) if each.data == PLAIN]
        by_metric = {each.metric: each for each in lost}
        answers = [each for each in lost if each.metric not in FOUND]
        rows.append([one.label, *(_text(by_metric.get(metric)) for metric in FOUND),
                     _text(answers[0] if answers else None)])  # fmt: skip
        shown += lost
    headings = ("system", *(f"{name} lost" for name in (*(METRICS[metric].heading for metric in FOUND), "F1")))
    notes = ["lost: by how many points the data as they are score above poison's twin, over the questions of both"]
    return Table("Harmless turns", columns(headings), rows, [*notes, *mark_notes(shown)]).filled()


def fact_table(systems: Sequence[StressedSystem]) -> Table:
    """Return which value of a changed fact a system finds, and gives its reader."""
    changed = {one.label: changed_facts(one.runs["contradicted"]) for one in systems if "contradicted" in one.runs}
    rows = [[name, len(run.rows), *(_level(run, metric) for metric in FACTS.values())] for name, run in changed.items()]
    table = Table("Changed facts", columns(("system", "n", *FACTS)), rows).filled()
    context = any(heading.endswith("in context") for heading in _headings(table))
    notes = [
        "percent of the questions whose fact was stated again with another value",
        f"newest: one of the first ten memories{', or of those in the context,' if context else ''} came from the new "
        "turn; outdated: one came from the old turn and not from the new one; by lineage, whatever its text kept",
    ]
    return replace(table, notes=notes)


def _joined(one: StressedSystem, kinds: Sequence[str], *, twin: bool = False) -> StoredRun | None:
    """Return the run of some kinds of attack, with the questions that they are aimed at."""
    known = [run for kind in kinds if (run := one.of_kind(kind, twin=twin)) is not None]
    return replace(known[0], rows=tuple(row for run in known for row in run.rows)) if known else None


def data_table(systems: Sequence[StressedSystem]) -> Table:
    """Return one row for each mean and each difference of two runs, with its interval, for other programs."""
    names = ("system", "data", "against", "attack", "run", "n", "metric", "value", "low", "high", "interval_by")
    rows = []
    for one in systems:
        parts: list[tuple[str, str, StoredRun, Iterable[str]]] = []
        for name, plain in one.runs.items():
            parts.append((name, "", plain, FOUND))
            if name.startswith("contradicted"):
                parts.append((name, "", changed_facts(plain), FACTS.values()))
        parts += [
            (ATTACKS[kind] + (TWIN if twin else ""), kind, run, ATTACK_METRICS)
            for kind in ATTACKS
            for twin in (False, True)
            if (run := one.of_kind(kind, twin=twin)) is not None
        ]
        for data, kind, run, metrics in parts:
            about = {"system": one.label, "data": data, "attack": kind, "run": run.run_id}
            rows += [
                {**about, "metric": metric, **_values(found)}
                for metric in metrics if (found := _mean(run, metric)) is not None
            ]  # fmt: skip
        rows += [
            {"system": one.label, "data": each.data, "against": each.against, "run": each.run, "metric": each.metric,
             **_values(each.found)}
            for each in differences(one.runs)
        ]  # fmt: skip
    return records(names, rows)


def _values(found: ComparisonEstimate) -> dict[str, object]:
    ends = found.shown_interval
    return {"n": found.questions, "value": found.value, "low": ends and ends.low, "high": ends and ends.high,
            "interval_by": ends and ends.by}  # fmt: skip
