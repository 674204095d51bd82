"""Cost of a memory over its life: writing n turns and asking m questions, and from which m on one is the cheaper."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import permutations
from math import fsum
from typing import Any

from eval.commands.rendering.table import DASH, Cell, Column, Table, columns, records
from eval.config.prices import load_embedding_prices, load_prices
from eval.results.own.memory_quality import QualityGroup
from eval.results.own.systems import SystemLine, system_lines
from eval.results.stored_run import StoredRun
from eval.results.tables.costs import construction_totals, dollars_of, read_totals, turns_written
from eval.results.tables.page import Section, TablePage
from eval.scoring.call_costs import READ_PHASES
from memsys.assets.hints import of_source

NAME = "life_cycle"

#: Units of a cost.
UNITS = ("calls", "tokens", "seconds", "dollars")
#: Systems that others are set against, where a group has them.
AGAINST = ("rag", "full_context")
ALWAYS, NEVER = "always", "never"
#: Column of the break-even in the CSV file.
EVEN = "break_even_questions_per_100_turns"

LEGEND = (
    "write: building the memory, per turn; read: retrieving and answering, per question; from the run's ledger, "
    "including cached replies. Seconds: sum of the service times of all calls, without embedding and search, only if "
    "no reply came from the cache. Dollars: prices of conf/prices.yaml, if the backbone has one, with the lower "
    "prices for batches and for prompts in the provider's cache",
    "n turns and m questions cost n times write plus m times read. Even with: number of questions per 100 turns "
    f"written from which the system takes fewer tokens in total than the other; {ALWAYS}: fewer for any number; "
    f"{NEVER}: for none, or only up to a number",
    f"{DASH}: unknown, the system itself, or a reference. {of_source('docs/measures.md')} describes the limits of "
    "these figures",
)


@dataclass(frozen=True, slots=True)
class LifeCost:
    """Costs of one system in one unit.

    Attributes:
        write: for a turn.
        read: for a question.
    """

    write: float
    read: float

    def of(self, turns: float, questions: float) -> float:
        """Return the cost of this many turns and questions."""
        return turns * self.write + questions * self.read


def break_even(one: LifeCost, other: LifeCost) -> float | str:
    """Return the questions for a turn from which on one system costs less than another.

    Returns:
        :data:`ALWAYS` where it does for any number; :data:`NEVER` where it does for none, or only up to a number.
    """
    if one.read < other.read:
        return (one.write - other.write) / (other.read - one.read) if one.write > other.write else ALWAYS
    return ALWAYS if one.read == other.read and one.write < other.write else NEVER


def per_100(even: float | str) -> float | str:
    """Return a break-even in questions for 100 turns."""
    return even if isinstance(even, str) else 100 * even


def life_costs(run: StoredRun) -> dict[str, LifeCost]:
    """Return what is known of a run's costs by unit; nothing for a run without a ledger."""
    turns, ledger = turns_written(run.summary), (run.summary.get("calls") or {}).get("by_phase")
    if not turns or not run.asked or not ledger:
        return {}
    write, read = construction_totals(run.summary), read_totals(run.summary)
    found = {}
    for unit, of in _totals(run).items():
        wrote, asked = of(write), of(read)
        if wrote is not None and asked is not None:
            embedded = _embedded(run, unit)
            found[unit] = LifeCost((wrote + embedded[0]) / turns, (asked + embedded[1]) / run.asked)
    return found


def _totals(run: StoredRun) -> Mapping[str, Callable[[Sequence[Mapping[str, Any]]], float | None]]:
    price = None if run.record["config"].get("second") else load_prices().get(run.backbone)

    def dollars(totals: Sequence[Mapping[str, Any]]) -> float | None:
        if price is None or not _embeddings_known(run):
            return None
        return dollars_of(price, totals)

    return {
        "calls": lambda totals: float(sum(total["calls"] for total in totals)),
        "tokens": lambda totals: float(sum(total["prompt_tokens"] + total["completion_tokens"] for total in totals)),
        "seconds": _seconds,
        "dollars": dollars,
    }


