"""What a metric is: a function of prediction and reference, with the facts that commands need to show it.

Every :class:`Metric` at the top of a module of this package is found by :mod:`eval.metrics.registry`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

PairFunction = Callable[[str, str], float]
CategoryRule = Callable[[str, str, int], float | None]
Need = Literal["punkt", "wordnet", "bertscore_model", "sbert_model", "retrievals", "ordered_items"]
#: ``joined``: alternatives count as one text, as A-Mem's code has it. ``max``: the best over the alternatives.
References = Literal["joined", "max"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One named way to score an answer or a retrieval.

    Attributes:
        name: key in ``scores.jsonl``.
        source: where the definition comes from.
        function: score of (prediction, reference); ``None`` for the other kinds.
        rule: score of (prediction, reference, category), for rules that differ by category.
        needs: corpora, models or records without which it cannot be computed.
        references: how several reference answers are taken.
        group: definitions of one name, which the lens shows side by side; empty for none.
        label: heading of its column in comparisons; empty: its name.
        unit: of the shown value; shares are shown in percent.
        higher_is_better: direction.
        listed: has a column in comparisons, a place in the report's menu and in the floors. Off for definitions that
            the lens compares, for parts of a figure, and for F1, whose column follows the protocol.
        whose: whose definition it is, in figures of one group.
    """

    name: str
    source: str
    function: PairFunction | None = None
    rule: CategoryRule | None = None
    needs: tuple[Need, ...] = ()
    references: References = "joined"
    group: str = ""
    label: str = ""
    unit: str = "percent"
    higher_is_better: bool = True
    listed: bool = True
    whose: str = ""

    @property
    def heading(self) -> str:
        """Heading of its column."""
        return self.label or self.name

    @property
    def scale(self) -> float:
        """Factor from the stored value to the shown one."""
        return 100.0 if self.unit == "percent" else 1.0

    @property
    def lexical(self) -> bool:
        """Whether an answer's text suffices."""
        return self.function is not None or self.rule is not None

    @property
    def neural(self) -> bool:
        """Whether a model computes it."""
        return not self.lexical and not {"retrievals", "ordered_items"} & set(self.needs)
