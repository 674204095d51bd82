"""Time left, rates and what a display says of them, on clocks that the tests move."""

import heapq
from collections.abc import Iterator

import pytest

from eval.pace import Pace
from eval.progress import LineProgress, Shown, Totals, Traffic, duration
from eval.terminal import console


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def pipeline(items: int, ahead: int, slots: int, first_calls: int, second_calls: int) -> Iterator[tuple[float, int]]:
    """When which step of an item ends on a backbone with ``slots`` slots, first come first served, a second a call.

    The first step runs up to ``ahead`` items early, the second in order, one at a time: as the runner ingests.
    """
    free = [0.0] * slots

    def calls(begun: float, number: int) -> float:
        for _ in range(number):
            begun = max(begun, heapq.heappop(free)) + 1.0
            heapq.heappush(free, begun)
        return begun

    written, prepared, events = 0.0, {}, []
    for item in range(items):
        for early in range(item, min(item + ahead, items)):
            if early not in prepared:
                begun = 0.0 if early < ahead else written
                prepared[early] = calls(begun, first_calls)
                events.append((prepared[early], 0, prepared[early] - begun))
        begun = max(written, prepared[item])
        written = calls(begun, second_calls)
        events.append((written, 1, written - begun))
    yield from ((moment, step) for moment, step, _ in sorted(events))
    pipeline.seconds = {(moment, step): seconds for moment, step, seconds in events}  # type: ignore[attr-defined]


@pytest.mark.parametrize("items", [73, 400])
@pytest.mark.parametrize(("first_calls", "second_calls"), [(1, 0), (1, 1), (1, 2), (1, 3), (2, 1), (0, 1)])
def test_time_left_is_right_within_a_factor_of_two_after_a_tenth(
    items: int, first_calls: int, second_calls: int
) -> None:
    clock, wrong = Clock(), []
    events = list(pipeline(items, 32, 8, first_calls, second_calls))
    seconds: dict[tuple[float, int], float] = pipeline.seconds  # type: ignore[attr-defined]
    end = events[-1][0]
    pace = Pace(items, clock=clock)
    for moment, step in events:
        clock.now = 100.0 + moment
        pace.passed(step, 1, seconds[moment, step])
        left, true = pace.seconds_left(), end - moment
        if 0.1 * end <= moment <= 0.9 * end and pace.done and left is not None:
            wrong += [(pace.done, left, true)] if not true / 2 <= left <= true * 2 else []
    assert wrong == []


def test_nothing_is_said_before_the_first_item_is_done() -> None:
    clock = Clock()
    pace = Pace(10, clock=clock)
    assert pace.seconds_left() is None and pace.rate() is None
    clock.now += 4
    pace.passed(0, 1, 4.0)
    assert pace.seconds_left() is None
    clock.now += 1
    pace.passed(1, 1, 1.0)
    assert pace.seconds_left() == pytest.approx(45)  # nine more of four seconds and one
    assert pace.rate() == pytest.approx(1 / 5)


def test_what_was_found_done_does_not_make_the_rest_look_fast() -> None:
    clock = Clock()
    pace = Pace(100, 40, clock=clock)
    pace.skip(40)
    for _ in range(10):
        clock.now += 2
        pace.passed(1, 1, 2.0)
    assert pace.done == 90 and pace.seconds_left() == pytest.approx(20) and pace.rate() == pytest.approx(0.5)


def test_all_done_leaves_nothing() -> None:
    pace = Pace(1)
    pace.passed(1, 1, 1.0)
    assert pace.seconds_left() == 0.0


def test_loading_is_no_part_of_rates_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    console.cache_clear()
    shown = Shown("rag on sample", lambda: Traffic(0, 0, 0, 0), "minilm", clock)
    with LineProgress(Totals(turns=11, questions=5), shown, every=0.0) as progress:
        clock.now += 3
        progress.prepared(1, 3.0)  # a call that needed no vector
        assert progress.time_left(progress.turns) == ""
        clock.now += 27
        progress.loaded(30.0)
        for _ in range(2):
            clock.now += 2
            progress.wrote(1, 2.0)
        assert progress.time_left(progress.turns) == "18 s left"
        assert progress.turns.rate() == pytest.approx(0.5)
        assert progress.time_left(progress.questions) == ""
        clock.now += 5
        progress.retrieved(1.0)
        progress.answered(1.0)
        assert progress.time_left(progress.questions) == "4 s left"
    console.cache_clear()
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "rag on sample: 0/11 turns, 0/5 questions, loading minilm"
    assert "loaded minilm in 30.0 s" in said
    assert "rag on sample: 2/11 turns, 0/5 questions, writing: 18 s left" in said


def test_durations_read_like_durations() -> None:
    assert [duration(seconds) for seconds in (0.4, 59.6, 185, 7800)] == ["0 s", "1 min 00 s", "3 min 05 s", "2 h 10 min"]