def _seconds(totals: Sequence[Mapping[str, Any]]) -> float | None:
    if any(total["cache_hits"] for total in totals):
        return None
    return fsum(total["fresh_seconds"] for total in totals)


def _embeddings_known(run: StoredRun) -> bool:
    price = load_embedding_prices().get(run.embedder)
    return price is None or not price.embedding or run.summary.get("embeddings") is not None


def _embedded(run: StoredRun, unit: str) -> tuple[float, float]:
    """Return what embedding cost while writing and while asking: nothing but dollars, of an embedder with a price."""
    price, counted = load_embedding_prices().get(run.embedder), run.summary.get("embeddings")
    if unit != "dollars" or price is None or counted is None:
        return 0.0, 0.0
    phases = counted["by_phase"]
    read = sum(tokens for phase, tokens in phases.items() if phase in READ_PHASES)
    return price.of(counted["tokens"] - read), price.of(read)


def life_page(groups: Sequence[QualityGroup]) -> TablePage:
    """Return a table of every group that has a ledger; CSV has the break-even of every two systems."""
    found = [(group, system_lines(group)) for group in groups]
    found = [(group, lines) for group, lines in found if any(life_costs(line.run) for line in lines)]
    sections = [
        Section(group.title, group.key, [life_table(lines)], [(line.label, line.run) for line in lines])
        for group, lines in found
    ]
    names = ("dataset", "backbone", "run", "system", "unit", "write", "read", "other", EVEN)
    rows = (row for _, lines in found for row in _pairs(lines))
    return TablePage(NAME, "Costs over the life of a memory", LEGEND, sections, records(names, rows))


def life_table(lines: Sequence[SystemLine]) -> Table:
    """Return the costs of every system, with its score and evidence."""
    costs = {line.label: life_costs(line.run) for line in lines}
    others = [line for name in AGAINST for line in lines if line.run.memory == name][: len(AGAINST)]
    shown: list[Column] = [*columns(("system", "score", "R@10"))]
    digits = {"calls": 2, "tokens": 0, "seconds": 2, "dollars": 6}
    units = [unit for unit in UNITS if any(unit in found for found in costs.values())]
    shown += [Column(f"{part} {unit}", digits=digits[unit]) for unit in units for part in ("write", "read")]
    shown += [Column(f"even with {line.label}, questions per 100 turns") for line in others]
    rows: list[list[Cell]] = []
    for line in lines:
        own = costs[line.label]
        cells: list[Cell] = [line.label, line.score, line.at_10]
        for unit in units:
            cells += [own[unit].write, own[unit].read] if unit in own else [None, None]
        cells += [
            _even(own, costs[one.label]) if one is not line and not line.run.reference else None for one in others
        ]
        rows.append(cells)
    return Table("Costs", shown, rows)


def _even(one: Mapping[str, LifeCost], other: Mapping[str, LifeCost]) -> Cell:
    if "tokens" not in one or "tokens" not in other:
        return None
    return per_100(break_even(one["tokens"], other["tokens"]))


def _amounts(cost: LifeCost, unit: str) -> dict[str, object]:
    """Return both costs for the CSV file; dollars with more decimals than it has, since a turn costs few of a cent."""
    found = asdict(cost)
    return {name: f"{value:.9f}" for name, value in found.items()} if unit == "dollars" else found


def _pairs(lines: Sequence[SystemLine]) -> list[dict[str, object]]:
    """Return the break-even of every two systems in every unit that both have."""
    costs = {line.label: life_costs(line.run) for line in lines}
    return [
        {
            "dataset": one.run.dataset, "backbone": one.run.backbone, "run": one.run.run_id, "system": one.label,
            "unit": unit, **_amounts(costs[one.label][unit], unit),
            "other": other.label, EVEN: per_100(break_even(costs[one.label][unit], costs[other.label][unit])),
        }
        for one, other in permutations(lines, 2)
        for unit in UNITS
        if unit in costs[one.label] and unit in costs[other.label]
    ]  # fmt: skip
