"""Expected numbers of calls of a memory system, for estimates of a run's cost.

A system's config offers ``expected_calls`` and ``context_tokens`` (:class:`PlansCalls`). Counts follow from the method
(a note is analysed once, a question has one answer) or from a rate that real runs have shown, named next to it. Lengths
are sums of parts: template, turns, notes. ``memsys sweep check`` compares all of it with the
ledgers of real runs.
A config that offers neither is planned without its own calls, and the plan says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from typing import Any, Protocol, runtime_checkable

from memsys.assets.paths import ROOT
from memsys.llm.scope import Phase

CHARS_PER_TOKEN = 4.2
#: Tokens of a short reply (a choice, a list of keywords), where nothing in the role's settings bounds it.
SHORT_TOKENS = 20
#: A reply's envelope (names of fields, brackets) besides its text.
ENVELOPE_TOKENS = 12


@dataclass(frozen=True, slots=True)
class DataShape:
    """Sizes of a data set.

    Attributes:
        turns: of each conversation.
        sessions: turns of each session of all conversations.
        questions: by kind.
        turn_tokens: mean of a turn as systems see it.
        question_tokens: mean of a question.
    """

    turns: Sequence[int]
    sessions: Sequence[int]
    questions: Mapping[str, int]
    turn_tokens: float = 40.0
    question_tokens: float = 16.0

    @property
    def asked(self) -> int:
        """Questions of all kinds."""
        return sum(self.questions.values())


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """Calls of one role.

    Attributes:
        phase: of the run.
        role: name.
        calls: over the whole data set.
        prompt: tokens of each prompt.
        reply: tokens of each reply.
        shared: equal for systems that make the very same calls; empty for calls of a system's own.
    """

    phase: Phase
    role: str
    calls: float
    prompt: float
    reply: float
    shared: str = ""


@runtime_checkable
class PlansCalls(Protocol):
    """A memory config that can say what it will ask of the backbone."""

    def expected_calls(self, shape: DataShape) -> Sequence[ExpectedCalls] | None:
        """Return the calls of each role over such a data set; ``None`` where a part of the system cannot say."""

    def context_tokens(self, shape: DataShape) -> float:
        """Return the mean tokens of the context that the reader is shown for a question."""


def reply_tokens(role: Mapping[str, Any], usual: float) -> float:
    """Return the length of a reply: as usual, but no more than its settings allow."""
    limits = [usual, float(role.get("max_tokens") or usual)]
    if role.get("max_chars"):
        limits.append(float(role["max_chars"]) * (role.get("max_items") or 1) / CHARS_PER_TOKEN + ENVELOPE_TOKENS)
    return min(limits)


@cache
def template_tokens(path: str) -> float:
    """Return the length of a prompt's template."""
    return len((ROOT / path).read_text(encoding="utf-8")) / CHARS_PER_TOKEN


def settings_key(config: Any, *reading: str) -> str:
    """Return the key of the write path's calls, equal for settings that differ only in name and in ``reading``."""
    assert is_dataclass(config) and not isinstance(config, type)
    fields = {name: value for name in config.__dataclass_fields__ if (value := getattr(config, name)) is not None}
    kept = {name: value for name, value in fields.items() if name not in (*reading, "name")}
    return f"{type(config).__name__} {sorted(kept.items(), key=str)}"
