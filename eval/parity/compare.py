"""Differences between the two sides of a parity run: calls, prompts, final memories, contexts, answers."""

import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from eval.parity.endpoint import RecordedCall
from eval.parity.facts import Facts, KnownTexts
from eval.parity.ours import SideResult
from memsys.deviations import Difference, Extent
from memsys.llm.thoughts import read_answer
from memsys.vocabulary import Json

#: Stands before each message after the prompt.
AGAIN = "[then] "


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """One difference.

    Attributes:
        kind: what differs.
        place: where: role and number of the call, path in the memory, or id of the question.
        extent: whether the same things are shown in other words or in another order, or other things.
        ours: our text or value; ``None`` where we have none.
        theirs: theirs.
        role: of the call, for prompts and calls.
    """

    kind: Difference
    place: str
    extent: Extent
    ours: Json
    theirs: Json
    role: str = ""


@dataclass(slots=True)
class RoleCount:
    """Calls of one role: how many each side made, and how their prompts compare."""

    ours: int = 0
    theirs: int = 0
    equal: int = 0
    wording: int = 0
    order: int = 0
    tie: int = 0
    content: int = 0

    def add(self, extent: Extent) -> None:
        """Count a difference."""
        setattr(self, extent, getattr(self, extent) + 1)


@dataclass(slots=True)
class PartCount:
    """Values of one part (notes, clusters, contexts, answers): how many compared, how many equal or alike."""

    compared: int = 0
    equal: int = 0
    wording: int = 0
    order: int = 0
    tie: int = 0
    content: int = 0

    def add(self, extent: Extent) -> None:
        """Count a difference."""
        setattr(self, extent, getattr(self, extent) + 1)


@dataclass(slots=True)
class Comparison:
    """The result of a comparison.

    Attributes:
        roles: counts of calls by role.
        parts: counts of values by part.
        differences: all of them.
    """

    roles: dict[str, RoleCount] = field(default_factory=lambda: defaultdict(RoleCount))
    parts: dict[str, PartCount] = field(default_factory=lambda: defaultdict(PartCount))
    differences: list[FoundDifference] = field(default_factory=list)


class Comparer:
    """Compares two sides of one conversation.

    Args:
        known: texts of the conversation.
        questions: id of each question by its text; calls that show one have its id in their place.
    """

    def __init__(self, known: KnownTexts, questions: Mapping[str, str] | None = None) -> None:
        self._known = known
        #: Ids of questions and places that differ in tied memories alone (:mod:`eval.parity.ties`).
        self.tied: Set[str] = frozenset()
        self._questions = {known.number(text): name for text, name in (questions or {}).items()}
        self.result = Comparison()

    def compare_settings(self, ours: Mapping[str, Json], theirs: Mapping[str, Json]) -> None:
        """Compare the settings of our preset with the release's own, by the names of ours."""
        for name, value in theirs.items():
            self._compare_value("setting", "settings", name, ours[name], value)

    def compare_calls(self, ours: Sequence[RecordedCall], theirs: Sequence[RecordedCall]) -> None:
        """Pair the calls of each role and compare their prompts and settings; the order of calls is not compared."""
        for role in sorted({call.request.role for call in (*ours, *theirs)}):
            pairs = self._paired(
                [call for call in ours if call.request.role == role],
                [call for call in theirs if call.request.role == role],
            )
            for number, (one, other) in enumerate(pairs, start=1):
                self._compare_call(role, number, one, other)

    def _paired(
        self, ours: Sequence[RecordedCall], theirs: Sequence[RecordedCall]
    ) -> Sequence[tuple[RecordedCall | None, RecordedCall | None]]:
        """Pair calls with the same message, then those with the same facts, then the rest in order."""
        pairs: list[tuple[RecordedCall | None, RecordedCall | None]] = []
        for same in (_message, self._key):
            found, ours, theirs = _matched(ours, theirs, same)
            pairs += found
        return [*pairs, *zip_longest(ours, theirs)]

    def _key(self, call: RecordedCall) -> str:
        return self._facts(call).key

    def _facts(self, call: RecordedCall) -> Facts:
        return self._known.facts(call.request.shown)

    def _compare_call(self, role: str, number: int, ours: RecordedCall | None, theirs: RecordedCall | None) -> None:
        count = self.result.roles[role]
        count.ours += ours is not None
        count.theirs += theirs is not None
        if ours is None or theirs is None:
            given = [None if call is None else _message(call) for call in (ours, theirs)]
            self._add("calls", self._place(role, number, ours or theirs), "content", given[0], given[1], role)
            return
        self._compare_settings(role, ours, theirs)
        if _message(ours) == _message(theirs):
            count.equal += 1
            return
        place = self._place(role, number, ours)
        extent: Extent = "tie" if place.split()[-1] in self.tied else _extent(self._facts(ours), self._facts(theirs))
        count.add(extent)
        self._add("prompt", place, extent, _message(ours), _message(theirs), role)

    def _place(self, role: str, number: int, call: RecordedCall | None) -> str:
        """Return the role and number of a call, and the id of the question that it shows."""
        texts = self._facts(call).texts if call else ()
        return " ".join((role, str(number), *(self._questions[text] for text in texts if text in self._questions)))

    def _compare_settings(self, role: str, ours: RecordedCall, theirs: RecordedCall) -> None:
        """Compare temperature, limit and schema; a difference of a role is told once."""
        mine, yours = _settings(ours), _settings(theirs)
        told = {found.place for found in self.result.differences}
        for name, one in mine.items():
            other = yours[name]
            if one != other and f"{role}.{name}" not in told:
                self._add("calls", f"{role}.{name}", "content", one, other, role)

    def compare_results(self, ours: SideResult, theirs: SideResult) -> None:
        """Compare final memories, contexts and answers."""
        for part in sorted({*ours.store, *theirs.store}):
            self._compare_part(part, ours.store.get(part), theirs.store.get(part))
        for question, one in ours.answers.items():
            other = theirs.answers[question]
            self._compare_value("context", "contexts", question, one.context, other.context)
            self._compare_value("answer", "answers", question, _trimmed(one.prediction), _trimmed(other.prediction))

    def _compare_part(self, part: str, ours: Any, theirs: Any) -> None:
        """Compare a part of the memory, value by value: ``notes.3.tags``, ``clusters.cluster_1.members``."""
        one, other = _members(ours), _members(theirs)
        for name in [*one, *(name for name in other if name not in one)]:
            mine, yours = one.get(name), other.get(name)
            if isinstance(mine, Mapping) and isinstance(yours, Mapping):
                for key in sorted({*mine, *yours}):
                    self._compare_value("store", f"{part}.{key}", f"{part}.{name}.{key}", mine.get(key), yours.get(key))
            else:
                self._compare_value("store", part, f"{part}.{name}", mine, yours)

    def _compare_value(self, kind: Difference, part: str, place: str, ours: Any, theirs: Any) -> None:
        count = self.result.parts[part]
        count.compared += 1
        if ours == theirs:
            count.equal += 1
            return
        extent: Extent = "tie" if place in self.tied else self._extent_of(ours, theirs)
        count.add(extent)
        self._add(kind, place, extent, ours, theirs)

    def _extent_of(self, ours: Any, theirs: Any) -> Extent:
        if isinstance(ours, list) and isinstance(theirs, list) and len(ours) > 1:
            return "order" if sorted(map(repr, ours)) == sorted(map(repr, theirs)) else "content"
        if not (isinstance(ours, str) and isinstance(theirs, str)):
            return "content"
        one, other = self._known.facts(ours), self._known.facts(theirs)
        return "wording" if one == other and one != Facts() else "content"

    def _add(self, kind: Difference, place: str, extent: Extent, ours: Json, theirs: Json, role: str = "") -> None:
        self.result.differences.append(FoundDifference(kind, place, extent, ours, theirs, role))


