"""Costs at a hosted model, said before the first call, and a question where somebody can answer it."""

from dataclasses import dataclass, field
from pathlib import Path

from eval.commands.asking import can_ask, confirmed
from eval.commands.counting import short
from eval.commands.terminal import say
from eval.config.prices import FILE, Price, load_prices
from eval.loaders.shapes import shape_of
from eval.running.plan import Plan, identity_of, run_path
from eval.runs.load import find_record
from eval.runs.rows import ledger
from eval.runs.rundir import CALLS
from eval.sweep.costing import CostTotals, is_hosted, plan_calls, total
from memsys.errors import ConfigError
from memsys.llm.engines.contract import SendsBatches
from memsys.llm.ledger import CallRecord

_CENT = 0.01


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
    """

    backbone: str
    totals: CostTotals
    price: Price | None
    made: int
    known: bool
    later: CostTotals = field(default_factory=CostTotals)
    most: bool = False

    def text(self) -> str:
        """Return the costs, in one line."""
        more = "" if self.known else ", and the memory's own calls, which it does not name in advance"
        earlier = f" besides {self.made:,} that were made" if self.made else ""
        about, most = ("up to", "up to ") if self.most else ("about", "")
        tokens = f"{short(self.totals.prompt)} prompt tokens and {most}{short(self.totals.reply)} reply tokens"
        said = f"{self.backbone}: {about} {self.totals.calls:,.0f} calls{earlier} with {tokens}{more}"
        if self.price is None:
            return f"{said}; conf/{FILE.name} has no price of it"
        at_once = self.totals - self.later
        dollars = self.price.of_both((at_once.prompt, at_once.reply), (self.later.prompt, self.later.reply))
        part = "" if self.later == self.totals else "answers "
        batches = f", {part}in batches" if self.later.calls else ""
        shown = f"{most}${dollars:.2f}" if dollars >= _CENT else "under $0.01"
        return f"{said}: {shown} (list prices of {self.price.date or 'no date'}{batches})"


def expense(plan: Plan) -> Expense | None:
    """Estimate the rest of a run at a hosted model; ``None`` where it has none, or where nothing is left to do."""
    backbone = plan.backbone
    if backbone is None or not is_hosted(backbone):
        return None
    data = plan.dataset.load()
    path = run_path(plan, identity_of(plan, data.sha256))
    stored = find_record(path) if path.is_dir() else None
    if stored is not None and stored.get("status") == "complete":
        return None
    calls, known = plan_calls(plan, shape_of(plan.dataset, data))
    own = [each for each in calls if each.role not in plan.second_roles]
    made, done = _made(path)
    left = total(own) - done
    rest = CostTotals(max(left.calls, 0), max(left.prompt, 0), max(left.reply, 0))
    answers = total([each for each in own if each.phase == "answer"])
    later = CostTotals(min(answers.calls, rest.calls), min(answers.prompt, rest.prompt), min(answers.reply, rest.reply))
    later = later if isinstance(backbone.engine, SendsBatches) else CostTotals()
    return Expense(backbone.name, rest, load_prices().get(backbone.name), made, known, later)


def _made(folder: Path) -> tuple[int, CostTotals]:
    """Return how many calls a run has made, and their sums; those that came from the cache count too."""
    calls = list(ledger(folder / CALLS, CallRecord)) if (folder / CALLS).is_file() else []
    prompts, replies = sum(each.prompt_tokens for each in calls), sum(each.completion_tokens for each in calls)
    return len(calls), CostTotals(len(calls), prompts, replies)


def confirm_run(plan: Plan, *, agreed: bool) -> None:
    """Say what a run will cost; see :func:`confirm`."""
    found = expense(plan)
    if found is not None:
        confirm(found, agreed=agreed)


def confirm(found: Expense, *, agreed: bool) -> None:
    """Say costs, and ask whether to go on where there is a terminal to ask.

    Args:
        found: the costs.
        agreed: go on without a question.

    Raises:
        ConfigError: the answer is no.
    """
    say(found.text())
    if not agreed and found.totals.calls and can_ask() and not confirmed("Go on?"):
        raise ConfigError("not started; this command paid nothing")
