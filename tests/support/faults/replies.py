"""Cases: every request of one role, or every other, meets one kind of bad reply."""

from dataclasses import dataclass
from typing import Any

from tests.support.bad_replies import BAD_REPLIES
from tests.support.faults.bench import Bench
from tests.support.faults.forked import Ended
from tests.support.faults.runs import outcome, unlike


@dataclass(frozen=True)
class ReplyCase:
    """``every``: 1 for all requests of the role, 2 for half of them."""

    preset: str
    role: str
    kind: str
    every: int = 1

    def label(self) -> str:
        """Say what is done."""
        return f"{self.preset}: role {self.role} gets {self.kind} for 1 request in {self.every}"


def run_reply_case(bench: Bench, case: ReplyCase) -> dict[str, Any]:
    """Run against the bad server, then, where the run stopped, against the good one."""
    folder = bench.folder()
    address = f"fault/{case.role}/{case.kind}/{case.every}"
    ended = bench.run(case.preset, folder, address=address)
    problem = ended.problem() or _judged(bench, case, ended, folder)
    bench.forget(folder)
    return {"problem": problem, "ended": ended.code, "seconds": round(ended.seconds, 2)}


def _judged(bench: Bench, case: ReplyCase, ended: Ended, folder: Any) -> str:
    bad, run, whole = BAD_REPLIES[case.kind], folder / "run", bench.whole(case.preset)
    if ended.code == 0:
        return _complete(bench, case, run)
    if case.role not in ended.err and bad.no_reply:
        return f"the message does not name the role: {ended.err[-300:]}"
    again = bench.run(case.preset, folder)
    if again.problem() or again.code:
        return f"not resumable: {again.problem() or again.err[-300:]}"
    return unlike(run, whole) if bad.no_reply else ""


def _complete(bench: Bench, case: ReplyCase, run: Any) -> str:
    """A run that went to its end: all is answered or settled, and the ledger tells of the bad replies."""
    from eval.runs.files import read_json_lines

    bad = BAD_REPLIES[case.kind]
    try:
        answered = outcome(run)["answers"]
    except AssertionError as error:  # a problem of this case, not of the campaign
        return str(error)
    rows = [row for row in read_json_lines(run / "calls.jsonl") if row["role"] == case.role]
    settled = list(read_json_lines(run / "settled.jsonl")) if (run / "settled.jsonl").is_file() else []
    if len(answered) + len(settled) != len(bench.rows(case.preset, "answers.jsonl")):
        return "complete, but a question has neither an answer nor a reason for none"
    if any(not row["reason"] or (row["outcome"] == "failed" and case.role not in row["reason"]) for row in settled):
        return "the reason of a settled question does not name what failed"
    if any(row["prompt_tokens"] < 0 or row["completion_tokens"] < 0 for row in rows):
        return "the ledger has a negative number of tokens"
    if bad.harmless:
        return unlike(run, bench.whole(case.preset))
    if case.every > 1:
        return ""
    if bad.no_reply and not settled:
        return "complete, although the role never got a reply"
    if bad.no_object and case.role in bench.bound(case.preset) and not all(row["malformed"] for row in rows):
        return "complete, and calls without an object are not counted as malformed"
    return ""
