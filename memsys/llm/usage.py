"""A memory's use of the backbone while it was written, by role."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from memsys.llm.attempt import CompletedAttempt
from memsys.llm.contract import LanguageModel, Reply, Role
from memsys.llm.passthrough import ForeignCall, complete
from memsys.vocabulary import Completion, Json

#: What is counted for each role. ``calls`` are questions asked: the run's ledger books each attempt.
COUNTED = ("calls", "prompt_tokens", "completion_tokens", "seconds")


@dataclass(slots=True)
class Usage:
    """Calls, tokens and service seconds by role, of each call's last attempt."""

    roles: dict[str, dict[str, float]] = field(default_factory=dict)

    def note(self, role: str, completion: Completion) -> None:
        """Count one call."""
        spent = (1, completion.prompt_tokens, completion.completion_tokens, completion.seconds)
        self._add(role, dict(zip(COUNTED, spent, strict=True)))

    def add(self, other: "Usage") -> None:
        """Count what another one counted."""
        for role, spent in other.roles.items():
            self._add(role, spent)

    @property
    def calls(self) -> int:
        """Calls of all roles."""
        return int(sum(spent["calls"] for spent in self.roles.values()))

    def _add(self, role: str, spent: Mapping[str, float]) -> None:
        total = self.roles.setdefault(role, dict.fromkeys(COUNTED, 0))
        for name in COUNTED:
            total[name] += spent[name]

    def state(self) -> dict[str, Json]:
        """Return the counts as JSON values, by role in alphabetical order."""
        return {role: dict(self.roles[role]) for role in sorted(self.roles)}

    @classmethod
    def from_state(cls, state: Mapping[str, Mapping[str, float]]) -> "Usage":
        """Make the counts that :meth:`state` described."""
        return cls({role: dict(spent) for role, spent in state.items()})


_metered: ContextVar[Usage | None] = ContextVar("memsys_metered", default=None)


@contextmanager
def metered() -> Iterator[Usage]:
    """Count the calls that a :class:`MeteredModel` gets inside, those of tasks started inside included."""
    usage = Usage()
    token = _metered.set(usage)
    try:
        yield usage
    finally:
        _metered.reset(token)


@contextmanager
def unmetered() -> Iterator[None]:
    """Count no calls inside: they repeat what was counted before."""
    token = _metered.set(None)
    try:
        yield
    finally:
        _metered.reset(token)


@dataclass(frozen=True, slots=True)
class MeteredModel:
    """A backbone that notes its calls in the usage that is open where they are made, if there is one."""

    llm: LanguageModel

    @property
    def context_length(self) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return self.llm.context_length

    async def ask(self, role: Role, values: Mapping[str, str], *, key: str) -> Reply:
        """Ask, then note the call."""
        reply = await self.llm.ask(role, values, key=key)
        usage = _metered.get()
        if usage is not None:
            usage.note(role.name, reply.completion)
        return reply

    async def complete(self, call: ForeignCall) -> CompletedAttempt:
        """Make a call whose request another program wrote, then note it."""
        answered = await complete(self.llm, call)
        usage = _metered.get()
        if usage is not None:
            usage.note(call.role, answered.completion)
        return answered

    async def count_tokens(self, text: str) -> int:
        """See :class:`memsys.llm.contract.LanguageModel`."""
        return await self.llm.count_tokens(text)
