"""Calls by role: hand-worked shares of a made-up ledger, and what a summary does not say."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from eval.results.own.roles import RoleCalls, role_calls, roles_page
from eval.results.stored_run import StoredRun
from eval.runs.records import ScoreRow

ANALYSE = {
    "calls": 20, "cache_hits": 5, "prompt_tokens": 4000, "completion_tokens": 600, "malformed": 1, "second_attempts": 1,
    "cut_short": 2, "cached_share": 0.25,
}  # fmt: skip
ANSWER = {**ANALYSE, "calls": 4, "cache_hits": 0, "prompt_tokens": 400, "completion_tokens": 10, "malformed": 0,
          "second_attempts": 0, "cut_short": 0, "cached_share": None}  # fmt: skip


def made(**phases: Any) -> StoredRun:
    config = {"memory": {"name": "clag"}, "dataset": {"name": "locomo"}, "backbone": {"name": "b"}}
    record = {"run_id": "x", "config": config, "mode": "answers", "seed": 0, "data": {}}
    by_phase = {phase: {"by_role": roles} for phase, roles in phases.items()}
    summary = {"calls": {"by_phase": by_phase}, "memory": {"sizes": {"turns": {"sum": 10}}}, "counts": {"rows": 4}}
    return StoredRun(record, {}, summary, (ScoreRow("q", "c", 4, {"f1_set": 1.0}),))


def test_shares_of_a_role_by_hand() -> None:
    run = made(prepare={"analyse": ANALYSE}, answer={"default": ANSWER}, judge={"judge": ANSWER})
    analyse, answer = role_calls(run)
    # 20 calls for 10 turns; 5 of 100 are percents of 20: one malformed is 5, two cut 10, five from the cache 25.
    assert analyse == RoleCalls("prepare", "analyse", 20, 2.0, None, 200.0, 30.0, 25.0, 5.0, 1, 10.0, 25.0)
    assert answer == RoleCalls("answer", "default", 4, None, 1.0, 100.0, 2.5, None, 0.0, 0, 0.0, 0.0)


def test_what_older_summaries_did_not_count_is_a_dash() -> None:
    older = {name: value for name, value in ANALYSE.items() if name not in ("cut_short", "second_attempts")}
    [found] = role_calls(made(write={"evolve": older}))
    assert (found.cut_short, found.asked_again, found.malformed) == (None, None, 5.0)
    page = roles_page([made(write={"evolve": older})]).files["calls_by_role.md"]
    assert "| write | evolve | 20 | 2.00 | – | 200 | 30 | 25.0 % | 5.0 % | – | – | 25.0 % |" in page


@pytest.mark.parametrize("suffix", ["md", "csv", "tex"])
def test_every_format_has_every_role_and_a_run_without_ledger_none(suffix: str) -> None:
    run = made(prepare={"analyse": ANALYSE}, answer={"default": ANSWER})
    page = roles_page([run, replace(made(), summary={})]).files[f"calls_by_role.{suffix}"]
    assert "analyse" in page and "default" in page
    if suffix == "csv":
        first, second = csv.DictReader(io.StringIO(page))
        assert (first["role"], first["prefix_cached"], second["per_turn"]) == ("analyse", "25.0000", "")
