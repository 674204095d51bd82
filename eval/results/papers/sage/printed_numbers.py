"""SAGE: what its averages, totals and statements follow from."""

from collections.abc import Callable, Sequence
from math import fsum

from eval.results.papers.arithmetic import Recomputed, of_row, plain_mean, weighted_mean
from eval.results.papers.claims import Claim, PrintedTable
from eval.results.papers.printed import PrintedNumber

#: The paper leaves this backbone out of its means of calls.
_LEFT_OUT = "llama32_1b"


def _over_backbones(numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Return SAGE's Table 2: means of Table 1 over the seven open models, Judge scores of another judge left out."""
    found = []
    for number in numbers:
        if number.table == 2:
            key = (number.system, number.metric, number.category)
            parts = [
                part
                for part in numbers
                if part.table == 1
                and (part.system, part.metric, part.category) == key
                and part.backbone != "gpt4o_mini"
            ]
            found.append(plain_mean(number, parts, f"Table 1, plain mean over {len(parts)} backbones"))
    return found


AVERAGES = (weighted_mean(1, dict.fromkeys((1, 2, 3, 4), 1), "its categories, plain mean"), _over_backbones)
TOTALS = (
    of_row(
        4,
        "add_tokens",
        ("add_prompt_tokens", "add_completion_tokens"),
        lambda a, b: a + b,
        "prompt and completion tokens",
    ),
    of_row(4, "total_minutes", ("add_minutes", "search_minutes"), lambda a, b: a + b, "adding and searching"),
)


def _drops(stage: str) -> Callable[[PrintedTable], list[float]]:
    """Share of calls that SAGE saves against Mem0 by backbone, percent; ``decision`` leaves the extraction out."""

    def compute(printed: PrintedTable) -> list[float]:
        found = []
        for update in printed.all(table=8, metric="update_calls"):
            if update.backbone != _LEFT_OUT:
                route = printed.value(table=8, backbone=update.backbone, system="mem0", metric="route_calls")
                shared = printed.value(table=8, backbone=update.backbone, system="mem0", metric="extraction_calls")
                shared = 0.0 if stage == "decision" else shared
                found.append(100 * (route - update.value) / (shared + route))
        return found

    return compute


def _of(values: Callable[[PrintedTable], list[float]], pick: Callable[[list[float]], float]) -> Callable[..., float]:
    return lambda printed, claim: pick(values(printed))


def _mean(values: list[float]) -> float:
    return fsum(values) / len(values)


def _bands(printed: PrintedTable) -> list[float]:
    return [number.value for number in printed.all(table=8, metric="update_percent")]


def _ratio(metric: str) -> Callable[[PrintedTable, PrintedNumber], float]:
    def compute(printed: PrintedTable, claim: PrintedNumber) -> float:
        theirs, ours = (printed.value(table=4, system=name, metric=metric) for name in ("mem0", "sage"))
        return theirs / ours

    return compute


def _gain(table: int, metric: str, sign: int = 1) -> Callable[[PrintedTable, PrintedNumber], float]:
    def compute(printed: PrintedTable, claim: PrintedNumber) -> float:
        where = {"table": table, "backbone": claim.backbone, "metric": metric, "category": claim.category}
        return sign * (printed.value(system="sage", **where) - printed.value(system="mem0", **where))

    return compute


CLAIMS = (
    Claim("Total write calls saved, smallest of seven (%)", "Table 8", _of(_drops("total"), min)),
    Claim("Total write calls saved, largest of seven (%)", "Table 8", _of(_drops("total"), max)),
    Claim("Total write calls saved, mean of seven (%)", "Table 8", _of(_drops("total"), _mean)),
    Claim("Decision calls saved, smallest of seven (%)", "Table 8", _of(_drops("decision"), min)),
    Claim("Decision calls saved, largest of seven (%)", "Table 8", _of(_drops("decision"), max)),
    Claim("pi_upd, smallest (%)", "Table 8", _of(_bands, min)),
    Claim("pi_upd, largest (%)", "Table 8", _of(_bands, max)),
    Claim("F1 gain over Mem0, open-domain as printed", "Table 2", _gain(2, "f1_set")),
    Claim("J gain over Mem0, single-hop as printed", "Table 2", _gain(2, "judge")),
    Claim("J gain over Mem0, multi-hop as printed", "Table 1", _gain(1, "judge")),
    Claim("J gap to Mem0", "Table 1", _gain(1, "judge", sign=-1)),
    Claim("Ingestion faster (times)", "Table 4", _ratio("add_minutes")),
    Claim("Write tokens fewer (times)", "Table 4", _ratio("add_tokens")),
    Claim("Generated tokens fewer (times)", "Table 4", _ratio("add_completion_tokens")),
    Claim("Latency per add call lower (times)", "Table 4", _ratio("add_call_seconds")),
    Claim("Add cost lower (times)", "Table 4", _ratio("add_cost_usd")),
)
