"""What a run's settings say of a value: whether another run repeats it, and what it cost."""

from collections.abc import Mapping
from typing import Any

import pytest

from eval.report.runs import run_costs
from eval.results.stored_run import StoredRun
from eval.results.tables.determinism import repeats_exactly

SAME_REPLIES = {"name": "gpt4o_mini", "engine": {"batch_invariant": True}, "temperature": 0.0}
READ = {"calls": 1.0, "prompt_tokens": 1000.0, "completion_tokens": 100.0}


def run_of(config: Mapping[str, Any]) -> StoredRun:
    record = {"run_id": "a-0", "mode": "answers", "config": config}
    calls = {"by_phase": {"answer": {"total": READ}}}
    return StoredRun(record, {}, {"cost": {"read_per_question": READ}, "calls": calls, "counts": {"rows": 1}}, ())


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (None, "greedy, batch-invariant"),
        (SAME_REPLIES, "greedy, batch-invariant"),
        ({**SAME_REPLIES, "temperature": 0.7}, ""),
        ({**SAME_REPLIES, "engine": {}}, ""),
    ],
)
def test_both_backbones_must_repeat_themselves(second: Mapping[str, Any] | None, said: str) -> None:
    assert repeats_exactly(run_of({"backbone": SAME_REPLIES, "second": second}), "f1_set") == said


def test_two_backbones_have_no_price_in_common() -> None:
    one, two = (run_of({"backbone": SAME_REPLIES, "second": second}) for second in (None, {"name": "gpt4o"}))
    assert run_costs(one)["dollars"] == pytest.approx((1000 * 0.15 + 100 * 0.60) / 1e6, abs=1e-6)
    assert "dollars" not in run_costs(two)
