"""Estimate of a sweep's costs: calls, tokens and GPU hours of every cell, before anything is submitted."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal
from urllib.parse import urlsplit

from eval.commands.terminal import stage
from eval.config.prices import load_prices
from eval.loaders.shapes import shape_of
from eval.running.plan import Plan
from eval.scoring.call_costs import READ_PHASES
from eval.sweep.calls import memory_calls, reader_calls
from eval.sweep.cells import Sweep, SweepCell
from eval.sweep.launching import needs
from eval.sweep.status import CellState, cell_status
from memsys.call_model import DataShape, ExpectedCalls
from memsys.errors import ConfigError
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import SendsBatches, ServedByOthers
from memsys.llm.engines.vllm import VllmEngineConfig
from memsys.proxies import is_local

#: Share of the arithmetic and of the memory's bandwidth that serving reaches, and the least time of one step.
ARITHMETIC_SHARE, BANDWIDTH_SHARE, STEP_SECONDS = 0.4, 0.6, 0.004
#: Until a server has loaded its model.
START_HOURS = 0.05
_PARAMETERS = re.compile(r"(\d+(?:\.\d+)?)\s*B\b", re.IGNORECASE)
Bound = Literal["throughput", "writes in a row", ""]


@dataclass(frozen=True, slots=True)
class Gpu:
    """Speed of a GPU: dense 16-bit arithmetic in 10^12 a second, memory in 10^12 bytes a second."""

    arithmetic: float
    bandwidth: float


GPUS: Mapping[str, Gpu] = {
    "a100": Gpu(312, 2.0),
    "h100": Gpu(989, 3.35),
    "h200": Gpu(989, 4.8),
    "l40s": Gpu(362, 0.86),
    "v100": Gpu(125, 0.9),
}


@dataclass(frozen=True, slots=True)
class CostTotals:
    """Sums over calls; tokens in thousands would hide small sweeps, so they are plain."""

    calls: float = 0.0
    prompt: float = 0.0
    reply: float = 0.0

    def __add__(self, other: "CostTotals") -> "CostTotals":
        """Return the sum of both."""
        return CostTotals(self.calls + other.calls, self.prompt + other.prompt, self.reply + other.reply)

    def __sub__(self, other: "CostTotals") -> "CostTotals":
        """Return the difference of both."""
        return CostTotals(self.calls - other.calls, self.prompt - other.prompt, self.reply - other.reply)


def total(calls: Sequence[ExpectedCalls]) -> CostTotals:
    """Sum over roles."""
    return CostTotals(
        sum(each.calls for each in calls),
        sum(each.calls * each.prompt for each in calls),
        sum(each.calls * each.reply for each in calls),
    )


@dataclass(frozen=True, slots=True)
class CellCost:
    """Costs of one cell.

    Attributes:
        cell: which.
        state: what has become of it already.
        method: all its calls, as tables count them.
        to_pay: those not paid for earlier in the sweep; none for a cell that is done.
        writing: those of them that are made while writing, one after the other within a conversation.
        by_second: those of them that the second backbone answers.
        later: those of them that the other one answers in batches.
        known: its memory system has a model; otherwise its own calls are missing.
        problem: why nothing can be said: data that is missing, settings that do not fit.
        shape: sizes of its data.
    """

    cell: SweepCell
    state: CellState
    method: CostTotals
    to_pay: CostTotals
    writing: CostTotals
    known: bool
    problem: str
    shape: DataShape | None
    by_second: CostTotals = field(default_factory=CostTotals)
    later: CostTotals = field(default_factory=CostTotals)

    @property
    def by_backbone(self) -> list[tuple[BackboneConfig, CostTotals, CostTotals]]:
        """Each backbone with its part of ``to_pay`` and, of that, what it answers in batches."""
        plan = self.cell.plan
        if plan is None:
            return []
        parts = ((plan.backbone, self.to_pay - self.by_second, self.later), (plan.second, self.by_second, CostTotals()))
        return [(backbone, totals, later) for backbone, totals, later in parts if backbone is not None]

    @property
    def dollars(self) -> float | None:
        """US dollars of what is to pay, by :mod:`eval.config.prices`; ``None`` where no backbone has a price."""
        found: list[float] = []
        for backbone, totals, later in self.by_backbone:
            if (price := load_prices().get(backbone.name)) is not None:
                at_once = totals - later
                found.append(price.of_both((at_once.prompt, at_once.reply), (later.prompt, later.reply)))
        return fsum(found) if found else None

    @property
    def unpriced(self) -> list[str]:
        """Names of the hosted backbones of what is to pay that have no price."""
        plan = self.cell.plan
        asked = [] if plan is None or not self.to_pay.calls else [plan.backbone, plan.second]
        return [one.name for one in asked if one is not None and is_hosted(one) and one.name not in load_prices()]


@dataclass(frozen=True, slots=True)
class GroupCost:
    """Costs of the cells of one backbone.

    Attributes:
        backbone: its name.
        cells: how many have to run.
        to_pay: their calls.
        gpus: that one server takes; 0 for embedded and hosted backbones.
        hours: GPU hours; ``None`` where they are not known.
        wall_hours: from start to end with one server; ``None`` likewise.
        bound: what the time is spent on.
        dollars: of their calls; ``None`` where no backbone has a price.
    """

    backbone: str
    cells: int
    to_pay: CostTotals
    gpus: int
    hours: float | None
    wall_hours: float | None
    bound: Bound
    dollars: float | None = None


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """Costs of a sweep, by cell and by backbone, on one kind of GPU."""

    cells: Sequence[CellCost]
    groups: Sequence[GroupCost]
    gpu: str


def plan_sweep(sweep: Sweep, gpu: str = "a100") -> SweepPlan:
    """Estimate a sweep.

    Raises:
        ConfigError: the GPU is not in the list.
    """
    if gpu not in GPUS:
        raise ConfigError(f"--gpu={gpu} is unknown; choose one of {', '.join(GPUS)}")
    paid: set[tuple[str, ...]] = set()
    costs = []
    for number, cell in enumerate(sweep.cells, start=1):
        with stage(f"estimating cell {number} of {len(sweep.cells)}"):
            costs.append(_cell_cost(cell, paid))
    return SweepPlan(costs, group_costs(costs, gpu), gpu)


def _cell_cost(cell: SweepCell, paid: set[tuple[str, ...]]) -> CellCost:
    status = cell_status(cell)
    nothing = CostTotals()
    if cell.plan is None or status.path is None:
        return CellCost(cell, status.state, nothing, nothing, nothing, True, status.reason, None)
    shape = shape_of(cell.plan.dataset, cell.data)
    calls = expected_calls(cell, shape)
    unpaid = [] if status.state == "done" else [each for each in calls or () if not _paid(cell, each, paid)]
    known = cell.plan.backbone is None or memory_calls(cell.plan.memory, shape) is not None
    writing = total([each for each in unpaid if each.phase == "write"])
    second = total([each for each in unpaid if each.role in cell.plan.second_roles])
    later = total([each for each in unpaid if each.phase == "answer" and each.role not in cell.plan.second_roles])
    batches = cell.plan.backbone is not None and isinstance(cell.plan.backbone.engine, SendsBatches)
    later = later if batches else nothing
    return CellCost(cell, status.state, total(calls), total(unpaid), writing, known, "", shape, second, later)


def expected_calls(cell: SweepCell, shape: DataShape) -> list[ExpectedCalls]:
    """Return all calls of a cell: none without a backbone, the reader's alone for a system without a model."""
    return plan_calls(cell.valid_plan(), shape)[0]


