"""Mid-term memory: segments of pages about one topic, with their heat."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baselines.memoryos.pages import PageTopic
from baselines.memoryos.rules import HeatRules, KeywordOverlap, MidTermRules
from memsys.dates import parse_date
from memsys.index.vector import SCORE_DECIMALS, VectorIndex

#: Heats that agree after rounding differ by less than this.
_TIE = 10.0**-SCORE_DECIMALS


@dataclass(slots=True)
class TopicSegment:
    """Pages about one topic.

    Attributes:
        segment_id: unique within the conversation.
        summary: of the topic that opened it.
        keywords: of that topic.
        pages: ids, in the order in which they joined.
        interactions: pages credited since the last promotion.
        last_visit: date of the page that joined last, as the data set writes it.
    """

    segment_id: str
    summary: str
    keywords: tuple[str, ...]
    pages: list[str]
    interactions: int
    last_visit: str

    def heat(self, rules: HeatRules, now: str) -> float:
        """Return alpha N + beta L + gamma R; there are no visits N while a conversation is written."""
        return rules.beta * self.interactions + rules.gamma * recency(rules, self.last_visit, now)

    def state(self) -> dict[str, Any]:
        """Return the segment as JSON values."""
        made = {name: getattr(self, name) for name in self.__slots__}
        return {**made, "keywords": list(self.keywords), "pages": list(self.pages)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "TopicSegment":
        """Make the segment that :meth:`state` described."""
        return cls(**{**state, "keywords": tuple(state["keywords"]), "pages": list(state["pages"])})


def recency(rules: HeatRules, then: str, now: str) -> float:
    """Return exp(-seconds / mu); 1 where a date cannot be read."""
    moments = (parse_date(then), parse_date(now))
    if rules.recency == "fresh" or None in moments:
        return 1.0
    first, last = (moment for moment in moments if isinstance(moment, datetime))
    return exp(-max((last - first).total_seconds(), 0.0) / rules.mu)


def keyword_overlap(one: Collection[str], other: Collection[str], kind: KeywordOverlap) -> float:
    """Return the overlap of two sets of keywords, 0 to 1; 0 where either is empty."""
    first, second = set(one), set(other)
    common = len(first & second)
    if not first or not second:
        return 0.0
    if kind == "jaccard":
        return common / len(first | second)
    return (common / len(first) + common / len(second)) / 2


class MidTermMemory:
    """Segments in the order in which they were opened, at most ``capacity``.

    Args:
        dimension: of a vector.
        rules: how topics join segments, and which segments go.
        heat: of segments.
    """

    def __init__(self, dimension: int, rules: MidTermRules, heat: HeatRules) -> None:
        self._rules, self._heat = rules, heat
        self._index = VectorIndex(dimension)
        self.segments: dict[str, TopicSegment] = {}
        self.opened = 0
        self.evicted = 0

    def insert(self, topic: PageTopic, page_id: str, date: str) -> TopicSegment | None:
        """Put a page into the segment nearest to a topic of its, or open one.

        A segment is credited with a page only if the page joins it and was not there before; as released
        (:attr:`baselines.memoryos.rules.HeatRules.credit`), the nearest one always is.

        Returns:
            The segment that was opened; ``None`` where the page joined one.
        """
        nearest, score = self._nearest(topic)
        joins = nearest is not None and score >= self._rules.theta
        added = joins and nearest is not None and (self._rules.copies or page_id not in nearest.pages)
        if nearest is not None and (added or self._heat.credit == "nearest"):
            nearest.interactions += 1
        if nearest is None or not joins:
            return self._open(topic, page_id, date)
        if added:
            nearest.pages.append(page_id)
        nearest.last_visit = date
        return None

    def _open(self, topic: PageTopic, page_id: str, date: str) -> TopicSegment:
        segment = TopicSegment(f"segment_{self.opened}", topic.summary, topic.keywords, [page_id], 1, date)
        self.opened += 1
        self.segments[segment.segment_id] = segment
        self._index.add([segment.segment_id], topic.vector[None, :])
        if len(self.segments) > self._rules.capacity:
            self._evict(date)
        return segment

    def hottest(self, now: str) -> TopicSegment | None:
        """Return the hottest segment if it is hot enough; the older of two equals."""
        rules = self._heat
        # Recency is at most 1, so that most segments cannot be hot enough, and their dates need not be read.
        least = rules.tau - rules.gamma - _TIE
        warm = [each for each in self.segments.values() if rules.beta * each.interactions >= least]
        hottest = max(warm, key=lambda each: round(each.heat(rules, now), SCORE_DECIMALS), default=None)
        return hottest if hottest is not None and hottest.heat(rules, now) >= rules.tau else None

    def search(
        self, vector: NDArray[np.float32], keywords: Sequence[str], most: int, least: float
    ) -> list[TopicSegment]:
        """Find the ``most`` segments with the greatest cosines, of which those scored at least ``least`` count."""
        found = ((self.segments[segment_id], cosine) for segment_id, cosine in self._index.search(vector, most))
        return [each for each, cosine in found if cosine + self._overlap(each, keywords) >= least]

    def _nearest(self, topic: PageTopic) -> tuple[TopicSegment | None, float]:
        """Find the segment that a topic may join, with its score; none where there is no segment yet."""
        found = self._index.search(topic.vector, len(self._index))
        if self._rules.merge_by == "cosine":
            found = found[:1]
            if found and found[0][1] < 0:  # keywords bring nobody together whose summaries are apart
                return self.segments[found[0][0]], -inf
        scored = [(cosine + self._overlap(self.segments[name], topic.keywords), name) for name, cosine in found]
        best = max(scored, key=lambda each: round(each[0], SCORE_DECIMALS), default=None)
        return (self.segments[best[1]], best[0]) if best is not None else (None, 0.0)

    def _overlap(self, segment: TopicSegment, keywords: Sequence[str]) -> float:
        return keyword_overlap(segment.keywords, keywords, self._rules.overlap)

    def _evict(self, now: str) -> None:
        """Drop a segment: the coldest, or the one found least often, which is the oldest: no question is counted."""
        kept = list(self.segments.values())
        heats = [round(each.heat(self._heat, now), SCORE_DECIMALS) for each in kept]
        gone = kept[heats.index(min(heats)) if self._rules.evict == "heat" else 0].segment_id
        del self.segments[gone]
        self._index.remove([gone])
        self.evicted += 1

    def state(self) -> dict[str, Any]:
        """Return segments and vectors."""
        return {
            "segments": [segment.state() for segment in self.segments.values()],
            "index": self._index.state(),
            "opened": self.opened,
            "evicted": self.evicted,
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot."""
        self.segments = {each["segment_id"]: TopicSegment.from_state(each) for each in state["segments"]}
        self._index.load_state(state["index"])
        self.opened, self.evicted = state["opened"], state["evicted"]
