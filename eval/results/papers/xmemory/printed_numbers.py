"""xMemory: what its averages, totals and statements follow from."""

from eval.loaders.locomo import LOCOMO
from eval.metrics.locomo import CATEGORY_5
from eval.results.papers.arithmetic import by_questions, of_row
from eval.results.papers.claims import Claim, PrintedTable
from eval.results.papers.printed import PrintedNumber

_ANSWERABLE = {category: count for category, count in LOCOMO.question_counts.items() if category != CATEGORY_5}

AVERAGES = tuple(by_questions(table, _ANSWERABLE) for table in (1, 4, 5, 6, 8))
TOTALS = (of_row(8, "facts_per_theme", ("facts", "themes"), lambda facts, themes: facts / themes, "facts over themes"),)

#: Information of a summary in bits, and the share of right routes that is wanted (Appendix B).
_BITS, _ACCURACY = 2.0, 0.85


def fano_bound(bits: float, accuracy: float) -> float:
    """Return the most children of a node: ``log2(n) <= (bits + 1) / accuracy``, by Fano's inequality.

    Source: xMemory, Appendix B, equation 8.
    """
    return float(2 ** ((bits + 1) / accuracy))


def _bound(printed: PrintedTable, claim: PrintedNumber) -> float:
    return fano_bound(_BITS, _ACCURACY)


def _branching(printed: PrintedTable, claim: PrintedNumber) -> float:
    facts, themes = (printed.value(table=7, system="xmemory", metric=metric) for metric in ("facts", "themes"))
    return facts / themes


CLAIMS = (
    Claim("Bound of children at B = 2 bits and accuracy 0.85", "2^((B + 1) / accuracy)", _bound),
    Claim("Average branching, about", "Table 7, facts over themes", _branching),
)
