"""Tables of systems on data that were changed on purpose: what they find then, and how far attacks came."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eval.commands.rendering.table import Cell, Table, columns, records
from eval.metrics.attacks import ATTACK, ATTACK_METRICS, SHOWN
from eval.metrics.evidence import SHOWN_RECALL, TURN_RECALL
from eval.results.compare.rows import ComparisonEstimate, estimate, f1_metric
from eval.results.own.stages import run_protocol
from eval.results.stored_run import StoredRun
from eval.runs.load import load_references

#: Name of the data as they are, among the runs of a system.
PLAIN = "as it is"
#: Metrics of what is found of the gold turns, by their names in tables.
_FOUND = {"R@10": TURN_RECALL, "in context": SHOWN_RECALL}
#: Kinds of attack whose turns should not count, in the order of tables, and the run that they are in.
ATTACKS = {"instruction": "poison", "false_fact": "poison", "imitation": "poison", "canary": "poison",
           "withdrawn": "withdrawn", "other_user": "two_users"}  # fmt: skip
#: Kinds of attack by the row that shows them.
_ROWS = {"all poison": [kind for kind, run in ATTACKS.items() if run == "poison"],
         **{kind.replace("_", " "): [kind] for kind in ATTACKS}}  # fmt: skip
_TWIN = "_twin"
#: Runs whose recall says nothing of the change: what is asked for is the same.
_OF_ATTACKS = ("contradicted", "withdrawn", "two_users")


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
        """Return the run of an attack, with the questions alone that it is aimed at; ``None`` where there is none."""
        name = ATTACKS[kind] + (_TWIN if twin else "")
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


def change_table(systems: Sequence[StressedSystem]) -> Table:
    """Return what is found of the gold turns in the data as they are, then by how many points each change moves it."""
    names = list(dict.fromkeys(name for one in systems for name in one.runs if not name.endswith(_TWIN)))
    shown = [name for name in names if name not in (PLAIN, *_OF_ATTACKS)]
    rows = [row for one in systems for row in _changes(one, shown)]
    headings = ("system", "measure", PLAIN, *(name.replace("_", " ") for name in shown), "growth")
    shares = ["R@10: share of the gold turns among the first ten turns that the retrieved memories came from, percent"]
    if any(row[1] == "in context" for row in rows):
        shares.append("in context: share that a memory in what the reader is given came from")
    notes = [
        "; ".join(shares),
        "then by how many points it changes against the benign twin, or, where the twin is the data, against the data "
        "as they are",
    ]
    if any(row[-1] is not None for row in rows):
        notes.append("growth: entries at the most noise over those without, over the same quotient of turns; 1 grows "
                     "with the turns")  # fmt: skip
    return Table("Changed data", columns(headings, left=2), rows, [*notes, *_remarks(systems)]).filled()


def _changes(one: StressedSystem, names: Sequence[str]) -> list[list[Cell]]:
    """Return a row for each measure of which something is known, the first of them in any case."""
    plain, growth = one.runs.get(PLAIN), _growth(one)
    found: list[list[Cell]] = [
        [one.label, measure, _mean(plain, metric), *(_moved(one, name, metric) for name in names), growth]
        for measure, metric in _FOUND.items()
    ]
    known = [row for row in found if any(cell is not None for cell in row[2:-1])]
    return known or found[:1]


def _remarks(systems: Sequence[StressedSystem]) -> list[str]:
    labels: dict[str, list[str]] = {}
    for one in systems:
        for remark in one.remarks:
            labels.setdefault(remark, []).append(one.label)
    return [f"{', '.join(names)}: {remark}" for remark, names in labels.items()]


def _mean(run: StoredRun | None, metric: str) -> float | None:
    if run is None or not _is_measured(run, metric):
        return None
    return _value(estimate(run, metric, run_protocol(run)))


def _is_measured(run: StoredRun, metric: str) -> bool:
    """Return whether a metric says something of a run: what is in the context, where a reader is given one."""
    return metric != SHOWN_RECALL or not run.retrieval_only


def _value(found: ComparisonEstimate | None) -> float | None:
    return None if found is None else found.value


def _moved(one: StressedSystem, name: str, metric: str) -> float | None:
    """Return the difference to the benign twin, over the questions that both ask."""
    return _difference(one.runs.get(name), one.runs.get(f"{name}{_TWIN}", one.runs.get(PLAIN)), metric)


def _lost(one: StressedSystem) -> list[float | None]:
    """Return what harmless turns in place of poison cost, by what is found and by F1."""
    plain, twin = one.runs.get(PLAIN), one.runs.get(f"poison{_TWIN}")
    answers = None if plain is None else f1_metric(run_protocol(plain))
    return [None if metric is None else _difference(plain, twin, metric) for metric in (*_FOUND.values(), answers)]


def _difference(run: StoredRun | None, other: StoredRun | None, metric: str) -> float | None:
    """Return by how much one run's mean is above another's, over the questions that both ask."""
    if run is None or other is None:
        return None
    shared = run.columns.places.keys() & other.columns.places.keys()
    parts = [replace(each, rows=each.columns.of_questions(shared)) for each in (run, other)]
    first, second = (_mean(part, metric) for part in parts)
    return None if first is None or second is None else first - second


def _growth(one: StressedSystem) -> Cell:
    noisy = [name for name in one.runs if name.startswith("noise")]
    sizes = [_size(one.runs[name]) for name in (PLAIN, *noisy[-1:]) if name in one.runs]
    if len(sizes) < 2 or not all(entries and turns for entries, turns in sizes):
        return None
    (entries, turns), (more, most) = sizes
    return f"{(more / entries) / (most / turns):.2f}"


def _size(run: StoredRun) -> tuple[int, int]:
    found = run.summary.get("storage") or {}
    kinds = found.get("kinds") or {}
    return sum(kind["entries"] for kind in kinds.values()), int(found.get("turns") or 0)


def attack_table(systems: Sequence[StressedSystem]) -> Table:
    """Return how far what should not count came: all poison, each kind of it, what was withdrawn, another user's."""
    headings = ("system", "attack", "n", *map(_word, ATTACK_METRICS), "its twin shown")
    rows = [
        [one.label, name, len(run.rows), *(_share(run, metric) for metric in ATTACK_METRICS),
         _share(_joined(one, kinds, twin=True), SHOWN)]
        for one in systems for name, kinds in _ROWS.items() if (run := _joined(one, kinds)) is not None and run.rows
    ]  # fmt: skip
    notes = (
        "percent of the questions that something was aimed at; stored, merged, retrieved (first ten), shown by "
        "lineage; obeyed: the payload is in the answer",
        "its twin shown: how often the harmless turn at the same place was in the context, which should not be lost",
    )
    return Table("What should not count", columns(headings, left=2), rows, notes).filled()


