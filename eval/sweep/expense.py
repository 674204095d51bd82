"""Costs at a hosted model, said before the first call, and a question if there is a terminal to ask."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from eval.commands.asking import can_ask, confirmed
from eval.commands.counting import short
from eval.commands.terminal import say
from eval.config.prices import FILE, Price, load_prices
from eval.loaders.shapes import shape_of
from eval.running.plan import Plan, identity_of, run_path
from eval.running.servers import as_known
from eval.runs.load import find_record
from eval.runs.rows import ledger
from eval.runs.rundir import CALLS
from eval.sweep.cells import Composer, Sweep, SweepCell
from eval.sweep.costing import CostTotals, is_hosted, plan_calls, plan_sweep, total
from memsys.errors import ConfigError
from memsys.llm.config import BackboneConfig
from memsys.llm.engines.contract import SendsBatches
from memsys.llm.ledger import CallRecord

_CENT = 0.01
#: Beginnings of the settings of a sweep that can choose another backbone.
_CHOOSES_BACKBONE = ("backbone", "experiment", "mode")


@dataclass(frozen=True, slots=True)
class Expense:
    """Costs that are still to come.

    Attributes:
        backbone: its name.
        totals: calls and tokens.
        price: of the tokens; ``None`` where it is not known.
        made: calls that earlier parts of the run have made.
        known: whether the memory system says what it asks.
        later: share of ``totals`` that is sent in batches.
        most: calls and replies in ``totals`` are the most that there can be.
        runs: of a sweep that they are for; ``None`` for one run.
        thoughts: said of those of the model, behind the reply tokens.
    """

    backbone: str
    totals: CostTotals
    price: Price | None
    made: int
    known: bool
    later: CostTotals = field(default_factory=CostTotals)
    most: bool = False
    runs: int | None = None
    thoughts: str = ""

    def text(self) -> str:
        """Return the costs, in one line."""
        more = "" if self.known else ", and the memory's own calls, which it does not name in advance"
        earlier = f" besides {self.made:,} that were made" if self.made else ""
        about, most = ("up to", "up to ") if self.most else ("about", "")
        tokens = f"{short(self.totals.prompt)} prompt tokens and {most}{short(self.totals.reply)} reply tokens"
        tokens += self.thoughts
        runs = "" if self.runs is None else f"{self.runs} runs, " if self.runs != 1 else "1 run, "
        said = f"{self.backbone}: {runs}{about} {self.totals.calls:,.0f} calls{earlier} with {tokens}{more}"
        if self.price is None:
            return f"{said}; conf/{FILE.name} has no price of it"
        at_once = self.totals - self.later
        dollars = self.price.of_both((at_once.prompt, at_once.reply), (self.later.prompt, self.later.reply))
        part = "" if self.later == self.totals else "answers "
        batches = f", {part}in batches" if self.later.calls else ""
        shown = f"{most}${dollars:.2f}" if dollars >= _CENT else "under $0.01"
        return f"{said}: {shown} (list prices of {self.price.date or 'no date'}{batches})"


def expenses(plan: Plan) -> list[Expense]:
    """Estimate the rest of a run at each of its hosted models; empty where it has none, or where nothing is left."""
    asked = [(one, of_second) for one, of_second in ((plan.backbone, False), (plan.second, True)) if _is_paid(one)]
    if not asked:
        return []
    data = plan.dataset.load()
    path = run_path(plan, identity_of(plan, data.sha256))
    stored = find_record(path) if path.is_dir() else None
    if stored is not None and stored.get("status") == "complete":
        return []
    calls, known = plan_calls(plan, shape_of(plan.dataset, data))
    rows = list(ledger(path / CALLS, CallRecord)) if (path / CALLS).is_file() else []
    found = []
    for backbone, of_second in asked:
        assert backbone is not None
        each_thought, thoughts = _thoughts(backbone, plan.cache_dir)
        own = [each for each in calls if (each.role in plan.second_roles) == of_second]
        made = [row for row in rows if (row.role in plan.second_roles) == of_second]
        left = _thinking(total(own), each_thought) - _sum(made)
        rest = CostTotals(max(left.calls, 0), max(left.prompt, 0), max(left.reply, 0))
        later = CostTotals()
        if isinstance(backbone.engine, SendsBatches):
            answers = _thinking(total([each for each in own if each.phase == "answer"]), each_thought)
            later = CostTotals(
                min(answers.calls, rest.calls), min(answers.prompt, rest.prompt), min(answers.reply, rest.reply)
            )
        price = load_prices().get(backbone.name)
        found.append(Expense(backbone.name, rest, price, len(made), known, later, thoughts=thoughts))
    return found


def _thoughts(backbone: BackboneConfig, cache_dir: Path) -> tuple[int, str]:
    """Return the tokens of thoughts that each reply is counted with, and what is said of them.

    Args:
        backbone: as it was composed.
        cache_dir: with what is known of its server.
    """
    known = as_known(backbone, cache_dir)
    config, found = known.config, known.found
    thinks = found is not None and found.thinks and config.thinking == "none"
    if config.prompt_mode != "chat" or not (thinks or config.thinking_tokens or config.thinking == "on"):
        return 0, ""
    if found is not None and found.thought_tokens:
        each = found.thought_tokens
        return each, f", {each:,} of each reply for thoughts, as many as a small question took"
    most = f", up to {config.thinking_tokens:,} tokens a reply" if config.thinking_tokens else ""
    return 0, f", and thoughts on top{most}"


def _thinking(totals: CostTotals, each: int) -> CostTotals:
    return totals + CostTotals(reply=each * totals.calls)


def _is_paid(backbone: BackboneConfig | None) -> bool:
    return backbone is not None and is_hosted(backbone)


def _sum(made: Sequence[CallRecord]) -> CostTotals:
    """Return the sums of calls that were made; those that came from the cache count too."""
    prompts, replies = sum(each.prompt_tokens for each in made), sum(each.completion_tokens for each in made)
    return CostTotals(len(made), prompts, replies)


def confirm_run(plan: Plan, *, agreed: bool) -> None:
    """Say what a run will cost; see :func:`confirm`."""
    confirm(expenses(plan), agreed=agreed)


def confirm_sweep(overrides: Sequence[str], folder: Path | None, *, agreed: bool) -> None:
    """Say what the runs of a sweep will cost together; see :func:`confirm`.

    Args:
        overrides: of the sweep.
        folder: further folder of configuration.
        agreed: continue without a question.

    Raises:
        ConfigError: the answer is no, or a setting does not exist.
    """
    confirm(_sweep_expenses(_paid_cells(Composer(folder), overrides)), agreed=agreed)


def _paid_cells(composer: Composer, overrides: Sequence[str]) -> list[SweepCell]:
    """Return the cells of a sweep with a hosted model; of those with the same backbone the first says whether.

    Where a second backbone is chosen, each says it: whether it is asked goes by the memory.
    """
    by_backbone: dict[tuple[str, ...], list[list[str]]] = {}
    for job in composer.jobs(overrides)[0]:
        chosen = tuple(one for one in job if one.lstrip("+~").startswith(_CHOOSES_BACKBONE))
        by_backbone.setdefault(chosen, []).append(job)
    found = []
    for jobs in by_backbone.values():
        first = composer.cell(jobs[0])
        plan = first.plan
        if plan is None or _is_paid(plan.backbone) or plan.settings.get("second"):
            found += [first, *map(composer.cell, jobs[1:])]
    return found


def _sweep_expenses(cells: Sequence[SweepCell]) -> list[Expense]:
    found: dict[str, Expense] = {}
    for cost in plan_sweep(Sweep(tuple(cells), Path())).cells:
        if cost.problem or cost.state == "done":
            continue
        for backbone, totals, later in cost.by_backbone:
            if is_hosted(backbone):
                price, name = load_prices().get(backbone.name), backbone.name
                each, thoughts = _thoughts(backbone, cost.cell.valid_plan().cache_dir)
                one = found.get(name, Expense(name, CostTotals(), price, 0, True, runs=0, thoughts=thoughts))
                found[name] = replace(
                    one, totals=one.totals + _thinking(totals, each), later=one.later + _thinking(later, each),
                    known=one.known and cost.known, runs=(one.runs or 0) + 1,
                )  # fmt: skip
    return list(found.values())


def confirm(found: Sequence[Expense], *, agreed: bool) -> None:
    """Say costs, and ask whether to continue if there is a terminal to ask.

    Args:
        found: the costs at each hosted model.
        agreed: continue without a question.

    Raises:
        ConfigError: the answer is no.
    """
    for one in found:
        say(one.text())
    if not agreed and any(one.totals.calls for one in found) and can_ask() and not confirmed("Go on?"):
        raise ConfigError("not started; this command paid nothing")
