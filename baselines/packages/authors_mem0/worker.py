"""Mem0 as SAGE's released code runs it for comparison, as a worker.

That code is a fork of Mem0 1.0; without its gate, Mem0's own batched decision is in force. Settings are those of SAGE's
worker, which this one extends.
"""

from pathlib import Path
from typing import Any

from released_code import load

_SAGE = load("authors_sage_worker", str(Path(__file__).parents[1] / "authors_sage" / "worker.py"))


class Worker(_SAGE.Worker):  # type: ignore[misc, name-defined]
    """The authors' memory for one conversation, decided on by the backbone."""

    gated = False

    def _points(self) -> list[tuple[str, Any]]:
        """Return the memories of each speaker, in the order they were added."""
        (points,) = _SAGE._Client.stores.values()
        return [
            (speaker, point)
            for speaker in self._speakers
            for point in points.values()
            if point.payload["user_id"] == _SAGE._user(speaker)
        ]

    def store(self) -> dict[str, Any]:
        """Return memories in the form that parity runs compare."""
        return {
            "memories": [
                {"owner": speaker, "text": point.payload["data"], "timestamp": point.payload["timestamp"]}
                for speaker, point in self._points()
            ]
        }
