"""Remarks on a run's figures: estimated tokens, texts that were truncated, results that nothing traces to turns."""

from collections.abc import Mapping
from typing import Any

from memsys.assets.hints import of_source

#: What is said of texts that a model reads only the beginning of.
_CUT = {
    "embedded": "distinct texts longer than the embedder's window, embedded only up to it",
    "bertscore": "answers and gold answers truncated by BERTScore's model",
}


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each thing that the counts of a run's summary say; none for most runs."""
    total = (summary.get("calls") or {}).get("total") or {}
    calls = total.get("calls")
    found = []
    if estimated := total.get("estimated"):
        found.append(f"tokens of {estimated} of {calls} calls are estimated: the server did not report them")
    if shortened := total.get("shortened"):
        found.append(f"the server read only a part of the prompt in {shortened} of {calls} calls")
    for name, text in _CUT.items():
        if cut := (summary.get("cut_texts") or {}).get(name):
            found.append(f"{text}: {cut}")
    return [*found, *untraced(summary)]


def untraced(summary: Mapping[str, Any]) -> list[str]:
    """Return the sentence that results could not be traced to turns; none where all were."""
    traced = _traced(summary)
    if not (lost := traced.get("none")):
        return []
    return [
        f"{lost} of {sum(traced.values())} results could not be traced to turns, and figures by turn ids leave "
        f"their questions out: return ids from add and search ({of_source('docs/any_memory.md')})"
    ]


def _traced(summary: Mapping[str, Any]) -> dict[str, int]:
    """Return the results of a memory from outside by what traced them to turns; empty for other memories."""
    numbers = (summary.get("trace") or {}).get("numbers") or {}
    return {
        path.partition(".")[2]: round(found["mean"] * found["count"])
        for path, found in numbers.items()
        if path.startswith("traced.")
    }
