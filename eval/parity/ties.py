"""Questions whose contexts differ in tied memories alone, such as one of two at the edge of k: measured, not assumed.

Both sides sort by the cosines of the same vectors, ours rounded to six decimals, a release with all digits. Which of
two memories that are equally near comes first is then a matter of the last digit.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eval.parity.endpoint import ParityEndpoint
from eval.parity.ours import Answered, SideResult
from memsys.vocabulary import Json

#: Cosines that round to the same six decimals differ by less.
TIED = 1e-6


@dataclass(frozen=True, slots=True)
class _ShownHit:
    """A memory that a context shows, and those linked with it, which follow it."""

    text: str
    linked: tuple[str, ...] = ()


def tied_questions(endpoint: ParityEndpoint, ours: SideResult, theirs: SideResult) -> set[str]:
    """Find the questions whose contexts differ, and only in memories that are equally near to the question.

    Args:
        endpoint: embeds as both sides did.
        ours: our side.
        theirs: theirs.
    """
    memories, links = dict(memory_texts(theirs.store)), linked_texts(theirs.store)
    return {
        name
        for name, one in ours.answers.items()
        if one.context != theirs.answers[name].context
        and _tied(endpoint, one, memories, theirs.answers[name].context, links)
    }


def tied_neighbours(endpoint: ParityEndpoint, ours: SideResult, theirs: SideResult) -> set[str]:
    """Find the facts whose nearest ones are in another order, and only where they are equally near to the fact.

    Returns:
        Places in the memory, such as ``facts.3.nearest``.
    """
    mine, yours = (side.store.get("facts") for side in (ours, theirs))
    if not (isinstance(mine, list) and isinstance(yours, list)):
        return set()
    pairs: Any = enumerate(zip(mine, yours, strict=False))
    return {
        f"facts.{place}.nearest"
        for place, (one, other) in pairs
        if one.get("nearest") != other.get("nearest") and _reordered(endpoint, yours, other, one["nearest"])
    }


def _reordered(endpoint: ParityEndpoint, facts: Sequence[Any], fact: Mapping[str, Any], ours: Sequence[int]) -> bool:
    theirs = fact["nearest"]
    if sorted(ours) != sorted(theirs):
        return False
    texts = {facts[place]["text"]: facts[place]["text"] for place in theirs}
    cosines = _cosines(endpoint, Answered(fact["text"], "", ""), texts)
    return _close(*([cosines[facts[place]["text"]] for place in places] for places in (ours, theirs)))


def memory_texts(store: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the texts of memories as contexts show them, each with what was embedded of it."""
    for part in store.values():
        named: Any = part.items() if isinstance(part, Mapping) else enumerate(part if isinstance(part, list) else ())
        for name, memory in named:
            if not isinstance(memory, Mapping):
                continue
            if "title" in memory:
                yield str(memory["content"]), f"{memory['title']}. {memory['content']}"
            elif isinstance(text := memory.get("text", memory.get("content")), str):
                yield text, text
            elif isinstance(name, str):
                yield name, name


def linked_texts(store: Mapping[str, Json]) -> dict[str, list[str]]:
    """Return the texts of the notes that each note of A-Mem or CLAG is linked with, by its own text, in order."""
    notes: Any = store.get("notes") or []
    texts = [str(note["content"]) for note in notes]
    return {str(note["content"]): [texts[place] for place in _places(note["links"], len(texts))] for note in notes}


def _places(links: Sequence[Any], count: int) -> Iterator[int]:
    """Yield the links that are places of notes, also where a model wrote them as texts."""
    for link in links:
        try:
            place = int(link)
        except (TypeError, ValueError):
            continue
        if 0 <= place < count:
            yield place


def _tied(
    endpoint: ParityEndpoint,
    ours: Answered,
    memories: Mapping[str, str],
    theirs: str,
    links: Mapping[str, Sequence[str]],
) -> bool:
    mine, yours = (_hits(_shown(memories, context), links) for context in (ours.context, theirs))
    if mine == yours or len(mine) != len(yours):
        return False
    cosines = _cosines(endpoint, ours, {one.text: memories[one.text] for one in (*mine, *yours)})
    alone = [Counter(mine) - Counter(yours), Counter(yours) - Counter(mine)]
    if {one.text for one in alone[0]} & {one.text for one in alone[1]}:  # the same hit with other links
        return False
    kept = [_without(mine, alone[0]), _without(yours, alone[1])]
    return all(
        _close(*([cosines[one.text] for one in hits] for hits in pair))
        for pair in ([sorted(one.elements(), key=lambda hit: cosines[hit.text]) for one in alone], kept)
    )


def _hits(texts: Sequence[str], links: Mapping[str, Sequence[str]]) -> list[_ShownHit]:
    """Return what a context shows as hits, each with the memories after it that it is linked with."""
    hits, place = [], 0
    while place < len(texts):
        end = place + 1
        for text in links.get(texts[place], ()):
            if end == len(texts) or texts[end] != text:
                break
            end += 1
        hits.append(_ShownHit(texts[place], tuple(texts[place + 1 : end])))
        place = end
    return hits


def _without(hits: Sequence[_ShownHit], left_out: Mapping[_ShownHit, int]) -> list[_ShownHit]:
    """Return the hits without this many of some of them, the last ones."""
    left, kept = dict(left_out), []
    for hit in reversed(hits):
        if left.get(hit, 0):
            left[hit] -= 1
        else:
            kept.append(hit)
    return kept[::-1]


def _close(ones: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether two lists of cosines are the same but for the last digits."""
    return len(ones) == len(others) and all(abs(one - other) < TIED for one, other in zip(ones, others, strict=True))


def _shown(memories: Mapping[str, str], context: str) -> list[str]:
    """Return the memories that a context shows, in order, each as often as it does; longer ones are found first."""
    left, places = context, []
    for text in sorted(filter(None, memories), key=len, reverse=True):
        at = left.find(text)
        while at >= 0:
            places.append((at, text))
            left = left[:at] + "\0" * len(text) + left[at + len(text) :]
            at = left.find(text)
    return [text for _, text in sorted(places)]


def _cosines(endpoint: ParityEndpoint, ours: Answered, texts: Mapping[str, str]) -> dict[str, float]:
    """Return the cosines with the question; for our hits, their own scores."""
    vectors = endpoint.embed([ours.question, *texts.values()]).astype(np.float64)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return {**dict(zip(texts, (units[1:] @ units[0]).tolist(), strict=True)), **_scores(ours, texts)}


def _scores(ours: Answered, texts: Mapping[str, str]) -> dict[str, float]:
    return {text: ours.scores[text] for text in texts if text in ours.scores}
