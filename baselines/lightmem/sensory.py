"""Sensory memory: a buffer of turns that is cut into topics when it is full."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.lightmem.attention import AttentionEncoder, peaks, text_attention
from baselines.lightmem.rules import SegmentRules


@dataclass(frozen=True, slots=True, eq=False)
class BufferedTurn:
    """A turn as the buffers hold it.

    Attributes:
        turn_id: of the turn.
        speaker: who said it.
        date: of its session, as the data set writes it.
        text: compressed.
        buffer_tokens: its length in the sensory buffer.
        tokens: its length in the short-term buffer.
        vector: embedding of the text, shape (d,).
    """

    turn_id: str
    speaker: str
    date: str
    text: str
    buffer_tokens: int
    tokens: int
    vector: NDArray[np.float32]

    def state(self) -> dict[str, Any]:
        """Return the turn as JSON values and a vector."""
        return {name: getattr(self, name) for name in self.__slots__}


Segment = list[BufferedTurn]


class SensoryBuffer:
    """Turns that wait for the end of their topic.

    Args:
        rules: how it is cut.
        encoder: shows peaks of attention; ``None`` where every drop of similarity is a boundary.
    """

    def __init__(self, rules: SegmentRules, encoder: AttentionEncoder | None) -> None:
        self._rules, self._encoder = rules, encoder
        self._turns: Segment = []

    async def push(self, turns: Sequence[BufferedTurn]) -> list[Segment]:
        """Append turns; return the segments that are complete.

        A turn that alone exceeds the buffer becomes a segment of its own.
        """
        if not self._rules.enabled:
            return [list(turns)] if turns else []
        segments: list[Segment] = []
        for turn in turns:
            while self._turns and self._filled + turn.buffer_tokens > self._rules.buffer_tokens:
                segments += await self._cut()
            self._turns.append(turn)
        return segments

    async def flush(self) -> list[Segment]:
        """Cut what is left, the last segment included."""
        segments = await self._cut() if self._turns else []
        rest, self._turns = self._turns, []
        return [*segments, *([rest] if rest else [])]

    @property
    def _filled(self) -> int:
        return sum(turn.buffer_tokens for turn in self._turns)

    async def _cut(self) -> list[Segment]:
        """Emit the segments up to the last boundary; without a boundary, everything."""
        bounds = [0, *(await self._boundaries() or [len(self._turns)])]
        segments = [self._turns[first:last] for first, last in pairwise(bounds)]
        self._turns = self._turns[bounds[-1] :]
        return segments

    async def _boundaries(self) -> list[int]:
        found: list[int] | None = None
        if self._encoder is not None:
            texts = [turn.text for turn in self._turns]
            attention = await asyncio.to_thread(self._encoder.attention, texts)
            found = peaks(text_attention(attention, len(texts), self._rules.edge))
        return boundaries(np.stack([turn.vector for turn in self._turns]), found, self._rules)

    def state(self) -> list[dict[str, Any]]:
        """Return the waiting turns."""
        return [turn.state() for turn in self._turns]

    def load_state(self, state: Sequence[Mapping[str, Any]]) -> None:
        """Restore a snapshot."""
        self._turns = [turn_of(entry) for entry in state]


def turn_of(state: Mapping[str, Any]) -> BufferedTurn:
    """Make the turn that :meth:`BufferedTurn.state` described."""
    return BufferedTurn(**{**state, "vector": np.asarray(state["vector"], dtype=np.float32)})


def boundaries(vectors: NDArray[np.float32], attention_peaks: Sequence[int] | None, rules: SegmentRules) -> list[int]:
    """Find where topics end: drops of similarity that lie near a peak, or all drops where none does.

    Args:
        vectors: unit vectors of the turns, shape (turns, d).
        attention_peaks: see :func:`baselines.lightmem.attention.peaks`; ``None`` where attention is not looked at.
        rules: thresholds, and what near means.

    Returns:
        Each b before which a topic ends, ascending; none where there is no peak or no drop.
    """
    if attention_peaks is not None and not attention_peaks:
        return []
    cosines = np.einsum("ij,ij->i", vectors[:-1], vectors[1:]) if len(vectors) > 1 else np.zeros(0)
    for tau in rules.thresholds:
        drops = [int(place) + 1 for place in np.flatnonzero(cosines < tau)]
        if drops:
            near = [drop for drop in drops if any(abs(drop - peak) <= rules.near for peak in attention_peaks or ())]
            return near or drops
    return []
