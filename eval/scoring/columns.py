"""The scores of a run's questions by column: each column is made once, however many means are taken of it."""

from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from eval.loaders.question_types import ADVERSARIAL
from eval.runs.records import ScoreRow
from eval.scoring.aggregate import score_name
from eval.scoring.inference import Floats, Ints
from eval.scoring.protocols import Adversarial, Averaging

Flags = NDArray[np.bool_]


class ScoreColumns(tuple[ScoreRow, ...]):
    """The rows of a run, and their columns, shape (rows,) each."""

    #: The rows that these are some of, and their places there.
    _taken: tuple["ScoreColumns", Ints] | None = None

    @cached_property
    def categories(self) -> Ints:
        """Number of each question's category."""
        return np.array([row.category for row in self], dtype=np.int64)

    @cached_property
    def conversations(self) -> NDArray[np.object_]:
        """Conversation of each question."""
        return np.array([row.conversation_id for row in self], dtype=object)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Place of each question's row."""
        return {row.question_id: place for place, row in enumerate(self)}

    @cached_property
    def conversation_names(self) -> tuple[str, ...]:
        """Conversations with a question, sorted."""
        return tuple(sorted({row.conversation_id for row in self}))

    @cached_property
    def adversarial(self) -> Flags:
        """Whether the right reply to a question is to abstain."""
        return np.array([row.kind == ADVERSARIAL for row in self], dtype=np.bool_)

    def counted(self, averaging: Averaging) -> Flags:
        """Return whether each question enters an overall mean; see :meth:`Averaging.counts`."""
        return np.where(self.adversarial, averaging.counts(ADVERSARIAL), averaging.counts(""))

    def scores(self, metric: str, treatment: Adversarial) -> Floats:
        """Return the scores behind a metric (:func:`eval.scoring.aggregate.score_name`); NaN for none."""
        plain, trap = (score_name(metric, kind, treatment) for kind in ("", ADVERSARIAL))
        if plain == trap:
            return self.column(plain)
        return np.where(self.adversarial, self.column(trap), self.column(plain))

    def column(self, name: str) -> Floats:
        """Return the values of a column as stored; NaN for none."""
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Floats:
        if self._taken is not None:
            whole, places = self._taken
            made = whole.column(name)[places]
        elif name not in self.names:
            made = np.full(len(self), np.nan)
        else:
            values = (row.metrics.get(name) for row in self)
            made = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        made.setflags(write=False)
        return made

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of the columns that some row has."""
        return frozenset(name for row in self for name in row.metrics)

    @cached_property
    def scored(self) -> frozenset[str]:
        """Names of the columns that some row has a value in."""
        possible = self.names if self._taken is None else self._taken[0].scored
        return frozenset(filter(self.has, possible))

    def has(self, name: str) -> bool:
        """Return whether some question has a value in a column."""
        return not bool(np.isnan(self.column(name)).all())

    def at(self, places: Ints) -> "ScoreColumns":
        """Return the rows at some places; their columns are taken from these."""
        found = ScoreColumns(self[place] for place in places.tolist())
        found._taken = (self, places)
        return found

    def only(self, chosen: Flags) -> "ScoreColumns":
        """Return some of the rows."""
        return self.at(np.flatnonzero(chosen))

    def of_questions(self, chosen: Set[str]) -> "ScoreColumns":
        """Return the rows of some questions: the columns themselves where these are all."""
        places = [place for name, place in self.places.items() if name in chosen]
        return self if len(places) == len(self) else self.at(np.array(places, dtype=np.int64))

    def with_any(self, names: Iterable[str]) -> "ScoreColumns":
        """Return the rows that have a value in one of these columns."""
        return self.only(np.logical_or.reduce([~np.isnan(self.column(name)) for name in names]))

    @cached_property
    def _made(self) -> dict[str, Floats]:
        return {}


def columns_of(rows: Iterable[ScoreRow], made: Mapping[str, Floats] = MappingProxyType({})) -> ScoreColumns:
    """Return rows with their columns; rows that have them already are returned as they are.

    Args:
        rows: of a run.
        made: all columns that some row has, shape (rows,) each, where they are there already; NaN for none.
    """
    found = rows if isinstance(rows, ScoreColumns) else ScoreColumns(rows)
    if made:
        for values in made.values():
            values.setflags(write=False)
        found._made.update(made)
        found.names = frozenset(made)
    return found
