"""xMemory: what its averages, totals and statements follow from."""

from eval.loaders.locomo import LOCOMO
from eval.metrics.locomo import CATEGORY_5
from eval.results.papers.arithmetic import by_questions, of_row

_ANSWERABLE = {category: count for category, count in LOCOMO.question_counts.items() if category != CATEGORY_5}

AVERAGES = tuple(by_questions(table, _ANSWERABLE) for table in (1, 4, 5, 6, 8))
TOTALS = (of_row(8, "facts_per_theme", ("facts", "themes"), lambda facts, themes: facts / themes, "facts over themes"),)
