"""Calls of the backbone behind an answer, and the first call in which two runs differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval.runs.load import load_calls
from eval.runs.records import JUDGING
from eval.scoring.call_costs import READ_PHASES
from memsys.llm.ledger import CallRecord
from memsys.vocabulary import Json

#: What is shown of a request's checksum.
_HASH = 10
#: Phases of calls about a question; those of the others are about turns.
_OF_QUESTIONS = frozenset({*READ_PHASES, JUDGING})


@dataclass(frozen=True, slots=True)
class Ledger:
    """Calls of one run: those about a question by its id, all others by conversation, in the order they ended."""

    by_question: Mapping[str, Sequence[CallRecord]] = field(default_factory=dict)
    writing: Mapping[str, Sequence[CallRecord]] = field(default_factory=dict)

    def question(self, question_id: str) -> list[Json]:
        """Return the calls of a question: phase, role, attempt, tokens, seconds, remarks, checksum."""
        return [_shown(call) for call in self.by_question.get(question_id, ())]


def read_ledger(folder: Path, questions: Sequence[str]) -> Ledger:
    """Read a run's calls; none where it made none."""
    if not (folder / "calls.jsonl").is_file():
        return Ledger()
    known = set(questions)
    by_question: dict[str, list[CallRecord]] = {}
    writing: dict[str, list[CallRecord]] = {}
    for call in load_calls(folder):
        if call.phase in _OF_QUESTIONS and call.item in known:  # a turn may be called as a question is
            by_question.setdefault(call.item, []).append(call)
        else:
            writing.setdefault(call.conversation_id, []).append(call)
    return Ledger(by_question, writing)


def _shown(call: CallRecord) -> Json:
    remarks = [
        name
        for name, holds in (
            ("malformed", call.malformed),
            ("repaired", call.repaired),
            ("from the cache", call.cache_hit),
            ("cut off", call.finish_reason == "length"),
        )
        if holds
    ]
    return [
        call.phase, call.role, call.attempt, call.prompt_tokens, call.completion_tokens, round(call.seconds, 3),
        ", ".join(remarks), call.request_hash[:_HASH],
    ]  # fmt: skip


def first_difference(one: Sequence[CallRecord], other: Sequence[CallRecord]) -> str:
    """Return the first call while memories were written that only one run made, or made with another request.

    Calls are matched by phase, role, what they are about, and attempt, in the order of the first run.

    Returns:
        What differs, empty where nothing does.
    """
    theirs = {_key(call): call for call in other}
    for number, call in enumerate(one, start=1):
        match = theirs.get(_key(call))
        if match is None:
            return f"call {number}: {_name(call)} was made by the first run alone"
        if match.request_hash != call.request_hash:
            return f"call {number}: {_name(call)} has another request"
    ours = {_key(call) for call in one}
    extra = next((call for call in other if _key(call) not in ours), None)
    return f"{_name(extra)} was made by the second run alone" if extra else ""


def _key(call: CallRecord) -> tuple[str, str, str, int]:
    return call.phase, call.role, call.key, call.attempt


def _name(call: CallRecord) -> str:
    return f"{call.phase} {call.role} about {call.key}"
