"""A run whose first calls answer nothing says so within twenty calls, names the setting, and stops."""

from dataclasses import replace
from typing import Any

import pytest

from eval.running.unanswered import UnansweredLimits, UnansweredWatch
from memsys.errors import BackboneUnusableError, ConfigError
from memsys.llm.ledger import CallRecord

GOOD = CallRecord(
    "c", "answer", "default", "q", "q", 0, 1, 1, 0.1, 0.0, "stop", False, False, False, 0, "0" * 64, "a",
    outcome="answered",
)  # fmt: skip
EMPTY, CUT_EMPTY = replace(GOOD, outcome="empty"), replace(GOOD, outcome="empty", finish_reason="length")
MALFORMED, CUT = replace(GOOD, outcome="malformed"), replace(GOOD, finish_reason="length")
WITHHELD = replace(GOOD, outcome="withheld", finish_reason="content_filter")


def watched(*calls: CallRecord, **limits: Any) -> list[str]:
    said: list[str] = []
    watch = UnansweredWatch(UnansweredLimits(**limits), said.append)
    for call in calls:
        watch.see(call)
    watch.close()
    return said


@pytest.mark.parametrize(
    ("call", "kind", "setting"),
    [
        (EMPTY, "empty", "reasoning parser"),
        (CUT_EMPTY, "empty, cut at their limit of tokens", "reader.roles.default.max_tokens"),
        (CUT_EMPTY, "empty, cut at their limit of tokens", "backbone.thinking"),
        (CUT, "cut at their limit of tokens", "reader.roles.default.max_tokens"),
        (MALFORMED, "malformed", "backbone.structured=json_schema"),
        (WITHHELD, "withheld", "filter of the server"),
    ],
)
def test_twenty_calls_that_answer_nothing_stop_the_run(call: CallRecord, kind: str, setting: str) -> None:
    assert watched(*[call] * 19, GOOD, warn_share=1.0, stop_share=1.0) == []
    with pytest.raises(BackboneUnusableError) as raised:
        watched(*[call] * 18, GOOD, GOOD)
    said = str(raised.value)
    assert said.startswith(f"of the first 20 replies 18 are {kind}: ") and setting in said
    assert "unanswered.stop_share=0.9; null: never stop" in said


def test_a_share_between_the_limits_is_said_and_the_run_goes_on() -> None:
    said = watched(*[EMPTY] * 10, *[GOOD] * 30)
    assert [line.partition(": ")[0] for line in said] == [
        "of the first 20 replies of reader.roles.default 10 are empty"
    ]
    judged = watched(*[replace(MALFORMED, phase="judge")] * 20, stop_share=None)
    assert len(judged) == 1 and "of judge.role 20 are malformed" in judged[0] and "reader" not in judged[0]
    assert watched(*[EMPTY] * 9, *[GOOD] * 11) == []
    assert len(watched(*[EMPTY] * 40, stop_share=None)) == 1


def test_a_role_of_the_memory_is_named_and_stops_no_run() -> None:
    """Beside others that answer it may be an ablation's; of all calls too many stop the run."""
    router = replace(MALFORMED, phase="write", role="route")
    said = watched(*[router, replace(GOOD, phase="write")] * 20)
    assert said[0].startswith("of the first 20 replies 10 are malformed")
    assert said[1].startswith("of the first 20 replies of memory.roles.route 20 are malformed")
    with pytest.raises(BackboneUnusableError, match=r"20 are malformed: .*memory\.roles\.route\.max_tokens"):
        watched(*[router] * 20)


def test_the_reader_stops_the_run_however_much_was_written_before() -> None:
    with pytest.raises(BackboneUnusableError, match=r"of the first 20 replies of reader\.roles\.default"):
        watched(*[replace(GOOD, phase="write")] * 50, *[EMPTY] * 20)


def test_a_memory_that_asks_for_one_token_is_not_cut() -> None:
    assert watched(*[replace(CUT, phase="retrieve", role="probe")] * 40) == []


def test_a_run_of_few_calls_says_it_at_its_end() -> None:
    (line,) = watched(CUT_EMPTY, CUT_EMPTY)
    assert line.startswith("of the 2 replies of reader.roles.default 2 are empty, cut at their limit of tokens")


def test_what_the_first_calls_did_not_show_is_said_at_the_end() -> None:
    (line,) = watched(*[GOOD] * 20, *[EMPTY] * 30)
    assert line.startswith("of the 50 replies of reader.roles.default 30 are empty: ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"first_calls": 0}, "first_calls"),
        ({"stop_share": 0}, "stop_share"),
        ({"stop_share": 1.5}, "stop_share"),
        ({"stop_share": True}, "stop_share"),
        ({"warn_share": None}, "warn_share"),
        ({"failures_in_a_row": -1}, "failures_in_a_row"),
    ],
)
def test_limits_that_cannot_be(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"unanswered\.{said}"):
        UnansweredLimits(**changes)
