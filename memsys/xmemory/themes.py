"""Attaching facts to themes, and splitting and merging themes under the guidance function (paper, section 3.2)."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from memsys.counting import counter_from
from memsys.embedding.contract import Vectors
from memsys.index.vector import SCORE_DECIMALS, VectorIndex
from memsys.xmemory.rules import ThemeRules
from memsys.xmemory.space import ThemePart, ThemeSpace, part_of
from memsys.xmemory.splitting import (
    Cutting,
    along_first_component,
    best,
    components,
    cosines_between,
    distinct,
    linkage_cuttings,
    mean_pairwise,
)

#: Why a fact came to a theme. ``kept``: its theme was revised, stayed whole and got another id.
Cause = Literal["new", "attach", "split", "kept", "pair_merge", "tiny_merge"]


class Themes:
    """The partition of the facts into themes.

    Attributes:
        members: facts by theme, themes in the order they were made, facts in the order they joined.
        home: theme by fact.
        paths: by fact, every theme it belonged to as ``[theme, step, cause]``, first to last.
        counts: how often each thing was done.
        namings: with ``naming: every_change``, each theme that the code would have named since the organising began,
            with the facts it had then, in order.
    """

    def __init__(self, rules: ThemeRules, facts: VectorIndex, dimension: int) -> None:
        self._rules, self._facts, self._dimension = rules, facts, dimension
        self._space = ThemeSpace(dimension)
        self.members: dict[str, list[str]] = {}
        self.home: dict[str, str] = {}
        self.paths: dict[str, list[list[Any]]] = {}
        self.counts: Counter[str] = Counter()
        self.namings: list[tuple[str, tuple[str, ...]]] = []
        self._made = self._step = 0
        self._order: dict[str, int] = {}  # by theme: ascends in the order of the members
        self._changed: dict[str, None] = {}
        #: by two themes of a fact each: what their merger gains, while no theme changes
        self._gains: dict[frozenset[str], float] = {}

    def __len__(self) -> int:
        return len(self.members)

    @property
    def space(self) -> ThemeSpace:
        """The themes' geometry."""
        return self._space

    def objective(self) -> float:
        """Return ``f`` of all themes."""
        return self._space.score(self._rules.bell)

    def attach(self, fact_id: str) -> None:
        """Put a stored fact into its nearest theme, or into a new one; split the theme where it grew too large."""
        self._step += 1
        vector = self._facts.vectors([fact_id])[0]
        found = self._space.nearest(vector)
        if found is None or not self._joins(*found):
            self._make([fact_id], "new")
            return
        theme_id = found[0]
        self._place(fact_id, theme_id, "attach")
        self.members[theme_id].append(fact_id)
        self._refresh(theme_id)
        if self._rules.split and len(self.members[theme_id]) > self._rules.cap:
            self._split_overfull(theme_id)

    def _joins(self, theme_id: str, cosine: float) -> bool:
        if cosine >= self._rules.attach:
            return True
        lenient = self._rules.lenient
        return lenient is not None and cosine >= lenient and len(self.members[theme_id]) < self._rules.cap

    def revise(self) -> None:
        """Split and merge what the facts stored so far ask for."""
        self.split_full()
        self.merge_pairs()
        self.merge_tiny()

    def split_full(self) -> None:
        """Split themes that are full and hang together loosely; each part, also a theme kept whole, gets a new id.

        All cuttings are chosen before any is made. The parts take their theme's place.
        """
        revised = self._rules.split and self._rules.revise_full
        if not revised and self._rules.naming == "once":
            return
        loose = [theme_id for theme_id in self.members if revised and self._is_loose(theme_id)]
        cuttings = {
            theme_id: self._best_cutting(theme_id, self._batch_candidates(self._vectors(theme_id)))
            for theme_id in loose
        }
        order: list[str] = []
        for theme_id in list(self.members):
            if theme_id in cuttings:
                order.extend(self._recut(theme_id, cuttings[theme_id]))
            else:
                self._note_naming(theme_id)
                order.append(theme_id)
        if loose:
            self._reorder(order)

    def _recut(self, theme_id: str, cutting: Cutting) -> list[str]:
        """Replace a theme by its parts; return their ids."""
        self._step += 1
        cause: Cause = "split" if len(cutting) > 1 else "kept"
        self.counts["splits.batch" if len(cutting) > 1 else "kept_whole"] += 1
        facts = self._drop(theme_id)
        return [self._make([facts[row] for row in part], cause) for part in cutting]

    def _reorder(self, order: Sequence[str]) -> None:
        """Put the themes into another order; what goes by the order of the themes goes by this one from then on."""
        self.members = {theme_id: self.members[theme_id] for theme_id in order}
        self._order = {theme_id: place for place, theme_id in enumerate(order)}
        self._space = self._new_space()
        self._gains.clear()

    def _new_space(self) -> ThemeSpace:
        space = ThemeSpace(self._dimension)
        for theme_id in self.members:
            space.put(theme_id, part_of(self._vectors(theme_id)))
        return space

    def _is_loose(self, theme_id: str) -> bool:
        size = len(self.members[theme_id])
        if size < self._rules.cap:
            return False
        return size > self._rules.cap or mean_pairwise(self._vectors(theme_id)) < self._rules.min_intra

    def merge_pairs(self) -> None:
        """Merge the pair of similar themes that gains most, up to ``pair_merges`` times."""
        for _ in range(self._rules.pair_merges if self._rules.merge else 0):
            pairs = self._similar_pairs()
            gains = [self._gain(*pair) for pair in pairs]
            if not gains or max(gains) <= 0:
                return
            kept, other = pairs[int(np.argmax(gains))]
            self._merge(kept, other, "pair_merge")

    def merge_tiny(self) -> None:
        """Merge tiny themes, smallest first, into the neighbour that gains most; again until nothing is merged.

        With ``schedule: arrival`` looks at those that changed since the last time, and at their neighbours: to look at
        all after every episode would take time that grows with the square of the themes.
        """
        while self._changed and self._rules.merge:
            tiny = self._tiny(self.members if self._rules.schedule == "end" else self._around_changed())
            self._changed.clear()
            for theme_id in tiny:
                if theme_id in self.members and self._is_tiny(theme_id):
                    target = self._best_target(theme_id)
                    if target is not None:
                        self._merge(target, theme_id, "tiny_merge")
        self._changed.clear()

    def _around_changed(self) -> set[str]:
        least, count = self._rules.tiny_min, self._rules.tiny_neighbours
        here = [theme_id for theme_id in self._changed if theme_id in self.members]
        return {*here, *(other for theme_id in here for other in self._space.similar(theme_id, least, count))}

    def _tiny(self, among: Collection[str]) -> list[str]:
        """Return the tiny themes, smallest first, then in the order they were made."""
        tiny = [name for name in among if name in self.members and self._is_tiny(name)]
        return sorted(tiny, key=lambda name: (len(self.members[name]), self._order[name]))

    def _is_tiny(self, theme_id: str) -> bool:
        return len(self.members[theme_id]) <= self._rules.tiny_size

    def _best_target(self, theme_id: str) -> str | None:
        near = self._space.similar(theme_id, self._rules.tiny_min, self._rules.tiny_neighbours)
        targets = [name for name in sorted(near, key=self._order.__getitem__) if self._fits(theme_id, name)]
        gains = [self._gain(theme_id, target) for target in targets]
        return targets[int(np.argmax(gains))] if gains and max(gains) > 0 else None

    def _similar_pairs(self) -> list[tuple[str, str]]:
        """Return the pairs of themes that may merge, the older theme first, in the order they were made."""
        place = {theme_id: number for number, theme_id in enumerate(self.members)}
        pairs = [
            (one, other)
            for one in self.members
            for other in sorted(self._space.similar(one, self._rules.pair_min, None), key=place.__getitem__)
            if place[one] < place[other]
        ]
        return [pair for pair in pairs if self._fits(*pair)]

    def _fits(self, one: str, other: str) -> bool:
        return len(self.members[one]) + len(self.members[other]) <= self._rules.cap

    def _gain(self, one: str, other: str) -> float:
        """Return how much ``f`` grows when two themes become one, rounded.

        Of two facts the order does not touch a bit of the sums, and each theme asks for the other: asked again, the
        gain is known.
        """
        if len(self.members[one]) + len(self.members[other]) > 2:
            return self._computed_gain(one, other)
        pair = frozenset((one, other))
        if pair not in self._gains:
            self._gains[pair] = self._computed_gain(one, other)
        return self._gains[pair]

    def _computed_gain(self, one: str, other: str) -> float:
        among = self._around(one, other)
        part = part_of(self._facts.vectors([*self.members[one], *self.members[other]]))
        bell = self._rules.bell
        after = self._space.score(bell, without=(one, other), parts=[part], among=among)
        return round(after - self._space.score(bell, among=among), SCORE_DECIMALS)

    def _around(self, *theme_ids: str) -> list[str] | None:
        """Return the themes whose score counts; ``None`` for all."""
        if self._rules.scope == "global":
            return None
        count = self._rules.scope_neighbours
        near = [name for theme_id in theme_ids for name in self._space.similar(theme_id, -1.0, count)]
        return list(dict.fromkeys([*theme_ids, *near]))

    def _split_overfull(self, theme_id: str) -> None:
        """Cut a theme that grew beyond the cap; the first part keeps its id."""
        cutting = self._best_cutting(theme_id, self._online_candidates(self._vectors(theme_id)))
        if len(cutting) < 2:
            self.counts["splits.impossible"] += 1
            return
        self.counts["splits.online"] += 1
        facts = list(self.members[theme_id])
        first, *others = cutting
        self.members[theme_id] = [facts[row] for row in first]
        self._refresh(theme_id)
        self._note_naming(theme_id)
        for part in others:
            self._make([facts[row] for row in part], "split")

    def _online_candidates(self, vectors: Vectors) -> list[Cutting]:
        rules, cosines = self._rules, cosines_between(vectors)
        connected = components(vectors, edge=rules.edge, least=rules.whole_below, cap=rules.cap, cosines=cosines)
        if rules.online_split == "components":
            return [connected]
        others = [along_first_component(vectors, cap=rules.cap), *linkage_cuttings(cosines, (2, 3))]
        return [cutting for cutting in distinct([connected, *others]) if max(map(len, cutting)) <= rules.cap]

    def _batch_candidates(self, vectors: Vectors) -> list[Cutting]:
        rules = self._rules
        connected = components(vectors, edge=rules.edge, least=rules.whole_below, cap=rules.cap)
        return distinct([connected, along_first_component(vectors, cap=rules.cap)])

    def _best_cutting(self, theme_id: str, cuttings: Sequence[Cutting]) -> Cutting:
        if len(cuttings) < 2:
            return cuttings[0]
        vectors, among = self._vectors(theme_id), self._around(theme_id)

        def score(cutting: Cutting) -> float:
            parts: list[ThemePart] = [part_of(vectors[part]) for part in cutting]
            return self._space.score(self._rules.bell, without=(theme_id,), parts=parts, among=among)

        return best(cuttings, score)

    def _merge(self, kept: str, other: str, cause: Literal["pair_merge", "tiny_merge"]) -> None:
        self._step += 1
        self.counts[f"merges.{cause.partition('_')[0]}"] += 1
        for fact_id in self._drop(other):
            self._place(fact_id, kept, cause)
            self.members[kept].append(fact_id)
        self._refresh(kept)
        self._note_naming(kept)

    def _note_naming(self, theme_id: str) -> None:
        if self._rules.naming == "every_change":
            self.namings.append((theme_id, tuple(self.members[theme_id])))

    def _make(self, facts: Sequence[str], cause: Cause) -> str:
        theme_id = f"t{self._made}"
        # Beyond all places so far, also where the themes were given another order: those are fewer than were made.
        self._order[theme_id] = self._made
        self._made += 1
        self.members[theme_id] = list(facts)
        for fact_id in facts:
            self._place(fact_id, theme_id, cause)
        self._refresh(theme_id)
        self._note_naming(theme_id)
        return theme_id

    def _drop(self, theme_id: str) -> list[str]:
        self._space.drop(theme_id)
        self._gains.clear()
        del self._order[theme_id]
        return self.members.pop(theme_id)

    def _place(self, fact_id: str, theme_id: str, cause: Cause) -> None:
        self.home[fact_id] = theme_id
        self.paths.setdefault(fact_id, []).append([theme_id, self._step, cause])

    def _refresh(self, theme_id: str) -> None:
        self._space.put(theme_id, part_of(self._vectors(theme_id)))
        self._gains.clear()
        self._changed[theme_id] = None

    def _vectors(self, theme_id: str) -> Vectors:
        return self._facts.vectors(self.members[theme_id])

    def state(self) -> dict[str, Any]:
        """Return the partition as JSON values; its geometry follows from the facts' vectors."""
        return {
            "members": {theme_id: list(facts) for theme_id, facts in self.members.items()},
            "paths": {fact_id: [list(entry) for entry in path] for fact_id, path in self.paths.items()},
            "counts": dict(sorted(self.counts.items())),
            "changed": [theme_id for theme_id in self._changed if theme_id in self.members],
            "made": self._made,
            "step": self._step,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot; the facts' vectors must be there already."""
        self.members = {theme_id: list(facts) for theme_id, facts in state["members"].items()}
        self._order = {theme_id: place for place, theme_id in enumerate(self.members)}
        self.home = {fact_id: theme_id for theme_id, facts in self.members.items() for fact_id in facts}
        self.paths = {fact_id: [list(entry) for entry in path] for fact_id, path in state["paths"].items()}
        self.counts = counter_from(state["counts"])
        self._made, self._step = int(state["made"]), int(state["step"])
        self._space = self._new_space()
        self._gains.clear()
        self.namings = []
        self._changed = dict.fromkeys(state["changed"])
