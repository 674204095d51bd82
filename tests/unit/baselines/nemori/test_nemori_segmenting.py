"""Nemori's batches: where the stream is cut, and a partition from whatever a reply says."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baselines.nemori.roles import make_roles
from baselines.nemori.rules import BatchRules
from baselines.nemori.segmenting import Segmented, cut_batches, read_groups, segment
from memsys.episodes.boundary import Segmenter
from memsys.episodes.nodes import Message
from memsys.turns import TurnFormat
from tests.support.fakes import FakeModel
from tests.support.nemori import preset, replying
from tests.support.xmemory import talk

RULES = BatchRules(size=6, least=3, clip_chars=None, session_cut=False)


def groups(reply: Any, count: int = 6) -> tuple[list[list[int]], dict[str, int]]:
    """Read groups of message numbers, from 1, and what was counted."""
    counts: Counter[str] = Counter()
    found = read_groups(reply, count, counts)
    return [[place + 1 for place in group.places] for group in found], dict(+counts)


def listed(*indices: Any) -> dict[str, Any]:
    return {"episodes": [{"indices": found, "topic": f"t{n}"} for n, found in enumerate(indices)]}


@pytest.mark.parametrize(
    ("indices", "expected", "counted"),
    [
        (([1, 2], [3, 4, 5, 6]), [[1, 2], [3, 4, 5, 6]], {}),
        (([1, 3, 5], [2, 4, 6]), [[1, 3, 5], [2, 4, 6]], {}),  # groups may interleave
        (([5, 6], [4, 3, 2, 1]), [[1, 2, 3, 4], [5, 6]], {}),  # by first message, messages in order
        (([1, 2], [2, 3, 4, 5, 6]), [[1, 2], [3, 4, 5, 6]], {"segment.repeated": 1}),
        (([1, 2], [4, 5]), [[1, 2, 3], [4, 5, 6]], {"segment.missing": 2}),  # leftovers join the message before
        (([3, 4], [5, 6]), [[1, 2, 3, 4], [5, 6]], {"segment.missing": 2}),  # ... at the beginning the one after
        (([0, 1, 2, 3], [4, 5, 6, 7, 99]), [[1, 2, 3], [4, 5, 6]], {"segment.out_of_range": 3}),
        ((["1", " 2 "], [3, True, None, 4, 5, 6, 2.5]), [[1, 2], [3, 4, 5, 6]], {}),
        (([1, 1, 1], [2, 3, 4, 5, 6]), [[1], [2, 3, 4, 5, 6]], {}),
        ((4, [1, 2, 3, 4, 5, 6]), [[1, 2, 3, 4, 5, 6]], {}),
    ],
)
def test_groups_become_a_partition(indices: Any, expected: list[list[int]], counted: dict[str, int]) -> None:
    assert groups(listed(*indices)) == (expected, counted)


@pytest.mark.parametrize("reply", [{}, {"episodes": "all"}, {"episodes": []}, {"episodes": [[1, 2]]}, listed([0, 7])])
def test_a_reply_without_a_usable_number_gives_no_group(reply: Any) -> None:
    assert groups(reply)[0] == []


@given(st.integers(1, 12), st.lists(st.lists(st.integers(-3, 15), max_size=6), max_size=6))
def test_whatever_is_named_every_message_is_in_one_group(count: int, indices: list[list[int]]) -> None:
    found, counted = groups(listed(*indices), count)
    named = {index for group in indices for index in group if 1 <= index <= count}
    if not named:
        assert found == []
        return
    assert sorted(place for group in found for place in group) == list(range(1, count + 1))
    assert all(group == sorted(group) for group in found) and found == sorted(found, key=min)
    assert counted.get("segment.missing", 0) == count - len(named)


def test_batches_are_full_but_for_the_last() -> None:
    turns = talk(*["sea"] * 14, per_session=4).turns
    assert [len(batch) for batch in cut_batches(turns, RULES)] == [6, 6, 2]
    assert cut_batches((), RULES) == []


def test_a_batch_ends_with_a_session_where_one_ends_in_it() -> None:
    cutting = replace(RULES, session_cut=True)
    turns = talk(*["sea"] * 14, per_session=4).turns
    assert [len(batch) for batch in cut_batches(turns, cutting)] == [4, 4, 6], "the rest fits into one batch"
    assert [len(batch) for batch in cut_batches(talk(*["sea"] * 9, per_session=3).turns, cutting)] == [6, 3]
    assert [len(batch) for batch in cut_batches(talk(*["sea"] * 14).turns, cutting)] == [6, 6, 2]


def segmented(model: FakeModel, *texts: str, rules: BatchRules = RULES) -> Segmented:
    messages = [Message.of(turn, TurnFormat()) for turn in talk(*texts).turns]
    return asyncio.run(segment(model, make_roles(preset().roles).segment, messages, rules, len(texts)))


def turns_of(found: Segmented) -> list[list[str]]:
    return [[message.turn_id for message in block.messages] for block in found.blocks]


def test_a_batch_is_grouped_with_one_call_that_shows_numbers_times_and_clipped_lines() -> None:
    model = replying()
    found = segmented(model, "sea boat", "cake oven", "sea wind", rules=replace(RULES, clip_chars=8))
    assert turns_of(found) == [["D1:1", "D1:3"], ["D1:2"]]
    assert "1. [2023-05-01T13:00:00] Ann: sea\n2. [2023-05-01T13:00:00] Ben: cak" in model.prompts[0]
    assert model.calls == [("segment", "D1:1..D1:3")]
    assert [block.reason for block in found.blocks] == [f"its messages share a subject: {x}" for x in ("sea", "cak")]
    assert found.counts == {"cut.batch": 1, "cut.model": 1}


def test_a_short_batch_is_one_episode_without_a_call() -> None:
    model = replying()
    found = segmented(model, "sea boat", "cake oven")
    assert turns_of(found) == [["D1:1", "D1:2"]] and model.calls == []
    assert found.counts == {"batch.unsegmented": 1, "cut.end": 1}


@pytest.mark.parametrize(
    ("reply", "lengths", "counted"),
    [
        ("no idea", [4], {"fallback.segment": 1, "segment.whole": 1, "cut.batch": 1}),
        ({"episodes": []}, [4], {"segment.whole": 1, "cut.batch": 1}),
        ('{"episodes": [{"indices": [1]}, {"indices": [2, 3', [1, 3],
         {"fallback.segment": 1, "segment.missing": 1, "cut.batch": 1, "cut.model": 1}),
    ],
)  # fmt: skip
def test_a_malformed_segmentation_keeps_its_groups_else_the_batch_is_one_episode(
    reply: Any, lengths: list[int], counted: dict[str, int]
) -> None:
    found = segmented(replying(segment=reply), "sea", "sea", "sea", "sea")
    assert [len(block) for block in turns_of(found)] == lengths
    assert found.counts == counted


@pytest.mark.parametrize(("name", "reason"), [("nemori", ""), ("nemori_code", "['a new topic']")])
def test_a_reason_of_another_type_is_shown_as_the_release_writes_it(name: str, reason: str) -> None:
    config = preset(name)
    model = replying(boundary={"should_end": True, "reason": ["a new topic"]})
    segmenter = Segmenter(model, make_roles(config.roles).boundary, config.boundary_rules)
    messages = [Message.of(turn, TurnFormat()) for turn in talk("a", "b").turns]
    (block,) = asyncio.run(segmenter.take_all(messages))
    assert block.reason == reason
