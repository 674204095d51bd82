"""Questions without an answer: how many of which kind a run has, and how they count, in words."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from eval.scoring.config import UNANSWERED

#: In ``counts`` of a summary, where there are any: questions by what became of them, without those answered.
OUTCOMES = "outcomes"
_HOW = {"wrong": "counted as wrong", "left_out": "left out of the means", "text": "scored by their text"}


def without_answer(outcomes: Iterable[str]) -> dict[str, dict[str, int]]:
    """Count the questions that have no whole answer by what became of them; nothing where all have one."""
    found = Counter(outcomes)
    counted = {kind: found[kind] for kind in UNANSWERED if found[kind]}
    return {OUTCOMES: counted} if counted else {}


def unanswered_text(summary: Mapping[str, Any]) -> str:
    """Say how many questions of a run have no whole answer, and how they count; empty where all have one.

    Args:
        summary: ``summary.json``.
    """
    counts = summary.get("counts") or {}
    found: Mapping[str, int] = counts.get(OUTCOMES) or {}
    chosen = {**UNANSWERED, **(((summary.get("scoring") or {}).get("config") or {}).get("unanswered") or {})}
    by_treatment: dict[str, list[str]] = {}
    for kind, count in found.items():
        by_treatment.setdefault(_HOW[chosen[kind]], []).append(f"{count} {kind}")
    how = "; ".join(f"{', '.join(kinds)}: {words}" for words, kinds in by_treatment.items())
    return f"{sum(found.values())} of {counts['questions']} questions without a whole answer ({how})" if how else ""


def unanswered_count(summary: Mapping[str, Any]) -> int:
    """Return how many questions of a run have no whole answer, by its ``summary.json``."""
    found: Mapping[str, int] = (summary.get("counts") or {}).get(OUTCOMES) or {}
    return sum(found.values())
