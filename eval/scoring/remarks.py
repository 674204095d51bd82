"""Remarks on a run's figures: estimated tokens, texts that were truncated."""

from collections.abc import Mapping
from typing import Any

#: What is said of texts that a model reads only the beginning of.
_CUT = {
    "embedded": "distinct texts longer than the embedder's window, of which only the beginning was embedded",
    "bertscore": "answers and gold answers of which BERTScore's model read only the beginning",
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
    return found