def is_hosted(backbone: BackboneConfig) -> bool:
    """Return whether a backbone's server is another machine, whose owner may ask for money."""
    if not isinstance(backbone.engine, ServedByOthers):
        return False
    host = urlsplit(backbone.engine.served()[0]).hostname
    return host is None or not is_local(host)


def sum_of_dollars(costs: Iterable["CellCost | GroupCost"]) -> float | None:
    """Return the dollars of all that have any; ``None`` where none has."""
    known = [cost.dollars for cost in costs if cost.dollars is not None]
    return fsum(known) if known else None


def plan_calls(plan: Plan, shape: DataShape) -> tuple[list[ExpectedCalls], bool]:
    """Return all calls of a plan, and whether its memory system says which ones it makes."""
    if plan.backbone is None:
        return [], True
    of_memory = memory_calls(plan.memory, shape)
    return [*(of_memory or ()), *reader_calls(plan.reader, plan.memory, shape)], of_memory is not None


def _paid(cell: SweepCell, calls: ExpectedCalls, paid: set[tuple[str, ...]]) -> bool:
    """Return whether an earlier cell pays for these calls; record that this one does otherwise."""
    plan = cell.valid_plan()
    fresh = plan.timing == "latency" and calls.phase in READ_PHASES
    if not calls.shared or fresh or not plan.use_cache:
        return False
    key = (cell.group, repr(plan.dataset), str(plan.seed), calls.phase, calls.role, calls.shared)
    if key in paid:
        return True
    paid.add(key)
    return False


