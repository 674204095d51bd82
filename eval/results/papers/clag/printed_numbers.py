"""CLAG: what its averages, totals and statements follow from."""

from collections.abc import Callable
from math import fsum

from eval.loaders.locomo import LOCOMO
from eval.results.papers.arithmetic import by_questions, percent_of_column, sum_of_column
from eval.results.papers.claims import Claim, PrintedTable
from eval.results.papers.printed import PrintedNumber

AVERAGES = (by_questions(1, LOCOMO.question_counts, parts=3),)
TOTALS = (sum_of_column(14, "failures", "Total"), percent_of_column(14, "failures", "failure_percent", "Total"))


def _lost(metric: str) -> Callable[[PrintedTable, PrintedNumber], float]:
    def compute(printed: PrintedTable, claim: PrintedNumber) -> float:
        full, without = (printed.value(table=7, system=name, metric=metric) for name in ("clag", claim.system))
        return full - without

    return compute


def _pruned(printed: PrintedTable, claim: PrintedNumber) -> float:
    clusters = printed.all(table=12)
    return 100 * (1 - clusters[0].value / fsum(number.value for number in clusters))


CLAIMS = (
    Claim("F1 lost by global evolution", "Table 7", _lost("f1_set")),
    Claim("F1 lost by global retrieval", "Table 7", _lost("f1_set")),
    Claim("BLEU-1 lost by global retrieval", "Table 7", _lost("bleu1")),
    Claim("Notes pruned in the case study (%)", "Table 12", _pruned),
)
