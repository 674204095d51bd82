"""Costs of judging at a hosted model, said before its first call."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from eval.config.prices import load_prices
from eval.judge.aligner import pair_values, unaligned
from eval.judge.config import JudgeConfig
from eval.judge.judging import JudgedItem, items_of, ungraded, values_of
from eval.judge.probe import load_probe
from eval.judge.work import JudgePlan, stored_meta
from eval.running.servers import as_known
from eval.runs.load import load_answers, load_references
from eval.scoring.verdicts.orders import OrderedAnswer, PairVerdict, order_path, ordered_answers, read_pairs
from eval.scoring.verdicts.store import ORDER, AnswerVerdict, read_verdicts, verdict_paths
from eval.sweep.costing import CostTotals, is_hosted
from eval.sweep.expense import Expense, confirm
from memsys.llm.contract import Role
from memsys.llm.engines.contract import SendsBatches
from memsys.scripts import estimated_tokens

#: A role, and what fills its prompt.
Asked = tuple[Role, Mapping[str, str]]


def confirm_calls(plan: JudgePlan, asked: Iterable[Asked], *, fresh: bool = False) -> None:
    """Say what calls will cost at a hosted model, and ask whether to continue if there is a terminal to ask.

    Args:
        plan: what judges.
        asked: the calls; not looked at where the model is not hosted.
        fresh: whether replies in the cache do not count; such calls are not sent in batches.

    Raises:
        ConfigError: the answer is no.
    """
    if is_hosted(plan.backbone):
        confirm([expense(plan, asked, fresh=fresh)], agreed=plan.agreed)


def expense(plan: JudgePlan, asked: Iterable[Asked], *, fresh: bool = False) -> Expense:
    """Return the costs of calls: prompts by their length, replies of all tokens that they may have."""
    thinking = as_known(plan.backbone, plan.cache_dir).config.thinking_tokens
    costs = [CostTotals(1, _prompt_tokens(role, values), role.max_tokens + thinking) for role, values in asked]
    totals = sum(costs, CostTotals())
    later = totals if isinstance(plan.backbone.engine, SendsBatches) and not fresh else CostTotals()
    return Expense(plan.backbone.name, totals, load_prices().get(plan.backbone.name), 0, True, later, most=True)


def _prompt_tokens(role: Role, values: Mapping[str, str]) -> int:
    return estimated_tokens(f"{role.with_system(values).system or ''}{role.prompt.render(values)}")


def of_probe(plan: JudgePlan) -> Iterator[Asked]:
    """Yield the calls that grade the probe set."""
    return of_items(plan.judge, [probe.item for probe in load_probe()])


def of_run(plan: JudgePlan, run_dir: Path, *, again: bool) -> Iterator[Asked]:
    """Yield the calls that a run still takes, those that align orders as if no line were an event.

    Args:
        plan: what judges.
        run_dir: a complete run.
        again: verdicts that could not be read are asked for again.

    Raises:
        RunDirectoryError: a judge with other settings made verdicts of this name.
    """
    references, answers = load_references(run_dir).values(), load_answers(run_dir).values()
    stored, path = stored_meta(plan, run_dir) or {}, verdict_paths(run_dir, plan.name)[0]
    verdicts = read_verdicts(path) if stored else []
    done = [one for one in verdicts if one.verdict is not None or not again]
    yield from of_items(plan.judge, items_of(plan.judge, references, answers), done)
    if plan.judge.order == "model":
        pairs = read_pairs(order_path(path)) if stored.get(ORDER) else []
        yield from of_orders(plan.judge, ordered_answers(references, answers), pairs)


def of_items(config: JudgeConfig, items: Sequence[JudgedItem], done: Sequence[AnswerVerdict] = ()) -> Iterator[Asked]:
    """Yield the calls that grade answers."""
    roles = {kind: config.make_role(kind) for kind in {item.kind for item in items}}
    for item, _ in ungraded(config, items, done):
        yield roles[item.kind], values_of(config, item)


def of_orders(
    config: JudgeConfig, answers: Sequence[OrderedAnswer], done: Sequence[PairVerdict] = ()
) -> Iterator[Asked]:
    """Yield the most calls that aligning answers can take."""
    role = config.make_order_role()
    for pair in unaligned(answers, config.repeats, done):
        yield role, pair_values(*pair)