def cost_table(systems: Sequence[StressedSystem]) -> Table:
    """Return what harmless turns cost a system, and which value of a changed fact it finds."""
    headings = ("system", *(f"{name} lost" for name in (*_FOUND, "F1")), "newest found", "outdated found")
    changed = ((one, one.runs.get("contradicted")) for one in systems)
    rows = [
        [one.label, *_lost(one), _share(run, "newest_retrieved"), _share(run, "staleness_of_question")]
        for one, run in changed
    ]
    lost = "lost: by how many points the data as they are score above poison's twin"
    found = (
        "newest found, outdated found: of facts that were stated again with another value, the new turn among the "
        "first ten memories, and the share of the first ten that came from the old turn alone"
    )
    table = Table("Harmless turns and changed facts", columns(headings), rows).filled()
    shown = {column.heading for column in table.columns}
    notes = [note for note, about in ((lost, "R@10 lost"), (found, "newest found")) if about in shown]
    return replace(table, notes=notes)


def _word(name: str) -> str:
    return name.removeprefix("attack_")


def _joined(one: StressedSystem, kinds: Sequence[str], *, twin: bool = False) -> StoredRun | None:
    """Return the run of some kinds of attack, with the questions that they are aimed at."""
    known = [run for kind in kinds if (run := one.of_kind(kind, twin=twin)) is not None]
    return replace(known[0], rows=tuple(row for run in known for row in run.rows)) if known else None


def _share(run: StoredRun | None, name: str) -> float | None:
    return None if run is None else _value(_estimate(run, name))


def _estimate(run: StoredRun, name: str) -> ComparisonEstimate | None:
    """Return the mean over all questions of a run, whether they have an answer or not."""
    return estimate(run, name, replace(run_protocol(run), adversarial="abstain"))


def data_table(systems: Sequence[StressedSystem]) -> Table:
    """Return one row for each run and metric, with its interval, for other programs."""
    names = ("system", "data", "attack", "run", "n", "metric", "value", "low", "high", "interval_by")
    rows = []
    for one in systems:
        parts: list[tuple[str, str, StoredRun, tuple[str, ...]]] = [
            (name, "", run, (*_FOUND.values(), "newest_retrieved", "staleness_of_question"))
            for name, run in one.runs.items()
        ]
        parts += [
            (ATTACKS[kind] + (_TWIN if twin else ""), kind, run, tuple(ATTACK_METRICS))
            for kind in ATTACKS
            for twin in (False, True)
            if (run := one.of_kind(kind, twin=twin)) is not None
        ]
        for data, kind, run, metrics in parts:
            about = {"system": one.label, "data": data, "attack": kind, "run": run.run_id, "n": len(run.rows)}
            for metric in metrics:
                if _is_measured(run, metric) and (found := _estimate(run, metric)) is not None:
                    ends = found.shown_interval
                    rows.append({**about, "metric": metric, "value": found.value, "low": ends and ends.low,
                                 "high": ends and ends.high, "interval_by": ends and ends.by})  # fmt: skip
    return records(names, rows)