def group_costs(costs: Sequence[CellCost], gpu: str) -> list[GroupCost]:
    """Return the costs of the cells of each backbone that have to run, on one kind of :data:`GPUS`."""
    by_backbone: dict[str, list[CellCost]] = defaultdict(list)
    for cost in costs:
        plan = cost.cell.plan
        if plan is not None and plan.backbone is not None and cost.state != "done" and not cost.problem:
            by_backbone[plan.backbone.name].append(cost)
    return [_group(name, found, GPUS[gpu]) for name, found in by_backbone.items()]


def _group(name: str, costs: Sequence[CellCost], gpu: Gpu) -> GroupCost:
    to_pay = sum((cost.to_pay for cost in costs), CostTotals())
    backbone = costs[0].cell.valid_plan().backbone
    assert backbone is not None
    _, gpus, _ = needs(costs[0].cell, "vllm")
    dollars = sum_of_dollars(costs)
    size = parameters(backbone)
    if not isinstance(backbone.engine, VllmEngineConfig) or size is None:
        return GroupCost(name, len(costs), to_pay, gpus, None, None, "", dollars)
    gpus = gpus or backbone.engine.tensor_parallel_size * backbone.engine.data_parallel_size
    writing = sum((cost.writing for cost in costs), CostTotals())
    rest = to_pay - writing
    row = max(row_hours(cost, size, gpu) for cost in costs)
    written = busy_hours(writing, size, backbone.max_in_flight, gpu) / gpus
    alone = [cost for cost in costs if cost.cell.valid_plan().timing == "latency"]  # one call at a time, own servers
    slow = sum((cost.to_pay for cost in alone), CostTotals()) - sum((cost.writing for cost in alone), CostTotals())
    read = (busy_hours(rest - slow, size, backbone.max_in_flight, gpu) + busy_hours(slow, size, 1, gpu)) / gpus
    wall = START_HOURS * max(len(alone), 1) + max(row, written) + read
    bound: Bound = "writes in a row" if row > written + read else "throughput"
    return GroupCost(name, len(costs), to_pay, gpus, wall * gpus, wall, bound, dollars)


def parameters(backbone: BackboneConfig) -> float | None:
    """Return a model's parameters in 10^9, from its name; ``None`` if it does not say."""
    return parameters_of(backbone.model)


def parameters_of(model: str) -> float | None:
    """Return the parameters in 10^9 that a model's name states; ``None`` if it does not."""
    found = _PARAMETERS.search(model)
    return float(found.group(1)) if found else None


def step_seconds(size: float, gpu: Gpu) -> float:
    """Return the seconds of one decoding step, which reads all 16-bit weights once."""
    return max(2e9 * size / (BANDWIDTH_SHARE * gpu.bandwidth * 1e12), STEP_SECONDS)


def busy_hours(totals: CostTotals, size: float, in_flight: int, gpu: Gpu) -> float:
    """Return the GPU hours without idling: prompts are bound by arithmetic, replies by full batches' steps."""
    prompts = totals.prompt * 2e9 * size / (ARITHMETIC_SHARE * gpu.arithmetic * 1e12)
    replies = totals.reply / in_flight * step_seconds(size, gpu)
    return (prompts + replies) / 3600


def row_hours(cost: CellCost, size: float, gpu: Gpu) -> float:
    """Return the hours of the longest conversation's sequential writes, a lower bound for any server."""
    if cost.shape is None or not cost.shape.turns:
        return 0.0
    share = max(cost.shape.turns) / sum(cost.shape.turns)
    prompts = cost.writing.prompt * 2e9 * size / (ARITHMETIC_SHARE * gpu.arithmetic * 1e12)
    return share * (prompts + cost.writing.reply * step_seconds(size, gpu)) / 3600
