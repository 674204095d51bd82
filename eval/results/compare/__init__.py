"""Some runs side by side: a table on the terminal, the same as files, a plot, and paired tests.

``memsys compare RUN RUN... --out FOLDER``; :func:`compare` does the same after a sweep.
"""

from eval.results.compare.report import ComparisonChoices, compare

__all__ = ["ComparisonChoices", "compare"]