def _trimmed(prediction: Json) -> Json:
    """Return an answer without reasoning, a code fence and surrounding white space, as our readers parse it.

    An answer of another type is compared as the releases' scorers take it: as the text that Python writes for it, and
    ``null`` as an empty one.
    """
    return "" if prediction is None else read_answer(str(prediction)).text.strip()


def _matched(
    ours: Sequence[RecordedCall], theirs: Sequence[RecordedCall], key: Callable[[RecordedCall], str]
) -> tuple[list[tuple[RecordedCall, RecordedCall]], list[RecordedCall], list[RecordedCall]]:
    """Return the pairs of calls with the same key, in the order of ours, and the remaining ones of each side."""
    waiting: dict[str, deque[RecordedCall]] = defaultdict(deque)
    for call in theirs:
        waiting[key(call)].append(call)
    pairs, alone = [], []
    for call in ours:
        same = waiting[key(call)]
        if same:
            pairs.append((call, same.popleft()))
        else:
            alone.append(call)
    left = {id(call) for queue in waiting.values() for call in queue}
    return pairs, alone, [call for call in theirs if id(call) in left]


def _message(call: RecordedCall) -> str:
    """Return the model's input: system message, prompt, and the messages after it."""
    request = call.request
    return "\n".join((f"[system] {request.system}", request.prompt, *(f"{AGAIN}{one}" for one in request.exchange)))


def _settings(call: RecordedCall) -> dict[str, Json]:
    """Return the settings of a call besides its prompt; the schema's fields in order, with their types."""
    return {**call.request.sampling, "schema": json.dumps(call.request.schema.get("properties", {}))}


def _members(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    return {str(place): one for place, one in enumerate(value or ())}


def _extent(ours: Facts, theirs: Facts) -> Extent:
    """Return the extent by which two prompts differ in content."""
    if ours.key != theirs.key:
        return "content"
    return "wording" if _is_rotation(ours.texts, theirs.texts) else "order"


def _is_rotation(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Return whether two lists are rotations: a prompt may show the new note before or after its neighbours."""
    if len(ours) != len(theirs):
        return False
    twice = [*theirs, *theirs]
    return any(list(ours) == twice[start : start + len(ours)] for start in range(max(len(ours), 1)))
