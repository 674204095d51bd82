"""What a reader of a run's figures should know of them: tokens that were estimated, texts that were read in part."""

from collections.abc import Mapping
from typing import Any


def remarks(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each thing that the counts of a run's summary say; none for most runs."""
    total = (summary.get("calls") or {}).get("total") or {}
    calls = total.get("calls")
    found = []
    if estimated := total.get("estimated"):
        found.append(f"tokens of {estimated} of {calls} calls are estimated: the server did not report them")
    if shortened := total.get("shortened"):
        found.append(f"the server read only a part of the prompt in {shortened} of {calls} calls")
    return found
