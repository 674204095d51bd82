"""Mem0 as SAGE's released code runs it for comparison, as a worker.

That code is a fork of Mem0 1.0; without its gate, Mem0's own batched decision is in force. Settings are those of SAGE's
worker, which this one extends.
"""

from pathlib import Path

from released_code import load

_SAGE = load("authors_sage_worker", str(Path(__file__).parents[1] / "authors_sage" / "worker.py"))


class Worker(_SAGE.Worker):  # type: ignore[misc, name-defined]
    """The authors' memory for one conversation, decided on by the backbone."""

    gated = False

    points = _SAGE.SpeakerMemories.points  # there are no scopes without the gate
    store = _SAGE.SpeakerMemories.store
