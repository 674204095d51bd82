"""MemFly: what its averages, totals and statements follow from."""

from eval.loaders.locomo import LOCOMO
from eval.results.papers.arithmetic import by_questions, percent_of_column, sum_of_column
from eval.results.papers.claims import Claim, PrintedTable
from eval.results.papers.printed import PrintedNumber

AVERAGES = tuple(by_questions(table, LOCOMO.question_counts) for table in (1, 2))
TOTALS = (sum_of_column(4, "questions", "Total"), percent_of_column(4, "questions", "questions_share", "Total"))


def _lead_over_baselines(printed: PrintedTable, claim: PrintedNumber) -> float:
    averages = [
        number
        for table in (1, 2)
        for number in printed.all(table=table, backbone=claim.backbone, metric="f1_set", category=None)
    ]
    own = next(number.value for number in averages if number.system == claim.system)
    return own - max(number.value for number in averages if number.system != claim.system)


CLAIMS = (Claim("F1 lead over the strongest baseline", "averages of Tables 1 and 2", _lead_over_baselines),)
