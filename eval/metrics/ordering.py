"""BEAM's score of an order of events: Kendall's tau-b between the items of the reference and the lines of the answer.

Source: github.com/mohammadtavakoli78/BEAM, ``event_ordering_score`` in ``src/evaluation/compute_metrics.py``. Each line
of the answer is replaced by the first unused item that it matches; the union of both lists is ranked by either list,
what a list lacks sharing one rank behind all others; ``order_tau`` is (tau-b + 1) / 2, which the authors' tables
show, and ``order_score`` that times the F1 of the items found. Who matches is theirs to a language model; here an
item matches a line that has at least half of its words, so that the score needs no model. Values differ from theirs.
The metrics that end in ``_semantic`` align as their ``semantic_align`` does: a line represents the item whose
embedding is nearest to its own, where their cosine is 0.65 or more and no earlier line has taken that item. Those that
end in ``_model`` align as their ``align_with_llm`` does, by a judge's verdicts (:mod:`eval.scoring.verdicts.orders`).
"""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from math import isnan

from eval.metrics.overlap import harmonic
from eval.metrics.text import squad_tokens

#: Key of ``Reference.extra``: the items of the order, first to last.
ORDERED_ITEMS = "ordered_items"
#: Names of the metrics.
ORDER_METRICS = ("order_tau", "order_f1", "order_score")
#: The same of lines that were aligned by sentence embeddings.
SEMANTIC_ORDER_METRICS = tuple(f"{name}_semantic" for name in ORDER_METRICS)
#: The same of lines that a judge aligned; columns of scores have the judge's name before these.
MODEL_ORDER_METRICS = tuple(f"{name}_model" for name in ORDER_METRICS)
#: Least cosine of a line and the item that it represents.
SIMILAR = 0.65
#: Cosines of lines with items, a row for each line.
Similarity = Callable[[Sequence[str], Sequence[str]], Sequence[Sequence[float]]]
#: Share of an item's words that a line must have to represent it.
_ENOUGH = 0.5
_BULLET = re.compile(r"^\s*(?:[-*\u2022]|\(?\d+[.):]|\d+(?:st|nd|rd|th)\b[:.]?)\s*")


def lines_of(answer: str) -> list[str]:
    """Split an answer into its items: a line each, without bullets and numbers; empty lines do not count."""
    stripped = (_BULLET.sub("", line).strip() for line in answer.splitlines())
    return [line for line in stripped if line]


def align(items: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Replace each line by the first unused item that it matches; other lines stay as they are."""
    used: set[int] = set()
    aligned = []
    for line in lines:
        words = set(squad_tokens(line))
        place = next((n for n, item in enumerate(items) if n not in used and _matches(item, words)), None)
        if place is not None:
            used.add(place)
        aligned.append(line if place is None else items[place])
    return aligned


def _matches(item: str, words: set[str]) -> bool:
    wanted = set(squad_tokens(item))
    return bool(wanted) and len(wanted & words) >= _ENOUGH * len(wanted)


def align_by_similarity(items: Sequence[str], lines: Sequence[str], cosines: Sequence[Sequence[float]]) -> list[str]:
    """Replace each line by the item nearest to it, where that is near enough and not taken; others stay as they are.

    Args:
        items: of the reference.
        lines: of the answer.
        cosines: of each line with every item.
    """
    used: set[int] = set()
    aligned = []
    for line, near in zip(lines, cosines, strict=True):
        best = max(range(len(items)), key=near.__getitem__)
        taken = near[best] >= SIMILAR and best not in used
        if taken:
            used.add(best)
        aligned.append(items[best] if taken else line)
    return aligned


def aligning(items: Sequence[str], lines: Sequence[str]) -> Generator[tuple[int, int], bool, list[str]]:
    """Align lines with the items that a judge says are the same event, as the authors' ``align_with_llm`` asks.

    Every line in turn is compared with every item that no earlier line has taken, in the items' order, until one is the
    same; that item is taken and the line replaced by it. Other lines stay as they are.

    Args:
        items: of the reference.
        lines: of the answer.

    Yields:
        The places of an item and of a line; what is sent back says whether they are the same.

    Returns:
        The lines, those that represent an item replaced by it.
    """
    used: set[int] = set()
    aligned = []
    for number, line in enumerate(lines):
        place = None
        for candidate in range(len(items)):
            if candidate not in used and (yield candidate, number):
                place = candidate
                used.add(place)
                break
        aligned.append(line if place is None else items[place])
    return aligned


def order_tau(items: Sequence[str], aligned: Sequence[str]) -> float | None:
    """Return (tau-b + 1) / 2 of the rankings of all named items; ``None`` for one item or one rank for all."""
    from scipy.stats import kendalltau

    union = list(dict.fromkeys([*items, *aligned]))
    if len(union) < 2:
        return None
    tau = float(kendalltau(_ranks(items, union), _ranks(aligned, union), variant="b").statistic)
    return None if isnan(tau) else (tau + 1) / 2


def _ranks(sequence: Sequence[str], union: Sequence[str]) -> list[int]:
    place = {item: number for number, item in enumerate(sequence, start=1)}
    return [place.get(item, len(union) + 1) for item in union]


def order_f1(items: Sequence[str], aligned: Sequence[str]) -> float:
    """Return F1 over the items that the answer names."""
    found = len(set(items) & set(aligned))
    extra = sum(line not in items for line in aligned)
    return harmonic(found / (found + extra), found / len(set(items))) if found else 0.0


def order_scores(answer: str, items: Sequence[str]) -> Mapping[str, float | None]:
    """Return all metrics of one answer; empty for a question that asks for no order.

    Args:
        answer: the reply, an item a line; one without any has 0.
        items: of the reference, first to last.
    """
    return _scores(items, align(items, lines_of(answer)), ORDER_METRICS) if items else {}


def semantic_order_scores(answer: str, items: Sequence[str], similarity: Similarity) -> Mapping[str, float | None]:
    """Return the metrics of an answer aligned by a sentence encoder; empty for a question that asks for no order.

    Args:
        answer: the reply, an item a line; one without any has 0.
        items: of the reference, first to last.
        similarity: cosines by the encoder.
    """
    if not items:
        return {}
    lines = lines_of(answer)
    aligned = align_by_similarity(items, lines, similarity(lines, items)) if lines else []
    return _scores(items, aligned, SEMANTIC_ORDER_METRICS)


def aligned_order_scores(items: Sequence[str], aligned: Sequence[str]) -> Mapping[str, float | None]:
    """Return the metrics of an answer aligned by a judge (:func:`aligning`); 0 for an answer without lines."""
    return _scores(items, aligned, MODEL_ORDER_METRICS)


def _scores(items: Sequence[str], aligned: Sequence[str], names: Sequence[str]) -> Mapping[str, float | None]:
    if not aligned:
        return dict.fromkeys(names, 0.0)
    tau, f1 = order_tau(items, aligned), order_f1(items, aligned)
    return dict(zip(names, (tau, f1, None if tau is None else tau * f1), strict=True))
