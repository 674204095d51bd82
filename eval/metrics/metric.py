"""Metrics: a function of prediction and reference, with the properties that commands need to show it.

Every :class:`Metric` at the top of a module of this package is found by :mod:`eval.metrics.registry`.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from numbers import Real
from typing import Any, Literal, cast, get_args

from memsys.errors import ConfigError, ScoringError

PairFunction = Callable[[str, str], float]
CategoryRule = Callable[[str, str, int], float | None]
Need = Literal["punkt", "wordnet", "bertscore_model", "sbert_model", "retrievals", "ordered_items"]
#: How the several answers to a question for a list are taken. ``joined``: as one text, which the answer should name in
#: full, as CLAG's code has it for BioASQ. ``max``: the best over them. Alternatives of one answer are always taken so.
References = Literal["joined", "max"]
#: What a definition takes for words: what spaces separate; runs of ``\w``, which has no combining marks; runs of a-z
#: and digits; words of any script, see :mod:`eval.metrics.mixed`. Empty: it splits nothing.
Words = Literal["", "spaces", "word_characters", "latin", "any_script"]
#: Tolerance by which rounding may put a share outside 0 to 1.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Metric:
    """One named way to score an answer or a retrieval.

    Attributes:
        name: key in ``scores.jsonl``.
        source: where the definition comes from.
        function: score of (prediction, reference); ``None`` for the other kinds.
        rule: score of (prediction, reference, category), for rules that differ by category.
        needs: corpora, models or records without which it cannot be computed.
        references: how the several answers to a question for a list are taken; of alternatives the best one counts.
        group: definitions of one name, which the lens shows side by side; empty for none.
        label: heading of its column in comparisons; empty: its name.
        unit: of the shown value; shares are shown in percent.
        higher_is_better: direction.
        listed: has a column in comparisons, a place in the report's menu and in the floors. Off for definitions that
            the lens compares, for parts of a figure, and for F1, whose column follows the protocol.
        whose: whose definition it is, in figures of one group.
        words: what the definition takes for words, see :data:`Words`.
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
    words: Words = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[^\s,]+", self.name):
            raise ConfigError(f"metric {self.name!r}: a name has no blanks and no commas")
        _check_function(self.name, self.function, "prediction, reference")
        _check_function(self.name, self.rule, "prediction, reference, category")
        if self.references not in get_args(References):
            choices = ", ".join(get_args(References))
            raise ConfigError(f"metric {self.name!r}: references={self.references!r}; choose one of {choices}")
        if self.words not in get_args(Words):
            choices = ", ".join(filter(None, get_args(Words)))
            raise ConfigError(f"metric {self.name!r}: words={self.words!r}; choose one of {choices}, or leave it empty")
        unknown = [need for need in self.needs if need not in get_args(Need)]
        if isinstance(self.needs, str) or unknown:
            choices = ", ".join(get_args(Need))
            raise ConfigError(f"metric {self.name!r}: needs={self.needs!r} must be a tuple of some of {choices}")

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

    def checked(self, found: object) -> float:
        """Check a function's value and return it as a score.

        Args:
            found: a number, between 0 and 1 where it is shown in percent.

        Raises:
            ScoringError: it is not such a number.
        """
        most = 1 + _ROUNDING if self.unit == "percent" else math.inf
        least = -_ROUNDING if self.unit == "percent" else -math.inf
        if isinstance(found, Real) and math.isfinite(found) and least <= float(found) <= most:
            return float(found)
        wanted = "a number from 0 to 1" if self.unit == "percent" else "a finite number"
        raise ScoringError(f"metric {self.name!r} of {self.source} gave {found!r}; its function must return {wanted}")


#: Groups of metrics that can be asked for by one name.
GROUPS: dict[str, Callable[[Metric], bool]] = {
    "lexical": lambda metric: metric.lexical and metric.words != "any_script",
    "mixed": lambda metric: metric.words == "any_script",
    "neural": lambda metric: metric.neural,
    "evidence": lambda metric: "retrievals" in metric.needs,
    "all": lambda metric: True,
}


def _check_function(name: str, function: object, arguments: str) -> None:
    """Refuse what cannot be called with these arguments; functions that tell none are taken as they are."""
    if function is None:
        return
    try:
        signature(cast(Any, function)).bind(*arguments.split())
    except TypeError as error:
        raise ConfigError(f"metric {name!r}: {function!r} must be a function of ({arguments}); {error}") from error
    except ValueError:  # a function of C without a signature
        return
