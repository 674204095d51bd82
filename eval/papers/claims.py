"""What the papers' running text says of their tables, recomputed from the tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from eval.papers.arithmetic import Recomputed
from eval.papers.printed import TEXT, PrintedNumber

#: SAGE leaves this backbone out of its means of calls.
_LEFT_OUT = "llama32_1b"


class Printed:
    """Printed numbers of one paper, looked up by their place."""

    def __init__(self, numbers: Sequence[PrintedNumber]) -> None:
        self._numbers = numbers

    def find(self, **wanted: object) -> PrintedNumber:
        """Return the one number with these attributes."""
        (found,) = self.all(**wanted)
        return found

    def value(self, **wanted: object) -> float:
        """Return the value of the one number with these attributes."""
        return self.find(**wanted).value

    def all(self, **wanted: object) -> list[PrintedNumber]:
        """Return the numbers with these attributes, in the order of the tables."""
        return [
            number for number in self._numbers if all(getattr(number, name) == value for name, value in wanted.items())
        ]


@dataclass(frozen=True, slots=True)
class Claim:
    """A number of the text: the row it has in the registry, what it follows from, and how."""

    row: str
    rule: str
    compute: Callable[[Printed, PrintedNumber], float]


def claims(paper: str, numbers: Sequence[PrintedNumber]) -> list[Recomputed]:
    """Recompute the claims of a paper's text.

    Args:
        paper: name.
        numbers: its printed numbers.
    """
    printed = Printed(numbers)
    # The text's rounding alone: whoever writes a difference reads it off the table's own digits.
    return [
        Recomputed(number, claim.compute(printed, number), number.half_unit, claim.rule)
        for claim in _CLAIMS.get(paper, ())
        for number in printed.all(table=TEXT, row=claim.row)
    ]


def _lost(metric: str) -> Callable[[Printed, PrintedNumber], float]:
    def compute(printed: Printed, claim: PrintedNumber) -> float:
        full, without = (printed.value(table=7, system=name, metric=metric) for name in ("clag", claim.system))
        return full - without

    return compute


def _pruned(printed: Printed, claim: PrintedNumber) -> float:
    clusters = printed.all(table=12)
    return 100 * (1 - clusters[0].value / fsum(number.value for number in clusters))


def _lead_over_baselines(printed: Printed, claim: PrintedNumber) -> float:
    averages = [
        number
        for table in (1, 2)
        for number in printed.all(table=table, backbone=claim.backbone, metric="f1_set", category=None)
    ]
    own = next(number.value for number in averages if number.system == claim.system)
    return own - max(number.value for number in averages if number.system != claim.system)


def _drops(stage: str) -> Callable[[Printed], list[float]]:
    """Share of calls that SAGE saves against Mem0 by backbone, percent; ``decision`` leaves the extraction out."""

    def compute(printed: Printed) -> list[float]:
        found = []
        for update in printed.all(table=8, metric="update_calls"):
            if update.backbone != _LEFT_OUT:
                route = printed.value(table=8, backbone=update.backbone, system="mem0", metric="route_calls")
                shared = printed.value(table=8, backbone=update.backbone, system="mem0", metric="extraction_calls")
                shared = 0.0 if stage == "decision" else shared
                found.append(100 * (route - update.value) / (shared + route))
        return found

    return compute


def _of(values: Callable[[Printed], list[float]], pick: Callable[[list[float]], float]) -> Callable[..., float]:
    return lambda printed, claim: pick(values(printed))


def _mean(values: list[float]) -> float:
    return fsum(values) / len(values)


def _bands(printed: Printed) -> list[float]:
    return [number.value for number in printed.all(table=8, metric="update_percent")]


def _ratio(metric: str) -> Callable[[Printed, PrintedNumber], float]:
    def compute(printed: Printed, claim: PrintedNumber) -> float:
        theirs, ours = (printed.value(table=4, system=name, metric=metric) for name in ("mem0", "sage"))
        return theirs / ours

    return compute


def _gain(table: int, metric: str, sign: int = 1) -> Callable[[Printed, PrintedNumber], float]:
    def compute(printed: Printed, claim: PrintedNumber) -> float:
        where = {"table": table, "backbone": claim.backbone, "metric": metric, "category": claim.category}
        return sign * (printed.value(system="sage", **where) - printed.value(system="mem0", **where))

    return compute


_CLAIMS: Mapping[str, Sequence[Claim]] = {
    "clag": (
        Claim("F1 lost by global evolution", "Table 7", _lost("f1_set")),
        Claim("F1 lost by global retrieval", "Table 7", _lost("f1_set")),
        Claim("BLEU-1 lost by global retrieval", "Table 7", _lost("bleu1")),
        Claim("Notes pruned in the case study (%)", "Table 12", _pruned),
    ),
    "memfly": (Claim("F1 lead over the strongest baseline", "averages of Tables 1 and 2", _lead_over_baselines),),
    "sage": (
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
    ),
}
