"""Write what the papers' hosted backbones would cost on LoCoMo into docs/models.md, by the plan and conf/prices.yaml.

``python -m eval.sweep.hosted_page`` writes it, which needs LoCoMo; a test checks that it is up to date.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from eval.commands.commands import explains_errors, start
from eval.commands.rendering.markdown import render_markdown, replace_tables
from eval.commands.rendering.table import Cell, Column, Span, Table
from eval.config.prices import Price, load_prices
from eval.loaders.shapes import shape_of
from eval.runs.files import write_atomic
from eval.sweep.cells import Composer
from eval.sweep.costing import CostTotals, expected_calls, total
from memsys.assets.paths import ROOT
from memsys.call_model import ExpectedCalls

PAGE = ROOT / "docs" / "models.md"
#: Name of the table in its markers.
NAME = "hosted"
#: Settings of ``memsys run -m`` whose costs are shown: a first run, then what the papers print of hosted backbones.
RUNS: Sequence[Sequence[str]] = (
    ("memory=rag", "dataset=locomo", "backbone=gpt4o_mini"),
    ("+experiment=sage_locomo_gpt4o_mini", "memory=sage_code,mem0_in_sage"),
    ("+sweep=xmemory_table1", "+experiment=xmemory_locomo_gpt5_nano"),
    ("+sweep=memfly_table1", "backbone=gpt4o_mini"),
    ("+sweep=memfly_table1", "backbone=gpt4o"),
)
_HEADINGS = ("backbone", "runs", "calls", "million prompt tokens", "million reply tokens", "dollars", "in batches")
_MILLION = 1_000_000
_DIGITS = 2


@dataclass(frozen=True, slots=True)
class HostedCosts:
    """Costs of some runs at one hosted model.

    Attributes:
        backbone: its name.
        runs: that ask it.
        calls: of all of them, each run by itself.
        answers: those of the calls that batches take.
    """

    backbone: str
    runs: int
    calls: CostTotals
    answers: CostTotals

    def dollars(self, price: Price, *, batch: bool = False) -> float:
        """Return the dollars of all calls, as many tokens as the table shows.

        Args:
            price: of the tokens.
            batch: whether answers are sent in batches.
        """
        later = self.answers if batch else CostTotals()
        rest = self.calls - later
        return price.of_both(map(_shown, (rest.prompt, rest.reply)), map(_shown, (later.prompt, later.reply)))


def _shown(tokens: float) -> float:
    return round(tokens / _MILLION, _DIGITS) * _MILLION


def hosted_costs(settings: Sequence[str]) -> list[HostedCosts]:
    """Return what the runs of a command line are planned to cost, by backbone.

    Args:
        settings: of ``memsys run -m``.

    Raises:
        ConfigError: the data set is not here, or a setting is wrong.
    """
    calls, runs = defaultdict[str, list[ExpectedCalls]](list), defaultdict[str, int](int)
    for cell in Composer().sweep(settings).cells:
        plan = cell.valid_plan()
        by_name = defaultdict[str, list[ExpectedCalls]](list)
        for each in expected_calls(cell, shape_of(plan.dataset, cell.data)):
            asked = plan.second if plan.second is not None and each.role in plan.second_roles else plan.backbone
            assert asked is not None
            by_name[asked.name].append(each)
        for name, found in by_name.items():
            calls[name] += found
            runs[name] += 1
    answers = {name: [each for each in found if each.phase == "answer"] for name, found in calls.items()}
    return [HostedCosts(name, runs[name], total(found), total(answers[name])) for name, found in calls.items()]


def hosted_table(prices: Mapping[str, Price]) -> str:
    """Return the table as Markdown.

    Raises:
        ConfigError: LoCoMo is not here.
    """
    columns = [
        Column("memsys run -m", "left"),
        *(Column(name, "left" if name == "backbone" else "right") for name in _HEADINGS),
    ]
    return render_markdown(Table("", columns, [row for settings in RUNS for row in _rows(settings, prices)]), level=0)


def _rows(settings: Sequence[str], prices: Mapping[str, Price]) -> Iterator[list[Cell]]:
    for costs in hosted_costs(settings):
        price = prices[costs.backbone]
        tokens = [f"{_shown(each) / _MILLION:.{_DIGITS}f}" for each in (costs.calls.prompt, costs.calls.reply)]
        dollars = [f"{costs.dollars(price, batch=batch):.2f}" for batch in (False, True)]
        command = Span(" ".join(settings), "code")
        yield [command, Span(costs.backbone, "code"), costs.runs, f"{costs.calls.calls:,.0f}", *tokens, *dollars]


@explains_errors
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table of hosted runs into docs/models.md."""
    argparse.ArgumentParser(prog="python -m eval.sweep.hosted_page", description=main.__doc__).parse_args(arguments)
    write_atomic(PAGE, replace_tables(PAGE, {NAME: hosted_table(load_prices())}).encode())
    return 0


if __name__ == "__main__":
    start(main)
