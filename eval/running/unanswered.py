"""Unanswered calls: their share is checked early, reported with the setting that corrects it, and ends the run."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eval.commands.terminal import say
from memsys.errors import BackboneUnusableError
from memsys.llm.ledger import CallRecord
from memsys.llm.outcomes import is_cut
from memsys.settings import check_between, check_minimum

#: Outcome of an unanswered call -> the settings that correct it.
_ADVICE = {
    "empty, cut at their limit of tokens": (
        "the model may have spent its token limit on reasoning: raise {role}.max_tokens, switch thinking off "
        "(backbone.thinking, backbone.thinking_switch), or start the server with its reasoning parser"
    ),
    "empty": (
        "see backbone.prompt_mode and the server's chat template, switch thinking off (backbone.thinking, "
        "backbone.thinking_switch), or start the server with its reasoning parser"
    ),
    "cut at their limit of tokens": "raise {role}.max_tokens, or switch thinking off (backbone.thinking)",
    "malformed": (
        "let the server bind replies to the schema, where it can (backbone.structured=json_schema or json_object), "
        "{plain}raise {role}.max_tokens, or start the server with its reasoning parser"
    ),
    "withheld": "a filter withholds them: change the filter of the server, or choose another backbone",
}
_ALL = "replies"
_PLAIN = "choose a reader of plain text (reader=locomo), "
_ANSWER, _JUDGE = "answer", "judge"


@dataclass(frozen=True, slots=True)
class UnansweredLimits:
    """The ``unanswered:`` node of the configuration; none of it can change an answer.

    Attributes:
        first_calls: calls after which the share of those that answer nothing is looked at: of all calls, of the
            reader's, and of each role's.
        warn_share: from which it is said.
        stop_share: from which, of all calls or of the reader's, the run stops; ``None``: it continues.
        failures_in_a_row: questions that fail after all resends, none answered between them, beyond which the server
            counts as down.
    """

    first_calls: int = 20
    warn_share: float = 0.5
    stop_share: float | None = 0.9
    failures_in_a_row: int = 5

    def __post_init__(self) -> None:
        """Refuse what is not a count and no share.

        Raises:
            ConfigError: names the setting.
        """
        check_minimum(self, "unanswered", first_calls=1, failures_in_a_row=0)
        check_between("unanswered.warn_share", self.warn_share, 0, 1, above=True)
        if self.stop_share is not None:
            check_between("unanswered.stop_share", self.stop_share, 0, 1, above=True)


#: What holds where nothing is said.
UNANSWERED = UnansweredLimits()


def read_unanswered(settings: Mapping[str, Any] | None) -> UnansweredLimits:
    """Read the ``unanswered:`` node; without one the defaults hold."""
    return UnansweredLimits(**(settings or {}))


@dataclass(slots=True)
class _Group:
    """Calls that are looked at together, and how many of them answered nothing in which way."""

    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    said: bool = False

    @property
    def share(self) -> float:
        """Of the calls that answered nothing."""
        return self.kinds.total() / self.calls


class UnansweredWatch:
    """Counts the calls of a run as they come.

    Args:
        limits: of the run.
        warn: takes a line.
    """

    def __init__(self, limits: UnansweredLimits, warn: Callable[[str], None] | None = None) -> None:
        self._limits, self._warn = limits, warn or _say
        self._groups: dict[str, _Group] = {}

    def see(self, call: CallRecord) -> None:
        """Count a call.

        Raises:
            BackboneUnusableError: of the first calls too many answered nothing.
        """
        kind = _kind(call)
        reader = call.phase == _ANSWER
        role = "judge.role" if call.phase == _JUDGE else f"{'reader' if reader else 'memory'}.roles.{call.role}"
        for name, stops in ((_ALL, True), (f"replies of {role}", reader)):
            group = self._groups.setdefault(name, _Group())
            group.calls += 1
            group.kinds += Counter([kind] if kind else [])
            if group.calls == self._limits.first_calls:
                self._look(name, group, role, stops)

    def close(self) -> None:
        """Say of a role what its first calls did not show, or of which there were not so many."""
        for name, group in self._groups.items():
            if name != _ALL and not group.said and group.share >= self._limits.warn_share:
                self._warn(_text(f"the {group.calls} {name}", group, name.rpartition(" ")[2]))

    def _look(self, name: str, group: _Group, role: str, stops: bool) -> None:
        limits = self._limits
        if group.share < limits.warn_share:
            return
        group.said = True
        text = _text(f"the first {group.calls} {name}", group, role)
        if stops and limits.stop_share is not None and group.share >= limits.stop_share:
            raise BackboneUnusableError(
                f"{text}. The run stops here (unanswered.stop_share={limits.stop_share:g}; null: never stop)"
            )
        if name != _ALL or len(self._groups) > 2:  # of one role alone it would be said twice
            self._warn(text)


def _kind(call: CallRecord) -> str:
    """Return why a call is unanswered; empty where it was answered.

    A reply of a memory's role that was cut counts where it is blank or malformed alone: some are asked for one token.
    """
    cut = is_cut(call.finish_reason)
    if call.outcome == "empty" and cut:
        return "empty, cut at their limit of tokens"
    if call.outcome == "answered":
        return "cut at their limit of tokens" if cut and call.phase == _ANSWER else ""
    return call.outcome


def _text(which: str, group: _Group, role: str) -> str:
    found = ", ".join(f"{count} are {kind}" for kind, count in group.kinds.most_common())
    plain = _PLAIN if role.startswith("reader.") else ""
    advice = _ADVICE[group.kinds.most_common(1)[0][0]].format(role=role, plain=plain)
    return f"of {which} {found}: {advice}"


def _say(line: str) -> None:
    say(f"warning: {line}", style="yellow")
