"""A fault for every method and of every kind; ``make fault-campaign`` tries hundreds.

What must hold: a killed run that is taken up again ends with the answers, contexts, hits and booked calls of an
undisturbed one. A bad reply is counted, or stops the run with one message, and the run can be taken up again. A damaged
file is repaired or named. A full disk is one message. Nothing hangs, and nobody sees a traceback.
"""

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.support.bad_replies import BAD_REPLIES
from tests.support.composing import IN_PROCESS as PRESETS
from tests.support.faults.damage import DAMAGES, SWAPPED

Try = Callable[..., list[dict[str, Any]]]

#: Commands that read a run; each damage meets one of them here and all in the long form.
COMMANDS = ("score", "compare", "export", "lens", "explain", "report")


def check(results: list[dict[str, Any]]) -> None:
    assert results
    for result in results:
        assert result["problem"] == "", result["case"]


#: Without ablations, whose one changed value leaves the way of a run as it is; the long form kills those too.
KILLED = tuple(name for name in PRESETS if not re.search(r"_(cap|fixed|n_init|no|tau)_", name))


@pytest.mark.parametrize("preset", KILLED)
def test_a_killed_run_ends_as_an_undisturbed_one(preset: str, attempt: Try) -> None:
    results = attempt("kills", preset)
    check(results)
    assert sum(result["kills"] for result in results) > 0


@pytest.mark.parametrize("kind", BAD_REPLIES)
def test_a_bad_reply_is_counted_or_stops_the_run(kind: str, attempt: Try) -> None:
    check(attempt("replies", Random(kind).choice(PRESETS[::8]), kind=kind))


@pytest.mark.parametrize("state", ["complete", "interrupted"])
@pytest.mark.parametrize("damage", [*DAMAGES, SWAPPED])
def test_a_run_with_a_damaged_file_is_repaired_or_names_it(damage: str, state: str, attempt: Try) -> None:
    check(attempt("files", "rag", state=state, damage=damage, command="run"))


@pytest.mark.parametrize("damage", [*DAMAGES, SWAPPED])
def test_commands_repair_or_name_a_damaged_file(damage: str, attempt: Try) -> None:
    check(attempt("files", "rag", state="complete", damage=damage, command=Random(damage).choice(COMMANDS)))


@pytest.mark.parametrize(
    ("kind", "amount", "file"),
    [("size", 600, ""), ("size", 5_000, ""), ("full", 1, "calls.jsonl"), ("full", 1, "cache"),
     ("full", 0, "answers.jsonl"), ("read-only", 0, "")],
)  # fmt: skip
def test_a_disk_that_cannot_be_written_is_one_message(kind: str, amount: int, file: str, attempt: Try) -> None:
    check(attempt("disks", "rag", kind=kind, amount=amount, file=file))
