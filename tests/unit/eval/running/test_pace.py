"""Time left, rates and what a display says of them, on clocks that the tests move."""

import heapq
import threading

import pytest

from eval.commands.counting import duration
from eval.commands.terminal import Stages, console
from eval.running import progress as progress_module
from eval.running.eta import AnsweringPace, WritingPace
from eval.running.progress import (
    DisplayState,
    LineProgress,
    RunProgress,
    RunTotals,
    TrafficSince,
    make_progress,
    traffic_note,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Backbone:
    """Some slots, a second a call, first come first served."""

    def __init__(self, slots: int) -> None:
        self.free = [0.0] * slots

    def calls(self, moment: float, number: int) -> float:
        for _ in range(number):
            moment = max(moment, heapq.heappop(self.free)) + 1.0
            heapq.heappush(self.free, moment)
        return moment


def writes(items: int, prepare_calls: int, write_calls: int) -> list[tuple[float, float]]:
    """End and length of every write of a conversation whose units are prepared up to 32 ahead, on eight slots."""
    backbone, prepared, written, events = Backbone(8), [0.0] * items, 0.0, []
    for unit in range(items):
        for early in range(items if unit == 0 else unit + 31, min(unit + 32, items)):
            prepared[early] = backbone.calls(written, prepare_calls)
        if unit == 0:
            for early in range(min(32, items)):
                prepared[early] = backbone.calls(0.0, prepare_calls)
        begun = max(written, prepared[unit])
        written = backbone.calls(begun, write_calls)
        events.append((written, written - begun))
    return events


def within_two(left: float | None, true: float) -> bool:
    return left is not None and true / 2 <= left <= true * 2


@pytest.mark.parametrize("items", [73, 419])
@pytest.mark.parametrize(("prepare_calls", "write_calls"), [(1, 1), (1, 3), (2, 1), (0, 1)])
def test_time_left_of_writing_is_right_within_a_factor_of_two(items: int, prepare_calls: int, write_calls: int) -> None:
    events = writes(items, prepare_calls, write_calls)
    end, clock = events[-1][0], Clock()
    pace = WritingPace(items, clock=clock)
    for moment, seconds in events:
        clock.now = 100.0 + moment
        pace.wrote(1, seconds)
        if 0.1 * items <= pace.done <= 0.9 * items and end - moment > 1:
            assert within_two(pace.seconds_left(), end - moment), (pace.done, end - moment)


@pytest.mark.parametrize("items", [100, 199, 1986])
@pytest.mark.parametrize("retrieve_calls", [0, 1, 2])
def test_time_left_of_answering_is_right_within_a_factor_of_two(items: int, retrieve_calls: int) -> None:
    """Sixty-four questions in flight on eight slots: they come in waves; the answer is one call more."""
    backbone, started = Backbone(8), min(64, items)
    steps: list[tuple[float, str, float]] = []
    queue = [(0.0, number, 0, 0.0) for number in range(started)]  # next call from, number, calls made, step begun
    while queue:
        moment, number, made, begun = heapq.heappop(queue)
        if made == retrieve_calls:
            steps.append((moment, "retrieved", moment - begun))
            begun = moment
        if made <= retrieve_calls:
            heapq.heappush(queue, (backbone.calls(moment, 1), number, made + 1, begun))
            continue
        steps.append((moment, "answered", moment - begun))
        if started < items:
            heapq.heappush(queue, (moment, started, 0, moment))
            started += 1
    end, clock = max(moment for moment, _, _ in steps), Clock()
    pace = AnsweringPace(items, clock=clock)
    for moment, step, seconds in sorted(steps):
        clock.now = 100.0 + moment
        getattr(pace, step)(seconds)
        if 0.1 * end <= moment <= 0.9 * end and pace.done:
            assert within_two(pace.seconds_left(), end - moment), (pace.done, pace.seconds_left(), end - moment)


def test_nothing_is_said_before_the_first_item_is_done() -> None:
    clock = Clock()
    writing, answering = WritingPace(10, clock=clock), AnsweringPace(10, clock=clock)
    assert writing.seconds_left() is None and writing.rate() is None
    answering.retrieved(4.0)
    assert answering.seconds_left() is None
    clock.now += 1
    answering.answered(1.0)
    assert answering.seconds_left() == pytest.approx(45)  # nine more of four seconds and one
    writing.wrote(1, 1.0)
    assert writing.seconds_left() == pytest.approx(9)


def test_what_was_found_done_does_not_make_the_rest_look_fast() -> None:
    clock = Clock()
    pace = WritingPace(100, 40, clock=clock)
    pace.skip(40)
    for _ in range(10):
        clock.now += 2
        pace.wrote(1, 2.0)
    assert pace.done == 90 and pace.seconds_left() == pytest.approx(20) and pace.rate() == pytest.approx(0.5)


@pytest.mark.parametrize(("before", "after"), [(0.1, 15.0), (15.0, 1.0)])
def test_time_left_goes_by_what_turns_cost_now(before: float, after: float) -> None:
    """CLAG first fills its buffer, a resumed run first finds its replies in the cache: later turns cost more."""
    clock = Clock()
    pace = WritingPace(419, clock=clock)
    for seconds in [before] * 100 + [after] * 150:
        clock.now += seconds
        pace.wrote(1, seconds)
    assert pace.seconds_left() == pytest.approx(169 * after)


def test_several_turns_written_at_once_far_apart_still_have_a_pace() -> None:
    clock = Clock()
    pace = WritingPace(400, clock=clock)
    for _ in range(3):
        clock.now += 600
        pace.wrote(100, 600.0)
    assert pace.seconds_left() == pytest.approx(600)


def test_all_done_leaves_nothing() -> None:
    pace = WritingPace(1)
    pace.wrote(1, 1.0)
    assert pace.seconds_left() == 0.0


def test_loading_is_no_part_of_rates_and_time_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    console.cache_clear()
    shown = DisplayState("rag on sample", lambda: TrafficSince(0, 0, 0, 0), "minilm", clock)
    with LineProgress(RunTotals(turns=12, questions=5), shown, every=0.0) as progress:
        clock.now += 3
        progress.wrote(1, 1.0)  # needed no vector
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
    assert said[0] == "rag on sample: 0/12 turns, 0/5 questions, loading minilm"
    assert "loaded minilm in 30.0 s" in said
    assert "rag on sample: 3/12 turns, 0/5 questions, writing: 18 s left" in said


def test_answers_found_in_the_cache_do_not_make_the_others_look_fast() -> None:
    """124 of 199 were found in two seconds, and for twelve minutes three seconds were left."""
    clock, calls = Clock(), [0, 0]
    shown = DisplayState("rag on sample", lambda: TrafficSince(calls[0], 0, 0, calls[1]), "", clock)
    progress = RunProgress(RunTotals(turns=1, questions=199), shown)
    for _ in range(124):
        clock.now += 0.01
        calls[0] += 1
        calls[1] += 1
        progress.retrieved(0.01)
        progress.answered(0.01)
    assert progress.questions.done == 124 and progress.time_left(progress.questions) == ""
    for _ in range(5):
        clock.now += 10
        calls[0] += 1
        progress.retrieved(0.01)
        progress.answered(10.0)
    assert progress.questions.seconds_left() == pytest.approx(700, rel=0.05)


def test_calls_are_shown_while_no_turn_and_no_question_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("eval.running.progress._REPEAT_SECONDS", 0.01)
    console.cache_clear()
    clock, said = Clock(), threading.Semaphore(0)
    write = progress_module._print
    monkeypatch.setattr("eval.running.progress._print", lambda line: (write(line), said.release()))

    def traffic() -> TrafficSince:
        return TrafficSince(calls=60, tokens=600, in_flight=3, cache_hits=0)

    with LineProgress(RunTotals(turns=12, questions=5), DisplayState("gam on sample", traffic, clock=clock)):
        assert said.acquire(timeout=10)  # the line at the start
        clock.now += 30
        assert said.acquire(timeout=10)  # one that no event caused
    console.cache_clear()
    line = "gam on sample: 0/12 turns, 0/5 questions, 2.0 calls/s, 20 tokens/s, 3 in flight, no call ended for 30 s"
    assert capsys.readouterr().out.splitlines().count(line) == 2  # that one, and the line at the end


def test_lines_become_rarer_while_one_long_reply_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Seven lines in a row said 33/34 questions."""
    monkeypatch.setattr("eval.running.progress._REPEAT_SECONDS", 1000.0)
    console.cache_clear()
    clock, calls = Clock(), [33]

    def traffic() -> TrafficSince:
        return TrafficSince(calls=calls[0], tokens=600, in_flight=1, cache_hits=0)

    with LineProgress(RunTotals(12, 34, 12, 33), DisplayState("rag on sample", traffic, clock=clock)) as progress:
        moments = []
        for _ in range(106):
            before = progress._last
            progress.show()
            moments += [clock.now] if progress._last != before else []
            clock.now += 1
        assert [moment - 100 for moment in moments] == [15, 45, 105]
        calls[0] += 1
        clock.now += 14
        progress.show()
        assert progress._last == clock.now  # something ended: as often as before
    console.cache_clear()
    lines = capsys.readouterr().out.splitlines()
    assert "no call ended for 1 min 45 s" in lines[3] and "no call ended" not in lines[4]


@pytest.mark.parametrize("style", ["bars", "lines"])
def test_both_displays_show_counts_and_time_left(
    style: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    console.cache_clear()
    clock = Clock()
    shown = DisplayState("rag on sample", lambda: TrafficSince(10, 100, 1, 0), clock=clock)
    with make_progress(style, RunTotals(12, 34, 12), shown) as progress:
        for _ in range(4):
            clock.now += 15
            progress.retrieved(0.1)
            progress.answered(15.0)
    console.cache_clear()
    said = capsys.readouterr().out
    assert "4/34" in said and "5 min 38 s left" in said  # 45.1 s for four, thirty to go


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_a_row_fits_its_window_and_shows_what_counts(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 60 columns it was ``questions answer… 22/34  0.0/s  4 min 38 s left  0.0 calls/…``."""
    monkeypatch.setenv("COLUMNS", str(width))
    console.cache_clear()
    clock = Clock()
    shown = DisplayState("rag on locomo_sample", lambda: TrafficSince(4, 1800, 4, 0, 0.5), clock=clock)
    with make_progress("bars", RunTotals(73, 34, 73), shown) as progress:
        for _ in range(4):
            clock.now += 25
            progress.answered(25.0)
    console.cache_clear()
    row = next(line for line in capsys.readouterr().out.splitlines()[::-1] if "questions answered" in line)
    assert len(row.rstrip()) <= width and "…" not in row and "4/34  12 min 30 s left" in row and "0.0" not in row
    assert "2.4/min" in row and ("$0.5000" in row, "calls/min" in row) == (width > 60, width == 120)


def test_requests_in_flight_are_shown_before_the_first_is_answered() -> None:
    """On a slow machine the same line came a dozen times, as if nothing was asked."""
    assert traffic_note(TrafficSince(0, 0, 8, 0), 60.0) == "8 in flight"
    assert traffic_note(TrafficSince(0, 0, 0, 0), 60.0) == ""


def test_durations_read_like_durations() -> None:
    assert [duration(seconds) for seconds in (0.4, 59.4, 185, 7800)] == ["0 s", "59 s", "3 min 05 s", "2 h 10 min"]


def test_stages_are_named_where_nothing_was_said_for_three_seconds() -> None:
    clock, said = Clock(), []
    stages = Stages(clock, said.append)
    with stages.stage("reading runs"):
        clock.now += 2
        with stages.stage("quick"):
            clock.now += 1.5
            with stages.stage("drawing"):
                clock.now += 1
        with stages.stage("writing"):
            clock.now += 9
    assert said == ["drawing", "reading runs"]


def test_a_stage_is_not_named_again_after_each_one_within_it() -> None:
    """A log of `memsys tables` said "reading the runs" seven times in a row."""
    clock, said = Clock(), []
    stages = Stages(clock, said.append)
    with stages.stage("reading runs"):
        for _ in range(30):
            with stages.stage("reading rag"):
                clock.now += 2
            clock.now += 2
    assert said.count("reading runs") + said.count("reading rag") < 8
